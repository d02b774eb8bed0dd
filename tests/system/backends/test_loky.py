"""Other processes of this machine join in where they pay, and results are the same wherever a task is done."""

import os
import time

import numpy as np
import pytest

from cluster_work import nested, refuse, where
from fedkt.errors import ConfigurationError, DataError
from fedkt.system.backends import backend_for, joblibs_backend, loky, on_backend
from fedkt.system.parallel import in_parallel

TABLE = np.ones(200_000)


@pytest.fixture
def others_pay(monkeypatch):
    monkeypatch.setattr(loky, "START_UP", 0.0)


def slowly(task):
    time.sleep(0.2)
    return where(task)


def test_short_work_is_done_where_it_is(monkeypatch):
    loky.end_workers()
    monkeypatch.setattr(loky, "_alone", 0.0)
    found = list(in_parallel(where, [(TABLE, number) for number in range(5)], jobs=2))
    assert {each[0] for each in found} == {os.getpid()}
    assert [each[2] for each in found] == [200_000 + number for number in range(5)]


def test_others_join_in_and_the_table_lies_once_for_them_all(others_pay, tmp_path):
    done = []
    with loky.rows_in(tmp_path / "rows"):
        tasks = [(TABLE, number) for number in range(40)]
        found = list(in_parallel(slowly, tasks, jobs=2, progress=lambda *each: done.append(each)))
    assert [each[2] for each in found] == [200_000 + number for number in range(40)]
    assert len({each[0] for each in found}) == 2
    files = {each[1] for each in found if each[0] != os.getpid()}
    assert len(files) == 1
    assert files.pop().startswith(str(tmp_path / "rows"))
    assert done == [(number, 40) for number in range(1, 41)]


def test_as_many_join_as_cost_a_fifth_of_the_work(monkeypatch):
    from fedkt.system.backends.backend import Queue

    monkeypatch.setattr(loky, "count_workers", lambda: 0)
    monkeypatch.setattr(loky, "_alone", 0.0)
    monkeypatch.setattr(loky.Others, "join_in", lambda self: None)
    queue = Queue(abs, [(number, number) for number in range(10)], [1] * 10)
    others = loky.Others(queue, 8, None)
    queue.first()
    # One of ten is begun: 4 seconds are 40 in all, of which a fifth starts 4 processes at 2 seconds.
    for seconds, count in ((0.5, 0), (1.2, 1), (4.0, 4), (100.0, 7)):
        monkeypatch.setattr(loky.time, "perf_counter", lambda now=others.began + seconds + 0.001: now)
        assert others.count_that_pays() == count
    queue.clear()
    assert others.count_that_pays() == 0


def test_an_error_of_a_process_that_joined_is_heard_here_in_its_own_words(others_pay):
    with pytest.raises(DataError, match="is none"):
        list(in_parallel(refuse, [1, 2, 3, 4], jobs=2))


def test_whoever_stops_listening_waits_for_nobody(others_pay):
    results = in_parallel(slowly, [(TABLE, number) for number in range(600)], jobs=2)
    next(results)
    started = time.monotonic()
    results.close()
    assert time.monotonic() - started < 60


def test_nothing_inside_a_task_is_spread_again_where_another_process_does_it(others_pay):
    with on_backend("loky", 3) as jobs:
        assert jobs == 3
        assert backend_for(1) is None
    assert {"SequentialBackend"} >= {name for name, count in in_parallel(nested, range(8), jobs=2) if count == 1}


@pytest.mark.parametrize("text", ["loki", "loky=here", "dask:tcp://a"])
def test_a_backend_that_is_none_is_refused_in_words(text):
    with pytest.raises(ConfigurationError, match="backend"), on_backend(text, None):
        pass


def test_the_number_that_joblib_was_given_is_taken_where_nobody_says_another():
    from joblib import parallel_config

    with joblibs_backend(None) as jobs:
        assert jobs == 1
    with parallel_config("loky", n_jobs=3):
        with joblibs_backend(None) as jobs:
            assert jobs == 3
        with joblibs_backend(2) as jobs:
            assert jobs == 2
