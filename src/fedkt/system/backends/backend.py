"""What a backend is: somewhere that does pieces of work, in any order, and gives their results."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from fedkt.system.backends.sharing import put_back, take_out
from fedkt.system.threads import one_thread

Work = Callable[[Any], Any]
Numbered = tuple[int, Any]
"""A task or a result, and the number of the task."""
Results = Generator[Numbered, None, None]
INSTALL = "Run: pip install 'fedkt[cluster]'"
PARTS = 4
"""A block is a fourth of what each worker has still to do: few blocks at first, small ones towards the end."""
_one_block = threading.Lock()


class Backend(ABC):
    """Somewhere to do pieces of work; a cluster belongs to one organisation."""

    name: ClassVar[str]
    """What `--backend` calls it."""
    joblib_name: ClassVar[str]
    """The class by which joblib knows it, where a program has chosen it with `joblib.parallel_config`."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        """How many blocks are worked on at the same time."""

    @classmethod
    @abstractmethod
    def connect(cls, address: str, jobs: int | None) -> AbstractContextManager[Backend]:
        """One that works inside the block: at this address, or of its own where that is empty.

        `jobs` is the most it may do at the same time; None leaves it to the backend.
        """

    @classmethod
    @abstractmethod
    def connected(cls, active: Any, jobs: int | None) -> Backend | None:
        """One for the `active` backend of joblib's; None where this process is itself at work for it."""

    @abstractmethod
    def spread(self, work: Work, tasks: Sequence[Numbered], weights: Sequence[int]) -> Results:
        """The result of `work` for each task, in any order; `weights` say about how much work each is."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some tasks that a worker does one after the other, without what they share with those of other blocks."""

    work: Work
    tasks: tuple[Numbered, ...]


def block_results(block: Block, shared: Sequence[Any]) -> list[Numbered]:
    """The results of a block, in a worker: each on one thread, and nothing inside a task is spread again."""
    from joblib import parallel_config

    # Threads of one worker would have each other's thread limits, and with them other last digits.
    with _one_block, one_thread(), parallel_config(backend="sequential"):
        work = put_back(block.work, shared)
        return [(number, work(put_back(task, shared))) for number, task in block.tasks]


class Queue:
    """Tasks that nobody has begun, and what many of them share."""

    def __init__(self, work: Work, tasks: Sequence[Numbered], weights: Sequence[int]) -> None:
        self.work = work
        self.tasks = deque(zip(tasks, (max(1, each) for each in weights), strict=True))
        self.weight = sum(weight for _, weight in self.tasks)
        """That of the tasks still here."""
        self.shared: list[Any] = []
        self._bare_work = work
        self._lock = threading.Lock()

    def share(self) -> list[Any]:
        """What many tasks share, large enough to be placed once where the workers are; blocks come without it."""
        with self._lock:
            bare, self.shared = take_out([self.work, *(task for (_, task), _ in self.tasks)])
            self._bare_work, *tasks = bare
            numbers = [(number, weight) for (number, _), weight in self.tasks]
            self.tasks = deque(((number, task), weight) for (number, weight), task in zip(numbers, tasks, strict=True))
            return self.shared

    def first(self) -> Numbered | None:
        """The next task alone, complete; None where none is left."""
        with self._lock:
            if not self.tasks:
                return None
            number, task = self._pop()
            return number, put_back(task, self.shared)

    def block(self, workers: int) -> Block | None:
        """The next tasks for one of so many workers; None where none is left."""
        with self._lock:
            if not self.tasks:
                return None
            enough = self.weight * (1 - 1 / (PARTS * workers))
            taken = [self._pop()]
            while self.tasks and self.weight > enough:
                taken.append(self._pop())
            return Block(self._bare_work, tuple(taken))

    def clear(self) -> None:
        """Nothing is left to begin."""
        with self._lock:
            self.tasks.clear()

    def _pop(self) -> Numbered:
        task, weight = self.tasks.popleft()
        self.weight -= weight
        return task
