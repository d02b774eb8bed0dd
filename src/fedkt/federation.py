"""Party, Server, Algorithm: the two sides of a federation, and a simulation that plays both.

An algorithm is two functions: what a party does with its data, and what the server does with what it is sent. The
server's function has no parameter through which a party's rows could come.
"""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedkt.bundle import Bundle, Label
from fedkt.errors import ConfigurationError, DataError
from fedkt.privacy import Ledger
from fedkt.privacy.stream import Stream
from fedkt.system.parallel import Progress, cpu_clock, in_parallel
from fedkt.votes import Labels, Vote

PARTICIPATION = 0x9A27
"""What the server's generator draws with this number: who takes part in a round."""


@dataclass
class Diary:
    """What happened on one side, for whoever runs that side. It is never sent."""

    notes: list[str] = field(default_factory=list)
    vote: Vote = field(default_factory=Vote)
    """The vote that this side has held: the server's, or that of a party's teachers."""
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
    round: int = field(default=0, kw_only=True)
    """Which round this is, counted from 0."""
    diagnostic: bool = field(default=False, kw_only=True)
    """Keep bare votes in the diary, for the paper's data-dependent ε. For simulations only."""
    ledger: Ledger = field(default_factory=Ledger, kw_only=True)
    """The door through which this side's labels leave a vote, and its budget."""

    def noise_rng(self, *path: int) -> Stream:
        """The stream for the noise of one release; it has nothing to do with any other, nor with any generator."""
        return Stream.fresh() if self.noise_seed is None else Stream.of(self.noise_seed, *path)

    def rng(self, *path: int) -> np.random.Generator:
        """The generator for one piece of work: the same whenever, wherever and in whatever order it is done."""
        return np.random.default_rng([self.seed, *path])


@dataclass(frozen=True)
class Party(Side):
    """One organisation and its labelled rows."""

    name: str = field(kw_only=True)
    X: Any = field(kw_only=True)
    y: Labels = field(kw_only=True)
    ids: Sequence[str] | None = field(default=None, kw_only=True, repr=False)
    """What tells each record from all others, by which level L2 cuts the rows; None for its place among them."""
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

    last: Bundle | None = field(default=None, kw_only=True)
    """What it sent out before this round."""
    parties: int = field(default=0, kw_only=True)
    """How many parties there are, whether they took part in a round or not; 0 where nobody said."""


class Algorithm(ABC):
    """Two functions. Nothing else differs between FedKT and the methods it is compared with."""

    rounds: int = 1
    pooled: bool = False
    """An upper bound: only a simulation may pool the parties' rows."""
    sends: bool = True
    """Whether the bundles would travel in a live federation."""
    participation: float = 1.0
    """The share of the parties that take part in a round, drawn anew each time."""

    def initial_broadcast(self, server: Server) -> Bundle | None:
        """What the server sends before the first round, None for nothing."""
        return None

    @property
    @abstractmethod
    def name(self) -> str:
        """What commands and stored results call it."""

    @abstractmethod
    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """What one party does with its data; the result is all it sends."""

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """Whether a simulation does better to play all parties at once (`party_steps`) than one after the other."""
        return False

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """What each party would send, played at once: the same as `party_step` of each, up to round-off."""
        return [self.party_step(party, broadcast) for party in parties]

    @abstractmethod
    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """What the server does with what it was sent: the bundle it would send back, or the final model."""

    def finish(self, server: Server, broadcast: Bundle) -> Bundle:
        """The final model (or, for SOLO, every party's own) behind what the server would send after a round."""
        return broadcast


@dataclass(frozen=True)
class Round:
    """What went over the wire in one round."""

    number: int
    """Counted from 0."""
    down: Bundle | None
    """What every party that took part was sent."""
    up: tuple[Bundle, ...]
    """What these parties sent."""
    after: Bundle
    """What the server made of it, and would send next."""


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


@dataclass(frozen=True)
class Checkpoint:
    """Where a simulation of several rounds can go on."""

    rounds: int
    """How many are done."""
    broadcast: Bundle
    shelves: dict[str, dict[str, Any]]
    """What the parties keep from round to round, by party."""


def simulate(
    algorithm: Algorithm,
    parties: Sequence[Party],
    server: Server,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    on_round: Callable[[Round], None] | None = None,
    keep: Callable[[Checkpoint], None] | None = None,
    resume: Checkpoint | None = None,
) -> Outcome:
    """Play all parties and the server in this process (or `jobs` of them), as a live federation would.

    `on_round` hears what was sent in each round; `keep` is given what `resume` needs to go on after it.
    """
    if not parties:
        raise ConfigurationError("A federation needs at least one party, got none.")
    names = [party.name for party in parties]
    if len(set(names)) != len(names):
        raise ConfigurationError(f"Every party needs a name of its own, got {', '.join(sorted(names))}.")
    started, cpu_started = time.perf_counter(), cpu_clock()
    members = [pool(parties)] if algorithm.pooled else list(parties)
    first = 0 if resume is None else resume.rounds
    broadcast = algorithm.initial_broadcast(server) if resume is None else resume.broadcast
    if resume is not None:
        for member in members:
            member.shelf.update(resume.shelves.get(member.name, {}))
    diaries: dict[str, Diary] = {}
    bundles: tuple[Bundle, ...] = ()
    for number in range(first, algorithm.rounds):
        acting = [
            replace(party, round=number) for party in sample_parties(members, algorithm.participation, server, number)
        ]
        results = run_parties(
            algorithm, acting, broadcast, jobs=jobs, progress=round_progress(progress, number, algorithm.rounds)
        )
        bundles = tuple(bundle for bundle, _ in results)
        diaries |= {bundle.sender: diary for bundle, diary in results}
        sent = broadcast
        broadcast = algorithm.server_step(
            replace(server, jobs=jobs, round=number, last=sent, parties=len(members)), bundles
        )
        if on_round is not None:
            on_round(Round(number, sent, bundles, broadcast))
        if keep is not None:
            keep(Checkpoint(number + 1, broadcast, {party.name: dict(party.shelf) for party in members}))
    assert broadcast is not None
    return Outcome(
        final=algorithm.finish(server, broadcast),
        bundles=bundles,
        parties=diaries,
        server=server.diary,
        seconds=time.perf_counter() - started,
        cpu_seconds=cpu_clock() - cpu_started,
    )


def run_parties(
    algorithm: Algorithm, acting: list[Party], broadcast: Bundle | None, *, jobs: int, progress: Progress | None
) -> list[tuple[Bundle, Diary]]:
    """One round of the parties: what each sends, and what it wrote down."""
    # A single party (a pooled bound) spreads its own models over the cores; several are spread themselves.
    if len(acting) == 1:
        return [run_party_step((algorithm, replace(acting[0], jobs=jobs, progress=progress), broadcast))]
    if algorithm.batches_parties(acting):
        sent = algorithm.party_steps(acting, broadcast, jobs=jobs, progress=progress)
        return [(bundle, party.diary) for bundle, party in zip(sent, acting, strict=True)]
    turns = [(algorithm, replace(party, jobs=1, progress=None), broadcast) for party in acting]
    sizes = [len(party.y) for party in acting]
    return list(in_parallel(run_party_step, turns, jobs=jobs, sizes=sizes, progress=progress))


def sample_parties(parties: list[Party], participation: float, server: Server, number: int) -> list[Party]:
    """The parties that take part in a round."""
    count = max(1, round(participation * len(parties)))
    if count == len(parties):
        return parties
    chosen = server.rng(number, PARTICIPATION).permutation(len(parties))[:count]
    return [parties[place] for place in np.sort(chosen)]


def round_progress(progress: Progress | None, number: int, rounds: int) -> Progress | None:
    """Progress within one of several rounds, as progress of them all."""
    if progress is None or rounds == 1:
        return progress
    return lambda done, total: progress(number * total + done, rounds * total)


def run_party_step(turn: tuple[Algorithm, Party, Bundle | None]) -> tuple[Bundle, Diary]:
    """One party's step, with what it wrote down meanwhile (it may have run in another process)."""
    algorithm, party, broadcast = turn
    return algorithm.party_step(party, broadcast), party.diary


def pool(parties: Sequence[Party]) -> Party:
    """All rows as one party: what an upper bound may use, and only in a simulation."""
    first = parties[0]
    return replace(
        first,
        name="all parties pooled",
        model=None,
        X=stack_rows([party.X for party in parties]),
        y=np.concatenate([party.y for party in parties]),
        ids=None,
        diary=Diary(),
        shelf={},
        ledger=Ledger(),
    )


def stack_rows(tables: Sequence[Any]) -> Any:
    """Arrays, sparse matrices or data frames, one below the other."""
    if hasattr(tables[0], "iloc"):
        import pandas

        return pandas.concat(list(tables))
    if any(hasattr(table, "tocsr") for table in tables):
        from scipy.sparse import csr_array, vstack

        return vstack([table if hasattr(table, "tocsr") else csr_array(table) for table in tables]).tocsr()
    return np.concatenate([np.asarray(table) for table in tables])


def seed_for(seed: int, name: str) -> int:
    """A party's own seed, from the seed of the run and its name: the same on any machine and in any order."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big")
