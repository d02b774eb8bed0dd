"""The price of a winner under Gaussian noise: of the arg max, not of the noisy counts.

One vote moves from a class to another. Let M be the largest noisy count among all other classes and J whose it is: both
have the same law in both worlds and are independent of the two moved counts. The winner is a function of J and of which
of three cells (see `three_cells`) the two moved counts fall into, measured from M. Publishing M and J as well can only
cost more (data processing), and then, with p and q the cells' probabilities given M,

    e^{(α−1) D_α} ≤ E_M Σ p^α q^{1−α} ≤ sup over (u, v) of Σ p^α q^{1−α} = e^{(α−1) G(α, σ)}.

The other direction is the same supremum: exchanging the two classes turns (u, v) against (u − d, v) into (d − u, v)
against (−u, v). A voter who abstains in one of the worlds moves one count only; all others are untouched then, and the
winner tells whether that count beats M: Φ(x) against Φ(x ∓ 1/σ), the edge y → −∞ of the same plane, hence inside G.
Without a third class v is infinite and two halves of a line are left: H(α, d) = sup over u of D_α between coins Φ(u)
and Φ(u − d), d = √2/σ. That is also what a test against a threshold costs, a yes or no about a number that moves by at
most one: H(α, 1/σ). Composition over adaptive queries adds Rényi divergences.

**Confident answers.** A query of confident-gaussian is a test and, if it was passed and answers are left, a winner.
What is asked next depends on what was released, so the costs are those of a filter. Fix one order α, and let ρ_t bound
the divergence of step t given the past, with Σ ρ_t ≤ B on every path. Then Π (p_t/q_t)^α e^{−(α−1)ρ_t} is a
supermartingale under Q that starts at 1, so the whole release has D_α ≤ B (Feldman and Zrnic 2021). Every path has k
tests and at most min(k, answers) winners: B = k H(α, 1/σ_test) + min(k, answers) G(α, σ), with H for G at two classes.

`certificate` and `halves_certificate` prove upper bounds on the suprema by branch and bound; `docs/decisions/0007-…`
has the whole argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from fedkt.privacy.accountant import game
from fedkt.privacy.accountant import rdp as noisy_counts
from fedkt.privacy.accountant.three_cells import bound
from fedkt.privacy.noise import GaussianAnswers
from fedkt.privacy.price import Release
from fedkt.privacy.stream import Floats

GAP = 1e-3
"""How far a certified divergence may lie above the largest one found, in relative terms."""

_MOST_BOXES = 300_000
_LARGEST_EXPONENT = 60.0
_LEAST_SHIFT = 1e-4
_ROOT = math.sqrt(2)


@dataclass(frozen=True)
class Certificate:
    """The largest D_α found in the plane, a number proven to be above all of it, and the boxes that took."""

    largest: float
    certified: float
    boxes: int


def supremum(
    bounds: Callable[[Floats], tuple[Floats, Floats]], boxes: Floats, gap: float, largest: float = 0.0
) -> Certificate:
    """The supremum over all boxes, from values at centres and upper bounds over boxes: split where it is not yet known.

    A box is dropped once its upper bound is at most (1 + gap) times the largest value found. Where the number of boxes
    runs out, the bounds of those left are the answer: always proven, only less sharp.
    """
    proven, spent = largest, 0
    while len(boxes):
        parts = [bounds(boxes[i : i + 2048]) for i in range(0, len(boxes), 2048)]
        value, upper = (np.concatenate(side) for side in zip(*parts, strict=True))
        spent += len(boxes)
        largest = max(largest, float(value.max()))
        open_ = upper > largest * (1 + gap)
        if spent > _MOST_BOXES:
            return Certificate(largest, max(proven, float(upper.max())), spent)
        proven = max(proven, float(upper[~open_].max(initial=0.0)))
        boxes = _split(boxes[open_])
    return Certificate(largest, proven, spent)


@dataclass(frozen=True)
class _Ends:
    """Where a search may end: z with Φ(−z) negligible, κ = −ln(1 − Φ(−z)), and all that lies beyond can add."""

    z: float
    kappa: float
    rest: float


def _ends(order: float, shift: float) -> _Ends | None:
    """None where a search is not worth it: the noise is too weak for this order, or too strong for float64."""
    beta = order - 1
    exponent = order * beta * shift**2 / 2
    if not (shift >= _LEAST_SHIFT and exponent <= _LARGEST_EXPONENT):
        return None
    z = math.sqrt(2 * (exponent + math.log1p(beta) + math.log(1e9 / min(exponent, shift, 1.0))))
    beyond = float(ndtr(-z))
    kappa = -math.log1p(-beyond)
    # ψ(±2κ) ≤ ½ (2κ)² max ψ'' and ψ'' ≤ αβ e^{max(β, 1)|Λ|}.
    flat = 4 * order * beta * kappa**2 * math.exp(2 * max(beta, 1.0) * kappa)
    return _Ends(z, kappa, flat + 2 * (math.exp(exponent + beta * kappa) + beta * math.exp(kappa)) * beyond)


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
    ends = _ends(order, shift)
    if ends is None:
        return None
    edge = _edge(order, shift, ends, ends.kappa)
    # A relative gap g of ln(1 + S) allows one of g (1 + S) ln(1 + S) / S of S, which is at least this.
    gap = GAP * max(1.0, math.log1p(edge.largest))
    boxes = _triangle(ends.z + beta * step, ends.z + step, ends.z)
    plane = supremum(lambda b: bound(b, order, shift), boxes, gap, edge.largest)
    top = max(edge.certified, plane.certified) + ends.rest
    return Certificate(math.log1p(plane.largest) / beta, math.log1p(top) / beta * (1 + 1e-12), edge.boxes + plane.boxes)


@lru_cache(maxsize=4096)
def halves_certificate(order: float, shift: float) -> Certificate | None:
    """The certified supremum H(α, d) of one coin Φ(u) against Φ(u − d); None where α d²/2 has to do.

    Smaller steps tell less, because both |Λ| shrink, and steps back are mirror images: H bounds all of them. The ends
    are those of the halves in `certificate`.
    """
    ends = _ends(order, shift)
    if ends is None:
        return None
    edge, beta = _edge(order, shift, ends, 0.0), order - 1
    top = math.log1p(edge.certified + ends.rest) / beta * (1 + 1e-12)
    return Certificate(math.log1p(edge.largest) / beta, top, edge.boxes)


def _edge(order: float, shift: float, ends: _Ends, margin: float) -> Certificate:
    """The excess of the two halves between the ends, certified, each |Λ| taken `margin` larger than it is."""
    reach = _segment(-ends.z - (order - 1) * shift, ends.z + shift)
    return supremum(lambda b: bound(b, order, shift, margin), reach, GAP)


def rdp(order: float, sigma: float) -> float:
    """A proven bound on the Rényi divergence of one winner of any classes: the certified G, never above α/σ²."""
    proven = certificate(float(order), float(sigma))
    return min(order / sigma**2, math.inf if proven is None else proven.certified)


def halves_rdp(order: float, shift: float) -> float:
    """The same for a yes or no about a Gaussian whose mean moves by at most `shift` of its σ: H, never above α d²/2."""
    proven = halves_certificate(float(order), float(shift))
    return min(order * shift**2 / 2, math.inf if proven is None else proven.certified)


def _certified(answers: GaussianAnswers, classes: int, order: float) -> float:
    """A proven bound on the Rényi divergence of all these answers; of two classes a winner is one of two as well."""
    if answers.yes_or_no or classes == 2:
        return answers.times * halves_rdp(order, answers.shift)
    return answers.times * rdp(order, _ROOT / answers.shift)


def epsilon(release: Release, delta: float) -> float:
    """The ε of all queries at δ; infinite unless the noise is Gaussian, hides the counts, and no game is sharper.

    Any order is sound, so only the most promising one is certified: promising by the two `halves`, whose divergence is
    a close lower bound of G. The conversion is that of Canonne, Kamath and Steinke (2020, Proposition 12).
    """
    answers = release.noise.gaussian_answers(release.queries)
    # Two classes are left to the game, which is exact, unless that would take too long.
    if not answers or (game.applies(release) and not game.takes_too_long(release)):
        return math.inf
    if release.queries == 0:
        return 0.0
    from dp_accounting.rdp import compute_epsilon  # type: ignore[import-untyped,unused-ignore]

    guide = sum((each.times * _promise(each.shift) for each in answers), np.zeros(len(noisy_counts.orders())))
    order = float(compute_epsilon(noisy_counts.orders(), guide, delta)[1])
    total = sum(_certified(each, release.classes, order) for each in answers) * (1 + 1e-12)
    return float(min(compute_epsilon([order], [total], delta)[0], noisy_counts.epsilon(release, delta)))


@lru_cache(maxsize=256)
def _promise(shift: float) -> Floats:
    """At every order the divergence of the two halves, largest over a coarse grid of u: no bound, only a guide."""
    orders = noisy_counts.orders()
    curve = orders * shift**2 / 2
    within = orders * (orders - 1) * shift**2 / 2 <= _LARGEST_EXPONENT
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
