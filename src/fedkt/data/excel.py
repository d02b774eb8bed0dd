"""A sheet of an Excel file (.xlsx) as a table: cells as they were stored, results of formulas, dates as dates.

A workbook is a zip file of XML, which a few bytes can make any size: what it unpacks to is bounded before it is parsed,
and it may define nothing of its own (a document type), with which some bytes stand for many.
"""

from __future__ import annotations

import importlib.util
import io
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

import numpy as np

from fedkt.data.bounds import BLOCK, check_growth
from fedkt.data.columns import Table, Values, check_size, texts
from fedkt.data.delimited import header_names, named_table
from fedkt.data.format import PLAIN, Format
from fedkt.data.notation import option
from fedkt.data.packed import archive_in
from fedkt.errors import DataError, FedKTError

WORKBOOK = "xl/workbook.xml"
XML_COST = 4
"""Bytes in memory for a byte of XML: a cell is written in a good deal more than it takes."""
ELEMENT_BYTES = 96
"""What an element of XML takes in memory, of however few bytes it is."""
CELL_BYTES = 32
"""What a cell takes, also one that is only between others."""
BROKEN = LookupError, ValueError, TypeError, AttributeError, ArithmeticError, SyntaxError, RecursionError
"""A damaged workbook shows in many ways, each with an exception of its own."""
BROKEN = LookupError, ValueError, TypeError, AttributeError, ArithmeticError, SyntaxError, RecursionError
"""A damaged workbook shows in many ways, each with an exception of its own."""
CODES = ("utf-8", "utf-16-le", "utf-16-be")
DOCUMENT_TYPES = tuple(text.encode(code) for text in ("<!DOCTYPE", "<!ENTITY") for code in CODES)


@dataclass(frozen=True)
class _Row:
    line: int
    cells: tuple[Any, ...]


def read_excel(path: Path, label: str | None = None, form: Format = PLAIN) -> Table:
    """The table in the first sheet of an Excel file, or the one that the format names."""
    if importlib.util.find_spec("openpyxl") is None:
        raise DataError(f"{path} is an Excel file, and reading it needs openpyxl: pip install 'fedkt[excel]'")
    formulas = check_workbook(path)
    titles: list[str] = []
    try:
        titles, rows = _rows(path, form)
        table = _table(path, label, form, rows)
        if formulas:
            _refuse_uncomputed(path, form, table)
    except FedKTError as reason:
        if note := _other_sheets(titles, form):
            raise DataError(f"{reason}{note}") from reason
        raise
    except (
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        ArithmeticError,
        zipfile.BadZipFile,
        SyntaxError,
    ) as reason:
        raise DataError(
            f"{path} is not an Excel file that can be read ({str(reason)[:200]}). Save it anew, or as CSV."
        ) from reason
    note = _other_sheets(titles, form)
    return table if not note else replace(table, notes=(f"{path}:{note}", *table.notes), hint=f"{table.hint}{note}")


def _other_sheets(titles: list[str], form: Format) -> str:
    """Which sheet was read, where there are several and nobody named one."""
    if form.sheet is not None or len(titles) < 2:
        return ""
    other = option("--sheet", titles[1])
    return f" This is the first of {len(titles)} sheets, {titles[0]!r}; the next one is read with {other}"


def check_workbook(path: Path) -> bool:
    """Whether a workbook has formulas; refused where it is none, or unpacks to more than a file of its size may."""
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            raise DataError(f"{path} is not an Excel file (.xlsx). If it is text, name it .csv; else save it as .xlsx.")
    scan = _Scan(path)
    with archive_in(path) as archive:
        members = archive.infolist()
        unpacked = sum(each.file_size for each in members)
        check_growth(unpacked * XML_COST, path.stat().st_size, str(path))
        if WORKBOOK not in {each.filename for each in members}:
            raise DataError(f"{path} is not an Excel file: it has no workbook in it. Save it anew, or as CSV.")
        try:
            for member in members:
                with archive.open(member) as stream:
                    scan.read(stream)
        except (RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError) as reason:
            raise DataError(f"{path} cannot be unpacked: {reason}. Save it without a password, or as CSV.") from reason
    return scan.formulas


class _Scan:
    """The parts of a workbook, before any of them is built in memory: how many elements they have, and of what kind.

    Whatever a part is called, it may be named as a sheet, so that all are looked at. One that is no XML ends there.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._size = path, path.stat().st_size
        self._elements = 0
        self.formulas = False

    def read(self, stream: IO[bytes]) -> None:
        """Count a part, and refuse what no workbook has."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._element
        parser.StartDoctypeDeclHandler = self._document_type
        with suppress(expat.ExpatError):
            while block := stream.read(BLOCK):
                parser.Parse(block)

    def _element(self, name: str, _: object) -> None:
        self._elements += 1
        if self._elements % 4_096 == 0:
            check_growth(self._elements * ELEMENT_BYTES, self._size, str(self._path))
        self.formulas |= name.rpartition(":")[2] == "f"

    def _document_type(self, *_: object) -> None:
        raise DataError(f"{self._path} defines a document type, which no Excel file needs. It is not read.")


@contextmanager
def _open(path: Path, *, values: bool) -> Iterator[Any]:
    """The workbook, whatever its file is called: results of formulas, or the formulas."""
    from openpyxl import load_workbook

    with path.open("rb") as file, warnings.catch_warnings():
        # Of what is not read: styles, validation, drawings.
        warnings.simplefilter("ignore")
        # It prints what it finds odd, where a command's answer goes.
        with redirect_stdout(io.StringIO()):
            book = load_workbook(file, read_only=True, data_only=values, keep_links=False)
        try:
            yield book
        finally:
            book.close()


def _sheet(book: Any, path: Path, form: Format) -> tuple[Any, list[str]]:
    """The sheet with the table, and the titles of all."""
    sheets = [each for each in book.worksheets if each.sheet_state == "visible"] or list(book.worksheets)
    titles = [each.title for each in sheets]
    if not sheets:
        raise DataError(f"{path} has no sheet with cells.")
    named = {str(place): each for place, each in enumerate(sheets, 1)} | {each.title: each for each in book.worksheets}
    sheet = sheets[0] if form.sheet is None else named.get(form.sheet)
    if sheet is None:
        raise DataError(f"{path} has no sheet {form.sheet!r}. It has: {', '.join(map(repr, titles))}.")
    # What a sheet says of its size may be anything.
    sheet.reset_dimensions()
    return sheet, titles


def _rows(path: Path, form: Format) -> tuple[list[str], list[_Row]]:
    """The titles of all sheets, and the rows with cells of the one with the table, from the header's line on."""
    with _open(path, values=True) as book:
        sheet, titles = _sheet(book, path, form)
        rows, taken, size = [], 0, path.stat().st_size
        for line, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            taken += max(len(cells), 1) * CELL_BYTES
            check_growth(taken, size, str(path))
            if line >= (form.header or 1) and any(each is not None and each != "" for each in cells):
                rows.append(_Row(line, cells))
    return titles, rows


def _table(path: Path, label: str | None, form: Format, rows: list[_Row]) -> Table:
    """The rows as a table: the first of them names the columns, unless the format does."""
    if not rows:
        raise DataError(f"{path} has no cells in the sheet. Another one: --sheet NAME")
    if form.names:
        names = list(form.names)
    else:
        head = rows.pop(0)
        cells = [as_text(each) for each in head.cells]
        while cells and not cells[-1]:
            cells.pop()
        names = header_names(cells, str(path), form)
    if form.footer:
        rows = rows[: -form.footer]
    if not rows:
        raise DataError(f"{path} has a header but no rows.")
    width = len(names)
    for row in rows:
        last = max(place for place, each in enumerate(row.cells) if each not in (None, ""))
        if last >= width:
            raise DataError(
                f"{path}, line {row.line}: a value in column {last + 1}, but the header names {width} columns. If the "
                f"columns' names stand in that line: --header {row.line}. If they stand in none: --names age,dose,…"
            )
    check_size(len(rows), width, str(path))
    columns = [
        _column([row.cells[place] if place < len(row.cells) else None for row in rows]) for place in range(width)
    ]
    lines = np.array([row.line for row in rows], dtype=np.int64)
    return named_table(names, columns, str(path), lines, label)


def _column(cells: Sequence[Any]) -> Values:
    """Cells as numbers where they hold nothing else, else as texts."""
    if all(each is None or (isinstance(each, int | float) and not isinstance(each, bool)) for each in cells):
        return np.array([np.nan if each is None else each for each in cells], dtype=np.float64)
    return texts(as_text(each) for each in cells)


def as_text(cell: Any) -> str:
    """A cell as a text file would have it: dates with the year first."""
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.replace(microsecond=0).isoformat(" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return repr(cell / timedelta(days=1))
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)


def _refuse_uncomputed(path: Path, form: Format, table: Table) -> None:
    """Refuses formulas of which no result is stored: their cells look empty."""
    assert table.lines is not None
    lines = set(table.lines.tolist())
    with _open(path, values=False) as book, _open(path, values=True) as results:
        sheet, computed = _sheet(book, path, form)[0], _sheet(results, path, form)[0]
        for formula, result in _pairs(sheet, computed, lines):
            if result is None:
                raise DataError(
                    f"{path}, cell {formula.coordinate}: a formula without a stored result. Open the file in a "
                    "spreadsheet program and save it: then the results are in it."
                )


def _pairs(sheet: Any, computed: Any, lines: set[int]) -> Iterator[tuple[Any, Any]]:
    """The cells with formulas in the table's lines, each with its stored result."""
    for line, (cells, values) in enumerate(
        zip(sheet.iter_rows(), computed.iter_rows(values_only=True), strict=False), 1
    ):
        for cell, value in zip(cells, values, strict=False):
            if line in lines and getattr(cell, "data_type", "") == "f":
                yield cell, value
