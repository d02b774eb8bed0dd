"""The exponential mechanism: P(class j) ∝ exp(θ v_j), drawn by adding Gumbel noise to every count."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.privacy.noise import Noise, noisy_winners, one_row, orders_above_one, positive
from fedkt.privacy.stream import Floats, Source


def bounded_range_rdp(eta: float, orders: ArrayLike) -> Floats:
    """The largest Rényi divergence of any two laws whose log-ratio spans at most η, in closed form and rounded up.

    Dong, Durfee and Rogers (2020) for the notion. Let r = P/Q lie in [y, y·e^η], E_Q r = 1. r ↦ r^α is convex, so
    E_Q r^α is largest when r takes the two end points only, which fixes their weights and gives

        E_Q r^α = f(y) = y^{α−1} (c − (c − 1) y),   c = (e^{αη} − 1)/(e^η − 1) ≥ α.

    f is 1 at both ends (y = e^{−η} and y = 1) and has one stationary point, y* = c(α−1)/(α(c−1)), its maximum:
    D_α = ln f(y*)/(α−1) = ln y* + ln(c/α)/(α−1). This is sup_x D_α(Bern(s(x)) ‖ Bern(s(x+η))) with its maximiser.
    """
    a = orders_above_one(orders)
    log_c = a * eta + np.log(-np.expm1(-a * eta)) - eta - np.log(-np.expm1(-eta))
    log_y = np.log1p(-1 / a) - np.log(-np.expm1(-log_c))
    exact = log_y + (log_c - np.log(a)) / (a - 1)
    # A few ulps of every term, upwards; and never above Hoeffding's αη²/8 (Cesar and Rogers 2021), also a bound.
    slack = 2.0**-50 * (1 + np.abs(log_y) + (np.abs(log_c) + a * eta + np.log(a) + 1) / (a - 1))
    return np.asarray(np.minimum(np.maximum(exact, 0) + slack, a * eta**2 / 8))


@dataclass(frozen=True)
class Gumbel(Noise):
    """Gumbel(1/θ) on each count; the label is the largest noisy count."""

    name = "gumbel"
    about = "class j wins with weight exp(θ votes)"
    safer_if_smaller = ("theta",)
    has_win_probability = True

    theta: float
    """The inverse of the noise's scale."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", positive(self.name, "theta", self.theta))

    @property
    def spread(self) -> float:
        """π/(√6 θ)."""
        return math.pi / (math.sqrt(6) * self.theta)

    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """The noisy winner of each row of votes, also of rows nobody voted on."""
        return noisy_winners(votes, lambda shape: rng.gumbel(0.0, 1 / self.theta, shape))

    def win_probability(self, gap: ArrayLike) -> Floats:
        """Two classes: 1/(1 + e^{−θ·gap}), the probability that class 1 wins when it is `gap` votes ahead."""
        from scipy.special import expit

        return np.asarray(expit(self.theta * np.asarray(gap, dtype=np.float64)))

    def class_probabilities(self, votes: ArrayLike) -> Floats:
        """The probability of each class for the counts of one query: exp(θ v_j) / Σ exp(θ v_i)."""
        weights = np.exp(self.theta * (one_row(votes) - np.max(votes)))
        return np.asarray(weights / weights.sum())

    def pure(self) -> float:
        """2θ. Proof: let a vote move from a to b, v'_a = v_a − 1, v'_b = v_b + 1, Z = Σ exp(θ v_j), and Z' likewise.

        Every term of Z' is between e^{−θ} and e^{θ} times its term of Z, so Z/Z' is in [e^{−θ}, e^{θ}], and
        P'(j)/P(j) = e^{θ(v'_j − v_j)} · Z/Z' is in [e^{−2θ}, e^{2θ}]. The log-ratios are θ·{−1, 0, 1} plus a constant
        common to all classes, so they also span at most η = 2θ: the mechanism is bounded range. Where only one count
        moves (an abstention), both figures are halved at least.
        """
        return 2 * self.theta

    def rdp(self, orders: ArrayLike) -> Floats:
        """The tight Rényi bound of a mechanism of bounded range 2θ, for any number of classes."""
        return bounded_range_rdp(2 * self.theta, orders)
