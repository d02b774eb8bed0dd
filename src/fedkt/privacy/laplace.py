"""Laplace noise on every count: the noise of the paper (Algorithm 1, lines 10 and 21) and of PATE (2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.privacy.noise import Noise, noisy_winners, one_row, orders_above_one, positive
from fedkt.privacy.stream import Floats, Source

LARGEST_GAMMA = 100.0
"""Beyond, nobody is protected and a privacy loss distribution takes too long."""


def randomised_response_rdp(epsilon: float, orders: ArrayLike) -> Floats:
    """Rényi divergence of randomised response at ε, the largest of any ε-DP mechanism.

    Kairouz, Oh and Viswanath (2015): every ε-DP pair is a post-processing of randomised response, hence the bound.
    D_α = ln[(e^{αε} + e^{(1−α)ε}) / (1 + e^ε)] / (α − 1), written so that nothing overflows.
    """
    a = orders_above_one(orders)
    return np.asarray((a * epsilon + np.log1p(np.exp((1 - 2 * a) * epsilon)) - np.logaddexp(0.0, epsilon)) / (a - 1))


def shifted_laplace_rdp(gamma: float, orders: ArrayLike) -> Floats:
    """Rényi divergence of Lap(1/γ) and the same moved by one (Mironov 2017, Proposition 6).

    D_α = ln[α/(2α−1) · e^{(α−1)γ} + (α−1)/(2α−1) · e^{−αγ}] / (α − 1).
    """
    a = orders_above_one(orders)
    inner = np.log1p((a - 1) / (2 * a - 1) * np.expm1((1 - 2 * a) * gamma))
    return np.asarray(((a - 1) * gamma + inner) / (a - 1))


@dataclass(frozen=True)
class Laplace(Noise):
    """Lap(1/γ) on each count; the label is the largest noisy count.

    One vote per party: the paper's s·|{…}| votes with Lap(1/γ) are one vote with Lap(1/(sγ)), that is Laplace(s·γ)
    here.
    """

    name = "laplace"
    about = "Lap(1/γ) on every count, as in the paper"
    safer_if_smaller = ("gamma",)
    has_win_probability = True
    diagnosis = "moments"
    in_paper = True

    gamma: float
    """The inverse of the noise's scale."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive(self.name, "gamma", self.gamma))

    @property
    def spread(self) -> float:
        """√2/γ."""
        return math.sqrt(2) / self.gamma

    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """The noisy winner of each row of votes, also of rows nobody voted on."""
        return noisy_winners(votes, lambda shape: rng.laplace(0.0, 1 / self.gamma, shape))

    def win_probability(self, gap: ArrayLike) -> Floats:
        """Two classes: the probability that class 1 wins when it is `gap` votes ahead.

        The difference of two Lap(1/γ) exceeds x ≥ 0 with probability (2 + γx)/4 · e^{−γx} (Lemma 7's term, exact for
        two classes). The probability of the other class is win_probability(−gap), accurate however small.
        """
        x = self.gamma * np.asarray(gap, dtype=np.float64)
        away = np.abs(x)
        tail = (2 + away) / 4 * np.exp(-away)
        return np.asarray(np.where(x < 0, tail, 1 - tail))

    def class_probabilities(self, votes: ArrayLike) -> Floats:
        """The probability of each class for the counts of one query, by quadrature (error below 1e-12).

        P(j) = ∫ f(x − γv_j) Π_{i≠j} F(x − γv_i) dx is smooth between the counts: Gauss–Legendre on every piece.
        """
        v = self.gamma * one_row(votes)
        v = np.maximum(v, v.max() - 700)  # further behind, the probability is below the smallest double
        ends = np.unique(np.concatenate([[v.min() - 45], v, [v.max() + 45]]))
        ends = np.concatenate([np.linspace(a, b, int(b - a) + 2)[:-1] for a, b in pairwise(ends)])
        ends = np.append(ends, v.max() + 45)
        nodes, weights = np.polynomial.legendre.leggauss(16)
        half = np.diff(ends)[:, None] / 2
        x = (ends[:-1, None] + half * (nodes + 1)).ravel()
        weight = (half * weights).ravel()
        away = x[:, None] - v
        small = np.exp(-np.abs(away)) / 2
        below = np.where(away < 0, small, 1 - small)
        return np.array([weight @ (small[:, j] * np.delete(below, j, axis=1).prod(axis=1)) for j in range(len(v))])

    def pure(self) -> float:
        """2γ: a moved vote changes two counts by one each, and each has a density ratio of at most e^γ (Theorem 1)."""
        return 2 * self.gamma

    def rdp(self, orders: ArrayLike) -> Floats:
        """The smaller of two Rényi bounds of one query, both below the paper's 2γ²l(l+1)/l.

        The label is computed from two independently noised moved counts and untouched ones, so it costs at most twice
        a Laplace mechanism of sensitivity 1; and, being 2γ-DP, at most randomised response at 2γ.
        """
        return np.minimum(2 * shifted_laplace_rdp(self.gamma, orders), randomised_response_rdp(self.pure(), orders))

    def loss_distribution(self, queries: int) -> Any:
        """The two moved counts with independent Lap(1/γ) each: 2k Laplace mechanisms of sensitivity 1.

        Where an abstention moves only one count, fewer of them.
        """
        if not self.gamma < LARGEST_GAMMA:
            return None
        from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

        # The loss of one count lies in [−γ, γ]. A step of γ/40 makes 81 points, 2k·80 after composition; "connect the
        # dots" errs by the square of the step, a few 1e-4 of ε.
        one = from_laplace_mechanism(1 / self.gamma, value_discretization_interval=self.gamma / 40)
        return one.self_compose(2 * queries)

    def cost_of_votes(self, votes: ArrayLike, orders: ArrayLike) -> Floats:
        """The paper's moments of these votes (Theorems 2 and 3 with Lemma 7)."""
        from fedkt.privacy.diagnostic import moments

        return moments(votes, self.gamma, orders)
