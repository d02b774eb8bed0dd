"""A live party: its own file and the plan in, one bundle out.

A party that is killed half-way starts again with the same plan, data and library versions, goes on where it stopped
and sends the same bytes (see `shelf`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fedkt.bundle import pack
from fedkt.data.values import identities_of
from fedkt.errors import DataError, PrivacyError
from fedkt.federation import Diary, Party
from fedkt.parallel import Progress, rows_in
from fedkt.party_side.claim import check_limits, claim_for, ledger_path, open_ledger, spend, tell, with_total
from fedkt.party_side.keys import check_key, read_key, write_keys
from fedkt.party_side.outbox import check_issue, packed_issue, sent_before
from fedkt.party_side.records import check_identity, data_digest, tell_of_records
from fedkt.party_side.shelf import ROWS, WORK, Shelf, Steps, claim_shelf, clear, working_for
from fedkt.plan import Plan, file_digest
from fedkt.privacy import Ledger
from fedkt.signing import SigningKey
from fedkt.transport.folder import write_atomically

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
    epsilon: float | None
    """What the noise promises for one record (level L2), None without noise."""
    total_epsilon: float | None
    """What everything in the ledger costs together, this run included."""
    releases: int | None
    delta: float | None
    ledger: str | None
    """Where the release was written down."""
    notes: tuple[str, ...]


@contextmanager
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
) -> Iterator[Sent]:
    """Train this party's students and write outbox/<name>.fedkt; the working folder is removed after the block.

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
    rows = plan.columns.encode(plan.read_public(public))
    if file_digest(data) == plan.public.sha256:
        raise DataError(f"{data} is the public file. --data takes your own labelled rows, --public the shared ones.")
    table = plan.columns.read(data)
    X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
    ids = identities_of(table, identity) if plan.level == "L2" else None
    most = plan.most_rows(name)
    # With noise a party's size must not decide whether it sends: there its counts are scaled down.
    if most is not None and len(y) > most and plan.counts and plan.level != "L2":
        raise DataError(
            f"{data} has {len(y)} rows, but the plan lets {name!r} tell of at most {most} (rows): the server would "
            "not believe the bundle. Agree on a new plan. Nothing was trained."
        )
    diary = Diary()
    if most is not None and len(y) > most:
        diary.say(
            f"{data} has {len(y)} rows, and the plan gives {name!r} the word of {most} at most: its student's claims "
            "are scaled down to them."
        )
    if unused := plan.columns.unused(table):
        diary.say(f"{data} has columns that were not agreed on and are not used: {', '.join(unused[:20])}.")
    absent = [str(each) for place, each in enumerate(plan.classes) if not (y == place).any()]
    if absent:
        diary.say(f"No row of {data} is labelled {', '.join(absent[:20])}; the other parties may know it.")
    for note in plan.columns.unseen_notes(table):
        diary.say(note)
    folder = work if work is not None else WORK / f"{name}-{plan.digest[:12]}"
    claim = None if ledger is None else claim_for(plan)
    if claim is not None:
        tell_of_records(diary, plan, data, ids, y, column=identity)
    with working_for(name, folder):
        own = claim_shelf(folder, plan, name, data_digest(data, identity), diary)
        door = Ledger()
        if ledger is not None and claim is not None and own.noise_seed is not None:
            new = not ledger.exists()
            door = open_ledger(plan, name, ledger, folder, most_epsilon)
            try:
                spend(door, plan, claim, own.noise_seed)
            except PrivacyError:
                if not own.resumed:
                    clear(folder)
                raise
            claim = with_total(claim, door)
            tell(diary, plan, name, claim, len(y), ledger, new=new)
        shelf = Shelf(folder, rows, plan.n_outputs, diary, soft=plan.soft, must_be_soft=plan.not_mine)
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
            X=X,
            y=y,
            ids=ids,
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
        bundle = replace(made, plan=plan.digest, counts=capped(made.counts, most))
        path = outbox / f"{name}.fedkt"
        packing = partial(pack, check_rows=rows, key=key, claim=claim)
        packed = packed_issue(path, bundle, packing, key, issue)
        if own.resumed and sent_before(path) == packed:
            diary.say(f"{path} was there already: an earlier run wrote it and was stopped before its end. It is whole.")
        else:
            write_atomically(path, packed)
        yield Sent(
            path=path,
            party=name,
            plan=plan.digest,
            students=len(bundle.models),
            resumed=finished,
            rows=len(y),
            bytes=len(packed),
            sha256=hashlib.sha256(packed).hexdigest(),
            signed=key is not None,
            epsilon=None if claim is None else claim.epsilon,
            total_epsilon=None if claim is None else claim.total_epsilon,
            releases=None if claim is None else claim.releases,
            delta=None if claim is None else claim.delta,
            ledger=None if ledger is None else str(ledger),
            notes=tuple(diary.notes),
        )
        # Not before whoever called has told it: a party that is killed until then finds its work, not a spent budget.
        clear(folder)
