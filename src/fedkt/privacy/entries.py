"""The entries of a ledger: what is written down about a release, in one form, with the digest of the one before."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, get_args

import numpy as np

from fedkt.errors import PrivacyError
from fedkt.privacy.price import Adjacency, Release, Unit

MAX_WORDS = 500
"""The longest text in one field."""
MAX_COUNT = 2**53
FIRST = "0" * 64
"""The digest before the first entry."""


def canonical(said: Mapping[str, Any]) -> bytes:
    """The one way to write these values: sorted keys, no spaces, ASCII, floats as `repr`, nothing infinite."""
    return json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def whole(what: str, value: Any, least: int) -> int:
    """The value as an int, refused unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= MAX_COUNT:
        raise PrivacyError(f"{what} must be a whole number of at least {least}, got {str(value)[:80]}.")
    return int(value)


def words(what: str, value: Any, *, empty: bool = False) -> str:
    """The text, refused where it is too long, empty or not printable: a name that looks like another is another."""
    if not isinstance(value, str) or len(value) > MAX_WORDS or not value.isprintable() or value != value.strip():
        raise PrivacyError(
            f"{what} must be one line of at most {MAX_WORDS} printable characters, got {str(value)[:80]!r}."
        )
    if not value and not empty:
        raise PrivacyError(f"{what} must not be empty.")
    return value


def finite(what: str, value: Any) -> float:
    """The value as a float, refused where it is no finite number."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not abs(value) < math.inf or abs(value) > sys.float_info.max:
        raise PrivacyError(f"{what} must be a finite number, got {str(value)[:80]}.")
    return float(value)


def digest_or(what: str, value: Any, other: str) -> str:
    """The value, refused unless it is a SHA-256 in lower-case hexadecimal or equals `other`."""
    if isinstance(value, str) and (value == other or (len(value) == 64 and set(value) <= set("0123456789abcdef"))):
        return value
    raise PrivacyError(f"{what} must be a SHA-256 of 64 hexadecimal digits, got {str(value)[:80]!r}.")


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What is about to be released, in public figures: the fields of an entry that its writer chooses."""

    who: str
    """Whose budget it comes from: a party's name, or "server". Entries with the same `who` compose."""
    purpose: str
    mechanism: str
    scale: Mapping[str, float]
    queries: int
    voters: int
    classes: int
    unit: Unit
    adjacency: Adjacency = "replace-one"
    abstentions: bool = False
    plan: str = ""
    """The digest of the plan it was released under; empty where there is none."""

    def __post_init__(self) -> None:
        words("who", self.who)
        words("purpose", self.purpose, empty=True)
        words("mechanism", self.mechanism)
        if not isinstance(self.scale, Mapping) or len(self.scale) > 16:
            raise PrivacyError(f"scale must map at most 16 names to numbers, got {str(self.scale)[:80]}.")
        scale = {words("a name in scale", name): finite(f"scale {name!r}", x) for name, x in self.scale.items()}
        object.__setattr__(self, "scale", scale)
        for what, least in (("queries", 0), ("voters", 1), ("classes", 2)):
            object.__setattr__(self, what, whole(what, getattr(self, what), least))
        for what, choices in (("unit", get_args(Unit)), ("adjacency", get_args(Adjacency))):
            if getattr(self, what) not in choices:
                raise PrivacyError(
                    f"{what} must be one of {', '.join(choices)}; got {str(getattr(self, what))[:80]!r}."
                )
        if not isinstance(self.abstentions, bool):
            raise PrivacyError(f"abstentions must be true or false, got {str(self.abstentions)[:80]}.")
        digest_or("plan", self.plan, "")

    @classmethod
    def of(cls, release: Release, *, who: str, purpose: str, plan: str = "") -> Spending:
        """The spending of a release."""
        noise = release.noise
        public = ("queries", "voters", "classes", "unit", "adjacency", "abstentions")
        figures = {what: getattr(release, what) for what in public}
        return cls(who=who, purpose=purpose, mechanism=noise.name, scale=noise.scale, plan=plan, **figures)


@dataclass(frozen=True, kw_only=True)
class Entry(Spending):
    """One line of the ledger."""

    number: int
    """1, 2, 3, …"""
    time: str
    """When it was written, UTC; informative only."""
    previous: str
    """The digest of the entry before."""
    digest: str
    """SHA-256 of the canonical form of everything else."""
    together: int = 1
    """How many entries in a row, this one among them, were written as one; left out of the line where it is alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("number", "together"):
            object.__setattr__(self, what, whole(what, getattr(self, what), 1))
        words("time", self.time)
        digest_or("previous", self.previous, FIRST)
        digest_or("digest", self.digest, FIRST)

    @property
    def line(self) -> bytes:
        """The entry as it stands in the file."""
        said = dict(vars(self))
        if self.together == 1:
            del said["together"]
        return canonical(said) + b"\n"


ENTRY_FIELDS = {field.name for field in fields(Entry)}


def entries_after(last: Entry | None, spendings: Sequence[Spending]) -> list[Entry]:
    """The entries that write the spendings of one run down after the last one."""
    made: list[Entry] = []
    for spending in spendings:
        made.append(_entry_after(made[-1] if made else last, spending, len(spendings)))
    return made


def _entry_after(last: Entry | None, spending: Spending, together: int) -> Entry:
    said: dict[str, Any] = {field.name: getattr(spending, field.name) for field in fields(Spending)}
    said["number"] = last.number + 1 if last else 1
    said["time"] = datetime.now(UTC).isoformat(timespec="seconds")
    said["previous"] = last.digest if last else FIRST
    if together > 1:
        said["together"] = together
    return Entry(**said, digest=hashlib.sha256(canonical(said)).hexdigest())


def entry_from(said: Any, line: bytes, last: Entry | None) -> Entry:
    """The entry that a parsed line holds, refused unless it is, to the byte, what would have been written there."""
    if not isinstance(said, dict) or set(said) | {"together"} != ENTRY_FIELDS:
        odd = sorted(ENTRY_FIELDS ^ (set(said) | {"together"})) if isinstance(said, dict) else []
        raise PrivacyError(
            f"the fields are not those of an entry (missing or unknown: {', '.join(odd)[:200] or 'all'})"
        )
    entry = Entry(**said)
    number, previous = (last.number + 1, last.digest) if last else (1, FIRST)
    if entry.number != number:
        raise PrivacyError(f"entry {number} belongs here, got entry {entry.number}")
    if entry.previous != previous:
        raise PrivacyError("the digest of the entry before does not fit: a line was changed, removed or moved")
    del said["digest"]
    if entry.digest != hashlib.sha256(canonical(said)).hexdigest() or entry.line != line:
        raise PrivacyError("its own digest does not fit: the line was changed")
    return entry
