"""Processes of this machine: this one, and others that join it once they pay.

A process that joins costs a start, most of it imports. Short work is therefore done where it is, and longer work shared
with as many others as cost a small part of it. Who does a task never changes its result: only the time and the place
hang on how long things take, which at a private level may hang on rows, and neither leaves this machine.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import numpy as np

from fedkt.errors import ConfigurationError, WorkerError
from fedkt.system.backends.backend import Backend, Block, Numbered, Queue, Results, Work, block_results

START_UP = 2.0
"""CPU seconds until another process can begin."""
MOST = 0.2
"""What starting others may cost, as a share of the whole work."""
LOOK = 0.1
"""Seconds between looks at whether others pay."""
IDLE = 300
"""Seconds for which a process without work is kept."""
_rows: ContextVar[Path | None] = ContextVar("rows", default=None)
_alone = 0.0
"""Seconds that this process has worked alone since others last joined it: where much was to do, more may come."""


class Loky(Backend):
    """This process, and with it others by joblib's loky."""

    name = "loky"
    joblib_name = "LokyBackend"

    @classmethod
    @contextmanager
    def connect(cls, address: str, jobs: int | None) -> Iterator[Backend]:
        """So many processes of this machine, one where nobody says how many."""
        if address:
            raise ConfigurationError(f"The backend loky is this machine and has no address; got {address!r}.")
        yield cls(jobs or 1)

    @classmethod
    def connected(cls, active: Any, jobs: int | None) -> Backend:
        """So many processes of this machine."""
        return cls(jobs or 1)

    def spread(self, work: Work, tasks: Sequence[Numbered], weights: Sequence[int]) -> Results:
        """The results, those of this process and of the others that joined it."""
        queue = Queue(work, tasks, weights)
        others = Others(queue, self.jobs, _rows.get() or _own_folder())
        mine = 0
        try:
            while (task := queue.first()) is not None:
                mine += 1
                yield task[0], work(task[1])
                while not others.results.empty():
                    mine += 1
                    yield others.next()
            others.over.set()
            for _ in range(len(tasks) - mine):
                yield others.next()
        except BaseException:
            queue.clear()
            others.over.set()
            # Whatever they work on, nobody waits for it any more; some may just be starting.
            while others.count and others.thread.is_alive():
                end_workers(kill=True)
                others.thread.join(LOOK)
            raise
        finally:
            others.thread.join()


class Others:
    """Processes that join this one, from a thread that looks whether they pay."""

    def __init__(self, queue: Queue, jobs: int, folder: Path) -> None:
        self.queue = queue
        self.jobs = jobs
        self.folder = folder
        self.weight = queue.weight
        self.count = 0
        """How many there are."""
        self.began = time.perf_counter()
        self.results: SimpleQueue[Numbered | BaseException] = SimpleQueue()
        self.over = Event()
        """Set when no task is left to begin."""
        self.thread = Thread(target=self.join_in, daemon=True)
        self.thread.start()

    def next(self) -> Numbered:
        """The next result of theirs."""
        result = self.results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def join_in(self) -> None:
        """Take part once that pays."""
        global _alone
        while not self.count and not self.over.wait(LOOK if START_UP else 0):
            self.count = self.count_that_pays()
        if not self.count:
            _alone += time.perf_counter() - self.began
            return
        _alone = 0.0
        try:
            self.work()
        except BaseException as reason:
            self.results.put(reason)

    def count_that_pays(self) -> int:
        """How many processes cost a small part of the work at most, as far as can be told by now."""
        begun = max(self.weight - self.queue.weight, 1)
        # What is begun is not done, so that it is rather more.
        whole = _alone + (time.perf_counter() - self.began) * self.weight / begun
        there = count_workers()
        fresh = int(MOST * whole / START_UP) if START_UP else self.jobs
        return min(self.jobs - 1, max(fresh, there)) if self.queue.tasks else 0

    def work(self) -> None:
        """Have them work until nothing is left."""
        from concurrent.futures import FIRST_COMPLETED, Future, wait
        from concurrent.futures.process import BrokenProcessPool

        from joblib.externals.loky import get_reusable_executor

        folder = Path(tempfile.mkdtemp(dir=self.folder))
        try:
            shared = [_keep(each, folder / f"{number}.npy") for number, each in enumerate(self.queue.share())]
            executor = get_reusable_executor(max_workers=max(self.count, count_workers()), timeout=IDLE)
            running: set[Future[list[Numbered]]] = set()
            while True:
                while len(running) <= self.count and (block := self.queue.block(self.count + 1)) is not None:
                    running.add(executor.submit(_results, block, shared))
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for each in finished:
                    for result in each.result():
                        self.results.put(result)
        except BrokenProcessPool as reason:
            raise WorkerError(
                "A process that was given work ended, for want of memory as a rule. Try again with fewer --jobs."
            ) from reason
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _keep(value: Any, path: Path) -> Any:
    """Where an array lies for all to read; anything else as it is."""
    if type(value) is not np.ndarray or value.dtype.hasobject:
        return value
    np.save(path, value, allow_pickle=False)
    return path


def _results(block: Block, shared: Sequence[Any]) -> list[Numbered]:
    """What a process that joined does."""
    return block_results(
        block, [np.load(each, "r", allow_pickle=False) if isinstance(each, Path) else each for each in shared]
    )


def _executor() -> Any:
    # Loaded only where work was spread.
    module = sys.modules.get("joblib.externals.loky.reusable_executor")
    return getattr(module, "_executor", None)


def count_workers() -> int:
    """How many processes have joined this one and wait for work."""
    return len(getattr(_executor(), "_processes", None) or ())


def end_workers(*, kill: bool = False) -> None:
    """No worker of this process is left, nor what it holds in memory."""
    executor = _executor()
    if executor is not None:
        executor.shutdown(wait=True, kill_workers=kill)


@contextmanager
def rows_in(folder: Path) -> Iterator[None]:
    """Arrays that other processes work on lie in `folder` inside the block, for its owner only; it ends with the block.

    What a killed process left there goes first.
    """
    mask = os.umask(0o077)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        before = _rows.set(folder)
        try:
            yield
        finally:
            _rows.reset(before)
            end_workers()
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.umask(mask)


@cache
def _own_folder() -> Path:
    """A folder of this process that only its owner can look into."""
    # Not the machine's shared memory, where files are anybody's to read while they are written.
    folder = Path(tempfile.mkdtemp(prefix="fedkt-rows-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
