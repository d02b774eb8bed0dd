"""The arithmetic of expert voting: a party's word on a class counts by its share of the rows of that class.

Parties differ in how often they see a class (label shift), not in what a class looks like. Then the posterior of the
pooled rows follows from the parties' own posteriors p_i(y|x) and class counts n_i(y) alone: with the shares
share_i(y) = n_i(y) / Σ_j n_j(y),

    p(y|x) = Σ_i w_i(x) p_i(y|x),    w_i(x) = Σ_y share_i(y) p(y|x),

where w_i(x) is the probability that a row like x is party i's. Counts may be rounded, noisy or estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]

MOST_ROUNDS = 500
CONVERGED = 1e-4
"""The fixed point is reached when a step moves no probability by more."""
BLOCK_VALUES = 2**22
"""Numbers of the parties' posteriors that are worked on at once."""
BLOCKS_READ = 16
"""So many of these blocks are read at once, as float32: 256 MB."""
TOLERANCE = 0.02
"""How far the labels' class shares may stray from those expected, in total variation, before they are pulled back.

Forests are less sure than they could be: their labels lose a rare class that is found probable all the same. Where
classes can hardly be told apart they stray too, and rightly so: nothing in what forests say tells the two apart, and
there it costs labels. What calibrated families say is never moved.
"""
MISFIT = 0.3
"""From here on a party's counts do not fit what its student says (see `misfit`).

Set on development seeds, on which hardly an honest party comes so far, and hardly one does not that gives all its rows
to its rarest class (docs/decisions/0009).
"""
FAINTEST = 1e-200
"""A party that could hardly say less of a row says nothing of it."""
CHANCE = 1.5
"""How many times what a sample of so many rows strays by chance is let pass, where that is more than TOLERANCE."""
MATCHING_STEPS = 300
MOST_SHIFT = 40.0
"""A class that no factor brings the largest score on any row would be moved for ever."""


def shares_of(counts: ArrayLike) -> Matrix:
    """share_i(y), one row a party; a class that nobody has is everybody's in equal parts."""
    rows = np.asarray(counts, dtype=np.float64)
    if rows.ndim != 2 or len(rows) == 0 or not np.isfinite(rows).all() or (rows < 0).any():
        raise ValueError(f"Counts are one row of numbers of at least 0 for each party, got shape {rows.shape}.")
    total = rows.sum(axis=0)
    shared: Matrix = np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0 / len(rows))
    return shared


def pooled_posterior(posteriors: Sequence[ArrayLike], shares: Matrix) -> Matrix:
    """The fixed point: what a model of the pooled rows would say, from what the parties' models say."""
    singles = [np.asarray(each, dtype=np.float32) for each in posteriors]
    n_rows, n_classes = singles[0].shape
    step = rows_at_once(len(singles) * n_classes)
    blocks = [
        fixed_point(np.stack([each[start : start + step] for each in singles]).astype(np.float64), shares)
        for start in range(0, n_rows, step)
    ]
    return np.concatenate(blocks) if blocks else np.empty((0, n_classes))


def rows_at_once(row_values: int) -> int:
    """Of how many rows the fixed point is found at once, where all parties together say so much of each."""
    return max(1, BLOCK_VALUES // row_values)


def row_blocks(n_rows: int, row_values: int) -> Iterator[slice]:
    """The rows in blocks in which they can be read; the fixed point is the same as of all of them at once."""
    step = BLOCKS_READ * rows_at_once(row_values)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def fixed_point(posteriors: Matrix, shares: Matrix) -> Matrix:
    """The same for a block of rows: parties × rows × classes."""
    pooled = normalise_rows(posteriors.mean(axis=0))
    for _ in range(MOST_ROUNDS):
        weights = normalise_rows(pooled @ shares.T)
        before, pooled = pooled, normalise_rows(np.einsum("mi,imk->mk", weights, posteriors))
        if np.abs(pooled - before).max(initial=0.0) < CONVERGED:
            break
    return pooled


def misfits(said: Matrix, counts: Matrix, pooled: Matrix) -> Matrix:
    """How far what each party says, in the mean of all rows, lies from what it would say with these class counts.

    Under label shift its posterior is the pooled one, each class times the party's share of the class's rows. Whoever
    gives other counts than those its student was taught from says something else. The distance is a total variation.
    """
    parts = counts / np.maximum(counts.sum(axis=0), 1.0)
    sums, silent = np.zeros(counts.shape), np.zeros(len(counts))
    for rows in row_blocks(len(pooled), counts.size):
        block = pooled[rows]
        # As `normalise_rows` has it for each party, without a table of parties × rows × classes.
        totals = block @ parts.T
        heard = totals > FAINTEST
        sums += parts * ((heard / np.where(heard, totals, 1.0)).T @ block)
        silent += (~heard).sum(axis=0)
    expected = (sums + silent[:, None] / counts.shape[1]) / max(len(pooled), 1)
    return np.asarray(np.abs(said - expected).sum(axis=1) / 2)


def normalise_rows(scores: Matrix) -> Matrix:
    """Each row divided by its sum; a row of zeros is spread evenly."""
    total = scores.sum(axis=1, keepdims=True)
    evenly = 1.0 / scores.shape[1]
    spread: Matrix = np.where(total > 0, scores / np.where(total > 0, total, 1.0), evenly)
    return spread


def label_shares(scores: Matrix) -> Matrix:
    """Which part of the rows each class has the largest score on; rows on which several have it are split."""
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def distance(shares: Matrix, others: Matrix) -> float:
    """Total variation between two distributions over the classes."""
    return float(np.abs(shares - others).sum() / 2)


def tolerance_for(expected: Matrix, n_rows: int) -> float:
    """How far labels of so many rows may stray: what few rows stray by chance is no fault.

    A share of m rows has the standard deviation √(p(1−p)/m), and the mean absolute value of a normal one is √(2/π).
    """
    by_chance = float(np.sqrt(2 * expected * (1 - expected) / (np.pi * max(n_rows, 1))).sum() / 2)
    return max(TOLERANCE, CHANCE * by_chance)


def expected_shares(scores: Matrix) -> Matrix:
    """The class shares that labels should have: how probable the classes are on all rows.

    Not those of the parties' own rows: public rows may be others, and a party that boasts would move them at will.
    """
    mean: Matrix = normalise_rows(scores).mean(axis=0)
    return mean


def limit_label_drift(scores: Matrix) -> tuple[Matrix, float, float]:
    """The scores, moved where their labels stray too far from the expected shares until they are within the tolerance.

    Also how far they strayed, and how far they do now. Rows about which nobody says anything stay as they are.
    """
    spoken_for = scores.max(axis=1, initial=0.0) > 0
    if not spoken_for.any():
        return scores, 0.0, 0.0
    own = scores[spoken_for]
    expected = expected_shares(own)
    before, near = distance(label_shares(own), expected), pull_to(own, expected)
    after = distance(label_shares(near), expected)
    if after >= before:
        return scores, before, before
    result = scores.copy()
    result[spoken_for] = near
    return result, before, after


def pull_to(scores: Matrix, expected: Matrix) -> Matrix:
    """The scores as they are where the shares of their labels are near enough, else moved until they just are."""
    factors = drift_factors(scores, expected)
    return scores if factors is None else scale_classes(scores, factors)


def drift_factors(scores: Matrix, expected: Matrix) -> Matrix | None:
    """A factor for each class that brings the labels' shares just near enough to those expected; None if they are.

    Where no factors come nearer than the scores as they are, they are 1.
    """
    shares = label_shares(scores)
    drift, most = distance(shares, expected), tolerance_for(expected, len(scores))
    return None if drift <= most else factors_to(scores, expected + most / drift * (shares - expected))


def with_shares(scores: Matrix, target: Matrix) -> Matrix:
    """The scores with a factor for each class, so that the largest ones have these shares, as nearly as can be."""
    return scale_classes(scores, factors_to(scores, target))


def scale_classes(scores: Matrix, factors: Matrix) -> Matrix:
    """Each class's scores times its factor, as distributions; a class of which nobody speaks on a row stays out."""
    with np.errstate(divide="ignore"):
        logs = np.log(scores) + np.log(factors)
    return normalise_rows(np.exp(logs - logs.max(axis=1, keepdims=True)))


def factors_to(scores: Matrix, target: Matrix) -> Matrix:
    """The factor of each class with which the largest scores have these shares, as nearly as can be.

    With two classes this is a cut between two rows. With more the factors are sought step by step.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(scores)
    if scores.shape[1] == 2:
        shift = np.array([0.0, -best_cut(logs[:, 1] - logs[:, 0], target[0], distance(label_shares(scores), target))])
    else:
        shift = search_shift(logs, target)
    return np.asarray(np.exp(shift))


def best_cut(ratios: Matrix, target: float, nearest: float) -> float:
    """Where to cut, so that this part of the rows lies below; 0, no cut at all, where none comes nearer than `nearest`.

    Rows of one ratio are never torn apart, and those on which only one class is spoken of (±∞) have no cut beyond them.
    """
    values, counts = np.unique(ratios, return_counts=True)
    below = np.cumsum(counts) / len(ratios)
    between = [
        (abs(below[place] - target), (values[place] + values[place + 1]) / 2)
        for place in range(len(values) - 1)
        if np.isfinite(values[place]) and np.isfinite(values[place + 1])
    ]
    finite = values[np.isfinite(values)]
    if len(finite):
        # Also all of the doubtful rows on one side.
        between.append((abs(float(np.mean(ratios < finite[0])) - target), float(finite[0]) - 1.0))
        between.append((abs(float(np.mean(ratios <= finite[-1])) - target), float(finite[-1]) + 1.0))
    best = min(between, default=(np.inf, 0.0))
    return float(best[1]) if best[0] < nearest else 0.0


def search_shift(logs: Matrix, target: Matrix) -> Matrix:
    """What to add to each class's logarithm of scores; the best of many steps."""
    shift = best = np.zeros(logs.shape[1])
    nearest = np.inf
    smallest = 1.0 / len(logs)
    for step in range(MATCHING_STEPS):
        shares = label_shares(logs + shift)
        if distance(shares, target) < nearest:
            best, nearest = shift, distance(shares, target)
        # Steps shrink: a class with few rows would otherwise swing between none and too many.
        pull = max(0.98**step, 0.02)
        shift = shift + pull * (np.log(target + smallest) - np.log(shares + smallest))
        # Only differences count; the rest would grow beyond what float32 holds.
        shift = np.clip(shift - shift.mean(), -MOST_SHIFT, MOST_SHIFT)
    return best
