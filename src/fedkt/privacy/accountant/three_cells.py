"""What one moved vote can tell through the winner: three cells of a Gaussian plane, and bounds over boxes of it.

X and Y are the noisy counts of the class that loses the vote and of the class that gains it, less the largest noisy
count of all other classes, in units of σ. In the turned coordinates U = (X − Y)/√2 and V = (X + Y)/√2 the moved vote
lowers the mean u by d = √2/σ and leaves the mean v alone. The winner is known when the cell is:

    A = {X > max(Y, 0)} = {U > 0, V > −U}     B = {Y > max(X, 0)} = A with U mirrored     C = {X < 0, Y < 0}

With p the probabilities of the cells at (u, v), q those at (u − d, v), Λ = ln p/q and β = α − 1 > 0,

    Σ p^α q^{1−α} − 1 = Σ p ψ(Λ),     ψ(Λ) = e^{βΛ} − 1 + β (e^{−Λ} − 1) ≥ 0,

because Σp = Σq = 1. This `excess` is e^{β D_α} − 1, and every term of it is of the order of d², so nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from fedkt.privacy.stream import Floats

LOG_ERROR = 1e-10
"""Allowed for the error of a logarithm of a probability; the largest one found is below 1e-12."""

_NODES = 56
_LOG_ROOT = 0.5 * math.log(2 * math.pi)
_TURN = math.sqrt(0.5)


@dataclass(frozen=True)
class Cells:
    """Logarithms of the cells' probabilities and their derivatives along u and v, one row a cell (A, B, C)."""

    log: Floats
    along_u: Floats
    along_v: Floats


def cells(u: Floats, v: Floats) -> Cells:
    """The three cells at the means (u, v), accurate in relative terms however small."""
    x, y = (u + v) * _TURN, (v - u) * _TURN
    both = _log_a(np.concatenate([u, -u]), np.concatenate([v, v]))
    log_a, log_b = both[: len(u)], both[len(u) :]
    # ∂P(A)/∂u = φ(u)Φ(v) + φ(x)Φ(−y)/√2 and ∂P(A)/∂v = φ(x)Φ(−y)/√2: by parts, and by completing the square.
    edge = -(u**2) / 2 - _LOG_ROOT + log_ndtr(v)
    edge_a = -(x**2) / 2 - _LOG_ROOT + log_ndtr(-y) + math.log(_TURN)
    edge_b = -(y**2) / 2 - _LOG_ROOT + log_ndtr(-x) + math.log(_TURN)
    a_v, b_v = np.exp(edge_a - log_a), np.exp(edge_b - log_b)
    a_u, b_u = np.exp(edge - log_a) + a_v, -np.exp(edge - log_b) - b_v
    hazard_x, hazard_y = _mills(-x) * _TURN, _mills(-y) * _TURN
    log_c = log_ndtr(-x) + log_ndtr(-y)
    return Cells(
        np.stack([log_a, log_b, log_c]),
        np.stack([a_u, b_u, hazard_y - hazard_x]),
        np.stack([a_v, b_v, -hazard_x - hazard_y]),
    )


def halves(u: Floats) -> Cells:
    """The two cells U > 0 and U < 0: what is left of the three as v grows without end."""
    slope = np.stack([_mills(u), -_mills(-u)])
    return Cells(np.stack([log_ndtr(u), log_ndtr(-u)]), slope, np.zeros_like(slope))


def excess(u: Floats, v: Floats, order: float, shift: float) -> Floats:
    """Σ p ψ(Λ) = e^{(α−1) D_α} − 1 of the three cells at (u, v) against those at (u − shift, v)."""
    p, q = cells(u, v), cells(u - shift, v)
    return np.asarray(_weighted_psi(p.log, p.log - q.log, order - 1).sum(axis=0))


def bound(boxes: Floats, order: float, shift: float, margin: float = 0.0) -> tuple[Floats, Floats]:
    """The excess at the centre of each box, and a number that it exceeds nowhere in the box.

    A box is a row (u, v, half width, half height); v infinite stands for the two `halves`. Λ is taken `margin` further
    from 0 than it is, besides LOG_ERROR. The bound is Taylor's, g(c + δ) ≤ g(c) + ∇g(c)·δ + ½ sup δᵀ∇²g δ, where for
    one cell, with ℓ = ln p and a subscript δ for the derivative along δ,

        (pψ)_δδ = p [(ℓ_δ² + ℓ_δδ) ψ + 2 ℓ_δ Λ_δ ψ' + Λ_δ² ψ'' + Λ_δδ ψ'],

    and everything is bounded from the centre. The cells are convex, so a Gaussian restricted to one is log-concave with
    covariance between 0 and I (Brascamp and Lieb 1976): ∇²ℓ = Cov − I lies between −I and 0. Its third derivatives are
    third cumulants, at most 2 along any unit vector: a centred log-concave variable has |E X³| ≤ 2 (E X²)^{3/2} (Bubeck
    and Eldan 2019; a short proof is in docs/decisions/0007), and a symmetric trilinear form is largest on a diagonal
    (Banach). Λ is ℓ's increase over a step of length d along u, hence |∇Λ| ≤ d and |Λ_δδ| ≤ 2d|δ|². ψ, |ψ'| and ψ''
    are largest over an interval at an end of it.
    """
    beta = order - 1
    u, v, wide, high = boxes.T
    face = bool(np.isinf(v).all())
    p, q = (halves(u), halves(u - shift)) if face else (cells(u, v), cells(u - shift, v))
    gap, gap_u, gap_v = p.log - q.log, p.along_u - q.along_u, p.along_v - q.along_v
    error = 2 * LOG_ERROR + margin
    log_p = p.log + LOG_ERROR

    with np.errstate(over="ignore", invalid="ignore"):
        # At the centre, with Λ anywhere within its error; then what the errors can change of the slopes.
        psi = _largest(_weighted_psi, log_p, gap, error, beta)
        first = _largest(_weighted_first, log_p, gap, error, beta)
        middle = _weighted_first(log_p, gap, beta)
        slope_u = np.abs((p.along_u * psi + gap_u * middle).sum(axis=0))
        slope_v = np.abs((p.along_v * psi + gap_v * middle).sum(axis=0))
        steep = np.abs(p.along_u) + np.abs(p.along_v) + np.abs(q.along_u) + np.abs(q.along_v)
        blur = 4 * LOG_ERROR * steep * (wide + high)
        reach = np.abs(p.along_u) * wide + np.abs(p.along_v) * high + blur
        reach_gap = np.abs(gap_u) * wide + np.abs(gap_v) * high + blur
        swing = _weighted_first(log_p, gap + error, beta) - _weighted_first(log_p, gap - error, beta)
        slack = reach * 2 * error * first + blur * (psi + first) + reach_gap * swing

        length = np.sqrt(wide**2 + high**2)
        reach_both = np.minimum(reach_gap + shift * length**2, shift * length) + error
        score = reach + length**2
        score_gap = np.minimum(reach_gap + 2 * shift * length**2, shift * length)
        top = log_p + reach  # ln p is concave: it lies below its tangent
        curve = (
            score**2 * _largest(_weighted_psi, top, gap, reach_both, beta)
            + (2 * score * score_gap + 2 * shift * length**2) * _largest(_weighted_first, top, gap, reach_both, beta)
            + score_gap**2 * _largest(_weighted_second, top, gap, reach_both, beta)
        )
        upper = slope_u * wide + slope_v * high + (psi + slack + curve / 2).sum(axis=0)
    return _weighted_psi(p.log, gap, beta).sum(axis=0), np.where(np.isnan(upper), np.inf, upper * (1 + 1e-12))


def _largest(
    function: Callable[[Floats, Floats, float], Floats], log_p: Floats, gap: Floats, spread: Floats | float, beta: float
) -> Floats:
    """The largest |p f(Λ)| over Λ within `spread` of `gap`, for an f whose size is largest at an end."""
    return np.maximum(np.abs(function(log_p, gap - spread, beta)), np.abs(function(log_p, gap + spread, beta)))


def _weighted_psi(log_p: Floats, gap: Floats, beta: float) -> Floats:
    return _weighted_exp2(log_p, beta * gap) + beta * _weighted_exp2(log_p, -gap)


def _weighted_first(log_p: Floats, gap: Floats, beta: float) -> Floats:
    """p ψ'(Λ) = p β (e^{βΛ} − e^{−Λ})."""
    return np.asarray(beta * (_weighted_expm1(log_p, beta * gap) - _weighted_expm1(log_p, -gap)))


def _weighted_second(log_p: Floats, gap: Floats, beta: float) -> Floats:
    """p ψ''(Λ) = p (β² e^{βΛ} + β e^{−Λ})."""
    return np.asarray(beta**2 * np.exp(log_p + beta * gap) + beta * np.exp(log_p - gap))


def _weighted_expm1(log_p: Floats, t: Floats) -> Floats:
    """p (e^t − 1) without overflow where p is tiny and t large."""
    return np.where(t > 1, np.exp(log_p + t) - np.exp(log_p), np.exp(log_p) * np.expm1(np.minimum(t, 1)))


def _weighted_exp2(log_p: Floats, t: Floats) -> Floats:
    """p (e^t − 1 − t): by its series near 0, where the terms cancel."""
    small = np.clip(t, -0.02, 0.02)
    series = small**2 / 2 * (1 + small / 3 * (1 + small / 4 * (1 + small / 5 * (1 + small / 6 * (1 + small / 7)))))
    plain = _weighted_expm1(log_p, t) - np.exp(log_p) * t
    return np.where(small == t, np.exp(log_p) * series, plain)


def _mills(t: Floats) -> Floats:
    """φ(t)/Φ(t)."""
    return np.asarray(np.exp(-(t**2) / 2 - _LOG_ROOT - log_ndtr(t)))


@lru_cache(maxsize=1)
def _legendre() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(_NODES)


def _log_a(u: Floats, v: Floats) -> Floats:
    """ln P(A) = ln ∫_0^∞ φ(w − u) Φ(v + w) dw by Gauss–Legendre quadrature around the peak.

    The logarithm of the integrand has a second derivative between −2 and −1, so past the peak it falls at least like
    −m t − t²/2 with m the slope there; the interval ends where that is −40, and what is cut off is below 1e-16 of the
    integral. The integrand is entire; on the ellipse with ρ = 1.7 around an interval of half length 9 it is at most
    e^{23} times its peak, and 56 nodes leave an error of about 64/15 · e^{23} ρ^{−112} < 1e-14 of the peak.
    """
    peak = np.zeros_like(u)
    start = u + _mills(v)
    # The slope u − w + φ/Φ(v + w) is convex and falls: Newton's steps from the left never pass the zero.
    for _ in range(8):
        ratio = _mills(v + peak)
        slope = u - peak + ratio
        peak = peak + np.maximum(slope, 0) / (1 + ratio * (v + peak + ratio))
    fall = np.maximum(-start, 0)
    low, high = np.maximum(peak - 9, 0), peak + 80 / (fall + np.sqrt(fall**2 + 80))
    nodes, weights = _legendre()
    half = (high - low) / 2
    w = (low + half)[:, None] + half[:, None] * nodes
    log_value = -((w - u[:, None]) ** 2) / 2 + log_ndtr(v[:, None] + w)
    top = log_value.max(axis=1)
    total = np.exp(log_value - top[:, None]) @ weights
    return np.asarray(top + np.log(total * half) - _LOG_ROOT)
