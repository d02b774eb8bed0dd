"""Dates as people write them, as days since 1970-01-01.

Year first (2024-03-31, 2024/3/31) and day.month.year (31.3.2024) say what they mean. With slashes or dashes day and
month may be either way round (3/4/2024): a column tells which, if some value can be only the one and none the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ConfigurationError

Order = Literal["day", "month"]
"""Which comes first, where slashes stand between."""

_TIME = r"(?:[T ]\s*(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?P<part>\.[0-9]{1,9})?)?"
_TIME += r"\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
FORMS = {
    "year first": re.compile(
        rf"(?P<year>[0-9]{{4}})(?P<sign>[-/])(?P<month>[0-9]{{1,2}})(?P=sign)(?P<day>[0-9]{{1,2}}){_TIME}"
    ),
    "dots": re.compile(rf"(?P<day>[0-9]{{1,2}})\.\s?(?P<month>[0-9]{{1,2}})\.\s?(?P<year>[0-9]{{4}}){_TIME}"),
    "slashes": re.compile(
        rf"(?P<one>[0-9]{{1,2}})(?P<sign>[-/])(?P<two>[0-9]{{1,2}})(?P=sign)(?P<year>[0-9]{{4}}){_TIME}"
    ),
    "two digits": re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{2}"),
}
"""How dates are known; of the last the century is not."""
WORDS = (("yyyy", "%Y"), ("yy", "%y"), ("dd", "%d"), ("hh", "%H"), ("ss", "%S"))
LONGEST = 60
"""Characters of a date: a longer text, made for it, could keep the patterns busy for hours."""
DAY_ZERO = datetime(1970, 1, 1)
EXCEL_ZERO = datetime(1899, 12, 30)
"""From here spreadsheets count days."""


class DateFault(ValueError):
    """Why texts are no dates, from which row on, and the forms that they may have."""

    def __init__(self, row: int, words: str, *forms: str) -> None:
        super().__init__(words)
        self.row, self.forms = row, forms


def form_of(text: str) -> str | None:
    """Which of the forms a text has; None if it is no date."""
    return next((name for name, form in FORMS.items() if len(text) <= LONGEST and form.fullmatch(text)), None)


def order_of(texts: Sequence[str]) -> Order | None:
    """What comes first in dates with slashes, by those that can be only one; None where none is, or they contradict."""
    found: set[Order] = set()
    for text in dict.fromkeys(texts):
        match = FORMS["slashes"].fullmatch(text)
        if match and int(match["one"]) > 12:
            found.add("day")
        if match and int(match["two"]) > 12:
            found.add("month")
    return found.pop() if len(found) == 1 else None


def days_of(texts: Sequence[str | None]) -> NDArray[np.float64]:
    """Days since 1970-01-01 of each text, NaN of None; a time is a part of a day, one with a zone that of UTC."""
    present = [text for text in dict.fromkeys(texts) if text is not None]
    slashes = [text for text in present if form_of(text) == "slashes"]
    order = order_of(slashes)
    if slashes and order is None:
        words = "may be day/month or month/day, and no other says which"
        raise DateFault(texts.index(slashes[0]), words, "dd/mm/yyyy", "mm/dd/yyyy")
    days: dict[str | None, float] = {None: np.nan}
    zoned: dict[bool, str] = {}
    for text in present:
        try:
            moment = moment_of(text, order)
        except ValueError as reason:
            raise DateFault(texts.index(text), "is not a date", *_likely_forms(text)) from reason
        zoned[moment.tzinfo is not None] = text
        days[text] = (moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta()) - DAY_ZERO) / timedelta(days=1)
    if len(zoned) == 2:
        raise DateFault(texts.index(zoned[False]), f"has no time zone, and {zoned[True]!r} has one")
    return np.array([days[text] for text in texts], dtype=np.float64)


def _likely_forms(text: str) -> tuple[str, ...]:
    """How a text may be a date, for a message."""
    if form_of(text) == "two digits":
        sign = next(each for each in text if not each.isdecimal())
        return tuple(form.replace("/", sign) for form in (("dd/mm/yy",) if sign == "." else ("dd/mm/yy", "mm/dd/yy")))
    return ("excel", "unix") if text.replace(".", "", 1).isdecimal() else ("FORM",)


def moment_of(text: str, order: Order | None) -> datetime:
    """The moment that a text names; a ValueError if it names none."""
    name = form_of(text)
    match = None if name in (None, "two digits") else FORMS[str(name)].fullmatch(text)
    if match is None:
        raise ValueError(text)
    parts = match.groupdict()
    if "one" in parts:
        parts["day"], parts["month"] = (parts["one"], parts["two"]) if order == "day" else (parts["two"], parts["one"])
    year, month, day, hour, minute, second = (
        int(parts[each] or 0) for each in ("year", "month", "day", "hour", "minute", "second")
    )
    if parts["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + 12 * (parts["half"].lower() == "pm")
    zone = parts["zone"]
    moment = datetime(year, month, day, hour, minute, second, round(float(parts["part"] or 0) * 1e6) % 10**6)
    if zone in (None, ""):
        return moment
    offset = "+00:00" if zone in ("Z", "UTC") else zone
    return datetime.fromisoformat(f"{moment.isoformat()}{offset}")


def date_text(text: str, form: str) -> str | None:
    """A date of a form that somebody gave as year-month-day, with its time if it has one; None if it is none."""
    try:
        if form == "excel":
            moment = EXCEL_ZERO + timedelta(days=float(text))
        elif form == "unix":
            moment = DAY_ZERO + timedelta(seconds=float(text))
        else:
            moment = datetime.strptime(text, strptime_form(form))
    except (ValueError, OverflowError, OSError):
        return None
    plain = moment.time() == datetime.min.time() and moment.tzinfo is None
    return moment.date().isoformat() if plain else moment.isoformat(" ", "seconds")


def strptime_form(form: str) -> str:
    """dd/mm/yyyy hh:mm as the standard library writes it; a form that has a % is taken as that."""
    if "%" in form or form in ("excel", "unix"):
        return form
    code = form.lower()
    for word, sign in WORDS:
        code = code.replace(word, sign)
    head, hour, rest = code.partition("%H")
    code = f"{head.replace('mm', '%m', 1)}{hour}{rest.replace('mm', '%M', 1)}"
    if re.search(r"[a-z]", re.sub(r"%[A-Za-z]", "", code).replace("t", "")) or "%" not in code:
        raise ConfigurationError(
            f"--dates: {form!r} is no form of a date. It is like dd/mm/yyyy, mm/dd/yyyy hh:mm, excel (day numbers), "
            "unix (seconds), or one of strptime such as %d-%b-%Y."
        )
    return code
