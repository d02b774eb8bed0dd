"""The price of a winner under Gaussian noise and three or more classes: of the arg max, not of the noisy counts.

One vote moves from a class to another. Let M be the largest noisy count among all other classes and J whose it is: both
have the same law in both worlds and are independent of the two moved counts. The winner is a function of J and of which
of three cells (see `three_cells`) the two moved counts fall into, measured from M. Publishing M and J as well can only
cost more (data processing), and then, with p and q the cells' probabilities given M,

    e^{(α−1) D_α} ≤ E_M Σ p^α q^{1−α} ≤ sup over (u, v) of Σ p^α q^{1−α} = e^{(α−1) G(α, σ)}.

The other direction is the same supremum: exchanging the two classes turns (u, v) against (u − d, v) into (d − u, v)
against (−u, v). A voter who abstains in one of the worlds moves one count only; all others are untouched then, and the
winner tells whether that count beats M: Φ(x) against Φ(x ∓ 1/σ), the edge y → −∞ of the same plane, hence inside G.
Without a third class v is infinite, so G holds there as well. Composition over adaptive queries adds Rényi divergences.

`certificate` proves an upper bound on the supremum by branch and bound; `docs/decisions/0007-…` has the whole argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from fedkt.privacy.accountant import rdp as noisy_counts
from fedkt.privacy.accountant.three_cells import bound
from fedkt.privacy.gaussian import Gaussian, GaussianCounts
from fedkt.privacy.price import Floats, Release

GAP = 1e-3
"""How far a certified divergence may lie above the largest one found, in relative terms."""

_MOST_BOXES = 300_000
_LARGEST_EXPONENT = 60.0
_LEAST_SHIFT = 1e-4
_ROOT = math.sqrt(2)


@dataclass(frozen=True)
class Certificate:
    """The largest D_α found in the plane, a number proven to be above all of it, and the boxes that took."""

    found: float
    certified: float
    boxes: int


def supremum(
    bounds: Callable[[Floats], tuple[Floats, Floats]], boxes: Floats, gap: float, found: float = 0.0
) -> Certificate:
    """The supremum over all boxes, from values at centres and upper bounds over boxes: split where it is not yet known.

    A box is dropped once its upper bound is at most (1 + gap) times the largest value found. Where the number of boxes
    runs out, the bounds of those left are the answer: always proven, only less sharp.
    """
    proven, spent = found, 0
    while len(boxes):
        parts = [bounds(boxes[i : i + 2048]) for i in range(0, len(boxes), 2048)]
        value, upper = (np.concatenate(side) for side in zip(*parts, strict=True))
        spent += len(boxes)
        found = max(found, float(value.max()))
        open_ = upper > found * (1 + gap)
        if spent > _MOST_BOXES:
            return Certificate(found, max(proven, float(upper.max())), spent)
        proven = max(proven, float(upper[~open_].max(initial=0.0)))
        boxes = _split(boxes[open_])
    return Certificate(found, proven, spent)


@lru_cache(maxsize=4096)
def certificate(order: float, sigma: float) -> Certificate | None:
    """The certified supremum G(α, σ) of one query; None where the branch and bound is not worth it (use α/σ²).

    The plane is a triangle and three strips. With s = 1/σ, d = √2 s, β = α − 1, E = αβs², ψ and Λ as in `three_cells`,
    z chosen so that Φ(−z) is negligible, and κ = −ln(1 − Φ(−z)):
    * v ≥ z: A and B have between Φ(z) and 1 times Φ(±u), so their Λ is within κ of that of the two `halves`, and C, a
      part of {V < 0}, adds at most (e^E + β) Φ(−z): by Hölder, p^α q^{1−α} of a cell is at most the integral of the
      densities' P^α Q^{1−α} over it, which is e^E times the cell's probability at the means (u + βd, v).
    * y ≤ −z − s: likewise A and C are the halves of x with a step of s, and B adds at most βΦ(−z), as p ≤ q there. A
      smaller step from the same u makes both |Λ| smaller: no more than the halves with step d.
    * x ≤ −z − βs: B and C are the halves of y with a step of s, and A adds at most (e^E + β) Φ(−z).
    * The halves outside −z − βd ≤ u ≤ z + d: at most 2 max ψ(±2κ) + (e^{E+βκ} + βe^κ) Φ(−z), by the same arguments.
    The halves in between, and the triangle that is left, are compact: `supremum` certifies both.
    """
    step, shift, beta = 1 / sigma, _ROOT / sigma, order - 1
    exponent = order * beta * step**2
    if not (shift >= _LEAST_SHIFT and exponent <= _LARGEST_EXPONENT):
        return None
    z = math.sqrt(2 * (exponent + math.log1p(beta) + math.log(1e9 / min(exponent, shift, 1.0))))
    beyond = float(ndtr(-z))
    kappa = -math.log1p(-beyond)
    # ψ(±2κ) ≤ ½ (2κ)² max ψ'' and ψ'' ≤ αβ e^{max(β, 1)|Λ|}.
    flat = 4 * order * beta * kappa**2 * math.exp(2 * max(beta, 1.0) * kappa)
    rest = flat + 2 * (math.exp(exponent + beta * kappa) + beta * math.exp(kappa)) * beyond

    edge = supremum(lambda b: bound(b, order, shift, kappa), _segment(-z - beta * shift, z + shift), GAP)
    # A relative gap g of ln(1 + S) allows one of g (1 + S) ln(1 + S) / S of S, which is at least this.
    gap = GAP * max(1.0, math.log1p(edge.found))
    plane = supremum(lambda b: bound(b, order, shift), _triangle(z + beta * step, z + step, z), gap, edge.found)
    top = max(edge.certified, plane.certified) + rest
    return Certificate(math.log1p(plane.found) / beta, math.log1p(top) / beta * (1 + 1e-12), edge.boxes + plane.boxes)


def rdp(order: float, sigma: float) -> float:
    """A proven bound on the Rényi divergence of one query: the certified supremum, never above α/σ²."""
    proven = certificate(float(order), float(sigma))
    return min(order / sigma**2, math.inf if proven is None else proven.certified)


def epsilon(release: Release, delta: float) -> float:
    """The ε of all queries at δ; infinite unless the noise is Gaussian, hides the counts, and there are three classes.

    Any order is sound, so only the most promising one is certified: promising by the two `halves`, whose divergence is
    a close lower bound of G. The conversion is that of Canonne, Kamath and Steinke (2020, Proposition 12).
    """
    noise = release.noise
    if not isinstance(noise, Gaussian) or isinstance(noise, GaussianCounts) or release.classes < 3:
        return math.inf
    if release.queries == 0:
        return 0.0
    from dp_accounting.rdp import compute_epsilon  # type: ignore[import-untyped,unused-ignore]

    orders = noisy_counts.orders()
    promising = release.queries * _promise(noise.sigma)
    order = float(compute_epsilon(orders, promising, delta)[1])
    rounded = release.queries * rdp(order, noise.sigma) * (1 + 1e-12)
    return float(min(compute_epsilon([order], [rounded], delta)[0], noisy_counts.epsilon(release, delta)))


@lru_cache(maxsize=256)
def _promise(sigma: float) -> Floats:
    """At every order the divergence of the two halves, largest over a coarse grid of u: no bound, only a guide."""
    orders, shift = noisy_counts.orders(), _ROOT / sigma
    curve = orders / sigma**2
    within = orders * (orders - 1) / sigma**2 <= _LARGEST_EXPONENT
    beta = orders[within, None] - 1
    u = np.linspace(-16, 4 + shift, 400)[None]
    terms = [(1 + beta) * log_ndtr(side * u) - beta * log_ndtr(side * (u - shift)) for side in (1, -1)]
    curve[within] = np.minimum(curve[within], np.logaddexp(*terms).max(axis=1) / beta[:, 0])
    return np.asarray(curve)


def _segment(low: float, high: float) -> Floats:
    """Boxes without height that cover low ≤ u ≤ high of the two halves."""
    centres, half = _cover(low, high, 0.25)
    return np.stack([centres, np.full_like(centres, np.inf), half + 0 * centres, 0 * centres], axis=1)


def _triangle(left: float, below: float, above: float) -> Floats:
    """Boxes that cover all (u, v) with x ≥ −left, y ≥ −below and v ≤ above."""
    us, wide = _cover(-_ROOT * left - above, _ROOT * below + above, 0.4)
    vs, high = _cover(-(left + below) / _ROOT, above, 0.8)
    u, v = (side.ravel() for side in np.meshgrid(us, vs))
    inside = (u + v + wide + high >= -_ROOT * left) & (v - u + wide + high >= -_ROOT * below)
    return np.stack([u, v, np.full_like(u, wide), np.full_like(u, high)], axis=1)[inside]


def _cover(low: float, high: float, half: float) -> tuple[Floats, float]:
    """Centres and half width of equal intervals that cover [low, high], a little wider than they need to be."""
    number = math.ceil((high - low) / (2 * half))
    half = (high - low) / (2 * number)
    return np.asarray(low + half * (2 * np.arange(number) + 1), dtype=np.float64), half * (1 + 1e-9)


def _split(boxes: Floats) -> Floats:
    """Every box cut into four; into two where it has no height."""
    u, v, wide, high = boxes.T
    sides = (-0.5, 0.5)
    if not high.any():
        parts = [(u + i * wide, v, wide / 2, high) for i in sides]
    else:
        parts = [(u + i * wide, v + j * high, wide / 2, high / 2) for i in sides for j in sides]
    # Halving is exact; the centres round, so each part is a hair larger than half.
    return np.concatenate([np.stack([a, b, c * (1 + 1e-12), d * (1 + 1e-12)], axis=1) for a, b, c, d in parts])
