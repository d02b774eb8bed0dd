"""A table: named columns, and for every row where it stood.

Nothing is interpreted here: what is a number, a category or missing is the schema's business, and its errors can name
the place in the file.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.data.format import PLAIN, Format
from fedkt.data.texts import object_array
from fedkt.errors import DataError
from fedkt.system.memory import in_gigabytes, total_memory

Values = NDArray[Any]
"""Numbers as the file has them (64 bits of anything become float64), in images uint8, or an object array of str."""

MAX_COLUMNS = 100_000
MAX_VALUES = 500_000_000
"""Rows times columns of a table: 4 GB of numbers. A forged index in a LIBSVM file could ask for any amount."""


@dataclass(frozen=True)
class Table:
    """Columns by name, all of the same length."""

    columns: dict[str, Any]
    """Each an array, or what is read like one: `Texts`, and `Unread` where nobody asked for it."""
    source: str
    """The file, as errors name it."""
    lines: NDArray[np.int64] | None = None
    """The line of the file each row starts on; None where the format has no lines."""
    files: NDArray[Any] | None = None
    """The file of each row as seen from the folder `source`, where every row has a file of its own."""
    ids: NDArray[Any] | None = None
    """What tells each row from all others, where the format says so and whatever the row's label: None elsewhere."""
    notes: tuple[str, ...] = ()
    """What was found out about the file, for whoever has it; nobody else is told."""
    unnamed: tuple[str, ...] = ()
    """The columns that the file does not name."""
    hint: str = ""
    """What to do if columns are not in it that should be, with a space before it; empty where nothing is odd."""
    form: Format = PLAIN
    """How it was said to be written."""

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def at(self, row: int | np.integer[Any]) -> str:
        """The file and the place of a row in words: "ward.csv, line 17", or "row 17" in a format without lines."""
        if self.files is not None:
            return str(Path(self.source) / self.files[int(row)])
        return f"{self.source}, row {row + 1}" if self.lines is None else f"{self.source}, line {self.lines[int(row)]}"

    def take(self, rows: NDArray[np.int64]) -> Table:
        """The given rows, which keep the lines they stood on."""
        lines = np.arange(1, self.n_rows + 1) if self.lines is None else self.lines
        columns = {name: values[rows] for name, values in self.columns.items()}
        files, ids = (None if each is None else each[rows] for each in (self.files, self.ids))
        return replace(self, columns=columns, lines=lines[rows], files=files, ids=ids)


def check_names(names: list[str], source: str, label: str | None) -> None:
    """Refuses column names that cannot tell columns apart, and a table without its label."""
    if len(names) > MAX_COLUMNS:
        raise DataError(f"{source} has {len(names):,} columns; at most {MAX_COLUMNS:,} are read.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if "" in names:
        raise DataError(
            f"{source}: column {names.index('') + 1} of the header has no name. Name it; if it is pandas' row number, "
            "save with index=False."
        )
    unprintable = next((name for name in names if not printable(name)), None)
    if unprintable is not None:
        raise DataError(
            f"{source}: the column name {unprintable[:80]!r} has a line break or another character that cannot be "
            "printed. Rename the column."
        )
    if twice:
        raise DataError(f"{source}: the header names {', '.join(map(repr, twice))} more than once. Rename the columns.")
    if label is not None and label not in names:
        raise DataError(f"{source} has no label column {label!r}. Its columns are: {', '.join(names[:50])}.")


def check_size(n_rows: int, n_columns: int, source: str) -> None:
    """Refuses a table that would not fit in memory."""
    if n_columns > MAX_COLUMNS or n_rows * n_columns > MAX_VALUES:
        raise DataError(
            f"{source} has {n_rows:,} rows and {n_columns:,} columns; at most {MAX_COLUMNS:,} columns and "
            f"{MAX_VALUES:,} values are read."
        )


def check_encoded_size(n_rows: int, n_features: int, source: str) -> None:
    """Refuses rows that as float32 would take more memory than the machine has."""
    size, total = 4 * n_rows * n_features, total_memory()
    most = 4 * MAX_VALUES if total is None else total
    if size > most:
        raise DataError(
            f"{source} would become {n_rows:,} rows of {n_features:,} features, {in_gigabytes(size)}, and this machine "
            f"has {in_gigabytes(most)} of memory. Give fewer rows, or agree on fewer categories or words."
        )


def printable(text: str) -> bool:
    """Whether text is one line that a terminal shows as it is; unusual spaces are let through."""
    return all(each.isprintable() or unicodedata.category(each) == "Zs" for each in text)


def texts(values: Any) -> Values:
    """An object array of the given strings."""
    return object_array(list(values))
