"""The server's inbox: every file looked at, accepted with its party's bundle or refused with a reason.

Whoever can write into the folder may put anything there, so what is held in memory is bounded: one bundle a party, and
each party has an even share of what all may take together. Of everything else only the verdict is kept.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from fedkt.bundle import Bundle, unpack
from fedkt.bundle.opening import manifest_of_refused, manifest_room
from fedkt.errors import BundleError, DataError
from fedkt.live.claims import claim_fault
from fedkt.models.onnx_rules import Limits
from fedkt.plan import Plan
from fedkt.system.files import open_plain, shown_name

ENDING = ".fedkt"
POLL_SECONDS = 0.5
MOST_LOOKS = 8
"""Files in one party's name whose models are looked into; unpacking and checking one takes seconds at worst."""
MOST_FILES = 10_000
"""Files looked at; those named like a party come first."""
MOST_TOLD = 50
"""Files told of one by one in an error or in notes."""

Mark = tuple[str, int, int, int, int]
"""What tells a file that has been looked at from one that was replaced since."""


@dataclass(frozen=True)
class Arrival:
    """One file of the inbox: accepted with its party's bundle, or refused with a reason."""

    file: str
    party: str | None
    reason: str = ""
    """Why it was refused; empty if it was accepted."""
    bundle: Bundle | None = None
    bytes: int = 0
    sha256: str = ""
    """Of the file, as it lies there."""
    copy: bool = False
    """Whether it is the same bundle as a file that is counted."""
    identity: str = ""
    """What tells an accepted bundle from others, however it was zipped: the SHA-256 of its manifest."""
    issue: int = 0
    """The number by which it replaces earlier ones of its party; 0 where nobody has signed it."""
    replaced: bool = False
    """Whether a newer issue is counted."""

    @property
    def status(self) -> str:
        """In a word or three: what became of it."""
        if self.copy or self.replaced:
            return "copy, counted once" if self.copy else "replaced"
        return "refused" if self.reason else "counted"


def gather(
    plan: Plan,
    folder: Path,
    *,
    wait: float = 0.0,
    limits: Limits | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> list[Arrival]:
    """Every bundle file in the folder, looked at; waits up to `wait` seconds for parties that have not sent yet.

    Of two signed bundles of one party the newer issue counts. Two different bundles of the same issue, or without
    signatures, are both refused, since nobody here can tell which one is meant; the same bundle under two names counts
    once. Every party has its even share of the `limits`.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. --bundles takes the folder that the parties' .fedkt files are in.")
    inbox = Inbox(plan, folder, limits_for(plan, limits))
    deadline = time.monotonic() + wait
    while True:
        arrivals = inbox.arrivals()
        accepted = {each.party for each in arrivals if not each.reason}
        if tell is not None:
            tell(len(accepted), len(plan.names))
        left = deadline - time.monotonic()
        if len(accepted) == len(plan.names) or left <= 0:
            return arrivals
        time.sleep(min(POLL_SECONDS, left))


def limits_for(plan: Plan, limits: Limits | None = None) -> Limits:
    """What one party may send and take: the agreed number of models, in an even share of what all may take."""
    share = (limits or Limits()).share_of(len(plan.names))
    models = min(share.models, plan.partitions)
    told = min(share.manifest_bytes, manifest_room(plan.classes, models, 0))
    return replace(share, models=models, manifest_bytes=told)


@dataclass
class Inbox:
    """The folder as it was last looked at: a verdict for every file, and the bundles that count."""

    plan: Plan
    folder: Path
    limits: Limits
    verdicts: dict[Mark, tuple[Path, Arrival]] = field(default_factory=dict)
    """Without bundles: what was refused or is not counted keeps nothing in memory."""
    held: dict[str, Arrival] = field(default_factory=dict)
    """For each party the one accepted bundle that may count."""
    looks: dict[str, set[str]] = field(default_factory=dict)
    """The digests of the files in each party's name that were looked into; where it has a key, of those it signed.

    By digest: a file that is touched, or carried here again, is no other file.
    """

    def arrivals(self) -> list[Arrival]:
        """Every file with its verdict, those that count with their bundles."""
        known, self.verdicts = self.verdicts, {}
        for path in first_files(self.folder, self.plan.names):
            mark, arrival = self._looked(path, known)
            self.verdicts[mark] = path, arrival
        self.verdicts = dict(sorted(self.verdicts.items(), key=lambda each: each[1][0]))
        ranked = by_party([arrival for _, arrival in self.verdicts.values()])
        counted = {each.party for each in ranked if not each.reason}
        self.held = {party: each for party, each in self.held.items() if party in counted}
        paths = [path for path, _ in self.verdicts.values()]
        return [
            each if each.reason else self._with_bundle(path, each) for path, each in zip(paths, ranked, strict=True)
        ]

    def _looked(self, path: Path, known: dict[Mark, tuple[Path, Arrival]]) -> tuple[Mark, Arrival]:
        try:
            with open_plain(path, follow=False) as file:
                mark = marked(path, file)
                if mark in known:
                    return mark, known[mark][1]
                found = look_into(self.plan, file, shown_name(path), self.limits, self.looks)
        except OSError as reason:
            return (path.name, -1, -1, -1, -1), unreadable(path, reason)
        return mark, self._noted(found)

    def _noted(self, found: Arrival) -> Arrival:
        """The verdict without its bundle, which is held if its party has none yet or an older one."""
        if found.bundle is not None and found.party is not None:
            before = self.held.get(found.party)
            if before is None or found.issue > before.issue:
                self.held[found.party] = found
        return replace(found, bundle=None)

    def _with_bundle(self, path: Path, counted: Arrival) -> Arrival:
        party = counted.party or ""
        held = self.held.get(party)
        if held is None or held.identity != counted.identity:
            # It was one of two until the other went: only its verdict was kept.
            held = look(self.plan, path, self.limits)
            if held.bundle is None:
                return held
            if held.identity != counted.identity:
                return replace(held, reason="it was changed while it was looked at.", bundle=None)
            self.held[party] = held
        return replace(counted, bundle=held.bundle)


def first_files(folder: Path, names: Sequence[str]) -> list[Path]:
    """The bundle files to look at, those that are named like a party first, then by name; of too many the first."""
    waiting = (path for path in folder.iterdir() if path.suffix == ENDING and is_waiting(path))
    parties = set(names)
    return heapq.nsmallest(MOST_FILES, waiting, key=lambda path: (path.stem not in parties, path.name))


def is_waiting(path: Path) -> bool:
    """Whether this is a finished file and no link to one."""
    return not path.name.startswith(".") and path.is_file() and not path.is_symlink()


def marked(path: Path, file: BinaryIO) -> Mark:
    """The mark of a file that is open."""
    facts = os.fstat(file.fileno())
    return path.name, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def unreadable(path: Path, reason: OSError) -> Arrival:
    """The refusal of a file that cannot be read, or is none."""
    return Arrival(shown_name(path), None, f"it cannot be read: {reason.strerror or reason}.")


def look(plan: Plan, path: Path, limits: Limits | None = None) -> Arrival:
    """One file, checked from the outside in; a refusal is an answer, not an error."""
    try:
        with open_plain(path, follow=False) as file:
            return look_into(plan, file, shown_name(path), limits or limits_for(plan))
    except OSError as reason:
        return unreadable(path, reason)


def look_into(
    plan: Plan, file: BinaryIO, name: str, limits: Limits, looks: dict[str, set[str]] | None = None
) -> Arrival:
    """The verdict on a file that is open; `looks` counts those in each party's name, and ends them."""
    size = os.fstat(file.fileno()).st_size
    data = file.read(limits.bundle_bytes + 1) if size <= limits.bundle_bytes else None
    if data is None or len(data) > limits.bundle_bytes:
        most = f"{limits.bundle_bytes:,} bytes that a party may send{limits.advice}"
        return Arrival(name, None, f"it is larger than the {most}.")
    if looks is not None and (sender := proven_sender(data, name, limits, plan.keys)) is not None:
        digest, known = hashlib.sha256(data).hexdigest(), looks.setdefault(sender, set())
        if digest not in known and len(known) >= MOST_LOOKS:
            reason = f"{MOST_LOOKS} files in {sender!r}'s name were looked into already. Keep one in the folder."
            return Arrival(name, sender, reason, bytes=len(data), sha256=digest)
        known.add(digest)
    return judge(plan, data, name, limits)


def judge(plan: Plan, data: bytes, name: str, limits: Limits) -> Arrival:
    """The verdict on the bytes of a file."""
    digest = hashlib.sha256(data).hexdigest()
    try:
        bundle = unpack(data, source=name, expected=plan.expected, limits=limits)
    except BundleError as reason:
        # Whoever lists arrivals names the file.
        why = str(reason).removeprefix(f"Bundle in {name} is refused: ").removeprefix(f"Bundle in {name}: ")
        return Arrival(name, claimed_sender(data, name, limits), why, bytes=len(data), sha256=digest)
    fault = claim_fault(plan, bundle.claim) or count_fault(plan, bundle)
    if len(bundle.models) != plan.partitions:
        # Fewer students agree more easily: a party that sends one of two would vote on every row.
        held = "1 student" if len(bundle.models) == 1 else f"{len(bundle.models)} students"
        fault = f"it holds {held}, but {plan.partitions} were agreed on (partitions)."
    if fault:
        return Arrival(name, bundle.sender, fault, bytes=len(data), sha256=digest)
    known = replace(bundle, calibrated=plan.calibrated(bundle.sender))
    issue = bundle.issue if bundle.signed else 0
    return Arrival(name, bundle.sender, "", known, len(data), digest, identity=bundle.identity, issue=issue)


def count_fault(plan: Plan, bundle: Bundle) -> str:
    """Why a party's class counts are not believed, or nothing where they are."""
    most, told = plan.most_rows(bundle.sender), sum(bundle.counts or ())
    if most is not None and told > most:
        return f"it says that its party has {told} rows, more than the {most} agreed on in the plan."
    return ""


def claimed_sender(data: bytes, source: str, limits: Limits) -> str | None:
    """Who a refused bundle says it is from, where that much can be read; for the message only."""
    said = manifest_of_refused(data, source, limits)
    return None if said is None else said.party


def proven_sender(data: bytes, source: str, limits: Limits, keys: Mapping[str, str]) -> str | None:
    """Who a bundle is from, by its signature where that party has a key; None where the manifest is refused."""
    from fedkt.bundle import peek

    try:
        return peek(data, source=source, keys=keys, limits=limits, contents=False).party
    except BundleError:
        return None


def by_party(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """The arrivals; of several accepted ones of a party the newest issue counts, or none where two are the newest."""
    accepted: dict[str | None, list[Arrival]] = {}
    for each in arrivals:
        if not each.reason:
            accepted.setdefault(each.party, []).append(each)
    return [each if each.reason else among(each, accepted[each.party]) for each in arrivals]


def among(arrival: Arrival, rivals: Sequence[Arrival]) -> Arrival:
    """What becomes of an accepted file among all accepted ones of its party."""
    newest = max(each.issue for each in rivals)
    top = [each for each in rivals if each.issue == newest]
    if arrival.issue < newest:
        reason = f"it is replaced by {top[0].file}, a newer issue ({newest}) of the same party."
        return replace(arrival, reason=reason, replaced=True)
    if len({each.identity for each in top}) > 1:
        files = ", ".join(each.file for each in top[:5]) + (f", … ({len(top)} in all)" if len(top) > 5 else "")
        reason = (
            f"{arrival.party!r} has sent different bundles ({files}), and nobody can tell which one is meant. Keep one "
            f"in the folder. If they are signed, a newer issue replaces both: fedkt party … --issue {newest + 1}"
        )
        return replace(arrival, reason=reason)
    if arrival is top[0]:
        return arrival
    return replace(arrival, reason=f"it is a copy of {top[0].file}, which is counted.", copy=True)


def without_reasons(arrivals: Sequence[Arrival]) -> tuple[list[Arrival], tuple[str, ...]]:
    """The arrivals without why files were refused, and that apart: a reason may quote what a student holds."""
    unsaid = tuple(f"{each.file}: {each.reason}" for each in arrivals if each.reason and not each.identity)
    bare = "why is told to the server's operator only."
    return [replace(each, reason=bare) if each.reason and not each.identity else each for each in arrivals], unsaid


def passed_over(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """A sentence for every file that looks like a bundle by its name but is not one of those looked at."""
    told: list[str] = []
    more = 0
    looked = {path.name for path in first_files(folder, names)}
    for path in folder.iterdir():
        if path.name in looked or path.name.startswith(".") or ENDING not in path.name.casefold():
            continue
        if path.suffix != ENDING:
            why = f"a bundle's name ends with {ENDING}"
        elif path.is_symlink():
            why = "it is a link" if path.exists() else "it is a link to nothing"
        else:
            why = f"no more than {MOST_FILES:,} files are" if path.is_file() else "it is not a file"
        more += 1
        if len(told) < MOST_TOLD:
            told.append(f"{shown_name(path)} in {folder} was not looked at: {why}.")
    unsaid = [f"{more - MOST_TOLD} more files in {folder} were not looked at."] if more > MOST_TOLD else []
    return (*sorted(told), *unsaid)


def not_enough(arrivals: Sequence[Arrival], plan: Plan, needed: int, folder: Path) -> str:
    """The words for a server that cannot start."""
    heard = {each.party for each in arrivals if not each.reason}
    missing = [name for name in plan.names if name not in heard]
    refused = [f"\n  {each.status}: {each.file}: {each.reason}" for each in arrivals if each.reason]
    if len(refused) > MOST_TOLD:
        refused[MOST_TOLD:] = [f"\n  and {len(refused) - MOST_TOLD} more"]
    refused += [f"\n  note: {note}" for note in passed_over(folder, plan.names)]
    return (
        f"{len(heard)} of the {needed} bundles needed are in {folder}. Missing: {', '.join(missing)}."
        f"{''.join(refused)}\nWait for them (--wait SECONDS) or go on without (--min-parties K)."
    )
