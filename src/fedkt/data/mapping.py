"""How a party's own table comes to have the agreed names and codes: a plain list of choices, applied as it is read.

What becomes of a row follows from that row and the choices alone, so that a mapping changes nothing about what level
L2 promises of a record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fedkt.data.agreed_column import Name, Value
from fedkt.data.columns import Table, Values
from fedkt.data.format import PLAIN, Format
from fedkt.data.nearest import nearest, rename_offer
from fedkt.data.notation import as_number
from fedkt.data.schema import Schema
from fedkt.data.texts import Texts
from fedkt.data.values import as_key, names_text
from fedkt.errors import ConfigurationError, DataError

MAX_ENTRIES = 10_000
Pairs = Annotated[dict[Value, Value], Field(max_length=MAX_ENTRIES)]


class TableMapping(BaseModel):
    """What a party's names and codes are called in the plan. Empty, it changes nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rename: Annotated[dict[Name, Name], Field(max_length=MAX_ENTRIES)] = {}
    """The agreed name of a column, by its name in the file."""
    labels: Pairs = {}
    """The agreed class, by the label in the file."""
    values: Annotated[dict[Name, Pairs], Field(max_length=MAX_ENTRIES)] = {}
    """The agreed category by the value in the file, for each column by its agreed name."""
    accept: Annotated[tuple[Name, ...], Field(max_length=MAX_ENTRIES)] = ()
    """Columns, by their agreed names, whose values are as they should be however odd they look."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides what the rows become; empty where nothing does."""
        choices = {"rename": self.rename, "labels": self.labels, "values": self.values}
        if not any(choices.values()):
            return ""
        return hashlib.sha256(json.dumps(choices, sort_keys=True).encode()).hexdigest()

    def checked(
        self, schema: Schema, classes: Sequence[str | int], *, stored: Mapping[str, str] | None = None
    ) -> TableMapping:
        """The choices with every column by its agreed name, refused where something in them was not agreed on.

        `stored` are renames made earlier.
        """
        known = {**(stored or {}), **self.rename}
        agreed = [*(column.name for column in schema.columns), schema.label]
        for theirs, ours in self.rename.items():
            # An agreed name may be taken from a column that means something else.
            if ours not in agreed and theirs not in agreed:
                raise ConfigurationError(f"--rename {theirs}={ours}: {not_among(ours, agreed, 'column of the plan')}")
        for theirs, ours in self.labels.items():
            if as_key(ours) not in map(as_key, classes):
                raise ConfigurationError(
                    f"--label-map {theirs}={ours}: {not_among(ours, [str(each) for each in classes], 'agreed class')}"
                )
        values = {agreed_name(name, known, schema, "--value-map"): pairs for name, pairs in self.values.items()}
        for name, pairs in values.items():
            check_values(schema, name, pairs)
        accept = tuple(agreed_name(name, known, schema, "--accept") for name in self.accept)
        return self.model_copy(update={"values": values, "accept": accept})

    def applied(self, table: Table, schema: Schema) -> Table:
        """The table with the agreed names, labels and values."""
        names = self.renames(table, schema)
        columns = {names.get(name, name): values for name, values in table.columns.items()}
        if self.labels and schema.label in columns:
            columns[schema.label] = replaced(columns[schema.label], self.labels)
        for name, pairs in self.values.items():
            if name in columns:
                columns[name] = replaced(columns[name], pairs)
        return replace(table, columns=columns, form=table.form.renamed(names))

    def renames(self, table: Table, schema: Schema) -> dict[str, str]:
        """The new names of those columns of a table that get one; refused where that leaves two of one name."""
        agreed = {*(column.name for column in schema.columns), schema.label}
        used = {theirs: ours for theirs, ours in self.rename.items() if ours in agreed or theirs in agreed}
        here = {theirs: ours for theirs, ours in used.items() if theirs in table.columns}
        after = [here.get(name, name) for name in table.columns]
        absent = [theirs for theirs, ours in used.items() if theirs not in here and ours in agreed - set(after)]
        if absent:
            theirs, others = absent[0], [name for name in table.columns if name not in {*here, *agreed}]
            raise DataError(
                f"{table.source} has no column {theirs!r}, which is to be called {used[theirs]!r} (--rename, or your "
                f"mapping file). It has: {names_text(list(table.columns))}.{rename_offer([used[theirs]], others)}"
            )
        for ours in dict.fromkeys(here.values()):
            if after.count(ours) > 1:
                both = [name for name in table.columns if here.get(name, name) == ours]
                raise DataError(
                    f"{table.source}: {names_text(both)} would all be {ours!r}. Rename one only (--rename, or your "
                    f"mapping file); a column that has an agreed name and means something else gets another, such as "
                    f"--rename {ours}={ours}_before."
                )
        return here


NO_MAPPING = TableMapping()
"""That of a file with the agreed names and codes."""


def read_mapped(
    schema: Schema,
    path: str | Path,
    mapping: TableMapping,
    *,
    labelled: bool = True,
    form: Format = PLAIN,
    others: Collection[str] | None = None,
) -> Table:
    """The table in a file with the agreed names and codes, refused without the agreed label if it is to be labelled.

    Of columns that were not agreed on only the `others` are needed, if they are named.
    """
    others = None if others is None else (*others, *mapping.rename)
    table = mapping.applied(schema.read(path, labelled=False, form=form, others=others), schema)
    if labelled:
        schema.require_label(table)
    return table


def replaced(values: Values | Texts, pairs: Mapping[str, str]) -> Values | Texts:
    """The values with others in place of some; all at once, so that two codes can change places."""
    codes = {as_key(theirs): ours for theirs, ours in pairs.items()}
    if isinstance(values, Texts):
        return values.replaced(lambda texts: [codes.get(as_key(text), text) for text in texts])
    fresh: dict[Any, Any] = {}
    column = np.empty(len(values), dtype=object)
    for row, value in enumerate(values.tolist()):
        # 1 and True are the same dictionary key.
        place = (type(value), value)
        if place not in fresh:
            fresh[place] = codes.get(as_key(value), value)
        column[row] = fresh[place]
    return column


def agreed_name(name: str, renames: Mapping[str, str], schema: Schema, option: str) -> str:
    """The agreed name of a column that was called by its agreed name or by the file's."""
    agreed = [column.name for column in schema.columns]
    if name in agreed or renames.get(name) in agreed:
        return name if name in agreed else renames[name]
    raise ConfigurationError(f"{option} {name}: {not_among(name, agreed, 'column of the plan')}")


def check_values(schema: Schema, name: str, pairs: Mapping[str, str]) -> None:
    """Refuse values that a column cannot have: none of its categories, no number, nor missing."""
    column = next(each for each in schema.columns if each.name == name)
    known = {*map(as_key, column.categories), *schema.missing_values}
    for theirs, ours in pairs.items():
        if column.kind == "number" and ours not in known and as_number(ours) is None:
            raise ConfigurationError(
                f"--value-map {name}:{theirs}={ours}: {name!r} is a number, and {ours!r} is neither a number nor a "
                f"missing value ({names_text(schema.missing_values)})."
            )
        if column.categories and as_key(ours) not in known:
            what = f"agreed category of {name!r}"
            raise ConfigurationError(f"--value-map {name}:{theirs}={ours}: {not_among(ours, column.categories, what)}")


def not_among(name: str, known: Sequence[str], what: str) -> str:
    """That a name is not known, the nearest one, and those there are."""
    near = nearest(name, list(known))
    offer = "" if near is None else f" Did you mean {near!r}?"
    return f"{name!r} is no {what}.{offer} There is: {names_text(known)}."
