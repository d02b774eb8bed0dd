"""What many rows say of single columns, and of how two columns go together, as one sum of a vector for each row.

A row becomes t = (α·e_1, …, α·e_m, β·z_i·z_j for i < j): e_j is 1 in the bin of column j and 0 in all others, z_j the
score of that bin, between -1 and 1 (`KnownColumn.scores`). Both hang on public bins and the row alone. Of two rows

    the bins differ by ‖·‖² ≤ 2 for each column, so all together by 2mα² at most
    the products differ by 4β²·⌊m/2⌋⌈m/2⌉ at most: Σ (z_i·z_j − w_i·w_j)² is convex in each single z_i and w_i, so it
        is largest where all are ±1, and there each term is 4 where exactly one of z_i·w_i and z_j·w_j is -1, else 0;
        with a of m such signs negative these are a·(m − a) terms

With α² = 1/m and β² = 1/(2⌊m/2⌋⌈m/2⌉) the two bounds are 2 each, so that t − t' has length 2 at most, whatever the
rows: the Δ of noise on sums of features (`fedkt.privacy.sums`). Without products α² = 2/m gives 2 as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkt.data.description import Description
from fedkt.errors import DataError

Floats = NDArray[np.float64]
MAX_PAIRED = 200
"""Columns of which every two are told together; of more, each is told alone."""
BLOCK = 100_000
"""Rows whose products are added up at a time."""


@dataclass(frozen=True)
class Layout:
    """Which number of the sum is what, and how each is scaled before noise is added."""

    sizes: tuple[int, ...]
    """How many bins each column has, that of missing values included."""
    paired: bool
    """Whether products of two columns' scores are told as well."""

    def __post_init__(self) -> None:
        if self.paired and not 2 <= len(self.sizes) <= MAX_PAIRED:
            raise DataError(f"Pairs are told of 2 to {MAX_PAIRED} columns, got {len(self.sizes)}. Tell columns alone.")

    @property
    def n_products(self) -> int:
        """How many pairs of columns are told."""
        return len(self.sizes) * (len(self.sizes) - 1) // 2 if self.paired else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The form of the sum."""
        return (sum(self.sizes) + self.n_products,)

    @property
    def bin_weight(self) -> float:
        """α."""
        return math.sqrt((1 if self.paired else 2) / len(self.sizes))

    @property
    def product_weight(self) -> float:
        """β."""
        half = len(self.sizes) // 2
        return math.sqrt(1 / (2 * half * (len(self.sizes) - half)))

    def total(self, codes: NDArray[np.int64], scores: Sequence[Floats]) -> Floats:
        """The sum of t over rows, given the bin of each value."""
        counts, products = tell(codes, scores, paired=self.paired)
        parts = [self.bin_weight * each for each in counts]
        return np.concatenate([*parts, self.product_weight * products] if self.paired else parts)

    def parts(self, total: Floats) -> tuple[list[Floats], Floats]:
        """The counts of each column's bins, and the sums of products, that a sum of t stands for."""
        borders = np.cumsum(self.sizes)
        counts = np.split(total[: borders[-1]] / self.bin_weight, borders[:-1])
        return counts, total[borders[-1] :] / self.product_weight if self.paired else total[:0]


def layout_of(description: Description, *, paired: bool) -> Layout:
    """What is told of these columns; pairs only where there are some, and not too many."""
    sizes = tuple(column.n_values + 1 for column in description.columns)
    return Layout(sizes, paired and 2 <= len(sizes) <= MAX_PAIRED)


def scores_of(description: Description) -> list[Floats]:
    """The score of every bin of every column."""
    return [column.scores for column in description.columns]


def tell(codes: NDArray[np.int64], scores: Sequence[Floats], *, paired: bool) -> tuple[list[Floats], Floats]:
    """How many rows are in each bin, and the sum of z_i·z_j over rows for every i < j, row by row of that triangle."""
    counts = [np.bincount(codes[:, place], minlength=len(own)).astype(np.float64) for place, own in enumerate(scores)]
    if not paired:
        return counts, np.zeros(0)
    gram = np.zeros((len(scores), len(scores)))
    for start in range(0, len(codes), BLOCK):
        block = np.stack([own[codes[start : start + BLOCK, place]] for place, own in enumerate(scores)], axis=1)
        gram += block.T @ block
    return counts, gram[np.triu_indices(len(scores), 1)]
