"""Gaussian differential privacy: the exact ε of releasing Gaussian-noised counts (Dong, Roth and Su 2022)."""

from __future__ import annotations

import math

from fedkt.privacy.price import Release


def delta_at(mu: float, epsilon: float) -> float:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) of μ-GDP (Balle and Wang 2018, Theorem 8), rounded up."""
    from scipy.special import log_ndtr

    upper, lower = float(log_ndtr(mu / 2 - epsilon / mu)), float(log_ndtr(-mu / 2 - epsilon / mu))
    # The difference of the two terms in logarithms, its error (a few ulps of each term) taken off the smaller one.
    slack = 2.0**-50 * (epsilon + abs(upper) + abs(lower) + 1)
    return math.exp(upper) * -math.expm1(min(0.0, epsilon + lower - upper) - slack) * (1 + 1e-12)


LARGEST_MU = 1e6
"""Beyond this ε is of the order 1e12: nobody is protected, and float64 gives out."""


LARGEST_PURE = 500.0
"""Beyond this e^{−ε} gives out as a chance."""


def from_mu(mu: float, delta: float) -> float:
    """The ε of μ-GDP at δ, by bisection; the end returned is the one whose δ(ε) is small enough."""
    if not mu < LARGEST_MU:
        return math.inf
    if delta_at(mu, 0.0) <= delta:
        return 0.0
    # μ-GDP is μ²/2-zCDP, whose ε is μ²/2 + μ√(2 ln 1/δ): a point where δ(ε) ≤ δ.
    low, high = 0.0, mu**2 / 2 + mu * math.sqrt(-2 * math.log(delta))
    high += 1e-9 * (1 + high)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if delta_at(mu, middle) <= delta else (middle, high)
    return high


def mu_of_pure(epsilon: float) -> float:
    """The μ for which every ε-DP mechanism is μ-GDP: Φ(−μ/2) = 1/(1 + e^ε), rounded up; infinite where ε is large.

    The trade-off of ε-DP is at least f(a) = max(1 − e^ε a, e^{−ε}(1 − a)), whose two lines meet at a = 1/(1 + e^ε). The
    trade-off G of μ-GDP is convex, symmetric, 1 at a = 0, and meets the diagonal at Φ(−μ/2), so with this μ at the same
    point. Between 0 and there G lies below its chord, which is the first line; by symmetry G ≤ f everywhere.
    """
    from scipy.special import expit, ndtri

    return -2 * float(ndtri(expit(-epsilon))) * (1 + 1e-12) if epsilon < LARGEST_PURE else math.inf


def epsilon(release: Release, delta: float) -> float:
    """The exact ε of all noisy counts; infinite for noise that is not Gaussian."""
    return from_mu(release.noise.gdp_of(release.queries), delta) if release.queries else 0.0
