"""Work spread over processes, in order, with word of how far it is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TypeVar

from fedkt.system.backends import backend_for

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
    stay: bool = False,
) -> Iterator[Result]:
    """The results of `work` in the order of `tasks`; the largest tasks are started first.

    Tasks that cost more to send than to do had better `stay` on this machine.
    """
    total = len(tasks)
    backend = backend_for(effective_jobs(jobs), stay=stay)
    if backend is None or total == 1:
        for position, task in enumerate(tasks):
            yield work(task)
            if progress is not None:
                progress(position + 1, total)
        return
    weights = [1] * total if sizes is None else list(sizes)
    order = sorted(range(total), key=lambda index: -weights[index])
    waiting: dict[int, Result] = {}
    following = 0
    finished = backend.spread(work, [(index, tasks[index]) for index in order], [weights[index] for index in order])
    with closing(finished):
        for done, (index, result) in enumerate(finished, start=1):
            waiting[index] = result
            if progress is not None:
                progress(done, total)
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def effective_jobs(jobs: int) -> int:
    """How many processes a number of jobs means: -1 is every core."""
    if jobs > 0:
        return jobs
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


def progress_counter(progress: Progress | None, total: int) -> Callable[[int], None]:
    """A function that is told how much more is done, and passes on how much there is in all."""
    done = 0

    def more(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    return more


def sub_progress(progress: Progress | None, before: int, total: int) -> Progress | None:
    """The progress of a part of some work, of which so much was done before."""
    return None if progress is None else lambda done, _: progress(before + done, total)


def cpu_clock() -> float:
    """CPU seconds of this process, finer than a tree takes, and of the workers it has waited for."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system
