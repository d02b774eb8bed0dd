"""What a noisy vote is, and what it costs: the words that mechanisms, accountants and the ledger share.

Everything here is public: a price is computed from these figures alone, never from votes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from fedkt.errors import ConfigurationError
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.noise import Noise
from fedkt.privacy.sums import GaussianSums

Unit = Literal["party", "record"]
Adjacency = Literal["replace-one", "add-or-remove"]
"""What neighbours differ by. replace-one: all of a unit's data but its identity, which everybody may know.
add-or-remove: that, or whether the unit is there at all. Both move one vote of every partition, and cost the same."""
KEY_MARK = " (noise "
"""Stands between a release's purpose and the key of the kept noise it was made with."""
COUNTS_STREAM = 0xC0417
"""The draw of a party's noise that its class counts get."""
SUMS_STREAM = 0x50E5
"""The draw that its sums of features get."""
MARGINALS_STREAM = 0x3A46
"""The draw that what it tells of its columns gets."""


@dataclass(frozen=True)
class Release:
    """What leaves with noise, in public figures only: price, ledger entry, claim and statement are made from it."""

    noise: Noise
    queries: int
    """Labels released that one unit can move: k at L1, s·k at L2."""
    voters: int
    classes: int
    unit: Unit
    adjacency: Adjacency = "replace-one"
    abstentions: bool = False
    """Whether a voter may cast no vote (consistent voting), so that the number of votes is not public."""
    purpose: str = field(default="vote", compare=False)
    """What a ledger calls it. What it is for changes nothing in what it costs, so it is not compared."""
    stream: int = field(default=0, compare=False)
    """Which draw of its owner's kept noise it gets."""

    def __post_init__(self) -> None:
        for what, value, least in (
            ("queries", self.queries, 0),
            ("voters", self.voters, 1),
            ("classes", self.classes, 2),
        ):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ConfigurationError(f"The number of {what} is a whole number of at least {least}, got {value!r}.")

    def noise_key(self, noise_seed: int | None) -> str:
        """Tells its draw of kept noise from another, without telling the noise; empty for fresh noise."""
        if noise_seed is None:
            return ""
        return hashlib.sha256(f"{noise_seed}/{self.stream}".encode()).hexdigest()[:32]

    def keyed(self, noise_seed: int | None) -> Self:
        """The same release, its purpose with the key of the kept noise it is made with."""
        key = self.noise_key(noise_seed)
        return replace(self, purpose=f"{self.purpose}{KEY_MARK}{key})") if key else self


def counts_release(noise: GaussianCounts, classes: int, adjacency: Adjacency = "replace-one") -> Release:
    """Class counts as a release: one query that one record moves like a vote. Nobody's number of rows is in it."""
    return Release(noise, 1, 1, classes, "record", adjacency, purpose="class counts", stream=COUNTS_STREAM)


def sums_release(noise: GaussianSums, classes: int) -> Release:
    """Sums of features by class as a release: one vector that one record moves by the noise's Δ at most."""
    return Release(noise, 1, 1, max(classes, 2), "record", purpose="sums of features", stream=SUMS_STREAM)


def marginals_release(noise: GaussianSums) -> Release:
    """What a party tells of its columns as a release: one vector that one record moves by the noise's Δ at most."""
    return Release(noise, 1, 1, 2, "record", purpose="marginals", stream=MARGINALS_STREAM)


def party_sums_release(noise: GaussianSums, classes: int, parties: int) -> Release:
    """The total of one vector a party as a release: one vector that one party moves by the noise's Δ at most."""
    return Release(noise, 1, parties, max(classes, 2), "party", purpose="total of the parties", stream=SUMS_STREAM)


def common_adjacency(releases: Iterable[Release]) -> Adjacency:
    """What all of these protect against: who may be added or removed may be replaced as well."""
    every: Adjacency = "add-or-remove"
    return every if all(each.adjacency == every for each in releases) else "replace-one"


@dataclass(frozen=True)
class Price:
    """An ε with everything that gives it a meaning."""

    epsilon: float
    delta: float
    accountant: str
    release: Release
    accountants: Mapping[str, float] = field(default_factory=dict)
    """Every sound answer by the name of its accountant; the smallest one is `epsilon`."""
    releases: tuple[Release, ...] = field(default=(), compare=False)
    """All that was priced, one by one; `release` is what is alike in them."""
