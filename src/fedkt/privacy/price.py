"""What a noisy vote is, and what it costs: the words that mechanisms, accountants and the ledger share.

Everything here is public: a price is computed from these figures alone, never from votes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError
from fedkt.privacy.stream import Source

Unit = Literal["party", "record"]
Adjacency = Literal["replace-one", "add-or-remove"]
"""What neighbours differ by. replace-one: all of a unit's data but its identity, which everybody may know.
add-or-remove: that, or whether the unit is there at all. Both move one vote of every partition, and cost the same."""
Floats = NDArray[np.float64]


@runtime_checkable
class Noise(Protocol):
    """A mechanism: its noise and, in the same object, what one noisy vote costs when one voter's vote moves.

    A moved vote lowers one count by one and raises another by one, or does only one of the two where the voter may
    abstain.
    """

    @property
    def name(self) -> str:
        """The name in the catalogue."""
        ...

    @property
    def scale(self) -> Mapping[str, float]:
        """The parameters by name, enough to make the same noise again."""
        ...

    def __hash__(self) -> int:
        """Equal noises have equal prices, so that a price can be remembered."""
        ...

    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """The noisy winner of each row of votes; NO_VOTE where the mechanism gives no answer."""
        ...

    def win_probability(self, gap: ArrayLike) -> Floats:
        """Two classes: the probability that class 1 wins when it is `gap` votes ahead (behind, where negative)."""
        ...

    def pure(self) -> float:
        """ε of one query under pure differential privacy; infinite where the mechanism has none."""
        ...

    def rdp(self, orders: ArrayLike) -> Floats:
        """Rényi divergence bound of one query at each order, whatever the votes."""
        ...


@dataclass(frozen=True)
class Release:
    """A number of noisy votes that one unit can influence, in public figures only."""

    noise: Noise
    queries: int
    """Labels released that one unit can move: k at L1, s·k at L2."""
    voters: int
    classes: int
    unit: Unit
    adjacency: Adjacency = "replace-one"
    abstentions: bool = False
    """Whether a voter may cast no vote (consistent voting), so that the number of votes is not public."""

    def __post_init__(self) -> None:
        for what, value, least in (
            ("queries", self.queries, 0),
            ("voters", self.voters, 1),
            ("classes", self.classes, 2),
        ):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ConfigurationError(f"The number of {what} is a whole number of at least {least}, got {value!r}.")


class HasAdjacency(Protocol):
    """A release, or an entry of a ledger."""

    @property
    def adjacency(self) -> Adjacency:
        """What its neighbours differ by."""
        ...


def common_adjacency(releases: Iterable[HasAdjacency]) -> Adjacency:
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
