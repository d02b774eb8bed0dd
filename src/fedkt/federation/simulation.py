"""A simulation: all parties and the server in one process, doing what a live federation would."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError
from fedkt.federation.algorithm import Algorithm
from fedkt.federation.sides import Diary, Party, Server
from fedkt.privacy import Ledger
from fedkt.system.parallel import Progress, cpu_clock, in_parallel
from fedkt.system.threads import one_thread

PARTICIPATION = 0x9A27
"""What the server's generator draws with this number: who takes part in a round."""


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
    if not algorithm.takes_weights and any(party.weights is not None for party in parties):
        raise ConfigurationError(f"To {algorithm.name!r} all rows are alike: it takes no weights of rows.")
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
    if broadcast is None:
        raise ConfigurationError(f"server_step of {type(algorithm).__name__} gave nothing; it gives a Bundle.")
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
    sample = server.rng(number, PARTICIPATION).permutation(len(parties))[:count]
    return [parties[place] for place in np.sort(sample)]


def round_progress(progress: Progress | None, number: int, rounds: int) -> Progress | None:
    """Progress within one of several rounds, as progress of them all."""
    if progress is None or rounds == 1:
        return progress
    return lambda done, total: progress(number * total + done, rounds * total)


def run_party_step(turn: tuple[Algorithm, Party, Bundle | None]) -> tuple[Bundle, Diary]:
    """One party's step, with what it wrote down meanwhile (it may have run in another process)."""
    algorithm, party, broadcast = turn
    # Entered once, and not for each of many tiny models.
    with one_thread():
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
        weights=None,
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
