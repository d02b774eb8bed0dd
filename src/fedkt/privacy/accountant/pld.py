"""Privacy loss distributions: the exact composition of a pair of laws that is at least as telling as the release.

Two such pairs, each sound because the label is a post-processing of it:

- the noisy counts themselves, where the noise knows their `loss_distribution` (laplace and gaussian do);
- any ε₀-DP mechanism: randomised response at ε₀, k times (Kairouz, Oh and Viswanath 2015, Theorem 3.3), in closed form.

The first are discretised by dp-accounting with pessimistic estimates ("connect the dots", Doroshenko et al. 2022):
every rounding is upwards, so the ε is too large, never too small.
"""

from __future__ import annotations

import math

import numpy as np

from fedkt.privacy.price import Release

FFT_ERROR = 1e-10
"""Taken off δ for the rounding errors of the Fourier transform: its k-th power errs by some k·1e-16, relative."""

MOST_QUERIES = 50_000
"""Beyond, the distributions take too long: the other accountants answer, which is sound."""


def randomised_response_delta(pure: float, queries: int, epsilon: float) -> float:
    """δ(ε) of k randomised responses: Σ_i C(k,i) p^{k−i} (1−p)^i [1 − e^{ε − (k−2i)ε₀}]_+ with p = e^ε₀/(1+e^ε₀)."""
    from scipy.stats import binom

    flips = np.arange(queries + 1)
    excess = epsilon - (queries - 2 * flips) * pure
    positive = excess < 0
    masses = binom.pmf(flips[positive], queries, 1 / (1 + math.exp(pure)))
    return float(np.sum(masses * -np.expm1(excess[positive])) * (1 + 1e-9))


def randomised_response_epsilon(pure: float, queries: int, delta: float) -> float:
    """The ε of k randomised responses at δ, by bisection, never below the exact one."""
    if pure > 700:
        return queries * pure
    low, high = 0.0, queries * pure
    if randomised_response_delta(pure, queries, 0.0) <= delta:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if randomised_response_delta(pure, queries, middle) <= delta else (middle, high)
    return high


def epsilon(release: Release, delta: float) -> float:
    """The smallest of the sound pairs' ε; infinite for noise that none of them covers, or δ too small to compute."""
    noise, queries = release.noise, release.queries
    if queries == 0:
        return 0.0
    if queries > MOST_QUERIES:
        return math.inf
    answers = [math.inf]
    if math.isfinite(noise.pure()):
        answers.append(randomised_response_epsilon(noise.pure(), queries, delta))
    usable = delta * (1 - 1e-9) - FFT_ERROR
    losses = noise.loss_distribution(queries) if usable > 0 else None
    if losses is not None:
        answers.append(float(losses.get_epsilon_for_delta(usable)))
    return min(answers)
