"""Files as people have them: each is read right, or refused with a remedy that reads it right when it is followed."""

from __future__ import annotations

import io
import shlex
from typing import Annotated, Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dirty_files import FILES, PAGE, Dirty, filled, page
from fedkt.cli.file_options import FileOptions
from fedkt.cli.panels import with_groups
from fedkt.data.agreed_column import Column
from fedkt.data.format import Format
from fedkt.data.schema import Schema, fit_schema
from fedkt.data.table import Table, read_table
from fedkt.errors import DataError

pytest.importorskip("openpyxl")

ALL = [each for files in FILES.values() for each in files]
CLASSES = ("no", "yes")
WARDS = ("Białystok", "Bern, old", "Genève", "Köln", "Łódź", "Münster", "Zürich", "Казань", "Москва", "north", "south")
KINDS: dict[str, dict[str, Any]] = {
    "day": {"kind": "number", "date": True},
    "smoker": {"kind": "category", "categories": ("false", "true"), "boolean": True},
    "ward": {"kind": "category", "categories": (*WARDS, 'the "old" one', "x")},
}


def given(words: list[str]) -> tuple[Format, tuple[str, ...]]:
    """Options as they are typed, as the verbs that read files understand them."""
    found: dict[str, Any] = {}

    @with_groups
    def read(file: FileOptions, ignore: Annotated[list[str] | None, typer.Option()] = None) -> None:
        found.update(form=file.format(), ignore=tuple(ignore or ()))

    app = typer.Typer()
    app.command()(read)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return found["form"], found["ignore"]


def agreed(dirty: Dirty) -> Schema:
    """The plan's columns, of which the file should have these."""
    names = [name for name in dirty.expected if name != "ill"]
    columns = [Column(name=name, missing=True, **KINDS.get(name, {"kind": "number"})) for name in names]
    return Schema(columns=tuple(columns), label="ill", scale=False)


def values(schema: Schema, table: Table, expected: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """What the encoded rows say, in the words of the expected values."""
    X, start = schema.encode(table), 0
    said: dict[str, list[Any]] = {}
    for column in schema.columns:
        part = X[:, start : start + len(column.feature_names)]
        start += part.shape[1]
        if column.name not in expected:
            continue
        missing = part[:, -1] == 1 if column.missing else np.zeros(len(part), dtype=bool)
        if column.kind == "category":
            rows = [[each for each, on in zip(column.categories, row, strict=False) if on == 1] for row in part]
            cells = [row[0] if row else "none of them" for row in rows]
            cells = [cell == "true" for cell in cells] if column.boolean else cells
        elif column.date:
            cells = [str(np.datetime64("1970-01-01") + round(float(day))) for day in part[:, 0]]
        else:
            cells = part[:, 0].tolist()
        said[column.name] = [None if gone else cell for gone, cell in zip(missing, cells, strict=True)]
    if "ill" in expected:
        said["ill"] = [CLASSES[code] for code in schema.labels(table, CLASSES)]
    return said


def read(dirty: Dirty, path: Any, words: list[str]) -> tuple[dict[str, list[Any]], Table]:
    """What the file says to a party of the plan, or to whoever makes one of it."""
    form, ignore = given(words)
    if dirty.public:
        table = read_table(path, form=form)
        schema = fit_schema(table, label="ill", ignore=ignore, scale=False)
    else:
        schema = agreed(dirty)
        table = schema.read(path, form=form)
    return values(schema, table, dirty.expected), table


def close(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> bool:
    def plain(cell: Any) -> Any:
        return float(np.float32(cell)) if isinstance(cell, int | float) and not isinstance(cell, bool) else cell

    return {k: list(map(plain, v)) for k, v in one.items()} == {k: list(map(plain, v)) for k, v in other.items()}


def edited(dirty: Dirty, content: bytes) -> bytes:
    """The file after the edit that the refusal asks for."""
    if dirty.edit == b"saved":
        return saved_by_a_spreadsheet(content)
    if isinstance(dirty.edit, bytes):
        return dirty.edit
    assert dirty.edit is not None
    assert dirty.edit[0] in content
    return content.replace(*dirty.edit)


def saved_by_a_spreadsheet(content: bytes) -> bytes:
    """The workbook with the one formula's result in its place."""
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(content))
    sheet = book.active
    assert sheet["A2"].value == "=30+1"
    sheet["A2"] = 31
    packed = io.BytesIO()
    book.save(packed)
    return packed.getvalue()


@pytest.mark.parametrize("dirty", ALL, ids=lambda each: each.what)
def test_a_dirty_file_is_read_right_or_refused_with_a_remedy_that_works(tmp_path, dirty):
    path = tmp_path / dirty.name
    content = dirty.content if isinstance(dirty.content, bytes) else dirty.content()
    path.write_bytes(content)
    words: list[str] = []
    for remedy in dirty.options:
        with pytest.raises(DataError) as refusal:
            read(dirty, path, words)
        named = remedy.partition(" -> ")[0]
        # Where a message names a few values, the one that is meant has to be among them.
        assert (named if "NAME" not in named else dirty.words) in str(refusal.value)
        words += shlex.split(filled(remedy))
    if dirty.edit is not None:
        with pytest.raises(DataError) as refusal:
            read(dirty, path, words)
        assert dirty.words in str(refusal.value)
        assert path.name in str(refusal.value)
        path.write_bytes(edited(dirty, content))
        if dirty.name.endswith(".zip"):
            path = path.rename(tmp_path / "north.csv")
    got, table = read(dirty, path, words)
    assert close(got, dirty.expected)
    if not dirty.options and dirty.edit is None:
        assert bool(table.notes) == bool(dirty.words)
        assert dirty.words in " ".join(table.notes)


def test_there_are_fifty_dirty_files_and_more_and_the_page_lists_them():
    assert len(ALL) >= 50
    assert PAGE.read_text(encoding="utf-8") == page(), "make it anew: python tests/support/dirty_files.py"
