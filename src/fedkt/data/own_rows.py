"""The rows of a user's own table by role, or in words why they cannot be simulated with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.data.aside import set_aside
from fedkt.data.dataset import Dataset, Split
from fedkt.data.format import PLAIN, Format
from fedkt.data.images import image_shape, where_labels_lie
from fedkt.data.notation import as_number, option
from fedkt.data.own import OwnFile, OwnTable
from fedkt.data.plausible import row_names, row_texts
from fedkt.data.schema import Schema, fit_schema
from fedkt.data.table import Table, names_its_label, read_table
from fedkt.data.values import as_key, keys_of, names_text, others, value_text
from fedkt.errors import DataError

FEW_CLASSES = 20
"""A column with no more values than this may be a label, however few rows there are."""
MISSING = tuple(Schema.model_fields["missing_values"].default)


def load_own(own: OwnTable, *, seed: int, **_: Any) -> Dataset:
    """The table's rows by role, as the seed draws them."""
    for each in (own.file, own.public, own.test):
        if isinstance(each, OwnFile):
            each.check()
    schema = None
    if isinstance(own.public, OwnFile):
        public = read_unlabelled(own.public.path, own.label)
        schema = fit_columns(own, public)
        table = read_labelled(own.file.path, own.label, schema, own.form)
    else:
        table = public = read_labelled(own.file.path, own.label, form=own.form)
    check_columns(own, table, public)
    keys = label_keys(table, own.label)
    owners = party_names(table, own.party_column)
    test = None
    if isinstance(own.test, OwnFile):
        test = read_labelled(own.test.path, own.label, schema)
        keys_of_test = label_keys(test, own.label)
    classes = classes_of({*keys, *([] if test is None else keys_of_test)}, table, own.label)
    rows = set_aside(
        keys,
        owners,
        seed=seed,
        public=0.0 if isinstance(own.public, OwnFile) else own.public,
        test=0.0 if isinstance(own.test, OwnFile) else own.test,
        source=table.source,
    )
    if schema is None:
        public = table.take(rows.public)
        schema = fit_columns(own, public)
    test = table.take(rows.test) if test is None else test
    parties = table.take(rows.train)
    return Dataset(
        name=own.name,
        X=schema.encode(parties),
        y=schema.labels(parties, classes),
        X_public=schema.encode(public),
        y_public=known_labels(public, own.label, classes),
        X_test=schema.encode(test),
        y_test=schema.labels(test, classes),
        classes=classes,
        groups=None if owners is None else owners[rows.train],
        source=own.source(),
        feature_names=schema.feature_names,
        image=image_shape(schema.feature_names),
        notes=(*table.notes, *notes_of(schema, parties, public, rows, keys)),
    )


def read_labelled(path: Path, label: str, schema: Schema | None = None, form: Format = PLAIN) -> Table:
    """The table in a file that has the label, and the schema's columns where there is one."""
    read = partial(read_table, label=label) if schema is None else partial(schema.read, labelled=False)
    table = read(path, form=form)
    columns = names_text(list(table.columns))
    if label not in table.columns:
        raise DataError(f"{path} has no label column {label!r}. {where_labels_lie(path) or f'It has: {columns}.'}")
    absent = [each.name for each in schema.columns if each.name not in table.columns] if schema is not None else []
    if absent:
        raise DataError(
            f"{path} lacks the column{'s' * (len(absent) > 1)} {names_text(absent)} of the public rows. It has: "
            f"{columns}. Call them alike, or leave what is not there out (--ignore)."
        )
    return table


def read_unlabelled(path: Path, label: str) -> Table:
    """The table in a file that may lack the label."""
    return read_table(path, label=None if names_its_label(path) else label)


def fit_columns(own: OwnTable, public: Table) -> Schema:
    """The columns as the public rows have them; gaps may be anywhere, as in a plan."""
    ignore = {*own.ignore, *([] if own.party_column is None else [own.party_column])}
    return fit_schema(
        public,
        label=own.label,
        categorical=own.categorical,
        ignore=[name for name in public.columns if name in ignore],
        missing="allow",
    )


def check_columns(own: OwnTable, table: Table, public: Table) -> None:
    """Refuse names of columns that the table does not have; what is left out may stand in the public rows alone."""
    party = [] if own.party_column is None else [own.party_column]
    for choice, names, known in (
        ("party", party, table.columns),
        ("ignored", own.ignore, {**table.columns, **public.columns}),
    ):
        absent = [name for name in names if name not in known]
        if absent:
            raise DataError(
                f"{table.source} has no {choice} column {names_text(absent)}. It has: "
                f"{names_text(list(table.columns))}."
            )


def label_keys(table: Table, label: str) -> list[str]:
    """The spelling of every row's label; a missing one is refused with its place."""
    keys = keys_of(table.columns[label], MISSING)
    absent = [row for row, key in enumerate(keys) if key is None]
    if absent:
        raise DataError(
            f"{table.at(absent[0])}: the label {value_text(table.columns[label], absent[0])} in column {label!r} is "
            f"missing{others(absent)}. Fill it in, leave the row out, or move such rows into a file of their own and "
            "pass it as the public rows (--public-file), which need no labels."
        )
    return [key for key in keys if key is not None]


def classes_of(keys: set[str], table: Table, label: str) -> tuple[str | int, ...]:
    """The classes behind the labels, in order: whole numbers as such, all else as text."""
    numbers = [as_number(key) for key in keys]
    if len(keys) < 2:
        raise DataError(
            f"{table.source}: all rows have the label {names_text(sorted(keys))} in column {label!r}. There is nothing "
            "to tell apart: name another column."
        )
    measured = any(number is not None and not number.is_integer() for number in numbers)
    if len(keys) > max(FEW_CLASSES, table.n_rows // 2) or (measured and len(keys) > FEW_CLASSES):
        raise DataError(
            f"{table.source}: column {label!r} has {len(keys):,} different labels in {table.n_rows:,} rows "
            f"({names_text(sorted(keys), 3)}). fedkt predicts classes: name a column with few values, or put the "
            "numbers into ranges."
        )
    if all(number is not None and number.is_integer() for number in numbers):
        return tuple(sorted(int(key) for key in keys))
    return tuple(sorted(keys))


def party_names(table: Table, column: str | None) -> NDArray[np.str_] | None:
    """The party of every row by a column; a row of nobody is refused with its place."""
    if column is None:
        return None
    keys = keys_of(table.columns[column], ("",))
    absent = [row for row, key in enumerate(keys) if key is None]
    if absent:
        raise DataError(
            f"{table.at(absent[0])}: column {column!r} names no party{others(absent)}. Every row belongs to a party: "
            "fill it in, or leave the row out."
        )
    return np.array(keys, dtype=np.str_)


def known_labels(public: Table, label: str, classes: tuple[str | int, ...]) -> NDArray[np.int64] | None:
    """The classes of the public rows where all are known: used only to measure how well they are labelled."""
    if label not in public.columns:
        return None
    places = {as_key(each): place for place, each in enumerate(classes)}
    codes = [places.get(as_key(each)) for each in public.columns[label].tolist()]
    known = [code for code in codes if code is not None]
    return np.array(known, dtype=np.int64) if len(known) == len(codes) else None


def notes_of(schema: Schema, parties: Table, public: Table, rows: Split, keys: list[str]) -> tuple[str, ...]:
    """What is odd about the rows, in sentences."""
    untested: list[str] = []
    if len(rows.test):
        untested = sorted({*keys} - {keys[row] for row in rows.test})
    unlearned = (
        f"None of the test rows has the label {names_text(untested)}: how well the model knows it is not measured.",
    )
    # No pixel names an image.
    of_table = image_shape(schema.feature_names) is None
    names = (*row_names(schema, public), *row_texts(schema, public.n_rows)) if of_table else ()
    numbered = (
        f"Nearly every public row has a value of its own in {name!r}. If it names rows, persons or days, nothing "
        f"can be learned from it: leave it out with {option('--ignore', name)}"
        for name in names
    )
    return (*schema.unseen_notes(parties), *numbered, *(unlearned if untested else ()))
