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

from fedkt.bundle import Bundle, pack, peek
from fedkt.bundle.manifest import Claim
from fedkt.bundle.signing import SigningKey
from fedkt.data.format import PLAIN, Format
from fedkt.data.mapping import NO_MAPPING, TableMapping
from fedkt.federation import Diary, Party
from fedkt.live.aside import RowsAside, aside_path
from fedkt.live.claims import claim_for
from fedkt.live.keys import check_key
from fedkt.live.mailbox import Mailbox, bundle_name
from fedkt.live.mapping_file import mapping_path, open_mapping
from fedkt.live.outbox import check_issue, send
from fedkt.live.records import Records, check_identity, data_digest, read_records
from fedkt.live.shelf import ROWS, WORK, Seeds, Shelf, TeacherProgress, claim_shelf, clear, sole_worker
from fedkt.live.spending import check_limits, ledger_path, pay
from fedkt.plan import Plan
from fedkt.privacy import Ledger
from fedkt.system.backends.loky import rows_in
from fedkt.system.parallel import Progress


@dataclass(frozen=True)
class SentBundle:
    """What a party has sent, and what it should know about it."""

    path: str
    """Where it lies, in its mailbox's words."""
    party: str
    plan: str
    students: int
    """0 where sums were sent."""
    rows: int
    """Those that were learned from."""
    bytes: int
    sha256: str
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
    resumed: int = 0
    """Students that an earlier, interrupted run had finished."""
    signed: bool = False
    aside: int | None = None
    """Rows that were laid aside and not learned from; None where none were to be."""


def run_party(
    plan: Plan,
    name: str,
    *,
    data: Path,
    public: Path,
    outbox: Mailbox,
    key: SigningKey | None = None,
    jobs: int = 1,
    work: Path | None = None,
    ledger: Path | None = None,
    identity: str | None = None,
    hold_out: float | None = None,
    issue: int | None = None,
    most_epsilon: float | None = None,
    most_delta: float | None = None,
    form: Format = PLAIN,
    choices: TableMapping = NO_MAPPING,
    warn: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    tell: Callable[[SentBundle], None] | None = None,
) -> SentBundle:
    """Train this party's students, or add up its sums, and put its bundle into the outbox.

    The working folder goes once `tell` is through.

    Of two signed bundles the larger `issue` counts: by default one more than that of the bundle in the outbox.

    At level L2 the releases are written into the `ledger` first; by default it lies beside the data. `identity` is the
    column by which records are told apart at level L2, and where the share `hold_out` of them is laid aside. A plan, or
    a total in the ledger, above `most_epsilon` or `most_delta` is refused. `form` is how the data are written, and
    `choices` about names and codes of the file are added to those written down beside it.
    """
    plan.require(name)
    check_identity(plan, identity, share=hold_out)
    check_limits(plan, name, most_epsilon=most_epsilon, most_delta=most_delta)
    ledger = ledger_path(plan, data, ledger)
    check_key(plan, name, key)
    check_issue(issue, key)
    outbox.check_writable(bundle_name(name))
    aside = RowsAside(aside_path(plan, name, data), hold_out)
    rows = plan.columns.encode(plan.read_public(public))
    plan.method.try_on(plan, rows)
    diary = Diary()
    own = open_mapping(mapping_path(name, data), choices, plan.columns, plan.classes)
    own.tell(data, diary)
    records = read_records(
        plan, name, data, identity, diary, share=hold_out, form=form, mapping=own.mapping, jobs=jobs, warn=warn
    )
    own.keep(diary)
    digest = data_digest(data, identity, hold_out, form, own.mapping)
    folder = work if work is not None else WORK / f"{name}-{plan.digest[:12]}"
    account, claim = Ledger(), None if ledger is None else claim_for(plan)
    with sole_worker(name, folder):
        seeds = claim_shelf(folder, plan, name, digest, diary)
        if ledger is not None and claim is not None:
            size = len(records.y)
            account, claim = pay(plan, name, claim, seeds, ledger, folder, diary, rows=size, most_epsilon=most_epsilon)
        aside.begin(plan, name, digest, identity)
        shelf = Shelf(folder, rows, plan.expected, diary)
        finished = count_finished(shelf, plan.partitions)
        party = make_party(plan, name, records, shelf, seeds, ledger=account, jobs=jobs, progress=progress)
        bundle = make_bundle(plan, party, folder)
        packing = partial(pack, check_rows=rows, key=key, claim=claim, packages=plan.packages())
        packed = send(outbox, bundle, packing, key=key, issue=issue, resumed=seeds.resumed, diary=diary)
        sent = describe_sent(party, bundle, packed, outbox.where(bundle_name(name)), claim, ledger)
        sent = replace(sent, resumed=finished, signed=key is not None, aside=records.n_aside)
        aside.end(sent.sha256)
        if tell is not None:
            tell(sent)
        # Not before: a party that is killed until then finds its work, not a spent budget.
        clear(folder)
    return sent


def count_finished(shelf: Shelf, partitions: int) -> int:
    """How many students an earlier run had finished; the diary tells of them."""
    finished = sum(f"student-{partition}" in shelf for partition in range(partitions))
    if finished:
        were = "was" if finished == 1 else "were"
        shelf.diary.say(f"{finished} of {partitions} students {were} finished by an earlier run and kept.")
    return finished


def make_party(
    plan: Plan,
    name: str,
    records: Records,
    shelf: Shelf,
    seeds: Seeds,
    *,
    ledger: Ledger,
    jobs: int,
    progress: Progress | None,
) -> Party:
    """The party as the algorithm knows it, here and in a simulation."""
    return Party(
        shelf.public,
        plan.classes,
        seeds.seed,
        image=plan.image,
        name=name,
        X=records.X,
        y=records.y,
        ids=records.ids,
        model=plan.own_model(name),
        shelf=shelf,
        jobs=jobs,
        diary=shelf.diary,
        noise_seed=seeds.noise_seed,
        ledger=ledger,
        progress=None if progress is None else TeacherProgress(progress, shelf, plan.partitions),
    )


def make_bundle(plan: Plan, party: Party, folder: Path) -> Bundle:
    """The party's step of the algorithm, as it is sent under this plan."""
    with rows_in(folder / ROWS):
        bundle = plan.algorithm().party_step(party, None)
    # What noise has given may be scaled down at no cost.
    return plan.method.within_rows(plan, replace(bundle, plan=plan.digest))


def describe_sent(
    party: Party,
    bundle: Bundle,
    packed: bytes,
    place: str,
    claim: Claim | None,
    ledger: Path | None,
) -> SentBundle:
    """What a party should know of the bundle it has sent, as far as the bundle tells."""
    return SentBundle(
        path=place,
        party=party.name,
        plan=bundle.plan,
        students=len(bundle.models),
        rows=len(party.y),
        bytes=len(packed),
        sha256=hashlib.sha256(packed).hexdigest(),
        issue=peek(packed, source=place, contents=False).issue,
        epsilon=None if claim is None else claim.epsilon,
        total_epsilon=None if claim is None else claim.total_epsilon,
        releases=None if claim is None else claim.releases,
        delta=None if claim is None else claim.delta,
        ledger=None if ledger is None else str(ledger),
        notes=tuple(party.diary.notes),
    )
