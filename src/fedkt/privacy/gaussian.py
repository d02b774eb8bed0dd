"""Gaussian noise on every count: GNMax of Papernot et al., "Scalable Private Learning with PATE" (2018).

And the same noise on counts that are themselves released, as they are after it: a party's rows of each class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import PrivacyError
from fedkt.privacy.noise import GaussianAnswers, Noise, noisy_winners, one_row, orders_above_one, positive
from fedkt.privacy.stream import Floats, Source

LARGEST_MU = 100.0
"""Beyond, nobody is protected (ε above 5,000) and a privacy loss distribution takes too long."""


def gaussian_class_probabilities(votes: ArrayLike, sigma: float) -> Floats:
    """The probability of each class for one query, by the trapezoidal rule (relative error below 1e-11).

    P(j) = ∫ φ(x − v_j/σ) Π_{i≠j} Φ(x − v_i/σ) dx; for so smooth an integrand the rule converges faster than any power.
    """
    from scipy.special import ndtr

    v = one_row(votes) / sigma
    v = np.maximum(v, v.max() - 60)  # further behind, the probability is below the smallest double
    step = 0.05
    x = np.arange(v.min() - 12, v.max() + 12, step)
    away = x[:, None] - v
    below = ndtr(away)
    density = np.exp(-(away**2) / 2) * (step / math.sqrt(2 * math.pi))
    return np.array([(density[:, j] * np.delete(below, j, axis=1).prod(axis=1)).sum() for j in range(len(v))])


def gaussian_losses(mu: float) -> Any:
    """dp-accounting's privacy loss distribution of a μ-GDP Gaussian mechanism; None where nobody is protected."""
    if not mu < LARGEST_MU:
        return None
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    # The loss is N(μ²/2, μ²), truncated near ten standard deviations: a step of μ/200 makes some 4,000 points.
    return from_gaussian_mechanism(1 / mu, value_discretization_interval=mu / 200)


@dataclass(frozen=True)
class GaussianCounts(Noise):
    """N(0, σ²) on each count, all of them released: not the largest one's name, but the noisy numbers.

    A replaced record lowers one count by one and raises another, as a moved vote does, so whatever bounds these bounds
    the winner of one vote, which is made of them (`Gaussian`). What is exact for its name alone is not for them.
    """

    name = "gaussian-counts"
    about = "N(0, σ²) on every count, and the counts themselves are released"
    safer_if_larger = ("sigma",)
    for_votes = False

    sigma: float
    """The standard deviation, in votes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.name, "sigma", self.sigma))

    @property
    def spread(self) -> float:
        """σ itself."""
        return self.sigma

    def counts(self, numbers: ArrayLike, rng: Source) -> tuple[int, ...]:
        """The noisy counts, rounded, and none below zero: what is done to noisy numbers costs nothing."""
        true = np.asarray(numbers, dtype=np.float64)
        noisy = true + rng.normal(0.0, self.sigma, true.shape)
        return tuple(int(each) for each in np.maximum(np.rint(noisy), 0))

    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """Refused: counts have no winner."""
        raise PrivacyError("This noise is for counts that are released themselves, not for votes.")

    def rdp(self, orders: ArrayLike) -> Floats:
        """α/σ²: a moved vote shifts the counts by √2 in length, α·√2²/(2σ²) (Mironov 2017, Proposition 7)."""
        return orders_above_one(orders) / self.sigma**2

    def gdp_of(self, queries: int) -> float:
        """√(2k)/σ: a moved vote shifts a query's counts by √2 in length, so one query is √2/σ-GDP."""
        return math.sqrt(2 * queries) / self.sigma

    def loss_distribution(self, queries: int) -> Any:
        """k Gaussian mechanisms of sensitivity √2 compose to one of sensitivity √(2k)."""
        return gaussian_losses(self.gdp_of(queries))


@dataclass(frozen=True)
class Gaussian(GaussianCounts):
    """N(0, σ²) on each count; the label is the largest noisy count."""

    name = "gaussian"
    about = "N(0, σ²) on every count"
    for_votes = True
    has_win_probability = True
    diagnosis = "renyi"

    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """The noisy winner of each row of votes, also of rows nobody voted on."""
        return noisy_winners(votes, lambda shape: rng.normal(0.0, self.sigma, shape))

    def win_probability(self, gap: ArrayLike) -> Floats:
        """Two classes: Φ(gap / (√2 σ)), the probability that class 1 wins when it is `gap` votes ahead.

        The probability of the other class is win_probability(−gap), accurate however small.
        """
        from scipy.special import erfc

        return np.asarray(erfc(np.asarray(gap, dtype=np.float64) / (-2 * self.sigma)) / 2)

    def class_probabilities(self, votes: ArrayLike) -> Floats:
        """The probability of each class for the counts of one query, by quadrature."""
        return gaussian_class_probabilities(votes, self.sigma)

    def gaussian_answers(self, queries: int) -> tuple[GaussianAnswers, ...]:
        """The winners."""
        return (GaussianAnswers(queries, math.sqrt(2) / self.sigma, yes_or_no=False),)

    def cost_of_votes(self, votes: ArrayLike, orders: ArrayLike) -> Floats:
        """The Rényi bounds of PATE (2018) for these votes."""
        from fedkt.privacy.gnmax import winners_rdp

        return winners_rdp(votes, self.sigma, orders)
