"""Gaussian noise on a sum of features by class, all of whose numbers are released.

Balle and Wang: Improving the Gaussian Mechanism for Differential Privacy. ICML 2018. The sum is M = Σ φ(x)·onehot(y)
with φ = (1, u) and ‖u‖ ≤ 1. Replacing a record (x, y) by (x', y') moves M by ‖φ·e_y − φ'·e_y'‖, where

    y = y':  ‖u − u'‖ ≤ 2, since the constant does not move; attained at u' = −u
    y ≠ y':  √(‖φ‖² + ‖φ'‖²) ≤ √(2 + 2) = 2

so that 2 is the least Δ that holds for all records, whatever their classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import PrivacyError
from fedkt.privacy.gaussian import gaussian_losses
from fedkt.privacy.noise import Noise, orders_above_one, positive
from fedkt.privacy.stream import Floats, Source

SENSITIVITY = 2.0
"""Δ: how far one replaced record moves the numbers of a sum together, as a length."""
FINENESS = 8
"""Noisy numbers leave as multiples of the largest power of 2 that is not above σ·2⁻⁸."""
MOST_STEPS = 2**62
"""More of them no released whole number holds."""


@dataclass(frozen=True)
class GaussianSums(Noise):
    """N(0, σ²) on each number of a sum of features by class, all of them released as whole multiples of a step.

    What is done to noisy numbers costs nothing. Rounded to steps far coarser than a double's last digits, they tell
    nothing of the digits that a sum or its noise had there (Mironov 2012).
    """

    name = "gaussian-sums"
    about = "N(0, σ²) on every number of a sum of features by class, and the sums themselves are released"
    safer_if_larger = ("sigma",)
    for_votes = False
    sensitivity: ClassVar[float] = SENSITIVITY

    sigma: float
    """The standard deviation, where a feature is 1 at most."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.name, "sigma", self.sigma))

    @property
    def spread(self) -> float:
        """σ itself."""
        return self.sigma

    @property
    def step(self) -> float:
        """What the released numbers are multiples of: public, because σ is."""
        return float(2.0 ** (math.floor(math.log2(self.sigma)) - FINENESS))

    @property
    def variance(self) -> float:
        """Of a released number around its true one: that of the noise, and of the rounding."""
        return self.sigma**2 + self.step**2 / 12

    def sums(self, numbers: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """The noisy numbers, as whole multiples of the step."""
        true = np.asarray(numbers, dtype=np.float64)
        noisy = np.rint((true + rng.normal(0.0, self.sigma, true.shape)) / self.step)
        return np.clip(noisy, -MOST_STEPS, MOST_STEPS).astype(np.int64)

    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """Refused: sums have no winner."""
        raise PrivacyError("This noise is for sums that are released themselves, not for votes.")

    def rdp(self, orders: ArrayLike) -> Floats:
        """αΔ²/(2σ²) (Mironov 2017, Proposition 7)."""
        return orders_above_one(orders) * (SENSITIVITY**2 / 2) / self.sigma**2

    def gdp_of(self, queries: int) -> float:
        """√k·Δ/σ: one release of all numbers is exactly Δ/σ-GDP."""
        return math.sqrt(queries) * SENSITIVITY / self.sigma

    def squared_mu(self, queries: int) -> float:
        """μ² of so many releases."""
        return self.gdp_of(queries) ** 2

    def loss_distribution(self, queries: int) -> Any:
        """k Gaussian mechanisms of sensitivity Δ compose to one of sensitivity √k·Δ."""
        return gaussian_losses(self.gdp_of(queries))
