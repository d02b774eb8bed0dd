"""What the parties' students say about the public rows: each is run once, and all of it is kept until it is counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError
from fedkt.federation import Server
from fedkt.models.base import count_rows, take_rows
from fedkt.models.exchange import OnnxModel
from fedkt.models.sandbox import Sandbox
from fedkt.system.parallel import effective_jobs, in_parallel
from fedkt.system.scratch import KeptArray, Scratch
from fedkt.votes import Labels

if TYPE_CHECKING:
    from fedkt.algorithms.voting.base import Voting

WORTH_SENDING = 50_000
"""Rows from which on asking a student costs more than sending it to a cluster, about 20 milliseconds for a forest."""
Task = TypeVar("Task")
Result = TypeVar("Result")


class Students(NamedTuple):
    """One party's students, and what they are asked."""

    models: Sequence[Any]
    rows: Any
    n_outputs: int
    """How many classes they tell apart."""
    sandbox: Sandbox | None = None
    """Where received students run, which holds the rows as well."""


@dataclass(frozen=True)
class StudentAnswers:
    """What the parties' students say about the rows that were asked: each was run once, and that is its vote."""

    voters: list[tuple[Bundle, KeptArray]] = field(default_factory=list)
    """Each party that votes, with the answers of its students: students × rows, and × classes where those vote.

    They may lie on disk: read one party at a time, or some rows of all.
    """
    silent: dict[str, str] = field(default_factory=dict)
    """Each party that does not, and why."""

    @property
    def bundles(self) -> list[Bundle]:
        """The bundles of those that vote."""
        return [bundle for bundle, _ in self.voters]

    @property
    def n_rows(self) -> int:
        """How many rows were asked."""
        return self.voters[0][1].shape[1]


def ask_students(
    voting: Voting, server: Server, bundles: Sequence[Bundle], queries: Labels | None = None
) -> StudentAnswers:
    """What each party's students say about the rows that are asked; one whose student fails is named and left out."""
    rows = server.public if queries is None else take_rows(server.public, queries)
    scratch = Scratch(server.scratch)
    check_room(scratch, sum(answer_bytes(voting, bundle, count_rows(rows)) for bundle in bundles))
    # Students that were trained here are asked about all: what they say of a row then hangs on no choice of rows.
    every = [queries is not None and not has_received(bundle) for bundle in bundles]
    tasks = [
        Students(bundle.models, server.public if whole else rows, bundle.n_outputs)
        for bundle, whole in zip(bundles, every, strict=True)
    ]
    result = StudentAnswers()
    by_party = answers_by_party(voting, tasks, rows if any(map(has_received, bundles)) else None, jobs=server.jobs)
    for bundle, whole, answers in zip(bundles, every, by_party, strict=True):
        failures = [f"student {place + 1}: {each}" for place, each in enumerate(answers) if isinstance(each, str)]
        if failures:
            # Fewer students agree more easily: with one left out, it would vote on more rows than others.
            note = f"Party {bundle.sender!r} does not vote, because of {'; '.join(failures)}"
            server.diary.say(note)
            result.silent[bundle.sender] = note
        else:
            asked = np.stack(answers)[:, queries] if whole else np.stack(answers)
            result.voters.append((bundle, scratch.keep(compact(asked, bundle.n_outputs))))
    server.diary.vote.silent = result.silent
    return result


def has_received(bundle: Bundle) -> bool:
    """Whether any of a party's students came from elsewhere."""
    return any(isinstance(each, OnnxModel) for each in bundle.models)


def answers_by_party(voting: Voting, tasks: Sequence[Students], rows: Any, *, jobs: int) -> Iterator[list[Any]]:
    """What the voting has each party's students say, one party after the other; `rows` where some were received."""
    if rows is None:
        stay = all(count_rows(each.rows) < WORTH_SENDING for each in tasks)
        yield from in_parallel(voting.ask, tasks, jobs=jobs, stay=stay)
        return
    # Received students work in processes of their own: to wait for several at once, threads are enough.
    with Sandbox(rows) as sandbox:
        yield from in_threads(voting.ask, (each._replace(sandbox=sandbox) for each in tasks), jobs=jobs)


def in_threads(work: Callable[[Task], Result], tasks: Iterator[Task], *, jobs: int) -> Iterator[Result]:
    """The results of `work` in the order of `tasks`, of which no more than a few are held at a time."""
    if jobs == 1:
        yield from map(work, tasks)
        return
    workers = effective_jobs(jobs)
    threads = ThreadPoolExecutor(workers)
    waiting: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            waiting.append(threads.submit(work, task))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def compact(answers: NDArray[Any], n_outputs: int) -> NDArray[Any]:
    """Classes in no more bytes than they need; probabilities as they are."""
    return answers.astype(class_type(n_outputs)) if answers.dtype.kind == "i" else answers


def class_type(n_outputs: int) -> np.dtype[Any]:
    """The smallest whole numbers that name so many classes."""
    return np.min_scalar_type(n_outputs)


def answer_bytes(voting: Voting, bundle: Bundle, n_rows: int) -> int:
    """What a party's answers take, as they are kept."""
    each = 4 * bundle.n_outputs if voting.probabilities else class_type(bundle.n_outputs).itemsize
    return len(bundle.models) * n_rows * each


def check_room(scratch: Scratch, size: int) -> None:
    """Refuse, before a student is run, to begin what cannot be kept."""
    missing = scratch.lacks(size)
    if missing:
        raise ConfigurationError(
            f"What the students will say takes {size / 1e9:.1f} GB of disk, of which {missing / 1e9:.1f} GB are "
            f"missing in {scratch.folder}. Make room there, or take fewer public rows."
        )
