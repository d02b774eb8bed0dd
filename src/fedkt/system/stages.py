"""Seconds by stage of a run, for whoever measures one; where nobody does, a stage costs a look at a variable."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from fedkt.system.parallel import cpu_clock

Result = TypeVar("Result")
REST = "rest"
"""Whatever no stage has claimed."""


@dataclass
class Spent:
    """What one stage has taken."""

    cpu: float = 0.0
    wall: float = 0.0


class StageClock:
    """Seconds of every stage; those of a stage inside another are the inner one's alone."""

    def __init__(self) -> None:
        self.spent: dict[str, Spent] = {}
        self._open = [REST]
        self._cpu, self._wall = cpu_clock(), time.perf_counter()

    def enter(self, name: str) -> None:
        """From now on seconds are this stage's."""
        self.charge()
        self._open.append(name)

    def leave(self) -> None:
        """The stage that was entered last is over."""
        self.charge()
        self._open.pop()

    def charge(self) -> None:
        """Put what has gone by since the last change on the stage that is open."""
        cpu, wall = cpu_clock(), time.perf_counter()
        spent = self.spent.setdefault(self._open[-1], Spent())
        spent.cpu += cpu - self._cpu
        spent.wall += wall - self._wall
        self._cpu, self._wall = cpu, wall


_clock: ContextVar[StageClock | None] = ContextVar("stages", default=None)


@contextmanager
def measured_stages() -> Iterator[StageClock]:
    """A clock that hears of every stage inside the block."""
    clock = StageClock()
    before = _clock.set(clock)
    try:
        yield clock
    finally:
        clock.charge()
        _clock.reset(before)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """The block is this stage of a run."""
    clock = _clock.get()
    if clock is None:
        yield
        return
    clock.enter(name)
    try:
        yield
    finally:
        clock.leave()


def in_stage(name: str, results: Iterator[Result]) -> Iterator[Result]:
    """The same results, what it takes to make each being of this stage, and not what is done with it."""
    while True:
        with stage(name):
            try:
                result = next(results)
            except StopIteration:
                return
        yield result
