"""Tables in text: a line that names the columns, then a row a line, values between commas or the like."""

from __future__ import annotations

import csv
import re
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from fedkt.data.bounds import MAX_LINE, Lines, open_text
from fedkt.data.columns import Table, Values, check_names, check_size
from fedkt.data.encoding import marked_encoding, western_encoding
from fedkt.data.format import PLAIN, SEPARATORS, Format
from fedkt.data.texts import TextColumn, Texts
from fedkt.data.values import MOST_FOOTER
from fedkt.errors import DataError

BLOCK_VALUES = 2**18
"""Values that are held as lists; the others are packed."""
SAMPLE = 20, 2**16
"""Lines, and characters in them, by which a separator is found."""
EXCEL_MARK = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""How spreadsheets note the separator in the first line."""


def read_text(path: Path, label: str | None = None, form: Format = PLAIN) -> Table:
    """The table in a text file, whatever its separator, its characters' code and its packing."""
    encoding = form.encoding or marked_encoding(path) or "utf-8"
    try:
        with open_text(path, encoding) as stream:
            table = parse_csv(stream, str(path), label, form)
            if form.encoding is None and encoding.startswith(("utf-16", "utf-32")):
                table = replace(table, notes=(f"{path} is {encoding.upper()}, and read as such.", *table.notes))
            return table
    except UnicodeError as reason:
        if encoding != "utf-8" or form.encoding is not None:
            raise DataError(
                f"{path} is not {encoding} text ({reason}). Say what it is: --encoding NAME, or save it as UTF-8."
            ) from reason
    encoding, note = western_encoding(path)
    with open_text(path, encoding) as stream:
        table = parse_csv(stream, str(path), label, form)
    return replace(table, notes=(note, *table.notes))


def parse_csv(stream: IO[str], source: str, label: str | None = None, form: Format = PLAIN) -> Table:
    """The table in text whose first line that is not empty names the columns, unless the format says otherwise."""
    lines = Lines(stream, source, form.comment)
    separator = _begin(lines, source, form)
    # One reader for header and rows: a line break inside quotes belongs to the name or value it stands in.
    reader = csv.reader(lines, delimiter=separator, strict=True)
    names = list(form.names)
    if not names:
        try:
            names = header_names(next(reader), source, form)
        except (csv.Error, StopIteration) as reason:
            raise DataError(f"{source}, line {lines.start}: {_csv_words(reason)}") from reason
        lines.next_row()
    places = array("q")
    columns = [TextColumn() for _ in names]
    for rows in _blocks(reader, lines, len(names), source, places, form):
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column.add(list(values))
    if not places:
        head = "has no rows" if form.names else "has a header but no rows"
        raise DataError(f"{source} {head}{f' before its last {form.footer} (--footer)' if form.footer else ''}.")
    packed = [column.done() for column in columns]
    return named_table(names, packed, source, np.frombuffer(places, dtype=np.int64), label)


def header_names(cells: Sequence[str], source: str, form: Format) -> list[str]:
    """The columns' names in a header's cells; refused where they look like a row."""
    parts = [re.split(r"[\r\n\t]", cell.strip("\ufeff")) for cell in cells]
    names = [" ".join(filter(None, (part.strip() for part in each))) for each in parts]
    # A forgotten header would otherwise turn the first example into column names.
    if form.header is None and all(_is_number(name) for name in names):
        raise DataError(
            f"{source}: the first line ({', '.join(names[:5])} …) looks like data; it has to name the columns. If no "
            "line does, give the names: --names age,dose,… If these are the names: --header 1"
        )
    return names


def named_table(
    names: list[str],
    columns: Sequence[Values | Texts],
    source: str,
    lines: Values,
    label: str | None,
    notes: Sequence[str] = (),
) -> Table:
    """The columns under their names: empty ones without a name are dropped, others called by their place."""
    told, unnamed = list(notes), []
    kept: dict[int, str] = {}
    for place, name in enumerate(names):
        if name:
            kept[place] = name
        elif any(value is not None and value == value and str(value).strip() for value in columns[place].tolist()):
            kept[place] = f"column {place + 1}"
            unnamed.append(kept[place])
            told.append(
                f"{source}: column {place + 1} of the header has no name and is called {kept[place]!r}; often it is a "
                "row number."
            )
        else:
            told.append(f"{source}: column {place + 1} has neither a name nor a value, and is passed over.")
    check_names(list(kept.values()), source, label)
    table = {name: columns[place] for place, name in kept.items()}
    hint = " Does something else stand between its values? --separator SIGN" if len(table) == 1 else ""
    if any(_is_number(name) for name in table):
        hint = " If this is a row, and no line names the columns: --names age,dose,…"
    return Table(table, source, lines, notes=tuple(told), unnamed=tuple(unnamed), hint=hint)


def _begin(lines: Lines, source: str, form: Format) -> str:
    """The separator; the lines are left where the header stands, or the first row if no line names the columns."""
    separator = form.separator
    for _ in range((form.header or 1) - 1):
        next(lines, "")
        lines.next_row()
    while (ahead := lines.ahead(*SAMPLE)) and (not ahead[0].strip() or EXCEL_MARK.fullmatch(ahead[0])):
        mark = EXCEL_MARK.fullmatch(ahead[0])
        separator = separator or (mark[1] if mark else None)
        next(lines)
        lines.next_row()
    if not ahead:
        where = "is empty" if form.header is None else f"has nothing from line {form.header} on (--header)"
        raise DataError(f"{source} {where}; a table starts with a line that names the columns.")
    if len(ahead[0]) > MAX_LINE:
        next(lines)
    first = ahead[0].strip()
    if re.match(r"#(#|\s)", first) and form.header is None:
        raise DataError(
            f"{source} starts with {first[:40]!r}, which looks like a comment. If lines that begin so are no rows: "
            "--comment '#'. If the columns' names stand further down: --header LINE"
        )
    if re.match(r"<(!doctype|html|table|\?xml)|[{\[]\s*[\"{\[]", first, re.IGNORECASE):
        kind = "HTML or XML" if first.startswith("<") else "JSON"
        raise DataError(f"{source} is {kind}, no table. Save it as CSV: open it in the program it is made for.")
    return separator or find_separator(ahead)


def find_separator(sample: Sequence[str]) -> str:
    """What stands between the values: what cuts all of the first rows into as many as the header, else most names."""

    def fit(separator: str) -> tuple[bool, int]:
        try:
            widths = [len(row) for row in csv.reader(sample, delimiter=separator) if row]
        except csv.Error:
            widths = []
        # The last one may go on behind the sample, or be none.
        rows = widths[1:-1] if len(widths) > 2 else widths[1:]
        width = widths[0] if widths else 1
        return width > 1 and all(each == width for each in rows), width

    return max(SEPARATORS.values(), key=fit)


def _blocks(
    reader: Iterator[list[str]], lines: Lines, width: int, source: str, places: array[int], form: Format
) -> Iterator[list[list[str]]]:
    """The rows of a text, some at a time; the line each starts on is added to `places`."""
    most = max(1, BLOCK_VALUES // width)
    rows: list[list[str]] = []
    kept = _rows(reader, lines, width, form.footer or 0)
    try:
        for start, values in kept:
            if len(values) != width:
                rest = sum(1 for _ in islice(kept, MOST_FOOTER))
                if form.names:
                    words = f"{len(values)} values, but --names gives {width} names. Name every column."
                    raise DataError(f"{source}, line {start}: {words}")
                raise DataError(_ragged_words(source, start, len(values), width, first=not places, rest=rest))
            rows.append(values)
            places.append(start)
            if len(rows) == most:
                check_size(len(places), width, source)
                yield rows
                rows.clear()
    except csv.Error as reason:
        raise DataError(f"{source}, line {lines.start}: {_csv_words(reason)}") from reason
    if rows:
        yield rows


def _rows(reader: Iterator[list[str]], lines: Lines, width: int, footer: int) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank with the line each starts on, without the last few."""
    held: deque[tuple[int, list[str]]] = deque()
    for values in reader:
        start = lines.start
        lines.next_row()
        if not values or (len(values) == 1 < width and not values[0].strip()):
            continue
        held.append((start, values))
        if len(held) > footer:
            yield held.popleft()


def _ragged_words(source: str, line: int, got: int, width: int, *, first: bool, rest: int) -> str:
    """What to do about a row that is not as wide as the header."""
    words = f"{source}, line {line}: {got} values, but the header names {width} columns. "
    if first and got > width:
        words += f"If the columns' names stand in that line: --header {line}. If none names them: --names age,dose,… "
    elif got < width and rest < MOST_FOOTER and not first:
        words += f"If the table ends before it: --footer {rest + 1}. "
    return f"{words}Quote values that contain the delimiter, or say what stands between values: --separator"


def _csv_words(reason: Exception) -> str:
    """What is wrong with the quotes or the length of a value, and what to do."""
    text = str(reason)
    if "field larger" in text:
        return f"{text}. No value is that long: is every quote closed?"
    if "unexpected end" in text:
        return "a quote is opened and never closed. Close it, or write a quote that belongs to a value twice."
    if "expected after" in text:
        return f'{text}. Write a quote that belongs to a value twice, as in "5"" pipe".'
    return f"{text or 'there is no such line'}."


def _is_number(text: str) -> bool:
    """Whether text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
