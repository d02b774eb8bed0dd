"""What everyone agrees on about columns, so that the same value becomes the same number at every party.

A schema is fitted on the public rows only: kinds, categories, fills and scales cannot tell anything about a party. It
is plain data (JSON, TOML) and lives in the plan. `encode` makes a party's table the rows its models are trained on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from fedkt.data.table import MAX_COLUMNS, MAX_VALUES, Table, names_its_label, printable, read_table
from fedkt.data.values import as_key, as_number, keys_of, listed, numbers_of, others, shown
from fedkt.errors import ConfigurationError, DataError

MAX_CATEGORIES = 1_000
"""Different values of one category column; more are more likely names or dates than categories."""

MAX_EXAMPLES = 3
"""Values that a message about unseen categories shows."""


def _one_line(text: str) -> str:
    if not printable(text):
        raise ValueError(f"{text[:40]!r} has a line break or another character that cannot be printed")
    return text


Name = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_one_line)]
Value = Annotated[str, Field(max_length=1_000), AfterValidator(_one_line)]


class Column(BaseModel):
    """One agreed column: a number with its fill and scale, or a category with its values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    kind: Literal["number", "category"]
    missing: bool = False
    """Whether a party may have missing values here; they get a column of their own."""
    categories: tuple[Value, ...] = Field(default=(), max_length=MAX_CATEGORIES)
    fill: FiniteFloat = 0.0
    """What stands in for a missing number: the median of the public rows."""
    mean: FiniteFloat = 0.0
    scale: Annotated[FiniteFloat, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _checked(self) -> Column:
        if (self.kind == "category") != bool(self.categories):
            raise ValueError(f"column {self.name!r}: a category has categories, a number has none")
        if len({as_key(each) for each in self.categories}) != len(self.categories):
            raise ValueError(f"column {self.name!r}: two categories are the same")
        return self

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns this one becomes."""
        own = [self.name] if self.kind == "number" else [f"{self.name}={each}" for each in self.categories]
        return (*own, f"{self.name} is missing") if self.missing else tuple(own)


class Schema(BaseModel):
    """The agreed columns of a table, its label, and how they become numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[Column, ...] = Field(min_length=1, max_length=MAX_COLUMNS)
    label: Name
    missing_values: tuple[Annotated[Value, Field(max_length=100)], ...] = Field(
        default=("", "?", "NA", "N/A", "nan", "NaN", "null"), max_length=100
    )
    """Texts that mean "not known"."""
    unseen: Literal["ignore", "refuse"] = "ignore"
    """What to do with a category that is not in the public rows: encode it as none of them, or refuse the table."""
    scale: bool = True
    """Whether numbers are standardised by mean and scale."""

    @model_validator(mode="after")
    def _checked(self) -> Schema:
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise ValueError("two columns have the same name")
        if self.label in names:
            raise ValueError(f"the label {self.label!r} is also a column")
        if self.n_features > MAX_COLUMNS:
            raise ValueError(f"the columns become {self.n_features} features, more than {MAX_COLUMNS}")
        return self

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns, in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def n_features(self) -> int:
        """How many encoded columns there are."""
        return sum(max(len(column.categories), 1) + column.missing for column in self.columns)

    def read(self, path: str | Path, *, labelled: bool = True) -> Table:
        """The table in a file, refused without the agreed label unless `labelled` is false; LIBSVM in full width."""
        numbered = [int(c.name[1:]) for c in self.columns if re.fullmatch(r"f[1-9][0-9]{0,6}", c.name)]
        # Files that do not name their label lend it the agreed name, also where nobody needs it.
        named = self.label if labelled or not names_its_label(path) else None
        return read_table(path, label=named, least_features=max(numbered, default=0))

    def encode(self, table: Table) -> NDArray[np.float32]:
        """The table's rows as (rows, features) in the schema's order, whatever the order of its columns."""
        absent = [column.name for column in self.columns if column.name not in table.columns]
        if absent:
            raise DataError(
                f"{table.source} lacks the agreed column{'s' * (len(absent) > 1)} {listed(absent)}. "
                f"It has: {listed(list(table.columns))}."
            )
        if table.n_rows * self.n_features > MAX_VALUES:
            raise DataError(
                f"{table.source} would become {table.n_rows:,} rows of {self.n_features:,} features; "
                f"at most {MAX_VALUES:,} values are encoded. Split the file or agree on fewer categories."
            )
        X = np.zeros((table.n_rows, self.n_features), dtype=np.float32)
        start = 0
        for column in self.columns:
            width = len(column.feature_names)
            self._encode_column(column, table, X[:, start : start + width])
            start += width
        return X

    def labels(self, table: Table, classes: Sequence[str | int]) -> NDArray[np.int64]:
        """The index into the agreed `classes` of each row's label; "1", 1 and 1.0 are the same label."""
        places = {as_key(each): index for index, each in enumerate(classes)}
        if len(places) != len(classes):
            raise ConfigurationError(f"The classes {listed(classes)} contain the same class twice.")
        if self.label not in table.columns:
            raise DataError(
                f"{table.source} has no label column {self.label!r}. It has: {listed(list(table.columns))}."
            )
        values = table.columns[self.label]
        codes = np.array([places.get(as_key(value), -1) for value in values.tolist()], dtype=np.int64)
        wrong = np.flatnonzero(codes < 0)
        if len(wrong):
            raise DataError(
                f"{table.at(wrong[0])}: the label {shown(values, wrong[0])} in column {self.label!r} is not "
                f"one of the agreed classes {listed(classes)}{others(wrong)}. Correct it or leave the row out."
            )
        return codes

    def unused(self, table: Table) -> tuple[str, ...]:
        """The table's columns that the schema does not use, apart from the label."""
        known = {column.name for column in self.columns} | {self.label}
        return tuple(name for name in table.columns if name not in known)

    def unseen_values(self, table: Table) -> dict[str, tuple[int, tuple[str, ...]]]:
        """Column -> how many values are not among its agreed categories, and the first few different ones."""
        found: dict[str, tuple[int, tuple[str, ...]]] = {}
        for column in self.columns:
            if column.kind == "category" and column.name in table.columns:
                agreed = {as_key(each) for each in column.categories}
                keys = keys_of(table.columns[column.name], self.missing_values)
                strange = [key for key in keys if key is not None and key not in agreed]
                if strange:
                    found[column.name] = len(strange), tuple(dict.fromkeys(strange))[:MAX_EXAMPLES]
        return found

    def unseen_notes(self, table: Table) -> tuple[str, ...]:
        """A sentence for every column with values that are not among its agreed categories."""
        return tuple(
            f"{count} of {table.n_rows} values of {name!r} in {table.source} "
            f"({', '.join(repr(each[:80]) for each in examples)}{', …' if count > len(examples) else ''}) "
            f"{'is' if count == 1 else 'are'} not among the agreed categories and count{'s' if count == 1 else ''} as "
            "none of them."
            for name, (count, examples) in self.unseen_values(table).items()
        )

    def _encode_column(self, column: Column, table: Table, out: NDArray[np.float32]) -> None:
        """Writes the encoded values of one column into `out`, which is all zeros."""
        values = table.columns[column.name]
        if column.kind == "number":
            numbers = numbers_of(table, column.name, self.missing_values)
            unknown = np.isnan(numbers)
            numbers = np.where(unknown, column.fill, numbers)
            with np.errstate(over="ignore"):
                out[:, 0] = (numbers - column.mean) / column.scale if self.scale else numbers
            large = np.flatnonzero(~np.isfinite(out[:, 0]))
            if len(large):
                raise DataError(
                    f"{table.at(large[0])}: {shown(values, large[0])} in column {column.name!r} is too large"
                    f"{others(large)}."
                )
        else:
            places = {as_key(each): place for place, each in enumerate(column.categories)}
            keys = keys_of(values, self.missing_values)
            unknown = np.array([key is None for key in keys], dtype=bool)
            codes = np.array([-1 if key is None else places.get(key, -1) for key in keys], dtype=np.int64)
            unseen = np.flatnonzero((codes < 0) & ~unknown)
            if len(unseen) and self.unseen == "refuse":
                raise DataError(
                    f"{table.at(unseen[0])}: {shown(values, unseen[0])} in column {column.name!r} is not one "
                    f"of its agreed categories {listed(column.categories)}{others(unseen)}."
                )
            known = np.flatnonzero(codes >= 0)
            out[known, codes[known]] = 1.0
        if column.missing:
            out[:, -1] = unknown
        elif unknown.any():
            rows = np.flatnonzero(unknown)
            raise DataError(
                f"{table.at(rows[0])}: column {column.name!r} is missing ({shown(values, rows[0])})"
                f"{others(rows)}, but it was agreed to have no missing values. Fill it in, leave the row out, or agree "
                "on a schema that allows missing values."
            )


def fit_schema(
    public: Table,
    *,
    label: str,
    categorical: Collection[str] | None = None,
    ignore: Collection[str] = (),
    missing: Literal["as-seen", "allow", "refuse"] = "as-seen",
    unseen: Literal["ignore", "refuse"] = "ignore",
    scale: bool = True,
    missing_values: Sequence[str] | None = None,
) -> Schema:
    """The schema of the public rows: a column of numbers is a number, unless listed in `categorical`; else a category.

    `missing` says which columns may have missing values at a party: those that have some in the public rows
    ("as-seen"), all ("allow") or none ("refuse"). A label column among the public rows is not looked at.
    """
    if missing not in ("as-seen", "allow", "refuse"):
        raise ConfigurationError(f"missing is 'as-seen', 'allow' or 'refuse', got {missing!r}.")
    chosen = frozenset(categorical or ())
    strange = [name for name in (*chosen, *ignore) if name not in public.columns and name != label]
    if strange:
        raise DataError(
            f"{public.source} has no column {listed(sorted(strange))}. It has: {listed(list(public.columns))}."
        )
    names = [name for name in public.columns if name != label and name not in ignore]
    if not names or not public.n_rows:
        raise DataError(f"{public.source} has no {'columns' if not names else 'rows'} to fit a schema on.")
    unknowns = tuple(Schema.model_fields["missing_values"].default if missing_values is None else missing_values)
    try:
        columns = [_fit_column(public, name, name in chosen, missing, unknowns) for name in names]
        return Schema(columns=tuple(columns), label=label, missing_values=unknowns, unseen=unseen, scale=scale)
    except ValidationError as reason:
        faults = "; ".join(fault["msg"].removeprefix("Value error, ") for fault in reason.errors()[:5])
        raise DataError(f"{public.source} cannot be used as public rows: {reason.title}: {faults}.") from reason


def _fit_column(public: Table, name: str, category: bool, missing: str, unknowns: tuple[str, ...]) -> Column:
    """The agreed form of one column."""
    keys = keys_of(public.columns[name], unknowns)
    seen = [key for key in keys if key is not None]
    if not seen:
        raise DataError(
            f"{public.source}: column {name!r} has no value in the public rows, so nothing can be agreed about it. "
            "Ignore it or use other public rows."
        )
    gaps = len(seen) < len(keys)
    if gaps and missing == "refuse":
        row = keys.index(None)
        raise DataError(f"{public.at(row)}: column {name!r} is missing, and missing values were to be refused.")
    allowed = gaps if missing == "as-seen" else missing == "allow"
    text = next((key for key in seen if as_number(key) is None), None)
    if not category and text is None:
        numbers = numbers_of(public, name, unknowns)
        numbers = numbers[~np.isnan(numbers)]
        with np.errstate(over="ignore", invalid="ignore"):
            mean, spread = float(numbers.mean()), float(numbers.std())
        if not (np.isfinite(mean) and np.isfinite(spread)):
            raise DataError(f"{public.source}: the numbers in column {name!r} are too large to be averaged.")
        return Column(
            name=name, kind="number", missing=allowed, fill=float(np.median(numbers)), mean=mean, scale=spread or 1.0
        )
    categories = sorted(set(seen))
    if len(categories) > MAX_CATEGORIES:
        hint = f" ({text[:80]!r} is not a number)" if text is not None else ""
        raise DataError(
            f"{public.source}: column {name!r}{hint} has {len(categories):,} different values, more than the "
            f"{MAX_CATEGORIES:,} a category may have. Ignore the column, or correct it if it should hold numbers."
        )
    return Column(name=name, kind="category", missing=allowed, categories=tuple(categories))
