"""The options that say how a file is written: taken whole by every verb that reads one, and about that file alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from fedkt.cli.panels import FILE
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.data.format import Format


@dataclass(frozen=True)
class FileOptions:
    """How a file is written, where that cannot be found out."""

    panel: ClassVar[str] = FILE
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The code of its characters, e.g. cp1250. Default: found out."),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(
            metavar="SIGN", help="Between values: comma, semicolon, tab, pipe or a character. Default: found out."
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(
            metavar="SIGN", help="The decimal sign, , or . (with one given, thousands may be grouped: 1.234,5)"
        ),
    ] = None
    dates: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=FORM", help="How dates are written: dd/mm/yyyy, excel, unix; any number."),
    ] = None
    unit: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=UNIT", help="What stands beside a column's numbers: weight=kg; any number."),
    ] = None
    missing_value: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Another text that means 'not known', such as -; any number of times."),
    ] = None
    header: Annotated[
        int | None,
        typer.Option(metavar="LINE", help="The line that names the columns; none above it is read."),
    ] = None
    names: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="The columns' names, where no line of the file has them.")
    ] = None
    comment: Annotated[
        str | None, typer.Option(metavar="SIGN", help="Lines that begin with this are no rows, e.g. '#'.")
    ] = None
    footer: Annotated[
        int | None, typer.Option(metavar="N", help="So many lines at the end are no rows, such as a total.")
    ] = None
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of an Excel file, the sheet or its number. Default: the first.")
    ] = None

    def format(self) -> Format:
        """As the readers of files take it."""
        from fedkt.cli import options
        from fedkt.data.format import SEPARATORS, Format

        return Format(
            encoding=self.encoding,
            separator=None if self.separator is None else SEPARATORS.get(self.separator, self.separator),
            decimal=self.decimal,
            dates=pairs(self.dates, "--dates", "day=dd/mm/yyyy"),
            units=pairs(self.unit, "--unit", "weight=kg"),
            missing_values=tuple(each.strip() for each in self.missing_value or ()),
            header=self.header,
            names=options.names(self.names),
            comment=self.comment,
            footer=self.footer,
            sheet=self.sheet,
        )


def pairs(texts: list[str] | None, option: str, example: str) -> tuple[tuple[str, str], ...]:
    """The COLUMN=WORD options as pairs; the name of a column may have an = in it."""
    found = []
    for text in texts or []:
        name, equals, word = text.rpartition("=")
        if not (equals and name and word.strip()):
            raise ConfigurationError(f"{option} takes a column and a word, for instance {example}; got {text!r}.")
        found.append((name, word.strip()))
    return tuple(found)
