"""Work spread over processes, in order, with word of how far it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with how many pieces of work are done, and of how many."""


def in_parallel(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    jobs: int,
    sizes: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """The results of `work` in the order of `tasks`; the largest tasks are started first."""
    total = len(tasks)
    if jobs == 1 or total == 1:
        for position, task in enumerate(tasks):
            yield work(task)
            if progress is not None:
                progress(position + 1, total)
        return
    from joblib import Parallel, delayed

    weights = [0] * total if sizes is None else list(sizes)
    order = sorted(range(total), key=lambda index: -weights[index])
    waiting: dict[int, Result] = {}
    following = 0
    finished = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(numbered)(work, index, tasks[index]) for index in order
    )
    for done, (index, result) in enumerate(finished, start=1):
        waiting[index] = result
        if progress is not None:
            progress(done, total)
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def counted(progress: Progress | None, total: int) -> Callable[[int], None]:
    """A function that is told how much more is done, and passes on how much there is in all."""
    done = 0

    def more(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    return more


def part_of(progress: Progress | None, before: int, total: int) -> Progress | None:
    """The progress of a part of some work, of which so much was done before."""
    return None if progress is None else lambda done, _: progress(before + done, total)


def numbered(work: Callable[[Task], Result], index: int, task: Task) -> tuple[int, Result]:
    """A result with the number of its task."""
    return index, work(task)


def cpu_clock() -> float:
    """CPU seconds of this process and of the workers it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
