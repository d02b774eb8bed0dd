"""The accountant of the paper: moments of the privacy loss, data-independent part of Theorems 2 and 3.

A mechanism that is (2γ, 0)-DP has α(l) ≤ min(2γ²l(l+1), 2γl) at every moment l (Lemma 5, after Bun and Steinke 2016,
and the plain bound of the loss); moments add up over queries, and ε = min_l (α(l) + ln 1/δ)/l (Abadi et al. 2016).

The paper's L1 counts a party's vote s times and adds Lap(1/γ). That is one vote with Lap(1/(sγ)): its figures are those
of `Laplace(s·γ)` here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from fedkt.privacy.price import Release


def moment(pure: float, queries: int, order: float) -> float:
    """α(l) of k queries that are ε₀-DP each: k·min(ε₀²l(l+1)/2, ε₀l), which is the paper's with ε₀ = 2γ."""
    return queries * min(pure**2 * order * (order + 1) / 2, pure * order)


def _best(pure: float, queries: int, delta: float, orders: Iterable[int]) -> float:
    return min((moment(pure, queries, order) - math.log(delta)) / order for order in orders)


def epsilon8(release: Release, delta: float) -> float:
    """The paper's ε with the moments l = 1 … 8, as most of its tables have it."""
    pure = release.noise.pure()
    return _best(pure, release.queries, delta, range(1, 9)) if math.isfinite(pure) else math.inf


def epsilon(release: Release, delta: float) -> float:
    """The paper's ε over all whole moments l ≥ 1, and their limit k·ε₀."""
    pure, queries = release.noise.pure(), release.queries
    if not math.isfinite(pure):
        return math.inf
    if queries == 0:
        return 0.0
    # k·ε₀²(l+1)/2 + ln(1/δ)/l falls, then rises, with its turn at l*. Where the other branch, ε₀l, is the smaller one,
    # ε falls towards its limit k·ε₀ and never goes below.
    turn = math.sqrt(-2 * math.log(delta) / queries) / pure
    low = max(1, math.floor(turn))
    return min(_best(pure, queries, delta, (low, low + 1)), queries * pure)
