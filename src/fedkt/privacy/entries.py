"""The entries of a ledger: what is written down about a release, in one form, with the digest of the one before."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.privacy.mechanisms import make_noise
from fedkt.privacy.noise import Noise
from fedkt.privacy.price import Adjacency, Release, Unit
from fedkt.privacy.stream import Floats, Source

MAX_WORDS = 500
"""The longest text in one field."""
MAX_COUNT = 2**53
FIRST = "0" * 64
"""The digest before the first entry."""


def canonical(fields: Mapping[str, Any]) -> bytes:
    """The one way to write these values: sorted keys, no spaces, ASCII, floats as `repr`, nothing infinite."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def number_at_least(what: str, value: Any, least: int) -> int:
    """The value as an int, refused unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= MAX_COUNT:
        raise PrivacyError(f"{what} must be a whole number of at least {least}, got {str(value)[:80]}.")
    return int(value)


def line_of_text(what: str, value: Any, *, empty: bool = False) -> str:
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


@dataclass(frozen=True)
class UnknownNoise(Noise):
    """A noise that a ledger tells of and that nobody would agree on today: it has a name and a scale, and no price."""

    about = "a noise of another version"

    mechanism: str
    figures: tuple[tuple[str, float], ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        """As the ledger names it."""
        return self.mechanism

    @property
    def scale(self) -> Mapping[str, float]:
        """As the ledger has it."""
        return dict(self.figures)

    @property
    def spread(self) -> float:
        """Unknown."""
        return math.nan

    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """Refused: nothing is released with a noise that nobody knows."""
        raise PrivacyError(f"There is no noise {self.name!r}; nothing is released.")

    def rdp(self, orders: ArrayLike) -> Floats:
        """Infinite."""
        return np.full(np.shape(orders), math.inf)


def release_fields(release: Release) -> dict[str, Any]:
    """What a ledger writes down about a release."""
    return {
        "purpose": release.purpose,
        "mechanism": release.noise.name,
        "scale": release.noise.scale,
        "queries": release.queries,
        "voters": release.voters,
        "classes": release.classes,
        "unit": release.unit,
        "adjacency": release.adjacency,
        "abstentions": release.abstentions,
    }


def release_from(figures: Mapping[str, Any]) -> Release:
    """The release that these fields describe, refused where they make no sense."""
    line_of_text("purpose", figures["purpose"], empty=True)
    line_of_text("mechanism", figures["mechanism"])
    scale = figures["scale"]
    if not isinstance(scale, Mapping) or len(scale) > 16:
        raise PrivacyError(f"scale must map at most 16 names to numbers, got {str(scale)[:80]}.")
    scale = {line_of_text("a name in scale", name): finite(f"scale {name!r}", x) for name, x in scale.items()}
    least = {"queries": 0, "voters": 1, "classes": 2}
    rest: dict[str, Any] = {what: number_at_least(what, figures[what], least[what]) for what in least}
    for what, choices in (("unit", get_args(Unit)), ("adjacency", get_args(Adjacency))):
        if figures[what] not in choices:
            raise PrivacyError(f"{what} must be one of {', '.join(choices)}; got {str(figures[what])[:80]!r}.")
    if not isinstance(figures["abstentions"], bool):
        raise PrivacyError(f"abstentions must be true or false, got {str(figures['abstentions'])[:80]}.")
    noise: Noise
    try:
        noise = make_noise(figures["mechanism"], scale, counts=True)
    except ConfigurationError:
        noise = UnknownNoise(figures["mechanism"], tuple(sorted(scale.items())))
    rest |= {what: figures[what] for what in ("unit", "adjacency", "abstentions", "purpose")}
    return Release(noise, **rest)


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Whose budget a release comes from, and under which plan: what an entry's writer chooses."""

    who: str
    """A party's name, or "server". Entries with the same `who` compose."""
    release: Release
    plan: str = ""
    """The digest of the plan it was released under; empty where there is none."""

    def __post_init__(self) -> None:
        line_of_text("who", self.who)
        # As it will be read again: what a file cannot tell of a noise is nothing that a price may rest on.
        object.__setattr__(self, "release", release_from(release_fields(self.release)))
        digest_or("plan", self.plan, "")

    def is_same(self, other: Spending) -> bool:
        """Whether this is that very release, purpose included."""
        return Spending.as_dict(self) == Spending.as_dict(other)

    def as_dict(self) -> dict[str, Any]:
        """The fields of a line."""
        scale = {name: float(value) for name, value in sorted(self.release.noise.scale.items())}
        return {"who": self.who, **release_fields(self.release), "scale": scale, "plan": self.plan}


RELEASE_FIELDS = {"purpose", "mechanism", "scale", "queries", "voters", "classes", "unit", "adjacency", "abstentions"}


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
        # Its release is a spending's, or was read from its line: either way it has been checked.
        line_of_text("who", self.who)
        digest_or("plan", self.plan, "")
        for what in ("number", "together"):
            object.__setattr__(self, what, number_at_least(what, getattr(self, what), 1))
        line_of_text("time", self.time)
        digest_or("previous", self.previous, FIRST)
        digest_or("digest", self.digest, FIRST)

    def as_dict(self) -> dict[str, Any]:
        """All fields, `together` included."""
        chain = {name: getattr(self, name) for name in CHAIN_FIELDS}
        return {**super().as_dict(), **chain}

    @property
    def line(self) -> bytes:
        """The entry as it stands in the file."""
        fields = self.as_dict()
        if self.together == 1:
            del fields["together"]
        return canonical(fields) + b"\n"


CHAIN_FIELDS = ("number", "time", "previous", "digest", "together")
ENTRY_FIELDS = {"who", "plan", *RELEASE_FIELDS, *CHAIN_FIELDS}


def entries_after(last: Entry | None, spendings: Sequence[Spending]) -> list[Entry]:
    """The entries that write the spendings of one run down after the last one."""
    entries: list[Entry] = []
    for spending in spendings:
        number, previous = next_place(last)
        time = datetime.now(UTC).isoformat(timespec="seconds")
        chain: dict[str, Any] = {"number": number, "time": time, "previous": previous}
        if len(spendings) > 1:
            chain["together"] = len(spendings)
        digest = hashlib.sha256(canonical({**spending.as_dict(), **chain})).hexdigest()
        last = Entry(who=spending.who, release=spending.release, plan=spending.plan, **chain, digest=digest)
        entries.append(last)
    return entries


def next_place(last: Entry | None) -> tuple[int, str]:
    """The number of the entry after the last one, and the digest that it carries of it."""
    return (last.number + 1, last.digest) if last else (1, FIRST)


def entry_from(fields: Any, line: bytes, last: Entry | None) -> Entry:
    """The entry that a parsed line holds, refused unless it is, to the byte, what would have been written there."""
    if not isinstance(fields, dict) or set(fields) | {"together"} != ENTRY_FIELDS:
        odd = sorted(ENTRY_FIELDS ^ (set(fields) | {"together"})) if isinstance(fields, dict) else []
        raise PrivacyError(
            f"the fields are not those of an entry (missing or unknown: {', '.join(odd)[:200] or 'all'})"
        )
    own = {name: value for name, value in fields.items() if name not in RELEASE_FIELDS}
    entry = Entry(**own, release=release_from(fields))
    number, previous = next_place(last)
    if entry.number != number:
        raise PrivacyError(f"entry {number} belongs here, got entry {entry.number}")
    if entry.previous != previous:
        raise PrivacyError("the digest of the entry before does not fit: a line was changed, removed or moved")
    rest = {name: value for name, value in fields.items() if name != "digest"}
    if entry.digest != hashlib.sha256(canonical(rest)).hexdigest() or entry.line != line:
        raise PrivacyError("its own digest does not fit: the line was changed")
    return entry
