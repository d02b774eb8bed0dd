"""A user's own table as a dataset to simulate with.

What `read_table` reads becomes parties' rows, public rows and test rows: public and test rows from files of their own,
or set aside from the same table. They are drawn in every party and class in proportion (`fedkt.data.aside`), and the
columns become numbers by a schema of the public rows alone, as in a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.data.aside import set_aside
from fedkt.data.dataset import Dataset, Split
from fedkt.data.digest import file_digest
from fedkt.data.format import PLAIN, Format
from fedkt.data.images import image_shape, where_labels_lie
from fedkt.data.notation import as_number
from fedkt.data.schema import Schema, fit_schema
from fedkt.data.table import Table, names_its_label, read_table
from fedkt.data.values import as_key, keys_of, names_text, others, value_text
from fedkt.errors import ConfigurationError, DataError

ASIDE = 0.2
"""Share of the rows that become public rows, as in `FedKTClassifier`, and share of those that become test rows."""
MOST_ASIDE = 0.9
FEW_CLASSES = 20
"""A column with no more values than this may be a label, however few rows there are."""
MISSING = tuple(Schema.model_fields["missing_values"].default)


@dataclass(frozen=True)
class OwnFile:
    """A file, and what tells it from what it may be changed to."""

    path: Path
    sha256: str

    @classmethod
    def at(cls, path: Path) -> OwnFile:
        """The file as it is now."""
        return cls(path, file_digest(path, with_labels=True))

    def check(self) -> None:
        """Refuse a file that is no longer the one it was."""
        if file_digest(self.path, with_labels=True) != self.sha256:
            raise DataError(
                f"{self.path} has changed since this run was set up: its SHA-256 was {self.sha256}. Run it anew."
            )

    def facts(self) -> dict[str, str]:
        """Its name and digest: where it lies is nobody's business, and changes nothing."""
        return {"file": self.path.name, "sha256": self.sha256}


@dataclass(frozen=True)
class OwnTable:
    """A table to simulate with, and what its columns and rows are for."""

    file: OwnFile
    label: str = "label"
    party_column: str | None = None
    """Whose values name the parties; None where a partition deals the rows out."""
    public: OwnFile | float = ASIDE
    """The public rows: a file, or the share of the rows set aside."""
    test: OwnFile | float = ASIDE
    """The test rows, likewise."""
    categorical: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    form: Format = PLAIN
    """How `file` is written; nothing is said of the public and test rows' own files."""

    def __post_init__(self) -> None:
        for name, share in (("public", self.public), ("test", self.test)):
            if not isinstance(share, OwnFile) and not 0 < share <= MOST_ASIDE:
                raise ConfigurationError(
                    f"The share set aside as {name} rows lies above 0 and at most at {MOST_ASIDE}, got {share!r}."
                )
        if sum(share for share in (self.public, self.test) if not isinstance(share, OwnFile)) > MOST_ASIDE:
            raise ConfigurationError(
                f"Public and test rows together are {self.public} and {self.test} of all rows; at most {MOST_ASIDE} "
                "may be set aside, or the parties have too few."
            )
        for option, each in (("--public-file", self.public), ("--test-file", self.test)):
            if isinstance(each, OwnFile) and each.sha256 == self.file.sha256:
                raise ConfigurationError(
                    f"{option} {each.path} is the same file as {self.file.path}: the parties' rows would be measured "
                    "by themselves. Pass other rows, or leave it out and have some set aside."
                )
        if self.party_column == self.label:
            raise ConfigurationError(f"Column {self.label!r} cannot be both what is predicted and the party.")

    @property
    def name(self) -> str:
        """What results call it."""
        return self.file.path.name

    @property
    def partition(self) -> str:
        """How its rows come to the parties where nobody says otherwise."""
        return "dirichlet" if self.party_column is None else "column"

    def facts(self) -> dict[str, Any]:
        """All that decides its rows, as plain values."""
        roles = {"public": self.public, "test": self.test}
        return {
            **self.file.facts(),
            "label": self.label,
            "party_column": self.party_column,
            **{name: each.facts() if isinstance(each, OwnFile) else each for name, each in roles.items()},
            "categorical": sorted(self.categorical),
            "ignore": sorted(self.ignore),
            **{each.name: getattr(self.form, each.name) for each in fields(Format) if told(self.form, each.name)},
        }

    def source(self) -> str:
        """Where the rows come from, in words."""
        parts = [f"{self.name} (sha256 {self.file.sha256})"]
        for name, each in (("public", self.public), ("test", self.test)):
            parts.append(
                f"{name} rows from {each.path.name} (sha256 {each.sha256})"
                if isinstance(each, OwnFile)
                else f"{100 * each:g} % set aside as {name} rows"
            )
        return ", ".join(parts)


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
        notes=(*table.notes, *notes_of(schema, parties, rows, keys)),
    )


def told(form: Format, name: str) -> bool:
    """Whether somebody said this of how a file is written."""
    return bool(getattr(form, name) != getattr(PLAIN, name))


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
    for option, names, known in (
        ("party", party, table.columns),
        ("ignored", own.ignore, {**table.columns, **public.columns}),
    ):
        absent = [name for name in names if name not in known]
        if absent:
            raise DataError(
                f"{table.source} has no {option} column {names_text(absent)}. It has: "
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


def notes_of(schema: Schema, parties: Table, rows: Split, keys: list[str]) -> tuple[str, ...]:
    """What is odd about the rows, in sentences."""
    untested: list[str] = []
    if len(rows.test):
        untested = sorted({*keys} - {keys[row] for row in rows.test})
    unlearned = (
        f"None of the test rows has the label {names_text(untested)}: how well the model knows it is not measured.",
    )
    return (*schema.unseen_notes(parties), *(unlearned if untested else ()))
