"""Rows that are made: each column as its shares say, and columns together as a Gaussian copula.

Nelsen: An Introduction to Copulas, 2006; Li, Xiong, Jiang: Differentially Private Synthesization of Multi-Dimensional
Data using Copula Functions, EDBT 2014. A row is a Gaussian vector with correlations R; Φ of each part, a number
between 0 and 1, says which bin of its column it is in. R is found from correlations of the bins' scores: with the
Hermite coefficients c of a column's score as a function of its Gaussian, two columns correlate by Σ c_k d_k ρ^k, which
is solved for ρ. What is not a correlation of columns (three that only together matter, say) such rows do not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkt.data.columns import Table, texts
from fedkt.data.description import Description

Floats = NDArray[np.float64]
TERMS = 16
"""Hermite coefficients of a column."""
GRID = np.linspace(-0.995, 0.995, 399)
"""Correlations among which ρ is looked for."""
POWERS = GRID[:, None] ** np.arange(1, TERMS + 1)
LEAST_VARIANCE = 1e-6
"""Of a column whose scores vary at all."""


@dataclass(frozen=True)
class Copula:
    """What rows are drawn from."""

    description: Description
    shares: tuple[Floats, ...]
    """Of each column's bins, missing values last."""
    correlations: Floats | None = None
    """R; None for columns that have nothing to do with each other."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> Table:
        """Rows without labels, as a file has them."""
        from scipy.special import ndtr

        width = len(self.shares)
        drawn = rng.standard_normal((n_rows, width))
        if self.correlations is not None:
            sizes, directions = np.linalg.eigh(self.correlations)
            drawn = drawn @ (directions * np.sqrt(np.maximum(sizes, 0))).T
        places = ndtr(drawn)
        columns = {}
        for number, (column, shares) in enumerate(zip(self.description.columns, self.shares, strict=True)):
            # The last bin that anything can be in, so that no rounding leads beyond it.
            last = int(np.flatnonzero(shares)[-1])
            codes = np.minimum(np.searchsorted(np.cumsum(shares), places[:, number], side="right"), last)
            columns[column.name] = texts(column.values(codes.astype(np.int64), rng))
        return Table(columns, "rows that were made")


def known_copula(description: Description) -> Copula:
    """Of what everybody knows alone: each column for itself."""
    return Copula(description, tuple(column.known_shares for column in description.columns))


def fit_copula(
    description: Description,
    counts: Sequence[Floats],
    *,
    pairs: tuple[Sequence[Floats], Floats] | None = None,
    variance: float = 0.0,
) -> Copula:
    """Of how many rows are in each bin, perhaps with noise, and of sums of products of scores.

    `pairs` are the counts and the sums of products of the rows whose products were told; `variance` is that of the
    noise on one such sum. Correlations that noise alone could have made count for less (James and Stein 1961).
    """
    shares = tuple(
        shares_of(own, gaps=column.missing > 0) for own, column in zip(counts, description.columns, strict=True)
    )
    if pairs is None:
        return Copula(description, shares)
    scores = [column.scores for column in description.columns]
    own_shares = [
        shares_of(own, gaps=column.missing > 0) for own, column in zip(pairs[0], description.columns, strict=True)
    ]
    n_rows = rows_in(pairs[0])
    means = np.array([own @ score for own, score in zip(own_shares, scores, strict=True)])
    spread = np.array([own @ score**2 for own, score in zip(own_shares, scores, strict=True)]) - means**2
    varied = spread > LEAST_VARIANCE
    scale = np.sqrt(np.where(varied, spread, 1.0))
    upper = np.triu_indices(len(scores), 1)
    both = varied[upper[0]] & varied[upper[1]]
    found = (pairs[1] / n_rows - means[upper[0]] * means[upper[1]]) / (scale[upper[0]] * scale[upper[1]])
    by_chance = variance / (n_rows * scale[upper[0]] * scale[upper[1]]) ** 2
    kept = np.maximum(0.0, 1 - by_chance / np.maximum(found**2, 1e-12))
    found = np.where(both, np.clip(found * kept, -1, 1), 0.0)
    coefficients = np.array([hermite(own, score) for own, score in zip(own_shares, scores, strict=True)])
    own_length = np.sqrt(np.maximum((coefficients**2).sum(axis=1), LEAST_VARIANCE))
    latent = [
        correlation_for(each, coefficients[i] / own_length[i] * (coefficients[j] / own_length[j]))
        for each, i, j in zip(found.tolist(), *(part.tolist() for part in upper), strict=True)
    ]
    matrix = np.eye(len(scores))
    matrix[upper] = latent
    return Copula(description, shares, nearest_correlations(matrix + np.triu(matrix, 1).T))


def rows_in(counts: Sequence[Floats]) -> float:
    """How many rows were counted: every column says it, each with its own noise."""
    return max(1.0, float(np.mean([own.sum() for own in counts])))


def shares_of(counts: Floats, *, gaps: bool) -> Floats:
    """The shares next to noisy counts: none below zero, and with a sum of 1. All alike where nothing was counted."""
    known = counts if gaps else counts[:-1]
    total = known.sum()
    shares = known / total if total > 0 else np.full(len(known), 1 / len(known))
    # The nearest point of the simplex: as much is taken off all of them as makes what is left sum to 1.
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    shares = np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
    shares /= shares.sum()
    return shares if gaps else np.append(shares, 0.0)


def hermite(shares: Floats, scores: Floats) -> Floats:
    """The coefficients c_1, c_2, … of a column's score as a function of its Gaussian, in normalised He_1, He_2, ….

    ∫ He_k φ between a and b is He_{k−1}(a)φ(a) − He_{k−1}(b)φ(b).
    """
    from scipy.special import ndtri

    borders = ndtri(np.clip(np.cumsum(shares)[:-1], 1e-12, 1 - 1e-12))
    steps = np.diff(scores)
    density = np.exp(-(borders**2) / 2) / math.sqrt(2 * math.pi)
    before, now, found = np.zeros_like(borders), np.ones_like(borders), []
    for degree in range(1, TERMS + 1):
        # Summed by parts: at each border the score moves by a step.
        found.append(float((steps * now * density).sum()) / math.sqrt(math.factorial(degree)))
        before, now = now, borders * now - (degree - 1) * before
    return np.array(found)


def correlation_for(target: float, products: Floats) -> float:
    """The ρ whose Σ c_k d_k ρ^k comes nearest to a correlation of scores."""
    if target == 0:
        return 0.0
    return float(GRID[np.abs(POWERS @ products - target).argmin()])


def nearest_correlations(matrix: Floats) -> Floats:
    """The matrix without negative directions, and 1 on its diagonal."""
    sizes, directions = np.linalg.eigh(matrix)
    fixed = (directions * np.maximum(sizes, 1e-6)) @ directions.T
    length = np.sqrt(np.diag(fixed))
    return np.asarray(fixed / np.outer(length, length))
