"""Heads from sums: what M = Σ φ(x)·onehot(y) and G = Σ φ(x)φ(x)ᵀ say about every class, and how sure they may be.

**Ridge** W = (G/n + λI)⁻¹ M/n is the least squares fit to the one-hot labels of all rows that were summed up.
**LDA** has the class means M/M₀ and the covariance within classes, G/n − Σ shares·mean·meanᵀ. Both are of the pooled
rows, whatever the partition. Without a labelled row at hand, what they would score on rows that they have not seen:

- *Brier score* of a ridge: its mean square error is n − 2 tr WᵀM + tr WᵀGW over n, and the share h of a row's own label
  in its fit is tr (G/n + λI)⁻¹G / n²; leaving each row out divides by (1 − h)² (Golub, Heath and Wahba 1979).
- *Log loss* of any head behind a softmax with one slope a and an offset b for each class: E log Σ exp(a·s + b) needs
  rows but no labels, and public rows will do; E(a·s_y + b_y) needs labels but no rows, being a·tr WᵀM/n + b·shares,
  with what each row adds to its own score taken off. Its least is Platt's calibration on all parties' rows.

Public rows stand in for the parties' own. What these score in the mean, ΣM tells, and how these scores vary, G, where
it is their own: public scores are moved and stretched until mean and covariance agree. Where G is not, public rows are
weighed until the mean agrees (exponential tilting). An odd sample of public rows is then less odd.

What sums and what public rows say may still contradict each other: where classes are well apart, the sums can have
rows agree with their classes by more than any public row agrees with any class. The log loss would then fall below 0,
which none does, and no slope would be steep enough. So probabilities are never surer than so few rows can tell: their
mean entropy on the public rows is 1/√rows at least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedkt.models.reading import FLATTEST, STEEPEST, softmax
from fedkt.pooling import Matrix
from fedkt.votes import Labels

STRENGTHS = tuple(10.0 ** (power / 2) for power in range(-10, 2))
"""Ridges that are tried, in units of the features' mean square."""
FREE = 1e-9
"""The ridge on the constant, which none should shrink."""
DISCRIMINANTS = "LDA"
FLATTER = 0.8
"""By what the slope is made flatter until probabilities are no surer than rows can tell."""
STEEPEST_TILT = 4.0
"""How far a standardised score may tilt the weight of a public row."""


@dataclass(frozen=True)
class Sums:
    """What all parties' rows sum up to, over the classes that occur."""

    moments: Matrix
    """M: D × K; row 0 has the class counts."""
    gram: Matrix
    """G: D × D, of these rows, or of public rows scaled to as many."""
    variance: float = 0.0
    """Of the noise on each number of M; with any, G is not the rows' own."""

    @property
    def rows(self) -> float:
        """n."""
        return float(self.moments[0].sum())

    @property
    def shares(self) -> Matrix:
        """The share of each class."""
        return np.asarray(self.moments[0] / self.rows)

    def first(self, width: int) -> Sums:
        """The sums of so many of the first features."""
        return Sums(self.moments[:width], self.gram[:width, :width], self.variance)


@dataclass(frozen=True)
class Head:
    """A linear score for each class, and what it should be on rows that it has not seen."""

    name: str
    weights: Matrix
    """D × K; its scores sum to 0 over the classes."""
    agreement: float
    """The mean score of a row's own class, without what the row has added to it itself."""


@dataclass(frozen=True)
class CalibratedHead:
    """A head whose scores are the logarithms of probabilities, up to a constant."""

    name: str
    weights: Matrix
    offsets: Matrix
    log_loss: float
    """What it should cost on rows that it has not seen; no less than what it itself expects of public rows."""
    strength: float = 0.0
    """Of the ridge that was found best, where one was looked for."""

    def probabilities(self, features: Matrix) -> Matrix:
        """How probable each class is."""
        return softmax(features @ self.weights + self.offsets)


def system(sums: Sums, strength: float) -> Matrix:
    """G/n + λI, λ in units of the mean square of a feature."""
    gram = sums.gram / sums.rows
    ridge = np.full(len(gram), strength * max(float(np.diag(gram)[1:].mean()), FREE))
    ridge[0] = FREE
    return np.asarray(gram + np.diag(ridge))


def centred(weights: Matrix) -> Matrix:
    """The same differences between classes, and a sum of 0 over them."""
    return np.asarray(weights - weights.mean(axis=1, keepdims=True))


def ridge_head(sums: Sums, strength: float) -> tuple[Head, float]:
    """The ridge, and the Brier score that it should have on rows it has not seen."""
    left, moments = system(sums, strength), sums.moments / sums.rows
    weights = np.asarray(np.linalg.solve(left, moments), dtype=np.float64)
    fit, square = float((weights * moments).sum()), float((weights * (sums.gram @ weights)).sum() / sums.rows)
    own = float(np.trace(np.linalg.solve(left, sums.gram))) / sums.rows**2
    apart = (fit - own) / max(1 - own, FREE)
    brier = (1 - 2 * fit + square) / max(1 - own, FREE) ** 2
    return Head("ridge", centred(weights), apart - _constant(sums, weights)), brier


def _constant(sums: Sums, weights: Matrix) -> float:
    """The mean over rows and classes of a score, which centred weights do not have."""
    return float((sums.moments.sum(axis=1) @ weights).mean() / sums.rows)


def lda_head(sums: Sums, strength: float) -> Head:
    """Linear discriminant analysis with the covariance within classes."""
    counts, rows, n_classes = sums.moments[0], sums.rows, sums.moments.shape[1]
    means = sums.moments[1:] / counts
    within = sums.gram[1:, 1:] / rows - (means * sums.shares) @ means.T
    left = within + strength * max(float(np.diag(within).mean()), FREE) * np.eye(len(within))
    directions = np.linalg.solve(left, means)
    weights = centred(np.vstack([np.log(sums.shares) - 0.5 * (means * directions).sum(axis=0), directions]))
    # A row is part of its own class's mean, and of the covariance that measures how far it is from there.
    freedom = float(np.trace(np.linalg.solve(left, within)))
    others = np.maximum(counts - 1, 1.0)
    extra = freedom / max(1 - freedom / rows, FREE) / others * (1 + 0.5 / others)
    agreement = float((weights * sums.moments).sum()) / rows - (1 - 1 / n_classes) * float(sums.shares @ extra)
    return Head(DISCRIMINANTS, weights, agreement)


def plain_labels(sums: Sums, public: Matrix, strength: float) -> Labels:
    """The class of the largest score of a ridge, for each public row."""
    weights = np.linalg.solve(system(sums, strength), sums.moments / sums.rows)
    return np.asarray((public @ weights).argmax(axis=1), dtype=np.int64)


def best_ridge(sums: Sums, widths: Sequence[int]) -> tuple[Head, float, int]:
    """The ridge of the least Brier score, its strength, and how many of the first features it looks at."""
    tries = []
    for width in widths:
        part = sums.first(width)
        tries += [(*ridge_head(part, strength), strength, width) for strength in STRENGTHS]
    head, _, strength, width = min(tries, key=lambda each: each[1])
    return head, strength, width


def solve(sums: Sums, public: Matrix, widths: Sequence[int]) -> CalibratedHead:
    """The calibrated head for these sums.

    Of two classes ridge and LDA have the same direction. Of more, one-hot labels are no scores that a line should meet:
    a class between two others is masked. Discriminants have no such fault.
    """
    head, strength, width = best_ridge(sums, widths)
    if sums.moments.shape[1] > 2:
        head = lda_head(sums.first(width), strength)
    best = calibrate(head, sums.first(width), public[:, :width])
    rest = np.zeros((public.shape[1] - width, best.weights.shape[1]))
    return replace(best, weights=np.vstack([best.weights, rest]), strength=strength)


def calibrate(head: Head, sums: Sums, public: Matrix, weights: Matrix | None = None) -> CalibratedHead:
    """The head with the slope and the offsets that make the parties' labels likeliest; see the top of this file.

    Where G is that of public rows, each may have a weight; together they are 1.
    """
    scores = public @ head.weights
    means = sums.moments.sum(axis=1) @ head.weights / sums.rows
    tilt = np.full(len(scores), 1 / len(scores)) if weights is None else weights
    # Where classes hardly overlap no slope would be steep enough; few rows are no reason to be so sure.
    doubt = 1 / min(sums.rows, 1 / float((tilt**2).sum()))
    if sums.variance:
        tilt = tilted(scores, means, tilt)
    else:
        scores = moved(scores, means, head.weights.T @ (sums.gram / sums.rows) @ head.weights - np.outer(means, means))
    unit = float(np.abs(scores).mean()) or 1.0
    scaled, agreement, shares = scores / unit, head.agreement / unit, sums.shares

    def loss(parameters: Matrix) -> tuple[float, Matrix]:
        logits = parameters[0] * scaled + parameters[1:]
        top = logits.max(axis=1, keepdims=True)
        sums_of_powers = top[:, 0] + np.log(np.exp(logits - top).sum(axis=1))
        shares_of_rows = tilt[:, None] * softmax(logits)
        value = float(tilt @ sums_of_powers) - parameters[0] * agreement - float(parameters[1:] @ shares)
        slope = float((shares_of_rows * scaled).sum()) - agreement + doubt * parameters[0]
        return value + doubt * parameters[0] ** 2 / 2, np.concatenate([[slope], shares_of_rows.sum(axis=0) - shares])

    # Discriminants have offsets of their own; fitted ones move far where a class is rare among public rows by chance.
    free, start = (0.0, 0 * shares) if head.name == DISCRIMINANTS else (STEEPEST, np.log(shares))
    bounds = [(FLATTEST, STEEPEST)] + [(-free, free)] * len(shares)
    start = np.concatenate([[1.0], start])
    value, found = _least(loss, start, bounds)
    expected = entropy(found[0] * scaled + found[1:], tilt)
    while expected < np.sqrt(doubt) and found[0] > FLATTEST:
        bounds[0] = (FLATTEST, max(FLATTER * float(found[0]), FLATTEST))
        value, found = _least(loss, np.concatenate([[bounds[0][1]], start[1:]]), bounds)
        expected = entropy(found[0] * scaled + found[1:], tilt)
    slope, offsets = float(found[0]) / unit, found[1:] - found[1:].mean()
    return CalibratedHead(head.name, head.weights * slope, offsets, max(value, expected))


def entropy(logits: Matrix, weights: Matrix) -> float:
    """What probabilities themselves expect their log loss to be on these rows."""
    probable = softmax(logits)
    return float(weights @ -(probable * np.log(np.maximum(probable, FREE))).sum(axis=1))


def moved(scores: Matrix, means: Matrix, covariance: Matrix) -> Matrix:
    """The scores, moved and stretched as little as can be until they have this mean and this covariance.

    That is the optimal transport from one normal distribution to another: C⁻¹ᐟ²(C¹ᐟ² C' C¹ᐟ²)¹ᐟ²C⁻¹ᐟ².
    """
    away = scores - scores.mean(axis=0)
    values, vectors = np.linalg.eigh(away.T @ away / len(away))
    # Centred scores vary in one direction less than there are classes.
    used = values > FREE * max(float(values[-1]), FREE)
    root = vectors[:, used] * np.sqrt(values[used])
    inner, turned = np.linalg.eigh(root.T @ covariance @ root)
    middle = (turned * np.sqrt(np.maximum(inner, 0))) @ turned.T
    back = vectors[:, used] / np.sqrt(values[used])
    return np.asarray(means + away @ (back @ middle @ back.T))


def tilted(scores: Matrix, means: Matrix, weights: Matrix) -> Matrix:
    """Weights of rows, summing to 1, under which the mean scores are `means`, as near to these weights as can be.

    The weights w·exp(θ·s) of least relative entropy: the least of log Σ w·exp(θ·(s − means)) is where the means agree.
    """
    away = scores - means
    size = np.maximum(scores.std(axis=0), FREE)
    scaled = away / size

    def loss(theta: Matrix) -> tuple[float, Matrix]:
        exponents = scaled @ theta
        top = float(exponents.max())
        powers = weights * np.exp(exponents - top)
        return top + float(np.log(powers.sum())), (powers / powers.sum()) @ scaled

    _, theta = _least(loss, np.zeros(scores.shape[1]), [(-STEEPEST_TILT, STEEPEST_TILT)] * scores.shape[1])
    exponents = scaled @ theta
    powers = weights * np.exp(exponents - exponents.max())
    return np.asarray(powers / powers.sum())


def _least(
    loss: Callable[[Matrix], tuple[float, Matrix]], start: Matrix, bounds: Sequence[tuple[float, float]]
) -> tuple[float, Matrix]:
    from scipy.optimize import minimize

    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.fun), np.asarray(found.x)
