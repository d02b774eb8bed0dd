"""What became of everything that arrived: a verdict each, and of several bundles of a party the one that counts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedkt.bundle import Bundle, peek, unpack
from fedkt.bundle.opening import read_refused_manifest
from fedkt.errors import BundleError
from fedkt.live.claims import claim_fault
from fedkt.models.onnx_rules import Limits
from fedkt.plan import Plan


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


def judge(plan: Plan, data: bytes, name: str, limits: Limits) -> Arrival:
    """The verdict on the bytes of a file."""
    digest = hashlib.sha256(data).hexdigest()
    try:
        bundle = unpack(data, source=name, expected=plan.expected, limits=limits)
    except BundleError as reason:
        # Whoever lists arrivals names the file.
        why = str(reason).removeprefix(f"Bundle in {name} is refused: ").removeprefix(f"Bundle in {name}: ")
        return Arrival(name, claimed_sender(data, name, limits), why, bytes=len(data), sha256=digest)
    fault = claim_fault(plan, bundle.claim) or plan.method.bundle_fault(plan, bundle)
    if fault:
        return Arrival(name, bundle.sender, fault, bytes=len(data), sha256=digest)
    bundle = replace(bundle, calibrated=plan.calibrated(bundle.sender))
    issue = bundle.issue if bundle.signed else 0
    return Arrival(name, bundle.sender, "", bundle, len(data), digest, identity=bundle.identity, issue=issue)


def claimed_sender(data: bytes, source: str, limits: Limits) -> str | None:
    """Who a refused bundle says it is from, where that much can be read; for the message only."""
    manifest = read_refused_manifest(data, source, limits)
    return None if manifest is None else manifest.party


def proven_sender(data: bytes, source: str, limits: Limits, keys: Mapping[str, str]) -> str | None:
    """Who a bundle is from, by its signature where that party has a key; None where the manifest is refused."""
    try:
        return peek(data, source=source, keys=keys, limits=limits, contents=False).party
    except BundleError:
        return None


def rank_by_party(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """The arrivals; of several accepted ones of a party the newest issue counts, or none where two are the newest."""
    accepted: dict[str | None, list[Arrival]] = {}
    for each in arrivals:
        if not each.reason:
            accepted.setdefault(each.party, []).append(each)
    return [each if each.reason else rank(each, accepted[each.party]) for each in arrivals]


def rank(arrival: Arrival, rivals: Sequence[Arrival]) -> Arrival:
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
    reasons = tuple(f"{each.file}: {each.reason}" for each in arrivals if each.reason and not each.identity)
    bare = "why is told to the server's operator only."
    return [replace(each, reason=bare) if each.reason and not each.identity else each for each in arrivals], reasons
