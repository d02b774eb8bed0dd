"""What tasks share travels once, and a task that was put together again is what it was."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from fedkt.system.backends.backend import Queue, block_results
from fedkt.system.backends.sharing import Place, leaves, put_back, take_out

LARGE, SMALL = np.zeros(20_000), np.zeros(10)


@dataclass(frozen=True)
class Strict:
    rows: Any
    name: str

    def __post_init__(self):
        if len(self.rows) == 0:
            raise ValueError("no rows")


class Pair(NamedTuple):
    first: Any
    second: Any


def test_what_more_than_half_of_the_tasks_share_is_taken_out_once_and_put_back():
    own = [np.full(20_000, number) for number in range(4)]
    tasks = [(Strict(LARGE, str(number)), [Pair(LARGE, SMALL), each], number) for number, each in enumerate(own)]
    bare, shared = take_out(tasks)
    assert [id(each) for each in shared] == [id(LARGE)]
    assert bare[2][0].rows == Place(0)
    assert type(bare[2][1][0]) is Pair
    assert bare[2][1][1] is own[2]
    again = put_back(bare[3], shared)
    assert again[0].rows is LARGE
    assert (again[0].name, again[1][0].first is LARGE, again[1][0].second is SMALL, again[2]) == ("3", True, True, 3)
    # The tasks themselves are as they were.
    assert tasks[2][0].rows is LARGE


def test_a_table_of_two_in_five_tasks_goes_along_with_these():
    bare, shared = take_out([LARGE, LARGE, SMALL, SMALL, SMALL])
    assert shared == []
    assert bare[0] is LARGE


def test_keywords_of_a_partial_function_data_frames_and_sparse_matrices_are_looked_into():
    pandas = pytest.importorskip("pandas")
    from scipy.sparse import csr_array

    frame, sparse = pandas.DataFrame({"a": [1]}), csr_array(np.eye(2))
    task = partial(print, frame, sep=sparse)
    assert [id(each) for each in leaves(task)] == [id(frame), id(sparse)]
    bare, shared = take_out([task, task])
    again = put_back(bare[0], shared)
    assert again.args[0] is frame
    assert again.keywords["sep"] is sparse
    assert again.func is print


def test_blocks_are_a_fourth_of_each_workers_share_by_weight_and_one_task_towards_the_end():
    queue = Queue(abs, [(number, -number) for number in range(16)], [1] * 16)
    sizes = []
    while (block := queue.block(2)) is not None:
        sizes.append(len(block.tasks))
    # 16 / 8, 14 / 8, 12 / 8, 10 / 8, rounded up, then one by one.
    assert sizes == [2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    heavy = Queue(abs, [(0, 0), (1, 1), (2, 2)], [100, 1, 1])
    assert len(heavy.block(2).tasks) == 1
    assert heavy.weight == 2


def test_a_block_gives_numbered_results_and_one_taken_alone_is_complete():
    queue = Queue(np.sum, [(7, LARGE + 1), (5, LARGE), (3, LARGE), (1, LARGE)], [1, 1, 1, 1])
    shared = queue.share()
    assert len(shared) == 1
    assert queue.first()[0] == 7
    number, table = queue.first()
    assert (number, table is LARGE) == (5, True)
    assert block_results(queue.block(1), shared) == [(3, 0.0)]
    queue.clear()
    assert queue.first() is None
    assert queue.block(1) is None
