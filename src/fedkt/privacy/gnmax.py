"""What Gaussian noise costs on these votes: the data-dependent Rényi bounds of PATE (Papernot et al. 2018).

Confidential like the votes they are computed from; `diagnostic` turns them into an ε to look at.

**A winner** (Theorem 6). Let P be the law of the winner on these votes, P' on a neighbour's, i* the winner without
noise and q = P(not i*). The noisy counts are (μ, μ/σ²)-Rényi private, both ways round; take two orders μ1 ≥ λ and
μ2 > 1 with ε1 = μ1/σ², ε2 = μ2/σ². By Hölder's inequality P'(not i*) ≤ (q e^{ε2})^{1−1/μ2}, so i* adds at most
(1 − q) A^{λ−1}, and by Jensen's the others add at most q B^{λ−1}, to Σ P^λ P'^{1−λ}:

    A = (1 − q) / (1 − (q e^{ε2})^{1−1/μ2}),     B = e^{ε1} / q^{1/(μ1−1)}.

A bound on q may stand for q where the sum f rises with it. With g = (1 − 1/μ2) (e^{(μ2−1)ε2}/q)^{1/μ2},

    f' = −λ A^{λ−1} + (λ−1) g A^λ + (1 − (λ−1)/(μ1−1)) B^{λ−1} ≥ (λ−1) A^{λ−1} (g − μ1/(μ1−1))

if 1 ≤ A ≤ B. g falls as q rises; where g ≥ μ1/(μ1−1) > 1, A rises with q, and B always falls. So the gate is
g ≥ μ1/(μ1−1) and A ≤ B at the bound itself: it then holds for every smaller q. Any orders are sound; those of the
paper, μ2 = σ√(ln 1/q) and μ1 = μ2 + 1, are close to the best.

**A test** is a coin that the largest count m and the threshold fix: Φ((m − T)/σ_test) against that of m ± 1. Both are
known, so nothing is bounded. In between, the power Φ^{1−λ} of a log-concave function is convex: the ends suffice.

**Tests and answers together** are a tree, read from its leaves: with F(i, a) the largest Σ P^λ P'^{1−λ} of the queries
from i on while a answers are left, e^{(λ−1) D_i} the winner's bound, and no more tests once a = 0,

    F(i, a) = max over m ± 1 of  P(no)^λ P'(no)^{1−λ} F(i+1, a) + P(yes)^λ P'(yes)^{1−λ} e^{(λ−1) D_i} F(i+1, a−1).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.noise import counts, orders_above_one
from fedkt.privacy.stream import Floats

ROUNDING = 2.0**-49
"""A few ulps, upwards: the terms are sums of logarithms that nearly cancel."""


def log_wrong(votes: ArrayLike, sigma: float) -> Floats:
    """ln q̃ of every query, q̃ ≥ Pr[label ≠ o*] = Σ_{o≠o*} Φ(−(v_o* − v_o)/(√2 σ)) (Proposition 7)."""
    table = counts(votes)
    behind = table.max(axis=1, keepdims=True) - table
    terms = log_ndtr(-behind / (math.sqrt(2) * sigma))
    terms[np.arange(len(table)), table.argmax(axis=1)] = -math.inf
    return np.asarray(np.minimum(np.logaddexp.reduce(terms, axis=1), 0.0))


def winner_rdp(log_q: float, sigma: float, orders: ArrayLike) -> Floats:
    """Theorem 6 at every order, for a winner that is missed with probability q at most; never above λ/σ²."""
    order = orders_above_one(orders)
    free = order / sigma**2
    second = sigma * math.sqrt(-log_q)
    first = second + 1
    if not second > 1:
        return free
    rise = math.log1p(-1 / second) + ((second - 1) * second / sigma**2 - log_q) / second
    missed = (log_q + second / sigma**2) * (1 - 1 / second)
    if rise < math.log(first / (first - 1)) or missed >= 0:
        return free
    right = math.log1p(-math.exp(log_q))
    log_a = right - math.log(-math.expm1(missed))
    log_b = first / sigma**2 - log_q / (first - 1)
    if log_a > log_b:
        return free
    total = np.logaddexp(right + (order - 1) * log_a, log_q + (order - 1) * log_b)
    bound = (np.maximum(total, 0.0) + ROUNDING) / (order - 1)
    return np.where(order <= first, np.minimum(bound, free), free)


def winners_rdp(votes: ArrayLike, sigma: float, orders: ArrayLike) -> Floats:
    """The bounds of all queries, added up at every order."""
    values, times = np.unique(log_wrong(votes, sigma), return_counts=True)
    each = [often * winner_rdp(float(log_q), sigma, orders) for log_q, often in zip(values, times, strict=True)]
    return np.asarray(sum(each, np.zeros_like(orders_above_one(orders))))


def threshold_moments(votes: ArrayLike, noise: ConfidentGaussian, orders: ArrayLike) -> tuple[Floats, Floats]:
    """ln P^λ P'^{1−λ} of "no" and of "yes", each of shape (queries, two neighbours, orders)."""
    order = orders_above_one(orders)
    above = (counts(votes).max(axis=1)[:, None] + np.array([0.0, -1.0, 1.0]) - noise.threshold) / noise.sigma_test

    def moment(side: float) -> Floats:
        logs = log_ndtr(side * above)[..., None]
        here, there = order * logs[:, :1], (1 - order) * logs[:, 1:]
        return np.asarray(here + there + ROUNDING * (np.abs(here) + there))

    return moment(-1.0), moment(1.0)


def confident_rdp(votes: ArrayLike, noise: ConfidentGaussian, orders: ArrayLike) -> Floats:
    """The bound of one call of the mechanism at every order: tests, and answers up to the cap."""
    order = orders_above_one(orders)
    log_q = log_wrong(votes, noise.sigma)
    no, yes = threshold_moments(votes, noise, order)
    queries = len(log_q)
    # A cap that cannot be reached is none: one state is enough then, and an answer does not change it.
    capped = noise.answers < queries
    states: Floats = np.zeros((noise.answers + 1 if capped else 1, len(order)))
    for query in range(queries - 1, -1, -1):
        answer = yes[query] + (order - 1) * winner_rdp(float(log_q[query]), noise.sigma, order)
        after = states[:-1] if capped else states
        before = states[1:] if capped else states
        either = np.logaddexp(no[query][:, None] + before, answer[:, None] + after).max(axis=0)
        states = np.concatenate([states[:1], either]) if capped else either
    bound = np.maximum(states[-1], 0.0) / (order - 1)
    return np.asarray(np.minimum(bound, noise.rdp_of(queries, order)))
