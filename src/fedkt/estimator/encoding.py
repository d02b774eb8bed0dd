"""Strings as numbers: a schema fitted on the public rows, as `fedkt plan new` makes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.data.columns import Table, printable
from fedkt.data.format import Format
from fedkt.data.schema import Schema, fit_schema
from fedkt.data.values import names_text, plural
from fedkt.errors import DataError

TEXT = "text"
"""What the only column is called where a row is one string."""
WORDS_OF_A_TEXT = 4
"""A column of texts has so many words a value at least, in the mean, and mostly different values."""
LONGEST_NAME = 100
"""Of the column to predict."""
FEW_VALUES = 10
"""So many different values are categories, whatever they say."""


def fit_columns(public: Any, target: Any) -> Schema:
    """The agreed columns of public rows: numbers, categories, and texts where values are many words and all differ."""
    table = table_of(public, "`public`")
    names = list(table.columns)
    # A row that is one string is a text, however few of them differ.
    texts = names if np.ndim(public) == 1 else [name for name in names if holds_texts(table.columns[name])]
    try:
        label = label_name(target, names)
        schema = fit_schema(table, label=label, categorical=categories_of(public), text=texts, missing="allow")
    except DataError as reason:
        raise DataError(f"{reason} Or give a pipeline that reads these columns itself as `estimator`.") from reason
    return schema


def label_name(own: Any, columns: Sequence[str]) -> str:
    """What the column to predict is called: as `y` is, or "label"; not as another column."""
    named = isinstance(own, str) and 0 < len(own) <= LONGEST_NAME and printable(own)
    names: list[str] = [*([own] if named else []), "label", *(f"label {n}" for n in range(len(columns)))]
    return next(each for each in names if each not in columns)


def has_texts(schema: Schema) -> bool:
    """Whether some column holds texts."""
    return any(column.kind == "text" for column in schema.columns)


def encode_rows(schema: Schema, X: Any, source: str) -> NDArray[np.float32]:
    """The rows as numbers."""
    return schema.encode(table_of(X, source))


def encoding_notes(schema: Schema, X: Any, rows: int, *, quiet: bool) -> list[str]:
    """What the report says of the encoding; `quiet` is without what only the parties' rows tell."""
    kinds = {
        "category": lambda column: f"{column.name} ({len(column.categories)} categories)",
        "text": lambda column: f"{column.name} ({plural(len(column.terms), 'word')} of texts)",
    }
    named = [
        f"{column.name} (days)" if column.date else kinds[column.kind](column)
        for column in schema.columns
        if column.date or column.kind in kinds
    ]
    first = ", ".join(named[:10]) + (f" and {len(named) - 10} more" if len(named) > 10 else "")
    note = f"Strings were encoded as `fedkt plan new` does it, by the {plural(rows, 'public row')} alone: {first}."
    return [note] if quiet else [note, *schema.unseen_notes(table_of(X, "the parties' rows"))]


def table_of(X: Any, source: str) -> Table:
    """Rows as a table: columns of numbers as numbers, all else as objects, None where there is nothing."""
    if hasattr(X, "iloc"):
        names = [str(name) for name in X.columns]
        if len(set(names)) != len(names):
            raise DataError(f"{source} has columns of the same name: {names_text(names)}. Rename them.")
        return rows_alone({name: frame_column(X.iloc[:, place]) for place, name in enumerate(names)}, source)
    rows = np.asarray(X)
    if rows.ndim == 1:
        return rows_alone({TEXT: objects(rows.tolist())}, source)
    return rows_alone({f"x{place}": array_column(rows[:, place]) for place in range(rows.shape[1])}, source)


def rows_alone(columns: dict[str, NDArray[Any]], source: str) -> Table:
    """A table of which is known, as it is not of a file, that its names are names and its last row is a row."""
    return Table(columns, source, form=Format(header=1, footer=0))


def frame_column(values: Any) -> NDArray[Any]:
    """A column of a data frame."""
    kind = getattr(values.dtype, "kind", "O")
    if kind in "iuf" and not hasattr(values.dtype, "categories"):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    gaps = values.isna().tolist()
    plain = [None if gap else each for gap, each in zip(gaps, values.tolist(), strict=True)]
    if kind == "M":
        plain = [None if each is None else each.isoformat().removesuffix("T00:00:00") for each in plain]
    return objects(plain)


def array_column(values: NDArray[Any]) -> NDArray[Any]:
    """A column of an array, which may hold numbers as objects."""
    plain = [None if each is None or each != each else each for each in values.tolist()]
    if any(isinstance(each, str) for each in plain):
        return objects(plain)
    return np.array([np.nan if each is None else each for each in plain], dtype=np.float64)


def objects(values: list[Any]) -> NDArray[Any]:
    """An array of these objects."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def categories_of(X: Any) -> list[str]:
    """The columns of a data frame that are categories, whatever stands in them."""
    return [str(name) for name, dtype in X.dtypes.items() if hasattr(dtype, "categories")] if hasattr(X, "iloc") else []


def holds_texts(values: NDArray[Any]) -> bool:
    """Whether a column's values are mostly different, and of several words each."""
    if values.dtype.kind != "O":
        return False
    texts = [each for each in values.tolist() if isinstance(each, str)]
    different = len(set(texts))
    words = sum(len(each.split()) for each in texts)
    return different > max(FEW_VALUES, len(texts) / 2) and words >= WORDS_OF_A_TEXT * len(texts)
