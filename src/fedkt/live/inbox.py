"""The server's inbox: everything in a mailbox looked at, accepted with its party's bundle or refused with a reason.

Whoever can reach the mailbox may put anything there, so what is held in memory is bounded: one bundle a party, and
each party has an even share of what all may take together. Of everything else only the verdict is kept.
"""

from __future__ import annotations

import hashlib
import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fedkt.bundle.opening import manifest_room
from fedkt.live.arrivals import Arrival, judge, proven_sender, rank_by_party
from fedkt.live.mailbox import Mailbox, MailboxEntry, bundle_name
from fedkt.models.onnx_rules import Limits
from fedkt.plan import Plan
from fedkt.system.files import printable_name

POLL_SECONDS = 0.5
MOST_LOOKS = 8
"""Bundles in one party's name whose models are looked into; unpacking and checking one takes seconds at worst."""
MOST_FILES = 10_000
"""Entries looked at; those named like a party come first."""
MOST_WORDS = 50
"""Entries with a line of their own in an error or in notes."""


def gather(
    plan: Plan,
    mailbox: Mailbox,
    *,
    wait: float = 0.0,
    limits: Limits | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> list[Arrival]:
    """Every bundle in the mailbox, looked at; waits up to `wait` seconds for parties that have not sent yet.

    Of two signed bundles of one party the newer issue counts. Two different bundles of the same issue, or without
    signatures, are both refused, since nobody here can tell which one is meant; the same bundle under two names counts
    once. Every party has its even share of the `limits`.
    """
    inbox = Inbox(plan, mailbox, limits_for(plan, limits))
    deadline = time.monotonic() + wait
    while True:
        arrivals = inbox.arrivals()
        accepted = {each.party for each in arrivals if not each.reason}
        if tell is not None:
            tell(len(accepted), len(plan.names))
        remaining = deadline - time.monotonic()
        if len(accepted) == len(plan.names) or remaining <= 0:
            return arrivals
        time.sleep(min(POLL_SECONDS, remaining))


def limits_for(plan: Plan, limits: Limits | None = None) -> Limits:
    """What one party may send and take: what was agreed on, in an even share of what all may take."""
    share, expected = (limits or Limits()).share_of(len(plan.names)), plan.expected
    models = share.models if expected.max_models is None else min(share.models, expected.max_models)
    manifest_bytes = min(share.manifest_bytes, manifest_room(plan.classes, models, len(expected.arrays or {})))
    return replace(share, models=models, manifest_bytes=manifest_bytes)


@dataclass
class Inbox:
    """The mailbox as it was last looked at: a verdict for every entry, and the bundles that count."""

    plan: Plan
    mailbox: Mailbox
    limits: Limits
    verdicts: dict[str, tuple[str | None, Arrival]] = field(default_factory=dict)
    """By name: the mark it had, None where nothing could be read, which is tried again, and the verdict.

    Without bundles: what was refused or is not counted keeps nothing in memory.
    """
    bundles: dict[str, Arrival] = field(default_factory=dict)
    """For each party the one accepted bundle that may count."""
    looks: dict[str, set[str]] = field(default_factory=dict)
    """The digests of the bundles in each party's name that were looked into; where it has a key, of those it signed.

    By digest: a file that is touched, or carried here again, is no other file.
    """

    def arrivals(self) -> list[Arrival]:
        """Everything with its verdict, what counts with its bundle."""
        before, self.verdicts = self.verdicts, {}
        for entry in first_entries(self.mailbox, self.plan.names):
            mark, verdict = before.get(entry.name, (None, None))
            if verdict is None or mark != entry.mark:
                mark, verdict = self._look(entry)
            self.verdicts[entry.name] = mark, verdict
        names = sorted(self.verdicts)
        ranked = rank_by_party([self.verdicts[name][1] for name in names])
        parties = {each.party for each in ranked if not each.reason}
        self.bundles = {party: each for party, each in self.bundles.items() if party in parties}
        return [
            each if each.reason else self._with_bundle(name, each) for name, each in zip(names, ranked, strict=True)
        ]

    def _look(self, entry: MailboxEntry) -> tuple[str | None, Arrival]:
        """The verdict without its bundle, which is kept if its party has none yet or an older one."""
        data = fetch(self.mailbox, entry.name, self.limits)
        if isinstance(data, Arrival):
            return None, data
        name = printable_name(entry.name)
        arrival = self._refuse_flood(data, name) or judge(self.plan, data, name, self.limits)
        if arrival.bundle is not None and arrival.party is not None:
            before = self.bundles.get(arrival.party)
            if before is None or arrival.issue > before.issue:
                self.bundles[arrival.party] = arrival
        return entry.mark, replace(arrival, bundle=None)

    def _refuse_flood(self, data: bytes, name: str) -> Arrival | None:
        """The refusal of one more bundle in a party's name, where enough were looked into; else nothing."""
        sender = proven_sender(data, name, self.limits, self.plan.keys)
        if sender is None:
            return None
        digest, looks = hashlib.sha256(data).hexdigest(), self.looks.setdefault(sender, set())
        if digest in looks or len(looks) < MOST_LOOKS:
            looks.add(digest)
            return None
        reason = f"{MOST_LOOKS} files in {sender!r}'s name were looked into already. Keep one in the folder."
        return Arrival(name, sender, reason, bytes=len(data), sha256=digest)

    def _with_bundle(self, name: str, verdict: Arrival) -> Arrival:
        party = verdict.party or ""
        arrival = self.bundles.get(party)
        if arrival is None or arrival.identity != verdict.identity:
            # It was one of two until the other went: only its verdict was kept.
            arrival = look(self.plan, self.mailbox, name, self.limits)
            if arrival.bundle is None:
                return arrival
            if arrival.identity != verdict.identity:
                return replace(arrival, reason="it was changed while it was looked at.", bundle=None)
            self.bundles[party] = arrival
        return replace(verdict, bundle=arrival.bundle)


def first_entries(mailbox: Mailbox, parties: Sequence[str]) -> list[MailboxEntry]:
    """The entries to look at, those that are named like a party first, then by name; of too many the first."""
    waiting = (entry for entry in mailbox.entries() if not entry.ignored)
    party_files = {bundle_name(party) for party in parties}
    return heapq.nsmallest(MOST_FILES, waiting, key=lambda entry: (entry.name not in party_files, entry.name))


def look(plan: Plan, mailbox: Mailbox, name: str, limits: Limits | None = None) -> Arrival:
    """One entry, checked from the outside in; a refusal is an answer, not an error."""
    limits = limits or limits_for(plan)
    data = fetch(mailbox, name, limits)
    return data if isinstance(data, Arrival) else judge(plan, data, printable_name(name), limits)


def fetch(mailbox: Mailbox, name: str, limits: Limits) -> bytes | Arrival:
    """The bytes of an entry, or the refusal of one that cannot be read or is more than a party may send."""
    try:
        data = mailbox.read(name, limits.bundle_bytes)
    except OSError as reason:
        return Arrival(printable_name(name), None, f"it cannot be read: {reason.strerror or reason}.")
    if data is not None:
        return data
    most = f"{limits.bundle_bytes:,} bytes that a party may send{limits.advice}"
    return Arrival(printable_name(name), None, f"it is larger than the {most}.")


def ignored_entries(mailbox: Mailbox, parties: Sequence[str]) -> tuple[str, ...]:
    """A sentence for everything that may be meant as a bundle but is not one of those looked at."""
    notes: list[str] = []
    count = 0
    names = {entry.name for entry in first_entries(mailbox, parties)}
    for entry in mailbox.entries():
        if entry.name in names:
            continue
        count += 1
        if len(notes) < MOST_WORDS:
            why = entry.ignored or f"no more than {MOST_FILES:,} files are"
            notes.append(f"{printable_name(entry.name)} in {mailbox} was not looked at: {why}.")
    more = [f"{count - MOST_WORDS} more files in {mailbox} were not looked at."] if count > MOST_WORDS else []
    return (*sorted(notes), *more)


def not_enough(arrivals: Sequence[Arrival], plan: Plan, needed: int, mailbox: Mailbox) -> str:
    """The words for a server that cannot start."""
    accepted = {each.party for each in arrivals if not each.reason}
    absent = [name for name in plan.names if name not in accepted]
    lines = [f"\n  {each.status}: {each.file}: {each.reason}" for each in arrivals if each.reason]
    if len(lines) > MOST_WORDS:
        lines[MOST_WORDS:] = [f"\n  and {len(lines) - MOST_WORDS} more"]
    lines += [f"\n  note: {note}" for note in ignored_entries(mailbox, plan.names)]
    return (
        f"{len(accepted)} of the {needed} bundles needed are in {mailbox}. Missing: {', '.join(absent)}."
        f"{''.join(lines)}\nWait for them (--wait SECONDS) or go on without (--min-parties K)."
    )
