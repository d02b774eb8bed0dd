"""The arithmetic of expert voting: a party's word on a class counts by its share of the rows of that class.

Parties differ in how often they see a class (label shift), not in what a class looks like. Then the posterior of the
pooled rows follows from the parties' own posteriors p_i(y|x) and class counts n_i(y) alone: with the shares
share_i(y) = n_i(y) / Σ_j n_j(y),

    p(y|x) = Σ_i w_i(x) p_i(y|x),    w_i(x) = Σ_y share_i(y) p(y|x),

where w_i(x) is the probability that a row like x is party i's. Counts may be rounded, noisy or estimated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]

ROUNDS = 20
"""Steps from the parties' mean towards the pooled posterior; a step moves hardly anything after ten."""
TOLERANCE = 0.05
"""How far the labels' class shares may stray from the parties' prior, in total variation, before they are pulled back.

Public rows are never quite like the parties' rows, and a sample of them even less: to force the prior on them costs
labels. Where parties that hardly know a class outvote the others, the labels stray several times as far.
"""
LEAST = 1e-9
"""The smallest score: its logarithm is taken."""
MATCHING_STEPS = 300


def shares_of(counts: ArrayLike) -> Matrix:
    """share_i(y), one row a party; a class that nobody has is everybody's in equal parts."""
    rows = np.asarray(counts, dtype=np.float64)
    if rows.ndim != 2 or len(rows) == 0 or not np.isfinite(rows).all() or (rows < 0).any():
        raise ValueError(f"Counts are one row of numbers of at least 0 for each party, got shape {rows.shape}.")
    total = rows.sum(axis=0)
    shared: Matrix = np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0 / len(rows))
    return shared


def expert_votes(fractions: Sequence[ArrayLike], shares: Matrix) -> Matrix:
    """score_y(x) = Σ_i share_i(y) · (fraction of i's students that say y): for students that only name a class."""
    scores: Matrix | None = None
    for fraction, share in zip(fractions, shares, strict=True):
        part = np.asarray(fraction, dtype=np.float64) * share
        scores = part if scores is None else scores + part
    assert scores is not None
    return scores


def pooled_posterior(posteriors: Sequence[ArrayLike], shares: Matrix, *, rounds: int = ROUNDS) -> Matrix:
    """The fixed point: what a model of the pooled rows would say, from what the parties' models say."""
    stacked = np.stack([np.asarray(each, dtype=np.float32) for each in posteriors])
    pooled = rows_of_one(stacked.mean(axis=0, dtype=np.float64))
    for _ in range(rounds):
        weights = rows_of_one(pooled @ shares.T)
        pooled = rows_of_one(np.einsum("mi,imk->mk", weights, stacked))
    return pooled


def rows_of_one(scores: Matrix) -> Matrix:
    """Each row divided by its sum; a row of zeros is spread evenly."""
    total = scores.sum(axis=1, keepdims=True)
    evenly = 1.0 / scores.shape[1]
    spread: Matrix = np.where(total > 0, scores / np.where(total > 0, total, 1.0), evenly)
    return spread


def label_shares(scores: Matrix) -> Matrix:
    """Which part of the rows each class has the largest score on."""
    return np.bincount(scores.argmax(axis=1), minlength=scores.shape[1]) / len(scores)


def distance(shares: Matrix, prior: Matrix) -> float:
    """Total variation between two distributions over the classes."""
    return float(np.abs(shares - prior).sum() / 2)


def pulled_back(scores: Matrix, prior: Matrix) -> tuple[Matrix, float]:
    """The scores, moved if their labels stray from the prior until they are just within TOLERANCE; how far they did."""
    given = label_shares(scores)
    strayed = distance(given, prior)
    if strayed <= TOLERANCE:
        return scores, strayed
    return with_shares(scores, prior + TOLERANCE / strayed * (given - prior)), strayed


def with_shares(scores: Matrix, wanted: Matrix) -> Matrix:
    """The scores with a factor for each class, so that the largest ones have these shares, as nearly as can be.

    With two classes this is a cut at a quantile. With more the factors are sought step by step, and the best of all
    steps is taken.
    """
    spoken_for = scores.sum(axis=1) > 0
    if not spoken_for.all():
        # Rows about which nobody says anything stay as they are.
        moved = np.zeros_like(scores)
        moved[spoken_for] = with_shares(scores[spoken_for], wanted)
        return moved
    logs = np.log(np.maximum(scores, LEAST))
    if scores.shape[1] == 2:
        shift = np.array([0.0, -np.quantile(logs[:, 1] - logs[:, 0], wanted[0])])
    else:
        shift = np.zeros(scores.shape[1])
        best, nearest = shift, np.inf
        for step in range(MATCHING_STEPS):
            shares = label_shares(logs + shift)
            if distance(shares, wanted) < nearest:
                best, nearest = shift, distance(shares, wanted)
            # Steps shrink: a class with few rows would otherwise swing between none and too many.
            pull = max(0.98**step, 0.02)
            smallest = 1.0 / len(scores)
            shift = shift + pull * (np.log(wanted + smallest) - np.log(shares + smallest))
        shift = best
    shifted = logs + shift
    return rows_of_one(np.exp(shifted - shifted.max(axis=1, keepdims=True)))
