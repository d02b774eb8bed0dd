"""How one file is written: what is found out, by which rule, and what an option says."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkt.data import bounds, packed
from fedkt.data.dates import DateFault, days_of
from fedkt.data.format import PLAIN, Format
from fedkt.data.notation import plain_number, remedy_for
from fedkt.data.rewriting import plain_csv
from fedkt.data.schema import Schema, fit_schema
from fedkt.data.table import READERS, read_table
from fedkt.errors import ConfigurationError, DataError


@pytest.mark.parametrize(
    ("text", "decimal", "plain"),
    [
        ("3,14", ",", "3.14"),
        ("1.234,5", ",", "1234.5"),
        ("1.234.567", ",", "1234567"),
        ("1.234", ",", "1234"),
        ("1.23", ",", None),
        ("12.34,5", ",", None),
        ("1.234 567,8", ",", None),
        ("1 234,5", ",", "1234.5"),
        ("1\u00a0234,5", ",", "1234.5"),
        ("1’234.5", ".", "1234.5"),
        ("1,234,567.8", ".", "1234567.8"),
        ("3,14", ".", None),
        ("−7,5", ",", "-7.5"),
        (",5", ",", ".5"),
        ("1,5e3", ",", "1.5e3"),
        ("", ",", None),
        ("12 mg", ",", None),
        ("31.12.2023", ",", None),
        # No grouped number begins with 0.
        ("0,721", ".", None),
        ("0.721", ",", None),
        ("0 721", ",", None),
        ("-0,721", ",", "-0.721"),
        ("0,5", ",", "0.5"),
        ("007,5", ",", "007.5"),
        ("10,721", ".", "10721"),
    ],
)
def test_a_number_in_either_notation_is_the_plain_one(text, decimal, plain):
    assert plain_number(text, decimal) == plain


def test_of_a_number_that_begins_with_0_its_comma_can_only_be_the_decimal_sign():
    assert remedy_for("0,721", "dose") == "If its comma is the decimal sign: --decimal ,"
    assert remedy_for("1,721", "dose").endswith("If it groups thousands: --decimal .")


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_number_written_with_a_comma_comes_back(number):
    assert float(plain_number(repr(number).replace(".", ","), ",") or "nan") == number


@given(st.integers(-(10**15), 10**15))
def test_a_number_with_grouped_thousands_comes_back(number):
    assert plain_number(f"{number:,}", ".") == str(number)
    assert plain_number(f"{number:,}".replace(",", "."), ",") == str(number)


@given(st.datetimes(min_value=datetime(1900, 1, 1)))
def test_a_moment_is_the_days_that_numpy_counts(moment):
    moment = moment.replace(microsecond=0)
    days = (np.datetime64(moment) - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    forms = (
        moment.isoformat(),
        moment.strftime("%d.%m.%Y %H:%M:%S").replace(moment.strftime("%Y"), f"{moment.year:04}"),
    )
    for text in forms:
        assert days_of([text])[0] == pytest.approx(days, abs=1e-9)


def test_half_past_noon_is_written_in_two_ways():
    assert (
        days_of(["3/31/1970 12:30 PM", "3/31/1970 12:30", "3/31/1970 0:30 pm".replace("0:", "12:")]).tolist()
        == [89 + 12.5 / 24] * 3
    )


@pytest.mark.parametrize(
    "texts", [["13/1/2024", "1/13/2024"], ["1/2/2024"], ["2024-13-01"], ["13:00"], ["2024-01-01 25:00"]]
)
def test_what_may_be_two_dates_or_none_is_no_date(texts):
    with pytest.raises(DateFault):
        days_of(texts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoding": "utf-99"}, "cp1250"),
        ({"encoding": "rot13"}, "not known"),
        ({"encoding": "unicode_escape"}, "not known"),
        ({"separator": ";;"}, "one character"),
        ({"decimal": "x"}, "--decimal"),
        ({"header": 0}, "at least 1"),
        ({"footer": -1}, "at least 0"),
        ({"header": 2, "names": ("a",)}, "Leave one"),
        ({"dates": (("day", "next week"),)}, "no form of a date"),
        ({"dates": (("day", "excel"), ("day", "unix"))}, "twice"),
        ({"comment": " "}, "--comment"),
    ],
)
def test_a_format_that_no_file_has_is_refused_in_words(options, words):
    with pytest.raises(ConfigurationError, match=words):
        Format(**options)


def test_an_option_about_text_says_nothing_about_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.zeros((2, 2)))
    with pytest.raises(ConfigurationError, match="--missing-value says nothing about"):
        read_table(tmp_path / "a.npz", form=Format(missing_values=("-",)))


def test_dates_of_a_column_that_is_not_there_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("day\n2024-01-01\n")
    with pytest.raises(DataError, match=r"no column 'born', for which --dates or --unit was given. It has: 'day'"):
        read_table(tmp_path / "a.csv", form=Format(dates=(("born", "excel"),)))


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, lambda text: zipped(text)], ids=["bz2", "xz", "zip"])
def test_whatever_a_file_is_packed_with_it_unpacks_to_no_more_than_it_may(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(bounds, "ALLOWANCE", 2**20)
    (tmp_path / "a.csv").write_bytes(pack(b"a,b\n" + b"1,2\n" * 200_000))
    with pytest.raises(DataError, match="unpacks to more than"):
        read_table(tmp_path / "a.csv")


def zipped(text: bytes) -> bytes:
    packed_file = io.BytesIO()
    with zipfile.ZipFile(packed_file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", text)
    return packed_file.getvalue()


def test_an_xz_file_that_wants_much_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "XZ_MEMORY", 2**20)
    (tmp_path / "a.csv.xz").write_bytes(lzma.compress(b"a\n1\n", preset=9))
    with pytest.raises(DataError, match=r"cannot be read: .*Memory usage limit"):
        read_table(tmp_path / "a.csv.xz")


def test_xz_files_one_after_the_other_are_one(tmp_path):
    (tmp_path / "a.csv.xz").write_bytes(lzma.compress(b"a\n1\n") + lzma.compress(b"2\n"))
    assert read_table(tmp_path / "a.csv.xz").columns["a"].tolist() == ["1", "2"]


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, zipped], ids=["bz2", "xz", "zip"])
def test_a_packed_file_that_is_cut_short_or_damaged_is_refused_in_words(tmp_path, pack):
    whole = pack(b"a,b\n" + b"".join(b"%d,2\n" % n for n in range(3_000)))
    for content in (whole[:-30], whole[:60] + b"\0\1\2" + whole[63:]):
        (tmp_path / "a.csv").write_bytes(content)
        with pytest.raises(DataError, match=r"a\.csv"):
            read_table(tmp_path / "a.csv")


def test_every_kind_of_text_is_read_by_the_ending_of_its_name_alone(tmp_path):
    for ending in (each for each, kind in READERS.items() if kind.startswith("text")):
        (tmp_path / f"a{ending}").write_text("a|b\n1|2\n")
        assert list(read_table(tmp_path / f"a{ending}").columns) == ["a", "b"]


def test_one_odd_row_does_not_change_how_the_others_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("dose,n\n1.234,1\n" * 1)
    plain = read_table(tmp_path / "a.csv").columns["dose"].tolist()
    (tmp_path / "a.csv").write_text('dose,n\n1.234,1\n"3,14",2\n')
    assert read_table(tmp_path / "a.csv").columns["dose"].tolist() == [*plain, "3,14"]


def test_a_plain_copy_has_the_rows_of_the_file_it_was_made_from(tmp_path):
    (tmp_path / "a.csv").write_text('dose;day;ward\n1.234,5;03/04/2024;a, b\n-;05/04/2024;"c;d"\n')
    form = Format(decimal=",", missing_values=("-",), dates=(("day", "dd/mm/yyyy"),))
    table = read_table(tmp_path / "a.csv", form=form)
    (tmp_path / "b.csv").write_bytes(plain_csv(table))
    again = read_table(tmp_path / "b.csv")
    assert {name: values.tolist() for name, values in again.columns.items()} == {
        "dose": ["1234.5", ""],
        "day": ["2024-04-03", "2024-04-05"],
        "ward": ["a, b", "c;d"],
    }
    assert fit_schema(again, label="ill") == fit_schema(table, label="ill")


def test_a_plan_without_dates_and_truths_says_what_it_said(tmp_path):
    schema = Schema.model_validate(
        {"label": "ill", "columns": [{"name": "smoker", "kind": "category", "categories": ["False", "True"]}]}
    )
    assert set(schema.model_dump()["columns"][0]) == {"name", "kind", "missing", "categories", "fill", "mean", "scale"}
    (tmp_path / "a.csv").write_text("smoker,ill\nTRUE,yes\nTrue,no\n")
    # As it was: another spelling is none of the categories, and told.
    assert schema.encode(schema.read(tmp_path / "a.csv")).tolist() == [[0, 0], [0, 1]]


def test_a_public_column_of_codes_with_letters_stays_a_category(tmp_path):
    (tmp_path / "a.csv").write_text("code,seat\n250,1a\n401,1b\nV58,2a\nE9,2b\n")
    schema = fit_schema(read_table(tmp_path / "a.csv"), label="ill")
    assert [column.categories for column in schema.columns] == [("250", "401", "E9", "V58"), ("1a", "1b", "2a", "2b")]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (Format(header=9), r"nothing from line 9 on \(--header\)"),
        (Format(footer=5), r"a header but no rows before its last 5 \(--footer\)"),
        (Format(names=("a",)), r"line 1: 2 values, but --names gives 1 names\. Name every column"),
        (Format(names=("a", "b"), footer=3), "has no rows before its last 3"),
        (Format(separator=";"), "no label column 'b'"),
        (Format(encoding="utf-16"), "is not utf-16 text"),
        (Format(comment="a"), "looks like data"),
    ],
)
def test_an_option_that_does_not_fit_the_file_is_named(tmp_path, form, words):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / "a.csv", label="b", form=form)


def test_nothing_is_said_about_a_plain_file(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    table = read_table(tmp_path / "a.csv")
    assert (table.notes, table.form) == ((), PLAIN)
