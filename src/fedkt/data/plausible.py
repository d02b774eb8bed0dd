"""Whether a table's values look as if they meant what was agreed on: other codes, other units, numbers of rows.

Advice to whoever has the table, and decided on what most of its rows say, never on one: see docs/guide/data.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedkt.data.agreed_column import Column
from fedkt.data.columns import Table
from fedkt.data.nearest import map_offer, nearest
from fedkt.data.notation import option
from fedkt.data.schema import Schema
from fedkt.data.values import keys_of, names_text, numbers_of
from fedkt.errors import DataError

FEW = 10
"""With fewer values nothing is said about a column."""
UNSEEN = 0.95
"""A category column is doubted where this part of its values or more is not agreed on."""
FAR = 10.0
"""A number column is doubted where its median lies, or its values spread, further than so many of the agreed scales."""
SMALL = 30.0
"""Or where both its median and its spread are so many times smaller than those of the public rows."""
MANY = 50
"""Of so many public rows whole numbers that all differ look like numbers of rows; of fewer only if none is left out."""
OF_THEIR_OWN = 0.5
"""A category with more different values than this part of the public rows likely names rows."""
QUARTILES = 1.349
"""The distance between the quartiles of a normal distribution, in standard deviations."""
SHOWN = 5
MOST_ROWS = 10_000
"""Of longer tables so many rows are looked at, evenly spread: more would say the same."""


@dataclass(frozen=True)
class Doubt:
    """A column whose values hardly mean what was agreed on."""

    column: str
    why: str
    remedy: str
    refuses: bool = True
    """Whether a party without noise has to say that it is meant, or only hears of it."""

    def __str__(self) -> str:
        return f"{self.why} {self.remedy}"


def doubts(schema: Schema, table: Table) -> Iterator[Doubt]:
    """The columns of a table, with the agreed names, that hardly hold what was agreed on."""
    if table.n_rows > MOST_ROWS:
        table = table.take(np.linspace(0, table.n_rows - 1, MOST_ROWS).astype(np.int64))
    for column in schema.columns:
        if column.name in table.columns:
            of_values = category_doubt if column.categories else number_doubt
            for found in (empty_doubt, of_values):
                doubt = found(column, table, schema)
                if doubt is not None:
                    yield doubt


def encoded(column: Column, table: Table, schema: Schema) -> NDArray[np.float32] | None:
    """A column as the models would see it, unscaled; None where it is refused, elsewhere and with its line."""
    out = np.zeros((table.n_rows, len(column.feature_names)), dtype=np.float32)
    try:
        column.encode(table, out, missing_values=schema.missing_values, scale=False, refuse_unseen=False)
    except DataError:
        return None
    return out


def category_doubt(column: Column, table: Table, schema: Schema) -> Doubt | None:
    """That nearly none of a column's values is among its agreed categories."""
    found = encoded(column, table, schema)
    if found is None:
        return None
    here = np.ones(table.n_rows, dtype=bool) if not column.missing else found[:, -1] == 0
    strange = here & ~found[:, : len(column.categories)].any(axis=1)
    n_here, n_strange = int(here.sum()), int(strange.sum())
    if n_here < FEW or n_strange < UNSEEN * n_here:
        return None
    keys = keys_of(table.columns[column.name][strange], schema.missing_values)
    unseen = Counter(key for key in keys if key is not None)
    usual = [key for key, _ in unseen.most_common(SHOWN)]
    example = {key: nearest(key, column.categories) or "CATEGORY" for key in usual}
    none = "none" if n_strange == n_here else "nearly none"
    return Doubt(
        column.name,
        f"{table.source}: {none} of {n_here:,} values of {column.name!r} ({names_text(usual)}"
        f"{', …' * (len(unseen) > len(usual))}) is among the agreed categories {names_text(column.categories, SHOWN)}.",
        f"If they are other words for these: {map_offer(f'--value-map {column.name}', example)} If they are meant as "
        f"they are: {option('--accept', column.name)}",
    )


def empty_doubt(column: Column, table: Table, schema: Schema) -> Doubt | None:
    """That nearly no row has a value, where public rows have some."""
    found = encoded(column, table, schema) if column.missing else None
    if found is None or table.n_rows < FEW or float(found[:, -1].mean()) < UNSEEN:
        return None
    known = table.n_rows - int(found[:, -1].sum())
    return Doubt(
        column.name,
        f"{table.source}: {known or 'none'} of {table.n_rows:,} rows {'has' if known < 2 else 'have'} a value in "
        f"{column.name!r}, and the models would learn that it is missing.",
        f"Is another column the right one? If it is meant as it is: {option('--accept', column.name)}",
        refuses=False,
    )


def number_doubt(column: Column, table: Table, schema: Schema) -> Doubt | None:
    """That a column's numbers lie where no unit in common would put them."""
    found = encoded(column, table, schema) if column.kind == "number" else None
    if found is None:
        return None
    numbers = found[found[:, -1] == 0, 0] if column.missing else found[:, 0]
    if len(numbers) < FEW:
        return None
    with np.errstate(all="ignore"):
        low, median, high = (float(each) for each in np.percentile(numbers, (25, 50, 75)))
    spread = (high - low) / QUARTILES
    large = abs(median - column.mean) > FAR * column.scale or spread > FAR * column.scale
    small = 0 < spread * SMALL < column.scale and abs(median) * SMALL < abs(column.fill)
    if not (large or small):
        return None
    return Doubt(
        column.name,
        f"{table.source}: the numbers in {column.name!r} lie far from the public rows': half of them between {low:.4g} "
        f"and {high:.4g}, agreed was a mean of {column.mean:.4g} with a spread of {column.scale:.4g}.",
        "Is it another unit, or another column? Give it in the plan's unit, or rename the right one. If it is meant as "
        f"it is: {option('--accept', column.name)}",
    )


def row_names(schema: Schema, public: Table) -> Iterator[str]:
    """The number columns of public rows that look like numbers of rows: whole, and different in every row."""
    for column in schema.columns:
        if column.kind == "number":
            numbers = exact_numbers(column, public, schema)
            numbers = numbers[~np.isnan(numbers)]
            count = len(numbers)
            if count < FEW or not np.array_equal(numbers, np.round(numbers)) or len(np.unique(numbers)) < count:
                continue
            if count >= MANY or np.ptp(numbers) == count - 1:
                yield column.name


def row_texts(schema: Schema, n_rows: int) -> Iterator[str]:
    """The categories of public rows that seem to name rows: most rows have one of their own."""
    for column in schema.columns:
        if len(column.categories) > max(FEW, OF_THEIR_OWN * n_rows):
            yield column.name


def exact_numbers(column: Column, table: Table, schema: Schema) -> NDArray[np.float64]:
    """The numbers of a column to the last digit; of one that is no plain number, as the models would see it."""
    try:
        return numbers_of(table, column.name, schema.missing_values)
    except DataError:
        found = encoded(column, table, schema)
        return np.zeros(0) if found is None else found[:, 0].astype(np.float64)
