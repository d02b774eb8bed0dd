"""A table's values as everybody writes them, where its format says that its own are written otherwise."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedkt.data.columns import Table, texts
from fedkt.data.dates import date_text
from fedkt.data.delimited import parse_csv
from fedkt.data.format import Format
from fedkt.data.notation import as_number, is_number, option, plain_number, written_in
from fedkt.data.texts import Unread
from fedkt.data.values import MISSING_VALUES, as_key, names_text, others, value_text
from fedkt.errors import DataError


def apply_format(table: Table, form: Format) -> Table:
    """The table with the values that its format is about as everybody writes them."""
    given = {name for name, _ in (*form.dates, *form.units)}
    absent = sorted(given - set(table.columns))
    if absent:
        raise DataError(
            f"{table.source} has no column {names_text(absent)}, for which --dates or --unit was given. It has: "
            f"{names_text(list(table.columns))}."
        )
    dates, units = dict(form.dates), dict(form.units)
    if not (given or form.missing_values or form.decimal):
        return table
    columns = dict(table.columns)
    for name, values in table.columns.items():
        # Numbers are dates only where somebody says so, as the day numbers of spreadsheets.
        if isinstance(values, Unread):
            continue
        if values.dtype == object or name in dates or form.missing_values:
            columns[name] = _ColumnReading(table, name, form, dates.get(name), units.get(name)).read()
    return replace(table, columns=columns)


def plain_csv(table: Table) -> bytes:
    """The table as a file that everybody reads alike, whatever they know of it: UTF-8, commas, points, quotes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(table.columns)
    columns = [["" if each is None or each != each else each for each in c.tolist()] for c in table.columns.values()]
    for row in zip(*columns, strict=True):
        writer.writerow([each if isinstance(each, str) else as_key(each) for each in row])
    content = text.getvalue()
    again = parse_csv(io.StringIO(content, newline=""), table.source)
    if list(again.columns) != list(table.columns) or again.n_rows != table.n_rows:
        raise DataError(f"{table.source} cannot be written as a plain CSV file. Rename its columns: letters first.")
    return content.encode()


@dataclass(frozen=True)
class _ColumnReading:
    """One column, and how its values are written."""

    table: Table
    name: str
    form: Format
    date: str | None
    unit: str | None

    def read(self) -> Any:
        """The column's values as everybody writes them."""
        values = self.table.columns[self.name]
        if values.dtype != object:
            unknown = {float(each) for each in self.form.missing_values if as_number(each) is not None}
            if self.date is None:
                absent = np.isin(values, sorted(unknown)) if unknown else np.zeros(len(values), dtype=bool)
                return np.where(absent, np.nan, values.astype(np.float64)) if absent.any() else values
            values = texts("" if value != value else repr(value) for value in values.tolist())
        bare = {value: self.bare(value) for value in dict.fromkeys(values.tolist())}
        spellings = {value: self.spelling(text) for value, text in bare.items()}
        rows = values.tolist()
        if self.date is not None:
            self.check_dates(rows, spellings)
        elif self.form.decimal is not None:
            self.check_decimals(rows, bare, self.form.decimal)
        return texts(spellings[value] for value in rows)

    def bare(self, value: Any) -> Any:
        """One value without its unit; "" where nothing is known."""
        text = "" if value is None else str(value).strip()
        if text in self.form.missing_values:
            return ""
        unit = (self.unit or "").casefold()
        folded = text.casefold()
        if not unit or not (folded.startswith(unit) or folded.endswith(unit)):
            return value
        rest = (text[: -len(unit)] if folded.endswith(unit) else text[len(unit) :]).strip()
        return rest if is_number(rest) else value

    def spelling(self, text: Any) -> Any:
        """One value without its unit as everybody writes it; None where it is no such date."""
        if text is None or str(text).strip() in MISSING_VALUES:
            return text
        if self.date is not None:
            return date_text(str(text).strip(), self.date)
        plain = None if self.form.decimal is None else plain_number(str(text), self.form.decimal)
        return text if plain is None else plain

    def check_dates(self, rows: Sequence[Any], spellings: dict[Any, Any]) -> None:
        """Refuses what is no date of the form that was given."""
        wrong = [row for row, value in enumerate(rows) if value is not None and spellings[value] is None]
        if wrong:
            raise DataError(
                f"{self.place(wrong[0])} is no date of the form {self.date!r}{others(wrong)}. Correct it, or give the "
                f"form that all have: {option('--dates', self.name, 'FORM')}"
            )

    def check_decimals(self, rows: Sequence[Any], bare: dict[Any, Any], decimal: str) -> None:
        """Refuses a column with both a comma and a point as its decimal sign."""
        other = "." if decimal == "," else ","
        strange = {value for value, text in bare.items() if written_in(text, other) and not written_in(text, decimal)}
        wrong = [row for row, value in enumerate(rows) if value in strange] if strange else []
        if wrong and any(written_in(text, decimal) and not text.strip().isdecimal() for text in bare.values()):
            raise DataError(
                f"{self.place(wrong[0])} has another decimal sign than other values of the column, which have "
                f"{decimal!r}{others(wrong)}. Write all of them alike."
            )

    def place(self, row: int) -> str:
        """Where a value stands, and it."""
        return f"{self.table.at(row)}: {value_text(self.table.columns[self.name], row)} in column {self.name!r}"
