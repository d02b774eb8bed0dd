"""Work spread over processes, in order, with word of how far it is."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with how many pieces of work are done, and of how many."""
_rows: ContextVar[Path | None] = ContextVar("rows", default=None)


@contextmanager
def rows_in(folder: Path) -> Iterator[None]:
    """Arrays that other processes work on lie in `folder` inside the block, for its owner only; it ends with the block.

    What a killed process left there goes first.
    """
    # Left to itself joblib takes the machine's shared memory, where files are anybody's to read while they are written.
    mask = os.umask(0o077)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        before = _rows.set(folder)
        try:
            yield
        finally:
            _rows.reset(before)
            _end_workers()
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.umask(mask)


@cache
def _own_folder() -> Path:
    """A folder of this process that only its owner can look into; one for all work, so that workers are kept."""
    folder = Path(tempfile.mkdtemp(prefix="fedkt-rows-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


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
    folder = _rows.get() or _own_folder()
    finished = Parallel(n_jobs=jobs, return_as="generator_unordered", temp_folder=str(folder))(
        delayed(with_number)(work, index, tasks[index]) for index in order
    )
    for done, (index, result) in enumerate(finished, start=1):
        waiting[index] = result
        if progress is not None:
            progress(done, total)
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def _end_workers() -> None:
    """No worker of this process is left, nor what it holds in memory."""
    # Loaded only where work was spread.
    module = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(module, "_executor", None)
    if executor is not None:
        executor.shutdown(wait=True)


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


def with_number(work: Callable[[Task], Result], index: int, task: Task) -> tuple[int, Result]:
    """A result with the number of its task."""
    return index, work(task)


def cpu_clock() -> float:
    """CPU seconds of this process and of the workers it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
