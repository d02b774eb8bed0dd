"""The server's inbox: every file looked at, accepted with its party's bundle or refused with a reason."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedkt.bundle import Bundle, unpack
from fedkt.errors import BundleError, DataError
from fedkt.models.onnx_rules import Limits
from fedkt.plan import Plan
from fedkt.server_side.claims import claim_fault
from fedkt.transport.folder import read_at_most, waiting_files

ENDING = ".fedkt"
POLL_SECONDS = 0.5


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
    copy: bool = False
    """Whether it is the same bytes as a file that is counted."""

    @property
    def status(self) -> str:
        """In a word or three: what became of it."""
        return "copy, counted once" if self.copy else "refused" if self.reason else "counted"


def gather(
    plan: Plan,
    folder: Path,
    *,
    wait: float = 0.0,
    tell: Callable[[int, int], None] | None = None,
) -> list[Arrival]:
    """Every bundle file in the folder, looked at; waits up to `wait` seconds for parties that have not sent yet.

    Two different bundles of one party are both refused, since nobody here can tell which one is meant; the same bytes
    under two names count once.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. --bundles takes the folder that the parties' .fedkt files are in.")
    looked: dict[tuple[str, int, int], Arrival] = {}
    deadline = time.monotonic() + wait
    while True:
        present = []
        for path in waiting_files(folder, ENDING):
            mark = marked(path)
            if mark not in looked:
                looked[mark] = look(plan, path)
            present.append(looked[mark])
        arrivals = without_twins(present)
        accepted = {each.party for each in arrivals if not each.reason}
        if tell is not None:
            tell(len(accepted), len(plan.names))
        left = deadline - time.monotonic()
        if len(accepted) == len(plan.names) or left <= 0:
            return arrivals
        time.sleep(min(POLL_SECONDS, left))


def marked(path: Path) -> tuple[str, int, int]:
    """What tells a file that has been looked at from one that was replaced since."""
    try:
        facts = path.stat()
    except OSError:
        return path.name, -1, -1
    return path.name, facts.st_size, facts.st_mtime_ns


def look(plan: Plan, path: Path) -> Arrival:
    """One file, checked from the outside in; a refusal is an answer, not an error."""
    limits = Limits().share_of(len(plan.names))
    name = shown_name(path)
    try:
        data = read_at_most(path, limits.bundle_bytes)
    except OSError as reason:
        return Arrival(name, None, f"it cannot be read: {reason.strerror}")
    if data is None:
        return Arrival(name, None, f"it is larger than {limits.bundle_bytes:,} bytes.")
    digest = hashlib.sha256(data).hexdigest()
    try:
        bundle = unpack(
            data,
            source=name,
            plan=plan.digest,
            classes=plan.classes,
            n_features=plan.columns.n_features,
            max_models=plan.partitions,
            counts=plan.counts,
            soft=plan.soft,
            not_mine=plan.not_mine,
            parties=plan.names,
            keys=plan.keys,
            limits=limits,
        )
    except BundleError as reason:
        return Arrival(name, claimed_sender(data, name), str(reason), bytes=len(data), sha256=digest)
    if len(bundle.models) != plan.partitions:
        # Fewer students agree more easily: a party that sends one of two would vote on every row.
        held = "1 student" if len(bundle.models) == 1 else f"{len(bundle.models)} students"
        reason_ = f"it holds {held}, but {plan.partitions} were agreed on (partitions)."
        return Arrival(name, bundle.sender, reason_, bytes=len(data), sha256=digest)
    fault = claim_fault(plan, bundle.claim) or count_fault(plan, bundle)
    known = replace(bundle, calibrated=plan.calibrated(bundle.sender))
    return Arrival(name, bundle.sender, fault, None if fault else known, len(data), digest)


def count_fault(plan: Plan, bundle: Bundle) -> str:
    """Why a party's class counts are not believed, or nothing where they are."""
    most, told = plan.most_rows(bundle.sender), sum(bundle.counts or ())
    if most is not None and told > most:
        return f"it says that its party has {told} rows, more than the {most} agreed on in the plan."
    return ""


def claimed_sender(data: bytes, source: str) -> str | None:
    """Who a refused bundle says it is from, where that much can be read; for the message only."""
    from fedkt.bundle import peek

    try:
        return peek(data, source=source).party
    except BundleError:
        return None


def without_twins(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """The arrivals, with both refused where one party has sent two different bundles."""
    result: list[Arrival] = []
    for each in arrivals:
        same = [other for other in arrivals if not other.reason and other.party == each.party]
        if each.reason or len(same) == 1:
            result.append(each)
        elif len({other.sha256 for other in same}) > 1:
            files = ", ".join(other.file for other in same)
            reason = f"{each.party!r} has sent different bundles ({files}), and nobody can tell which one is meant."
            result.append(replace(each, reason=f"{reason} Keep one in the folder.", bundle=None))
        elif each is same[0]:
            result.append(each)
        else:
            reason = f"it is a copy of {same[0].file}, which is counted."
            result.append(replace(each, reason=reason, bundle=None, copy=True))
    return result


def passed_over(folder: Path) -> tuple[str, ...]:
    """A sentence for every file that looks like a bundle by its name but is not one of those looked at."""
    told = []
    looked = {path.name for path in waiting_files(folder, ENDING)}
    for path in sorted(folder.iterdir()):
        if path.name in looked or path.name.startswith(".") or ENDING not in path.name.casefold():
            continue
        if path.suffix != ENDING:
            why = f"a bundle's name ends with {ENDING}"
        elif path.is_symlink() and not path.exists():
            why = "it is a link to nothing"
        else:
            why = "it is not a file"
        told.append(f"{shown_name(path)} in {folder} was not looked at: {why}.")
    return tuple(told)


def shown_name(path: Path) -> str:
    """A file's name for people: it may hold anything, also what makes a terminal misbehave."""
    return "".join(each if each.isprintable() else "?" for each in path.name)


def not_enough(arrivals: Sequence[Arrival], plan: Plan, needed: int, folder: Path) -> str:
    """The words for a server that cannot start."""
    heard = {each.party for each in arrivals if not each.reason}
    missing = [name for name in plan.names if name not in heard]
    refused = [f"\n  {each.status}: {each.file}: {each.reason}" for each in arrivals if each.reason]
    refused += [f"\n  note: {note}" for note in passed_over(folder)]
    return (
        f"{len(heard)} of the {needed} bundles needed are in {folder}. Missing: {', '.join(missing)}."
        f"{''.join(refused)}\nWait for them (--wait SECONDS) or go on without (--min-parties K)."
    )
