"""The columns of rows that may be described: an older release, an extract, rows whose owners agreed to it."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from fedkt.data.agreed_column import MAX_CATEGORIES
from fedkt.data.description import MISSING_VALUES, USUAL_BINS, Description, KnownColumn, fault_words
from fedkt.data.notation import as_number, option
from fedkt.data.table import Table
from fedkt.data.values import keys_of, names_text, numbers_of
from fedkt.errors import DataError

SPIKE = 0.1
"""A value that so large a share of the numbers have is a bin of its own."""


def describe(
    table: Table,
    *,
    label: str,
    categorical: Collection[str] = (),
    ignore: Collection[str] = (),
    bins: int = USUAL_BINS,
) -> Description:
    """The columns of rows that may be described: ranges in bins of about as many rows each, and categories in an order.

    Categories stand in the order in which the other columns change along them most, so that what goes together can be
    told by correlations.
    """
    unknown = [name for name in (*categorical, *ignore) if name not in table.columns and name != label]
    if unknown:
        raise DataError(
            f"{table.source} has no column {names_text(sorted(unknown))}. It has: {names_text(list(table.columns))}."
        )
    names = [name for name in table.columns if name != label and name not in ignore]
    if not names:
        raise DataError(f"{table.source} has no columns besides the label.")
    try:
        columns = tuple(_described(table, name, name in categorical, bins) for name in names)
        found = Description(label=label, columns=columns)
        return found.model_copy(update={"columns": _in_order(found, found.codes(table))})
    except ValidationError as reason:
        raise DataError(f"{table.source}: {fault_words(reason)}") from reason


def _in_order(description: Description, codes: NDArray[np.int64]) -> tuple[KnownColumn, ...]:
    """The columns, the categories of each by the first direction of correspondence analysis of all columns."""
    parts = []
    for place, column in enumerate(description.columns):
        inside = np.eye(column.n_values + 1)[codes[:, place]]
        shares = np.maximum(inside.mean(axis=0), 1 / len(codes))
        parts.append((inside - shares) / np.sqrt(shares))
    features = np.concatenate(parts, axis=1)
    _, directions = np.linalg.eigh(features.T @ features)
    along = features @ directions[:, -1]
    return tuple(
        column.model_copy(update={"categories": tuple(column.categories[each] for each in order)})
        for place, column in enumerate(description.columns)
        for order in (_by_mean(along, codes[:, place], len(column.categories)),)
    )


def _by_mean(along: NDArray[np.float64], codes: NDArray[np.int64], n_categories: int) -> list[int]:
    """The categories in the order of the mean of a direction over their rows."""
    means = [float(along[codes == each].mean()) for each in range(n_categories)]
    return sorted(range(n_categories), key=means.__getitem__)


def _described(table: Table, name: str, category: bool, bins: int) -> KnownColumn:
    keys = keys_of(table.columns[name], MISSING_VALUES)
    present = [key for key in keys if key is not None]
    missing = 1 - len(present) / len(keys)
    if not present:
        raise DataError(f"{table.source}: column {name!r} has no value. Leave it out with {option('--ignore', name)}")
    if category or any(as_number(key) is None for key in present):
        categories = sorted(set(present))
        if len(categories) > MAX_CATEGORIES:
            raise DataError(
                f"{table.source}: column {name!r} has {len(categories):,} different values, more than the "
                f"{MAX_CATEGORIES:,} a category may have. Leave it out with {option('--ignore', name)}"
            )
        return KnownColumn(name=name, categories=tuple(categories), missing=missing)
    numbers = numbers_of(table, name, MISSING_VALUES)
    numbers = numbers[~np.isnan(numbers)]
    values, counts = np.unique(numbers, return_counts=True)
    spikes = values[counts > SPIKE * len(numbers)]
    rest = numbers[~np.isin(numbers, spikes)]
    whole = bool((numbers == np.rint(numbers)).all() and np.abs(numbers).max() < 2**53)
    inner = np.quantile(rest, np.linspace(0, 1, bins + 1)) if len(rest) else spikes[:0]
    # Between the outermost numbers, which stay, edges are round.
    inner[1:-1] = np.rint(inner[1:-1]) if whole else [float(f"{each:.4g}") for each in inner[1:-1]]
    inner = np.unique(np.clip(inner, numbers.min(), numbers.max()))
    edges = np.sort(np.concatenate([inner[~np.isin(inner, spikes)], np.repeat(spikes, 2)]))
    edges = np.repeat(edges, 2) if len(edges) == 1 else edges
    return KnownColumn(name=name, edges=tuple(edges.tolist()), whole=whole, missing=missing)
