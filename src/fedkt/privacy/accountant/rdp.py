"""Rényi differential privacy with the conversion of Canonne, Kamath and Steinke (2020, Proposition 12)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fedkt.privacy.price import Release
from fedkt.privacy.stream import Floats


@lru_cache(maxsize=1)
def orders() -> Floats:
    """The Rényi orders tried: real numbers from 1.05 to 100,001, each 2 % further from 1 than the one before.

    Any set of orders is sound; between two neighbours of this one the best ε changes by less than 1 in 10,000.
    """
    grid = 1 + np.geomspace(0.05, 1e5, 740)
    grid.flags.writeable = False
    return grid


def rdp_curve(release: Release) -> Floats:
    """The Rényi bound of the whole release at every order, rounded up."""
    total = release.noise.rdp_of(release.queries, orders())
    # The closed forms lose a few ulps to cancellation; a divergence must never come out too small, or below zero.
    return np.asarray(np.maximum(total, 0) * (1 + 1e-12) + 1e-14 * max(1, release.queries))


def from_curve(total: Floats, delta: float) -> float:
    """The smallest ε of a bound at every order of the grid."""
    return from_orders(orders(), total, delta)


def from_orders(some_orders: Floats, total: Floats, delta: float) -> float:
    """The smallest ε of a bound at these orders, by dp-accounting's conversion of a Rényi curve."""
    from dp_accounting.rdp import compute_epsilon

    return float(compute_epsilon(some_orders, total, delta)[0])


def epsilon(release: Release, delta: float) -> float:
    """The ε of all queries at δ; 0 where there are none."""
    return from_curve(rdp_curve(release), delta) if release.queries else 0.0
