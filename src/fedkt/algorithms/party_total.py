"""Moments at level L1: every party is one vector, shortened by the server, and the noise is on the total of them.

Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006; Balle and Wang:
Improving the Gaussian Mechanism for Differential Privacy. ICML 2018.

A party sends its sums by class, without noise: the server is trusted. The server makes a D × K table V of them,
shortens it to a length c and divides by c. With v a party's table and v' that of any other data, ‖v‖ ≤ 1 and ‖v'‖ ≤ 1,
so that replacing all that a party has moves the total of all parties by ‖v − v'‖ ≤ 2, which is the Δ of `GaussianSums`,
and exactly 2 for v' = −v. Sums that no rows have, or none at all, count as v = 0: whatever parties hold, as many tables
are added up as parties were agreed on.

What V is hangs on whether the class shares are public (`class_shares`). If so, its columns are the party's class means
less the mean of them; a class that the party has not is 0, and so is all of V where it has one class. If not, they are
its mean of (onehot(y) − 1/K)·φ, in whose first row are the class shares. Either way the columns add up to 0, and noise
that does not is dropped.

In features that are whitened on public rows both have a longest length, by Bessel's inequality, if the rows of all
parties are like public ones: √((1 − 1/K)·Σ 1/share) and √(1 − 1/K). c is a part of it. A longer c hides no direction
less, since nearly all parties are shortened anyhow, but tells more of how far classes lie apart, until c is longer than
most tables: then there is only more noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedkt.algorithms.heads import centred
from fedkt.errors import ConfigurationError
from fedkt.federation import Server
from fedkt.pooling import Matrix
from fedkt.privacy import Release
from fedkt.privacy.price import party_sums_release
from fedkt.privacy.sums import GaussianSums

REACH = 0.6
"""c, as a part of the longest table."""
FEWEST, MOST = 6, 32
"""Directions of the public rows that are looked at, at least and at most."""
LOUD = 1 / 3
"""Beyond the fewest, so many directions that the noise is no longer than this part of the longest total."""
DROWNED = 1 / 2
"""From here on there is little but noise in the total."""
FLAT = 1e-6
"""A feature of smaller public deviation is none."""
ROUNDING = 2.0**-40
"""By so much a table stays under 1 in length, so that no rounding of a total lifts two of them above Δ."""


@dataclass(frozen=True)
class PartyTotal:
    """The total of all parties and its noise. What is asked of it here hangs on public figures only."""

    noise: GaussianSums
    parties: int
    classes: int
    class_shares: tuple[float, ...] | None
    """None where they are not public."""

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise ConfigurationError("One class has nothing to be told apart from: level L1 needs two classes or more.")
        if self.class_shares is not None:
            check_shares(self.class_shares, self.classes)

    @property
    def release(self) -> Release:
        """What leaves."""
        return party_sums_release(self.noise, self.classes, self.parties)

    def directions(self, width: int) -> int:
        """How many of the `width` features after the constant are looked at."""
        quiet = (LOUD * self.parties / self.noise.sigma) ** 2 / max(self.classes - 1, 1)
        return min(width, max(FEWEST, min(MOST, int(quiet))))

    @property
    def longest(self) -> float:
        """c."""
        inverse = 1.0 if self.class_shares is None else float(np.sum(1 / np.array(self.class_shares)))
        return REACH * float(np.sqrt((1 - 1 / self.classes) * inverse))

    @property
    def deviation(self) -> float:
        """Of the noise on each number of the mean table, what does not add up to 0 dropped."""
        each = self.longest * np.sqrt(self.noise.variance) / self.parties
        return float(each * np.sqrt(1 - 1 / self.classes))

    def table(self, moments: Matrix) -> Matrix:
        """A party's V from its whitened sums by class, of length 1 at most, where c is 1."""
        counts = moments[0]
        with np.errstate(all="ignore"):
            if self.class_shares is None:
                numbers = centred(moments / counts.sum())
            else:
                held = counts > 0
                means = np.where(held, moments[1:] / counts, 0.0)
                numbers = np.where(held, means - means.sum(axis=1, keepdims=True) / held.sum(), 0.0)
            length = float(np.sqrt((numbers**2).sum()))
        if not np.isfinite(length):
            return np.zeros_like(numbers)
        return numbers * (1 - ROUNDING) / max(length, self.longest)

    def mean(self, server: Server, sums: Sequence[Matrix], public: Matrix) -> Matrix:
        """The mean table of all parties, with noise, released through the server's ledger.

        `sums` are by class, of the parties that sent some which rows can have; each other party is a table of zeros.
        """
        width = self.directions(public.shape[1] - 1)
        shape = (width + (self.class_shares is None), self.classes)

        def add_up() -> Matrix:
            total = np.zeros(shape)
            for moments in sums:
                total += self.table(whitened(moments, public, width))
            return total

        noisy = server.ledger.release_sums(
            add_up, self.release, shape=shape, rng=server.noise_rng(self.release.stream), noise_seed=server.noise_seed
        )
        return centred(np.asarray(noisy * (self.noise.step * self.longest / self.parties), dtype=np.float64))


def whitened(moments: Matrix, public: Matrix, width: int) -> Matrix:
    """The sums of the constant and of so many features, these in units of their public deviation."""
    return np.vstack([moments[:1], moments[1 : 1 + width] * scales(public, width)[:, None]])


def scales(public: Matrix, width: int) -> Matrix:
    """By what so many features have a deviation of 1 over the public rows."""
    return np.asarray(1 / np.maximum(public[:, 1 : 1 + width].std(axis=0), FLAT))


def shares_in_order(shares: Mapping[Any, float], classes: Sequence[Any]) -> tuple[float, ...]:
    """The class shares in the order of the classes; one class may be left out, and has the rest."""
    unknown = [each for each in shares if each not in classes]
    missing = [each for each in classes if each not in shares]
    if unknown or len(missing) > 1:
        wrong = f"{unknown[0]!r} is none" if unknown else f"{', '.join(map(repr, missing))} have none"
        raise ConfigurationError(f"Class shares are of the classes {', '.join(map(repr, classes))}; {wrong}.")
    rest = 1 - sum(shares.values())
    found = tuple(float(shares.get(each, rest)) for each in classes)
    check_shares(found, len(classes))
    return found


def check_shares(shares: Sequence[float], classes: int) -> None:
    """Refuse class shares that are none."""
    if len(shares) != classes or not min(shares) > 0 or not abs(sum(shares) - 1) < 1e-6:
        raise ConfigurationError(
            f"Class shares are a number above 0 for each class, and sum to 1; got {', '.join(map(str, shares))}."
        )


def is_drowned(release: Release) -> bool:
    """Whether the noise on a total of parties leaves little of it, whatever they hold: from public figures."""
    assert isinstance(release.noise, GaussianSums)
    numbers = FEWEST * (release.classes - 1)
    return bool(release.noise.sigma * np.sqrt(numbers) > DROWNED * release.voters)
