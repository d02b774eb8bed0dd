"""Reading single values: text as numbers, and one spelling for values that mean the same."""

from __future__ import annotations

import math
import shlex
import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.data.columns import Table
from fedkt.data.dates import DateFault, days_of
from fedkt.data.nearest import nearest
from fedkt.data.notation import as_number, option, remedy_for
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
    values: NDArray[Any], missing_values: Collection[str], spelling: Callable[[Any], str] = as_key
) -> list[str | None]:
    """The spelling of every value, None where it is missing."""
    spellings: dict[Any, str | None] = {}
    keys: list[str | None] = []
    for value in values.tolist():
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
    values = table.columns[name]
    if values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
    else:
        unknown = frozenset(missing_values)
        texts = ["nan" if value is None else str(value).strip() for value in values.tolist()]
        candidates = [math.nan if text in unknown else as_number(text) for text in texts]
        if None in candidates:
            candidates = [truth_number(text) if n is None else n for text, n in zip(texts, candidates, strict=True)]
        wrong = [row for row, number in enumerate(candidates) if number is None]
        if wrong:
            raise DataError(
                f"{table.at(wrong[0])}: {value_text(values, wrong[0])} in column {name!r} is not a number"
                f"{others(wrong)}. {footer_hint(table, wrong)}{remedy_for(texts[wrong[0]], name)}"
            )
        numbers = np.array(candidates, dtype=np.float64)
    endless = np.flatnonzero(np.isinf(numbers))
    if len(endless):
        raise DataError(
            f"{table.at(endless[0])}: {value_text(values, endless[0])} in column {name!r} is infinite"
            f"{others(endless)}. Correct it, or say that it means nothing is known: "
            f"{option('--missing-value', str(values[int(endless[0])]).strip())}"
        )
    return numbers


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
    found = ("" if value is None or value != value else str(value).strip() for value in table.columns[name].tolist())
    return [None if text in unknown else text for text in found]


def dates_of(table: Table, name: str, missing_values: Sequence[str]) -> NDArray[np.float64]:
    """A column of dates as days since 1970-01-01, NaN where it is missing; anything else is refused with its line."""
    texts = known_texts(table, name, missing_values)
    try:
        return days_of(texts)
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
