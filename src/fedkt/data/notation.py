"""How people write numbers: decimal commas, grouped thousands, units. Read where somebody says so, else refused.

A value is read by itself, never by its neighbours: which number it is does not depend on the other rows.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter

NEARLY = 0.9
"""A column of so many numbers among its values was meant to be one of numbers."""
_SPACES = " \u00a0\u2009\u202f'’"
"""Signs between groups of thousands in either notation: spaces of four kinds, apostrophes."""
LONGEST = 60
"""Characters of a number in whatever disguise: a longer text, made for it, could keep the patterns busy for hours."""
MINUS = "−"


def _pattern(decimal: str, group: str) -> re.Pattern[str]:
    signs = f"[{re.escape(group)}{_SPACES}]"
    whole = rf"(?:[1-9][0-9]{{0,2}}(?P<sign>{signs})[0-9]{{3}}(?:(?P=sign)[0-9]{{3}})*|[0-9]+)"
    decimals = rf"(?:{re.escape(decimal)}[0-9]*)?"
    return re.compile(rf"[+\-{MINUS}]?(?:{whole}{decimals}|{re.escape(decimal)}[0-9]+)(?:[eE][+-]?[0-9]+)?")


PATTERNS = {",": _pattern(",", "."), ".": _pattern(".", ",")}
"""Numbers by their decimal sign, whether their thousands are grouped or not."""
UNIT = re.compile(
    rf"(?P<before>[^\s\d.,+\-{MINUS}()/]{{1,5}})?\s*(?P<number>[+\-{MINUS}]?[0-9][0-9.,{_SPACES}]*?)"
    r"\s*(?P<after>[^\s\d.,()][^\s,()]{0,9})?"
)
KNOWN_UNITS = frozenset(
    {"%", "‰", "$", "€", "£", "¥", "chf", "eur", "usd", "gbp", "mg", "g", "kg", "t", "µg", "ml", "l", "dl", "cl", "mm"}
    | {
        "cm",
        "m",
        "km",
        "m²",
        "h",
        "min",
        "s",
        "ms",
        "°c",
        "°f",
        "mmhg",
        "bpm",
        "mmol/l",
        "mg/dl",
        "kcal",
        "years",
        "days",
    }
)


def as_number(text: str) -> float | None:
    """The number a text stands for, None if it stands for none; "1_000" is text, though Python reads it."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def plain_number(text: str, decimal: str) -> str | None:
    """A number with this decimal sign as everybody reads it, such as "1234.5" for "1.234,5"; None if it is none."""
    text = text.strip()
    found = PATTERNS[decimal].fullmatch(text)
    if found is None:
        return None
    if found["sign"]:
        text = text.replace(found["sign"], "")
    return text.replace(MINUS, "-").replace(decimal, ".")


def written_in(value: object, decimal: str) -> bool:
    """Whether a value is a number that is written with this decimal sign, or with its groups of thousands."""
    return isinstance(value, str) and not value.strip().isdecimal() and plain_number(value, decimal) is not None


def is_number(text: str) -> bool:
    """Whether text is a number, whatever its decimal sign."""
    return any(plain_number(text, each) is not None for each in PATTERNS)


def option(name: str, *parts: str) -> str:
    """An option as it is typed, such as --unit weight=kg."""
    return f"{name} {shlex.quote('='.join(parts))}"


def disguise_of(text: str) -> str | None:
    """How text hides a number: by its "decimal" sign, its thousands in a "group", "either", or its unit; else None."""
    text = text.strip()
    if len(text) > LONGEST:
        return None
    comma, point = (plain_number(text, each) is not None for each in (",", "."))
    if comma or point:
        return "decimal" if comma and not point else "either" if comma and "," in text else "group"
    found = UNIT.fullmatch(text)
    if found is None or (found["before"] is None) == (found["after"] is None) or not is_number(found["number"]):
        return None
    before = found["before"]
    # What stands before a number is a currency, or the number is part of a name: id7, V58.
    return found["after"] if before is None else before if before.casefold() in KNOWN_UNITS else None


def remedy_for(text: str, column: str) -> str:
    """What to do about a value that should be a number and is none."""
    found = disguise_of(text)
    if found == "decimal":
        return "If its comma is the decimal sign: --decimal ,"
    if found == "either":
        return "If its comma is the decimal sign: --decimal , If it groups thousands: --decimal ."
    if found == "group":
        return "If its thousands are grouped: --decimal ."
    if found is not None:
        return f"If {found!r} is the unit of all: {option('--unit', column, found)} Else bring all to one unit."
    return (
        "Correct it (decimals with a point), or leave the row out. If it means that nothing is known: "
        f"{option('--missing-value', text[:80])}"
    )


def disguised_number(known: Counter[str]) -> str | None:
    """The first text that is no number, in a column with nearly nothing else, from how often it has each; else None.

    Numbers with a unit count as such where it is one that is known, or the same at all.
    """
    found = {text: None if as_number(text) is not None else disguise_of(text) or "" for text in known}
    units: Counter[str] = Counter()
    for text, unit in found.items():
        if unit and unit not in ("decimal", "either", "group"):
            units[unit.casefold()] += known[text]
    words = sum(known[text] for text, each in found.items() if each == "")
    words += 0 if len(units) == 1 else sum(count for unit, count in units.items() if unit not in KNOWN_UNITS)
    if words > (1 - NEARLY) * known.total():
        return None
    return next((text for text, each in found.items() if each is not None), None)
