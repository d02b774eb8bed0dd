"""How one file is written: what its reader cannot know, and whoever has the file can.

Every file has a format of its own: that of the public file is not agreed on, and binds nobody else's.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from fedkt.data.dates import strptime_form
from fedkt.errors import ConfigurationError

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Between the values of a row, by the words for them; found out where none is given."""
OPTIONS = {"dates": "--dates", "units": "--unit", "missing_values": "--missing-value"}
"""What the command line calls those that it does not call by their name."""
OF_VALUES = ("decimal", "dates", "units", "missing_values")
"""What is about single values, in whatever kind of file."""
OF_SHEETS = (*OF_VALUES, "header", "names", "footer", "sheet")
"""What is about the tables of a spreadsheet."""
OF_TEXTS = (*OF_VALUES, "header", "names", "footer", "encoding", "separator", "comment")
"""What is about tables in text."""


@dataclass(frozen=True)
class Format:
    """How a file is written; what is left out is found out by fixed rules, or refused in words."""

    encoding: str | None = None
    """The name of its characters' code, such as cp1250."""
    separator: str | None = None
    """Stands between the values of a row."""
    decimal: str | None = None
    """The decimal sign, a comma or a point: with one given, thousands may be grouped."""
    dates: tuple[tuple[str, str], ...] = ()
    """Columns with how their dates are written: dd/mm/yyyy, a format of strptime, excel or unix."""
    units: tuple[tuple[str, str], ...] = ()
    """Columns with what stands beside each of their numbers: kg, %, €."""
    missing_values: tuple[str, ...] = ()
    """More texts that mean "not known"."""
    header: int | None = None
    """The line that names the columns; nothing above it is read."""
    names: tuple[str, ...] = ()
    """The columns' names, where no line has them."""
    comment: str | None = None
    """How lines begin that are no rows."""
    footer: int | None = None
    """How many lines at the end are no rows; 0 says that all are."""
    sheet: str | None = None
    """Of a spreadsheet the sheet with the table, by its name or number."""

    def __post_init__(self) -> None:
        """Refuses in words what no file can be like."""
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n\0'):
            raise ConfigurationError(
                f"--separator is {', '.join(SEPARATORS)}, or one character, got {self.separator!r}."
            )
        if self.decimal not in (None, ",", "."):
            raise ConfigurationError(f"--decimal is , or . , got {self.decimal!r}.")
        if self.comment is not None and not self.comment.strip():
            raise ConfigurationError(f"--comment is how a line begins that is no row, such as #; got {self.comment!r}.")
        for option, number, least in (("--header", self.header, 1), ("--footer", self.footer, 0)):
            if number is not None and number < least:
                raise ConfigurationError(f"{option} is a number of lines of at least {least}, got {number}.")
        if self.names and self.header is not None:
            raise ConfigurationError(
                "--names is for a file without a line that names the columns, --header says which line does. Leave one "
                "out."
            )
        for option, pairs in (("--dates", self.dates), ("--unit", self.units)):
            names = [name for name, _ in pairs]
            if len(set(names)) != len(names):
                raise ConfigurationError(f"{option} is given twice for the same column.")
        for _, form in self.dates:
            strptime_form(form)

    def given(self) -> tuple[str, ...]:
        """The names of what was given."""
        return tuple(each.name for each in fields(self) if getattr(self, each.name) not in (None, ()))

    def renamed(self, names: Mapping[str, str]) -> Format:
        """The same where some columns are called otherwise."""
        dates, units = (tuple((names.get(name, name), how) for name, how in each) for each in (self.dates, self.units))
        return replace(self, dates=dates, units=units)

    def check_kind(self, source: str, kind: str, known: tuple[str, ...]) -> None:
        """Refuses what says nothing about a file of this kind."""
        for name in self.given():
            if name not in known:
                raise ConfigurationError(
                    f"{OPTIONS.get(name, f'--{name}')} says nothing about {source}, which is {kind}. Leave it out."
                )


PLAIN = Format()
"""Of which nothing is said."""


def check_encoding(name: str) -> None:
    """Refuses what is not a code of characters."""
    try:
        codec = codecs.lookup(name)
        # Some of Python's codecs turn text into text, or bytes into bytes.
        known = codec._is_text_encoding and "a,b\n".encode(name).decode(name) == "a,b\n"
    except (LookupError, ValueError):
        known = False
    if not known or name.lower().replace("_", "-") in ("idna", "punycode", "unicode-escape", "raw-unicode-escape"):
        raise ConfigurationError(
            f"--encoding {name!r} is not known. It is a name such as utf-8, cp1252 (Western Europe), cp1250 (Central "
            "Europe), cp1251 (Cyrillic), mac-roman, shift-jis, gb18030 or utf-16."
        )
