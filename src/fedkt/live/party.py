"""A live party: its own file and the plan in, one bundle out.

A party that is killed half-way starts again with the same plan, data and library versions, goes on where it stopped
and sends the same bytes (see `shelf`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fedkt.bundle import pack
from fedkt.bundle.signing import SigningKey
from fedkt.errors import ConfigurationError
from fedkt.federation import Diary, Party
from fedkt.live.keys import check_key, read_key, write_keys
from fedkt.live.outbox import check_issue, issue_in, lower_issue, packed_issue, sent_before
from fedkt.live.records import check_identity, data_digest, read_records
from fedkt.live.shelf import ROWS, WORK, Shelf, Steps, claim_shelf, clear, working_for
from fedkt.live.spending import check_limits, claim_for, ledger_path, paid
from fedkt.plan import Plan
from fedkt.privacy import Ledger
from fedkt.system.files import write_atomically
from fedkt.system.parallel import Progress, rows_in

__all__ = ["Sent", "Shelf", "read_key", "run_party", "write_keys"]


def capped(counts: tuple[int, ...] | None, most: int | None) -> tuple[int, ...] | None:
    """Counts scaled down to what a party may tell: noise may have made them more, and what noise gave costs nothing."""
    if counts is None or most is None or sum(counts) <= most:
        return counts
    return tuple(each * most // sum(counts) for each in counts)


@dataclass(frozen=True)
class Sent:
    """What a party has written, and what it should know about it."""

    path: Path
    party: str
    plan: str
    students: int
    resumed: int
    """Students that an earlier, interrupted run had finished."""
    rows: int
    bytes: int
    sha256: str
    signed: bool
    issue: int | None
    """The number in a signed bundle by which it replaces earlier ones; the first has none."""
    epsilon: float | None
    """What the noise promises for one record (level L2), None without noise."""
    total_epsilon: float | None
    """What everything in the ledger costs together, this run included."""
    releases: int | None
    delta: float | None
    ledger: str | None
    """Where the release was written down."""
    notes: tuple[str, ...]


def run_party(
    plan: Plan,
    name: str,
    *,
    data: Path,
    public: Path,
    outbox: Path,
    key: SigningKey | None = None,
    jobs: int = 1,
    work: Path | None = None,
    ledger: Path | None = None,
    identity: str | None = None,
    issue: int | None = None,
    most_epsilon: float | None = None,
    most_delta: float | None = None,
    progress: Progress | None = None,
    tell: Callable[[Sent], None] | None = None,
) -> Sent:
    """Train this party's students and write outbox/<name>.fedkt; the working folder is removed once `tell` has told it.

    Of two signed bundles the larger `issue` counts: by default one more than that of the bundle in the outbox.

    At level L2 the releases are written into the `ledger` first; by default it lies beside the data. `identity` is the
    column by which level L2 tells records apart. A plan, or a total in the ledger, above `most_epsilon` or `most_delta`
    is refused.
    """
    plan.require(name)
    check_identity(plan, identity)
    check_limits(plan, name, most_epsilon=most_epsilon, most_delta=most_delta)
    ledger = ledger_path(plan, data, ledger)
    check_key(plan, name, key)
    check_issue(issue, key)
    if outbox.exists() and not outbox.is_dir():
        raise ConfigurationError(f"--output {outbox} is a file. It takes the folder to write {name}.fedkt to.")
    rows = plan.columns.encode(plan.read_public(public))
    diary = Diary()
    records = read_records(plan, name, data, identity, diary)
    folder = work if work is not None else WORK / f"{name}-{plan.digest[:12]}"
    claim = None if ledger is None else claim_for(plan)
    with working_for(name, folder):
        own = claim_shelf(folder, plan, name, data_digest(data, identity), diary)
        door = Ledger()
        if ledger is not None and claim is not None:
            size = len(records.y)
            door, claim = paid(plan, name, claim, own, ledger, folder, diary, rows=size, most_epsilon=most_epsilon)
        shelf = Shelf(folder, rows, plan.expected, diary)
        finished = sum(f"student-{partition}" in shelf for partition in range(plan.partitions))
        if finished:
            were = "was" if finished == 1 else "were"
            diary.say(f"{finished} of {plan.partitions} students {were} finished by an earlier run and kept.")
        party = Party(
            rows,
            plan.classes,
            own.seed,
            image=plan.image,
            name=name,
            X=records.X,
            y=records.y,
            ids=records.ids,
            model=plan.own_model(name),
            shelf=shelf,
            jobs=jobs,
            diary=diary,
            noise_seed=own.noise_seed,
            ledger=door,
            progress=None if progress is None else Steps(progress, shelf, plan.partitions),
        )
        with rows_in(folder / ROWS):
            made = plan.algorithm().party_step(party, None)
        bundle = replace(made, plan=plan.digest, counts=capped(made.counts, plan.most_rows(name)))
        path = outbox / f"{name}.fedkt"
        diary.notes.extend(lower_issue(path, bundle, key, issue))
        packed = packed_issue(path, bundle, partial(pack, check_rows=rows, key=key, claim=claim), key, issue)
        if own.resumed and sent_before(path) == packed:
            diary.say(f"{path} was there already: an earlier run wrote it and was stopped before its end. It is whole.")
        else:
            if path.exists():
                diary.say(f"{path} of an earlier run is replaced.")
            write_atomically(path, packed)
        sent = Sent(
            path=path,
            party=name,
            plan=plan.digest,
            students=len(bundle.models),
            resumed=finished,
            rows=len(records.y),
            bytes=len(packed),
            sha256=hashlib.sha256(packed).hexdigest(),
            signed=key is not None,
            issue=issue_in(packed, path),
            epsilon=None if claim is None else claim.epsilon,
            total_epsilon=None if claim is None else claim.total_epsilon,
            releases=None if claim is None else claim.releases,
            delta=None if claim is None else claim.delta,
            ledger=None if ledger is None else str(ledger),
            notes=tuple(diary.notes),
        )
        if tell is not None:
            tell(sent)
        # Not before: a party that is killed until then finds its work, not a spent budget.
        clear(folder)
    return sent
