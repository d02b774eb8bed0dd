"""Rows as codes of one byte: the bin that each value of a column lies in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 255
"""Most bins of a column; with one code for a missing value they fill a byte."""
MISSING = 255
"""The code of a missing value."""
BLOCK = 16
"""Columns that are turned around at once: rows lie side by side, bins are found column by column."""
MOST_CODES = 2**31
"""More bytes of codes are not made: a sparse table of so many cells is left to whoever reads it as it is."""

Values = NDArray[np.float32]


@dataclass(frozen=True)
class Bins:
    """A table in bins. Bins hold values of the table only, so that between two of them lies room for a threshold."""

    codes: NDArray[np.uint8]
    """Columns × rows: the bin of each value, in the order of the values, or MISSING."""
    start: NDArray[np.int64]
    """Where the bins of each column begin in `low` and `high`, and where the last ones end."""
    low: Values
    """The smallest value in each bin."""
    high: Values
    """The largest value in each bin; the same one where a column has no more values than bins."""
    gaps: NDArray[np.bool_]
    """Whether a column has missing values."""


def bin_rows(X: Any) -> Bins | None:
    """The table in bins; None where it is too large, or holds infinite numbers.

    X is an array of numbers or a CSC matrix. As in scikit-learn's forests its numbers are rounded to float32.
    """
    n_rows, n_columns = X.shape
    if n_rows * n_columns > MOST_CODES:
        return None
    codes = np.empty((n_columns, n_rows), np.uint8)
    gaps = np.zeros(n_columns, np.bool_)
    ends: list[tuple[Values, Values]] = []
    for j, (values, places) in enumerate(_sparse_columns(X) if hasattr(X, "tocsc") else _columns(X)):
        known = values[~np.isnan(values)]
        gaps[j] = len(known) < len(values)
        if np.isinf(known).any():
            return None
        implied = 0 if places is None else n_rows - len(values)
        low, high = cut(known, implied)
        ends.append((low, high))
        if implied:
            codes[j] = np.searchsorted(high, 0.0)
        found = np.searchsorted(high, values).astype(np.uint8)
        if gaps[j]:
            found[np.isnan(values)] = MISSING
        codes[j, slice(None) if places is None else places] = found
    start = np.cumsum([0, *(len(low) for low, _ in ends)])
    low, high = (np.concatenate(each) for each in zip(*ends, strict=True))
    return Bins(codes, start, low, high, gaps)


def cut(values: Values, zeros: int = 0) -> tuple[Values, Values]:
    """The smallest and the largest value of each bin, for these values and so many zeros beside them.

    Up to BINS values have a bin each. Of more, a bin has about as many rows as any other; but a value that alone has
    more rows than that counts as one bin's worth, or the zeros of an amount would leave few bins to the amounts.
    """
    if zeros:
        values = np.append(values, np.float32(0))
    distinct, counts = np.unique(values, return_counts=True)
    if zeros:
        counts[np.searchsorted(distinct, 0.0)] += zeros - 1
    if len(distinct) <= BINS:
        return distinct, distinct
    heavy = counts > counts.sum() / BINS
    weights = np.where(heavy, counts[~heavy].sum() / (BINS - heavy.sum()), counts)
    # A value lies where its middle does.
    number = ((np.cumsum(weights) - weights / 2) * (BINS / weights.sum())).astype(np.int64)
    last = np.append(np.flatnonzero(np.diff(number)), len(distinct) - 1)
    return distinct[np.append(0, last[:-1] + 1)], distinct[last]


def _columns(X: NDArray[Any]) -> Iterator[tuple[Values, None]]:
    """Each column of an array."""
    for first in range(0, X.shape[1], BLOCK):
        with np.errstate(over="ignore"):
            block = np.ascontiguousarray(X[:, first : first + BLOCK].T, dtype=np.float32)
        for column in block:
            yield column, None


def _sparse_columns(X: Any) -> Iterator[tuple[Values, NDArray[Any]]]:
    """The stored values of each column of a CSC matrix, and their rows."""
    for first, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        with np.errstate(over="ignore"):
            values = X.data[first:end].astype(np.float32)
        yield values, X.indices[first:end]
