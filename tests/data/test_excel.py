"""Excel files: what is read of them, and workbooks that nobody should open."""

from __future__ import annotations

import io
import sys
import zipfile
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from fedkt.data import bounds
from fedkt.data.format import Format
from fedkt.data.table import read_table
from fedkt.errors import ConfigurationError, DataError

openpyxl = pytest.importorskip("openpyxl")


def workbook(path: Path, rows: list[list[Any]], title: str = "Data", **more: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    for name, content in more.items():
        sheet = book.create_sheet(name)
        for row in content:
            sheet.append(row)
    book.save(path)
    return path


def changed(path: Path, member: str, content: bytes) -> Path:
    """The workbook with one of its parts replaced."""
    packed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for each in old.namelist():
            new.writestr(each, content if each == member else old.read(each))
    path.write_bytes(packed.getvalue())
    return path


def sheet(*rows: str) -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{space}"><sheetData>{"".join(rows)}</sheetData></worksheet>'.encode()


def test_cells_are_numbers_texts_and_dates_as_they_were_stored(tmp_path):
    rows = [
        ["n", "mixed", "day", "moment", "clock", "span", "truth"],
        [1, "a", date(2024, 3, 31), datetime(2024, 3, 31, 9, 30), time(9, 30), timedelta(hours=12), True],
        [2.5, 3, None, None, None, None, False],
    ]
    table = read_table(workbook(tmp_path / "a.xlsx", rows))
    assert table.columns["n"].tolist() == [1.0, 2.5]
    assert table.columns["mixed"].tolist() == ["a", "3"]
    assert table.columns["day"].tolist() == ["2024-03-31", ""]
    assert table.columns["moment"].tolist() == ["2024-03-31 09:30:00", ""]
    assert table.columns["clock"].tolist() == ["09:30:00", ""]
    assert table.columns["truth"].tolist() == ["True", "False"]
    assert table.lines.tolist() == [2, 3]


def test_a_sheet_is_read_by_its_name_or_number_and_the_first_one_is_told(tmp_path):
    path = workbook(tmp_path / "a.xlsx", [["a"], [1]], May=[["a"], [5]])
    assert read_table(path).columns["a"].tolist() == [1.0]
    assert "first of 2 sheets, 'Data'" in read_table(path).notes[0]
    for name in ("May", "2"):
        table = read_table(path, form=Format(sheet=name))
        assert (table.columns["a"].tolist(), table.notes) == ([5.0], ())
    with pytest.raises(DataError, match=r"no sheet 'June'\. It has: 'Data', 'May'"):
        read_table(path, form=Format(sheet="June"))


def test_decimal_commas_and_missing_words_in_cells_are_read_as_in_text(tmp_path):
    path = workbook(tmp_path / "a.xlsx", [["dose", "n"], ["3,5", 999], ["-", 2]])
    table = read_table(path, form=Format(decimal=",", missing_values=("-", "999")))
    assert table.columns["dose"].tolist() == ["3.5", ""]
    assert str(table.columns["n"].tolist()) == "[nan, 2.0]"


def test_a_value_beside_the_named_columns_is_refused_with_its_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.xlsx, line 3: a value in column 3, but the header names 2"):
        read_table(workbook(tmp_path / "a.xlsx", [["a", "b"], [1, 2], [1, 2, 3]]))


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    path = workbook(tmp_path / "a.xlsx", [["a"], [1]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"pip install 'fedkt\[excel\]'"):
        read_table(path)


def test_what_is_no_workbook_is_refused_in_words(tmp_path):
    (tmp_path / "a.xlsx").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"name it \.csv"):
        read_table(tmp_path / "a.xlsx")
    (tmp_path / "b.xlsx").write_bytes(b"PK\x03\x04" + bytes(40))
    with pytest.raises(DataError, match="damaged"):
        read_table(tmp_path / "b.xlsx")
    path = workbook(tmp_path / "c.xlsx", [["a"], [1]])
    for content in (b"<worksheet", b"", b"\xff" * 100, b"<a>" * 5_000):
        with pytest.raises(DataError, match="is not an Excel file that can be read"):
            read_table(changed(path, "xl/worksheets/sheet1.xml", content))


def test_an_option_about_text_says_nothing_about_a_workbook(tmp_path):
    with pytest.raises(ConfigurationError, match=r"--separator says nothing about .*an Excel file"):
        read_table(workbook(tmp_path / "a.xlsx", [["a"], [1]]), form=Format(separator=";"))


def test_a_small_workbook_that_unpacks_to_far_more_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "ALLOWANCE", 2**20)
    path = workbook(tmp_path / "a.xlsx", [["a"], [1]])
    for content in (sheet(" " * 1_000_000), sheet("<row/>" * 20_000), sheet(f"<row>{'<c/>' * 20_000}</row>")):
        with pytest.raises(DataError, match=r"would take [0-9,]+ in memory"):
            read_table(changed(path, "xl/worksheets/sheet1.xml", content))
        # Whatever it is called: a sheet may lie in any part.
        with pytest.raises(DataError, match=r"would take [0-9,]+ in memory"):
            read_table(changed(workbook(path, [["a"], [1]]), "docProps/app.xml", content))


def test_a_cell_far_out_does_not_make_every_row_as_wide(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "ALLOWANCE", 2**20)
    rows = [f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 500)]
    path = workbook(tmp_path / "a.xlsx", [["a"], [1]])
    with pytest.raises(DataError, match=r"would take [0-9,]+ in memory"):
        read_table(changed(path, "xl/worksheets/sheet1.xml", sheet(*rows)))


def test_a_row_far_down_does_not_make_all_rows_above_it(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "ALLOWANCE", 2**20)
    row = '<row r="1048576"><c r="A1048576"><v>1</v></c></row>'
    path = workbook(tmp_path / "a.xlsx", [["a"], [1]])
    with pytest.raises(DataError, match=r"would take [0-9,]+ in memory"):
        read_table(changed(path, "xl/worksheets/sheet1.xml", sheet(row)))


def test_a_workbook_that_defines_a_document_type_is_not_parsed(tmp_path):
    bomb = b'<!DOCTYPE x [<!ENTITY a "ha">]>' + sheet("<row/>")
    for content in (bomb, bomb.decode().encode("utf-16-le")):
        path = workbook(tmp_path / "a.xlsx", [["a"], [1]])
        with pytest.raises(DataError, match="document type"):
            read_table(changed(path, "xl/worksheets/sheet1.xml", content))
