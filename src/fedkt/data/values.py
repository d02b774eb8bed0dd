"""Reading single values: text as numbers, and one spelling for values that mean the same."""

from __future__ import annotations

import math
import shlex
import unicodedata
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.data.columns import Table
from fedkt.data.dates import DateFault, days_of
from fedkt.data.nearest import nearest
from fedkt.data.notation import as_number, option, remedy_for
from fedkt.data.texts import Texts, by_value
from fedkt.data.truth import truth_number
from fedkt.errors import DataError

MOST_FOOTER = 3
"""So many rows at the end may be none of the table's, as a message supposes."""
MISSING_VALUES = ("", "?", "NA", "N/A", "nan", "NaN", "null")
"""Texts that mean "not known", where nobody agrees on others."""


def as_key(value: Any) -> str:
    """One spelling for values that mean the same: as by `spelling_of`, and ä is one sign, not an a with dots."""
    text = spelling_of(value)
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def spelling_of(value: Any) -> str:
    """One spelling for numbers that are the same: 1, 1.0, "1", "01" and " 1.0 " are all "1"; other text is stripped."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    text = str(value).strip()
    # Long identifiers stay exact: as floats, different ones would become the same.
    if len(text) < 40 and text.lstrip("+-").isdecimal():
        number = as_number(text)
        return str(int(text)) if number is not None else text
    number = float(value) if isinstance(value, float | np.floating) else as_number(text)
    if number is None or not math.isfinite(number):
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(float(number))


def keys_of(
    values: NDArray[Any] | Sequence[Any], missing_values: Collection[str], spelling: Callable[[Any], str] = as_key
) -> list[str | None]:
    """The spelling of every value, None where it is missing."""
    spellings: dict[Any, str | None] = {}
    keys: list[str | None] = []
    for value in values if isinstance(values, list) else values.tolist():  # type: ignore[union-attr]
        if value is None or value != value:
            keys.append(None)
            continue
        # 1 and True are the same dictionary key.
        place = (type(value), value)
        if place not in spellings:
            text = str(value).strip()
            spellings[place] = None if text in missing_values or as_number(text) != as_number(text) else spelling(value)
        keys.append(spellings[place])
    return keys


def numbers_of(table: Table, name: str, missing_values: Sequence[str]) -> NDArray[np.float64]:
    """A column as numbers, NaN where it is missing, 1 and 0 for words that mean yes and no.

    Other text and infinities are refused with their line.
    """
    values, unknown = table.columns[name], frozenset(missing_values)
    numbers: NDArray[np.float64]
    if values.dtype.kind in "iufb":
        numbers = values.astype(np.float64, copy=False)
    else:
        of_some = plain_numbers if isinstance(values, Texts) else number_list
        try:
            numbers = by_value(values, partial(of_some, unknown=unknown))
        except TypeError:
            # One at least means no number; a message has to know which of all rows.
            wrong = [row for row, value in enumerate(values.tolist()) if number_in(value, unknown) is None]
            raise DataError(
                f"{table.at(wrong[0])}: {value_text(values, wrong[0])} in column {name!r} is not a number"
                f"{others(wrong)}. {footer_hint(table, wrong)}{remedy_for(str(values[wrong[0]]).strip(), name)}"
            ) from None
    endless = np.flatnonzero(np.isinf(numbers))
    if len(endless):
        raise DataError(
            f"{table.at(endless[0])}: {value_text(values, endless[0])} in column {name!r} is infinite"
            f"{others(endless)}. Correct it, or say that it means nothing is known: "
            f"{option('--missing-value', str(values[int(endless[0])]).strip())}"
        )
    return numbers


def number_in(value: Any, unknown: Collection[str]) -> float | None:
    """The number that a value means, NaN where it is missing, 1 and 0 for yes and no; None where it means none."""
    text = "nan" if value is None else str(value).strip()
    number = math.nan if text in unknown else as_number(text)
    return truth_number(text) if number is None else number


def number_list(values: Sequence[Any], unknown: Collection[str]) -> NDArray[np.float64]:
    """The numbers that values mean, as `number_in` reads each; a TypeError where one means none."""
    return np.array([float(number_in(value, unknown)) for value in values], dtype=np.float64)  # type: ignore[arg-type]


def plain_numbers(texts: list[str], unknown: Collection[str]) -> NDArray[np.float64]:
    """The same of texts, which are read at once where that comes to the same."""
    known = ["nan" if text in unknown else text for text in texts]
    try:
        numbers = np.fromiter(map(float, known), dtype=np.float64, count=len(known))
    except ValueError:
        return number_list(texts, unknown)
    # float reads 1_000 as well, and knows no other spelling of what is missing than itself.
    told = [number for text in unknown if (number := as_number(text)) is not None]
    odd = "_" in "".join(known) or bool(told and np.isin(numbers, told).any())
    return number_list(texts, unknown) if odd else np.asarray(numbers)


def footer_hint(table: Table, rows: Sequence[int] | NDArray[np.int64]) -> str:
    """What to do if rows are none of the table's, where they are its last few; empty elsewhere."""
    count = len(rows)
    # Where all but the label are numbers from the start, as in LIBSVM, no line can be anything else.
    text = sum(values.dtype == object for values in table.columns.values()) > 1
    if (
        table.lines is None
        or not text
        or count > MOST_FOOTER
        or list(rows) != list(range(table.n_rows - count, table.n_rows))
    ):
        return ""
    return f"If the table ends before it: --footer {count + (table.form.footer or 0)}. "


def known_texts(table: Table, name: str, missing_values: Collection[str]) -> list[str | None]:
    """A column as texts, None where it is missing."""
    unknown = frozenset(missing_values)
    return [known_text(value, unknown) for value in table.columns[name].tolist()]


def different_texts(table: Table, name: str, missing_values: Collection[str]) -> set[str]:
    """The texts that a column has, without those that mean that nothing is known."""
    values, unknown = table.columns[name], frozenset(missing_values)
    found = values.different() if isinstance(values, Texts) else values.tolist()
    return {text for value in found if (text := known_text(value, unknown)) is not None}


def known_text(value: Any, unknown: Collection[str]) -> str | None:
    """One value as text, None where it is missing."""
    text = "" if value is None or value != value else str(value).strip()
    return None if text in unknown else text


def dates_of(table: Table, name: str, missing_values: Sequence[str]) -> NDArray[np.float64]:
    """A column of dates as days since 1970-01-01, NaN where it is missing; anything else is refused with its line."""
    unknown, values = frozenset(missing_values), table.columns[name]
    texts: list[str | None] = []
    try:
        if isinstance(values, Texts):
            texts = list(dict.fromkeys(known_text(value, unknown) for value in values.different()))
            days = dict(zip(texts, days_of(texts), strict=True))
            return by_value(values, lambda some: np.array([days[known_text(value, unknown)] for value in some]))
    except DateFault:
        # Of which row is said below.
        pass
    try:
        return days_of(known_texts(table, name, missing_values))
    except DateFault as fault:
        place = (
            f"{table.at(fault.row)}: {value_text(table.columns[name], fault.row)} in column {name!r}, which has dates,"
        )
        remedy = " or ".join(option("--dates", name, form) for form in fault.forms)
        remedy = f", or say how they are written: {remedy}" if remedy else ""
        raise DataError(f"{place} {fault}. Correct it{remedy}") from fault


def plural(count: int, noun: str) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def others(rows: Sequence[int] | NDArray[np.int64]) -> str:
    """How many more rows than the first one are meant, in words."""
    return f" (and {len(rows) - 1} more row{'s' * (len(rows) > 2)})" if len(rows) > 1 else ""


def names_text(names: Sequence[Any], most: int = 20) -> str:
    """Names for a message, at most `most` of them."""
    first = ", ".join(repr(name) for name in names[:most])
    return f"{first}, … ({len(names)} in all)" if len(names) > most else first


def value_text(values: NDArray[Any], row: int | np.integer[Any]) -> str:
    """A value as a message shows it, cut off where it is long."""
    value = values[int(row) : int(row) + 1].tolist()[0]
    return repr(value[:80] + "…" if isinstance(value, str) and len(value) > 80 else value)


def identities_of(table: Table, column: str | None) -> list[str] | None:
    """What tells each row from all others: the named column, else what the format says; None where nothing does.

    Spelt as `spelling_of` does, and no more alike: which subset a record is in must stay as it was. One missing number
    must not turn every 1 into 1.0.
    """
    if column is not None and column not in table.columns:
        near = nearest(column, list(table.columns))
        offer = "" if near is None else f" Did you mean --id {shlex.quote(near)}?"
        raise DataError(
            f"{table.source} has no column {column!r} of identities. It has: {names_text(list(table.columns))}.{offer}"
        )
    values = table.ids if column is None else table.columns[column]
    return None if values is None else [spelling_of(each) for each in values.tolist()]
