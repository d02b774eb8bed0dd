"""Public rows that look like something else than they would be agreed on as: refused before they are agreed on.

A party's file is held against what was agreed on. The public file is held against nothing, so that what is odd about it
would become part of the agreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from fedkt.data.columns import Table
from fedkt.data.dates import form_of
from fedkt.data.notation import NEARLY, as_number, disguised_number, option, remedy_for
from fedkt.data.values import value_text
from fedkt.errors import DataError

TOTALS = {"total", "totals", "sum", "subtotal", "average", "mean", "summe", "gesamt", "mittelwert", "totaal", "somme"}
"""How a line begins that sums up those above."""


def looks_like_dates(public: Table, name: str, known: Counter[str]) -> bool:
    """Whether all values of a column are dates; refused where nearly all are, or where the century is not said."""
    forms = {text: form_of(text) for text in known}
    wrong = [text for text in known if forms[text] is None]
    if sum(known[text] for text in wrong) > (1 - NEARLY) * known.total():
        return False
    text = wrong[0] if wrong else next((each for each in known if forms[each] == "two digits"), None)
    if text is not None:
        what = "is no date, and nearly all others are" if wrong else "does not say its century"
        raise DataError(
            f"{_place(public, name, text)} {what}. Correct it, or say how dates are written: "
            f"{option('--dates', name, 'dd.mm.yy')} If it is a category: {option('--categorical', name)}"
            + (f" If nothing is known: {option('--missing-value', text[:80])}" if wrong else "")
        )
    return True


def refuse_disguised(public: Table, name: str, known: Counter[str]) -> None:
    """Refuses a column of categories in which nearly all values are numbers, as they stand or in some disguise."""
    text = disguised_number(known)
    if text is not None:
        raise DataError(
            f"{_place(public, name, text)} is not a number, and nearly all values of the column are, or look like it. "
            f"{remedy_for(text, name)} If the column is a category: {option('--categorical', name)}"
        )


def refuse_odd_table(public: Table, label: str, ignore: Collection[str]) -> None:
    """Refuses columns without a name, a header that looks like a row, and a last row that looks like a total."""
    unnamed = [name for name in public.unnamed if name not in ignore and name != label]
    if unnamed:
        raise DataError(
            f"{public.source}: {unnamed[0]} of the header has no name, and is often a row number. Leave it out: "
            f"{option('--ignore', unnamed[0])} or name it in the file."
        )
    texts = {name: values for name, values in public.columns.items() if values.dtype == object}
    numeric = [name for name, values in texts.items() if _mostly_numbers(values[:100].tolist())]
    told = public.form.header is not None or public.form.names
    if not told and len(numeric) > 1 and all(as_number(name) is not None for name in numeric):
        raise DataError(
            f"{public.source}: the first line ({', '.join(list(public.columns)[:5])} …) looks like a row: every column "
            "of numbers would be called by a number. If no line names the columns: --names age,dose,… If these are the "
            "names: --header 1"
        )
    if public.form.footer is None and public.n_rows > 1 and texts:
        _refuse_footer(public, texts)


def _refuse_footer(public: Table, texts: dict[str, Any]) -> None:
    """Refuses last rows that are empty, or begin with a word for a total that no other row has there."""
    rows = list(zip(*(values[-20:].tolist() for values in texts.values()), strict=True))
    known = [any(str(each).strip() for each in row) for row in reversed(rows)]
    empty = known.index(True) if True in known else len(known)
    if empty and len(texts) == len(public.columns) > 1:
        raise DataError(
            f"{public.at(public.n_rows - 1)}: the table ends with {empty} row{'s' * (empty > 1)} without a value. If "
            f"they are none: --footer {empty} If they are rows: --footer 0"
        )
    first = next(iter(texts.values()))
    word = str(first[-1]).strip().strip(":").casefold()
    if word in TOTALS and sum(str(each).strip().strip(":").casefold() == word for each in first.tolist()) == 1:
        raise DataError(
            f"{public.at(public.n_rows - 1)}: the last row begins with {str(first[-1])[:40]!r}, as a total does. If it "
            "is one: --footer 1 If it is a row like the others: --footer 0"
        )


def _mostly_numbers(values: Sequence[object]) -> bool:
    known = [str(each).strip() for each in values if str(each).strip()]
    return bool(known) and sum(as_number(each) is not None for each in known) >= NEARLY * len(known)


def _place(public: Table, name: str, text: str) -> str:
    """Where a text stands first, and it."""
    row = next(row for row, value in enumerate(public.columns[name].tolist()) if str(value).strip() == text)
    return f"{public.at(row)}: {value_text(public.columns[name], row)} in column {name!r}"
