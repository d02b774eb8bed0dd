"""Party, Server, Algorithm: the two sides of a federation, and a simulation that plays both.

An algorithm is two functions: what a party does with its data, and what the server does with what it is sent. The
server's function has no parameter through which a party's rows could come.
"""

from __future__ import annotations

import hashlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from fedkt.bundle import Bundle, Label
from fedkt.errors import ConfigurationError, DataError
from fedkt.privacy import Ledger
from fedkt.votes import Labels

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with how many pieces of work are done, and of how many."""


@dataclass
class Diary:
    """What happened on one side, for whoever runs that side. It is never sent."""

    notes: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    bare_votes: list[Any] = field(default_factory=list, repr=False)
    """Votes before their noise, kept only where a simulation asked for the confidential diagnostic."""

    def say(self, note: str) -> None:
        """Keep a sentence for the report."""
        self.notes.append(note)


@dataclass(frozen=True)
class Side:
    """What a party and the server have in common."""

    public: Any
    """The public rows D_aux, the same for everybody, without labels."""
    classes: tuple[Label, ...]
    """The agreed classes; labels and predictions are indices into this list."""
    seed: int
    image: tuple[int, int, int] | None = field(default=None, kw_only=True)
    """Height, width and channels, where a row holds the pixels of an image."""
    jobs: int = field(default=1, kw_only=True)
    """Models trained at the same time, each on one thread."""
    diary: Diary = field(default_factory=Diary, kw_only=True)
    progress: Progress | None = field(default=None, kw_only=True)
    noise_seed: int | None = field(default=None, kw_only=True)
    """None draws privacy noise from the operating system's entropy. A seed is for tests and simulations: whoever knows
    it can take the noise off again. A live side may keep a secret one, so that a resumed run releases the same labels.
    """
    diagnostic: bool = field(default=False, kw_only=True)
    """Keep bare votes in the diary, for the paper's data-dependent ε. For simulations only."""
    ledger: Ledger = field(default_factory=Ledger, kw_only=True)
    """The door through which this side's labels leave a vote, and its budget."""

    def noise_rng(self, *path: int) -> np.random.Generator:
        """The generator for the noise of one release; it has nothing to do with any other generator."""
        if self.noise_seed is None:
            return np.random.default_rng()
        return np.random.default_rng([self.noise_seed, 1, *path])

    def rng(self, *path: int) -> np.random.Generator:
        """The generator for one piece of work: the same whenever, wherever and in whatever order it is done."""
        return np.random.default_rng([self.seed, *path])


@dataclass(frozen=True)
class Party(Side):
    """One organisation and its labelled rows."""

    name: str = field(kw_only=True)
    X: Any = field(kw_only=True)
    y: Labels = field(kw_only=True)
    model: Any = field(default=None, kw_only=True)
    """A family of its own (name or estimator); None follows the algorithm's."""
    shelf: MutableMapping[str, Any] = field(default_factory=dict, kw_only=True)
    """Finished students by name. A shelf that outlives the process lets a killed party resume."""

    def __post_init__(self) -> None:
        if len(self.y) == 0:
            raise DataError(f"Party {self.name!r} has no rows. A party needs at least one; leave it out of this run.")


@dataclass(frozen=True)
class Server(Side):
    """The one who asks the students: it sees public rows and bundles, nothing else."""


class Algorithm(ABC):
    """Two functions. Nothing else differs between FedKT and the methods it is compared with."""

    name: str
    rounds: int = 1
    pooled: bool = False
    """An upper bound: only a simulation may pool the parties' rows."""
    sends: bool = True
    """Whether the bundles would travel in a live federation."""

    @abstractmethod
    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """What one party does with its data; the result is all it sends."""

    def together(self, parties: Sequence[Party]) -> bool:
        """Whether a simulation does better to play all parties at once (`party_steps`) than one after the other."""
        return False

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """What each party would send, played at once: the same as `party_step` of each, up to round-off."""
        return [self.party_step(party, broadcast) for party in parties]

    @abstractmethod
    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """What the server does with what it was sent; holds the final model (or, for SOLO, every party's own)."""


@dataclass(frozen=True)
class Outcome:
    """What a simulation leaves behind."""

    final: Bundle
    bundles: tuple[Bundle, ...]
    """What the parties sent in the last round."""
    parties: dict[str, Diary]
    server: Diary
    seconds: float
    cpu_seconds: float


def simulate(
    algorithm: Algorithm,
    parties: Sequence[Party],
    server: Server,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Outcome:
    """Play all parties and the server in this process (or `jobs` of them), as a live federation would."""
    if not parties:
        raise ConfigurationError("A federation needs at least one party, got none.")
    names = [party.name for party in parties]
    if len(set(names)) != len(names):
        raise ConfigurationError(f"Every party needs a name of its own, got {', '.join(sorted(names))}.")
    started, cpu_started = time.perf_counter(), cpu_clock()
    acting = [pool(parties)] if algorithm.pooled else list(parties)
    broadcast: Bundle | None = None
    diaries: dict[str, Diary] = {}
    bundles: tuple[Bundle, ...] = ()
    for _ in range(algorithm.rounds):
        # A single party (a pooled bound) spreads its own models over the cores; several are spread themselves.
        alone = len(acting) == 1
        own = {"jobs": jobs, "progress": progress} if alone else {"jobs": 1, "progress": None}
        turns = [(algorithm, replace(party, **own), broadcast) for party in acting]
        if alone:
            results = [take_turn(turns[0])]
        elif algorithm.together(acting):
            sent = algorithm.party_steps(acting, broadcast, jobs=jobs, progress=progress)
            results = [(bundle, party.diary) for bundle, party in zip(sent, acting, strict=True)]
        else:
            sizes = [len(party.y) for party in acting]
            results = list(in_parallel(take_turn, turns, jobs=jobs, sizes=sizes, progress=progress))
        bundles = tuple(bundle for bundle, _ in results)
        diaries = {bundle.sender: diary for bundle, diary in results}
        broadcast = algorithm.server_step(replace(server, jobs=jobs), bundles)
    assert broadcast is not None
    return Outcome(
        final=broadcast,
        bundles=bundles,
        parties=diaries,
        server=server.diary,
        seconds=time.perf_counter() - started,
        cpu_seconds=cpu_clock() - cpu_started,
    )


def take_turn(turn: tuple[Algorithm, Party, Bundle | None]) -> tuple[Bundle, Diary]:
    """One party's step, with what it wrote down meanwhile (it may have run in another process)."""
    algorithm, party, broadcast = turn
    return algorithm.party_step(party, broadcast), party.diary


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


def numbered(work: Callable[[Task], Result], index: int, task: Task) -> tuple[int, Result]:
    """A result with the number of its task."""
    return index, work(task)


def pool(parties: Sequence[Party]) -> Party:
    """All rows as one party: what an upper bound may use, and only in a simulation."""
    first = parties[0]
    return replace(
        first,
        name="all parties pooled",
        model=None,
        X=stacked([party.X for party in parties]),
        y=np.concatenate([party.y for party in parties]),
        diary=Diary(),
        shelf={},
        ledger=Ledger(),
    )


def stacked(tables: Sequence[Any]) -> Any:
    """Arrays, sparse matrices or data frames, one below the other."""
    if hasattr(tables[0], "iloc"):
        import pandas

        return pandas.concat(list(tables))
    if hasattr(tables[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(list(tables)).tocsr()
    return np.concatenate([np.asarray(table) for table in tables])


def seed_for(seed: int, name: str) -> int:
    """A party's own seed, from the seed of the run and its name: the same on any machine and in any order."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big")


def cpu_clock() -> float:
    """CPU seconds of this process and of the workers it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
