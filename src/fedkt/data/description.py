"""What everybody knows of the columns of a table: ranges, categories, and perhaps how often each occurs.

A data dictionary, a census or an older release knows it. Rows are made of it (`copula`), and what parties tell about
their own rows is told in its bins (`marginals`), so that it must not come from rows that nobody may see.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from fedkt.data.agreed_column import MAX_CATEGORIES, Name, Value
from fedkt.data.dates import DAY_ZERO
from fedkt.data.schema import Schema
from fedkt.data.table import Table
from fedkt.data.values import as_key, dates_of, keys_of, names_text, numbers_of
from fedkt.errors import DataError

MAX_KNOWN_COLUMNS = 2_000
USUAL_BINS = 10
"""Parts of a range, where nobody says how many."""
REACH = 3.0
"""How many scales from its mean a number goes, where a plan's mean and scale are all that is known."""
GAPS = 0.05
"""The share of missing values, where all that is known is that there are some."""
MISSING_VALUES: tuple[str, ...] = tuple(Schema.model_fields["missing_values"].default)

FIRST_DAY, LAST_DAY = (day.toordinal() - DAY_ZERO.toordinal() for day in (date.min, date.max))
"""The days that have a date, counted from 1970-01-01."""
LARGEST = 1e100
"""No number of a range is larger, so that what lies between two of them is finite."""

Edge = Annotated[FiniteFloat, Field(ge=-LARGEST, le=LARGEST)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


def _number(value: Any) -> float | None:
    """The value as a float, None where it is no finite number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
    return float(value) if is_number else None


class KnownColumn(BaseModel):
    """One column: a category with its values, or a number with its range cut into bins.

    Every column has one bin more than it says, the last: for values that are missing or not known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    categories: tuple[Value, ...] = Field(default=(), max_length=MAX_CATEGORIES, fail_fast=True)
    edges: tuple[Edge, ...] = Field(default=(), max_length=MAX_CATEGORIES + 1, fail_fast=True)
    """Where a number's bins begin and end, ascending. The same edge twice is a bin of that value alone."""
    whole: bool = False
    """Whether the numbers are whole."""
    date: bool = False
    """Whether they are days since 1970-01-01, which files have as dates."""
    shares: tuple[Share, ...] | None = Field(default=None, max_length=MAX_CATEGORIES, fail_fast=True)
    """How often each category or bin occurs; None for all alike."""
    missing: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.0
    """The share of missing values; with 0 rows that are made have none."""

    @model_validator(mode="before")
    @classmethod
    def _with_edges(cls, values: Any) -> Any:
        """`low`, `high` and `bins` in place of edges."""
        if not isinstance(values, dict) or not {"low", "high", "bins"} & set(values):
            return values
        rest = {name: value for name, value in values.items() if name not in ("low", "high", "bins")}
        low, high, bins = _number(values.get("low")), _number(values.get("high")), values.get("bins", USUAL_BINS)
        column = f"column {str(values.get('name'))[:80]!r}"
        if low is None or high is None or not low < high:
            raise ValueError(f"{column}: low and high are numbers, and low is the smaller one")
        if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MAX_CATEGORIES:
            raise ValueError(f"{column}: bins is a whole number of 1 to {MAX_CATEGORIES}")
        if "edges" in rest or "categories" in rest:
            raise ValueError(f"{column} has low and high beside edges or categories; one of them is enough")
        shares = rest.get("shares")
        if "bins" not in values and isinstance(shares, list | tuple) and shares:
            bins = min(len(shares), MAX_CATEGORIES)
        return {**rest, "edges": tuple(np.linspace(low, high, bins + 1).tolist())}

    @model_validator(mode="after")
    def _checked(self) -> KnownColumn:
        what = f"column {self.name!r}"
        if bool(self.categories) == bool(self.edges):
            raise ValueError(f"{what} needs either categories, or low and high (or edges)")
        if self.edges and (len(self.edges) < 2 or any(b < a for a, b in zip(self.edges, self.edges[1:], strict=False))):
            raise ValueError(f"{what}: edges are at least two numbers, ascending")
        if len({as_key(each) for each in self.categories}) != len(self.categories):
            raise ValueError(f"{what}: two categories are the same")
        if self.date and not (self.edges and self.edges[0] >= FIRST_DAY and self.edges[-1] <= LAST_DAY):
            raise ValueError(f"{what}: dates have a range of days, within the years 1 to 9999")
        if self.shares is not None:
            if len(self.shares) != self.n_values:
                raise ValueError(f"{what} has {self.n_values} categories or bins, but {len(self.shares)} shares")
            if not 0.98 <= sum(self.shares) <= 1.02:
                raise ValueError(f"{what}: the shares sum to {sum(self.shares):g}, not to 1; what is missing is apart")
        return self

    @property
    def n_values(self) -> int:
        """How many categories or bins there are, without the one for what is missing."""
        return len(self.categories) or len(self.edges) - 1

    @property
    def scores(self) -> NDArray[np.float64]:
        """A number for each bin by its place, evenly from -1 to 1; 0 for what is missing."""
        places = np.linspace(-1, 1, self.n_values) if self.n_values > 1 else np.zeros(1)
        return np.append(places, 0.0)

    @property
    def known_shares(self) -> NDArray[np.float64]:
        """The share of each bin, that of missing values last; they sum to 1."""
        own = np.ones(self.n_values) if self.shares is None else np.array(self.shares)
        return np.append((1 - self.missing) * own / own.sum(), self.missing)

    def codes(self, table: Table) -> NDArray[np.int64]:
        """The bin of each row; numbers beyond the range are in the outermost bins."""
        if self.categories:
            places = {as_key(each): place for place, each in enumerate(self.categories)}
            keys = keys_of(table.columns[self.name], MISSING_VALUES)
            other = self.n_values
            return np.array([other if key is None else places.get(key, other) for key in keys], dtype=np.int64)
        numbers = (dates_of if self.date else numbers_of)(table, self.name, MISSING_VALUES)
        edges = np.array(self.edges)
        found = np.searchsorted(edges, numbers, side="right") - 1
        inside = np.clip(found, 0, len(edges) - 1)
        # An edge that is there twice begins a bin of its own, and the next one begins behind it.
        alone = (numbers == edges[inside]) & (inside > 0) & (edges[np.maximum(inside - 1, 0)] == edges[inside])
        found = np.clip(np.where(alone, inside - 1, found), 0, self.n_values - 1)
        return np.where(np.isnan(numbers), self.n_values, found).astype(np.int64)

    def values(self, codes: NDArray[np.int64], rng: np.random.Generator) -> list[str]:
        """A value for each bin as a file has it: anywhere inside the bin, empty where it is missing."""
        if self.categories:
            return [*map([*self.categories, ""].__getitem__, codes.tolist())]
        edges = np.append(np.array(self.edges), self.edges[-1])
        drawn = edges[codes] + rng.random(len(codes)) * (edges[np.minimum(codes + 1, len(edges) - 1)] - edges[codes])
        spelt = map(self._spelt, drawn.tolist())
        return ["" if code == self.n_values else text for code, text in zip(codes.tolist(), spelt, strict=True)]

    def _spelt(self, number: float) -> str:
        """A number as a file has it."""
        if self.date:
            return date.fromordinal(DAY_ZERO.toordinal() + round(number)).isoformat()
        return str(round(number)) if self.whole else f"{number:.6g}"


class Description(BaseModel):
    """The columns of the public rows, and the label that they do not have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Name
    columns: tuple[KnownColumn, ...] = Field(min_length=1, max_length=MAX_KNOWN_COLUMNS, fail_fast=True)

    @model_validator(mode="after")
    def _checked(self) -> Description:
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise ValueError("two columns have the same name")
        if self.label in names:
            raise ValueError(f"the label {self.label!r} is also a column; public rows have no labels")
        return self

    @property
    def bins(self) -> Description:
        """The names and bins alone, without how often anything occurs."""
        columns = (
            each.model_copy(update={"shares": None, "missing": GAPS if each.missing else 0.0}) for each in self.columns
        )
        return self.model_copy(update={"columns": tuple(columns)})

    def with_shares(self, table: Table) -> Description:
        """The same with how often each bin occurs in the table; values that are missing are apart."""
        columns = []
        for column, codes in zip(self.columns, self.codes(table).T, strict=True):
            counts = np.bincount(codes, minlength=column.n_values + 1)[: column.n_values]
            shares = tuple(np.round(counts / max(1, counts.sum()), 6).tolist())
            missing = min(0.99, math.ceil(100 * column.missing) / 100)
            columns.append(column.model_copy(update={"shares": shares, "missing": missing}))
        return self.model_copy(update={"columns": tuple(columns)})

    @property
    def digest(self) -> str:
        """Tells these names and bins from others, whatever the shares."""
        bins = [
            (each.name, each.categories, each.edges, each.missing > 0, *(("date",) if each.date else ()))
            for each in self.columns
        ]
        return hashlib.sha256(json.dumps([self.label, bins]).encode()).hexdigest()

    def codes(self, table: Table) -> NDArray[np.int64]:
        """The bin of each value, (rows, columns); the order of the table's columns does not matter."""
        absent = [each.name for each in self.columns if each.name not in table.columns]
        if absent:
            raise DataError(
                f"{table.source} lacks the column{'s' * (len(absent) > 1)} {names_text(absent)}. "
                f"It has: {names_text(list(table.columns))}."
            )
        return np.stack([column.codes(table) for column in self.columns], axis=1)


def description_from(values: Mapping[str, Any], source: str) -> Description:
    """The description that these values are, or that a plan's agreed columns give; every refusal names the place."""
    try:
        if "schema" in values:
            return of_schema(Schema.model_validate(values["schema"]), source)
        return Description.model_validate({name: value for name, value in values.items() if name != "format"})
    except ValidationError as reason:
        raise DataError(f"{source}: {fault_words(reason)}") from reason


def fault_words(reason: ValidationError) -> str:
    """The first few faults of a file, each with its key."""
    faults = [
        f"{'.'.join(map(str, each['loc']))}: {each['msg'].removeprefix('Value error, ')}".removeprefix(": ")
        for each in reason.errors(include_url=False)
        # Entries with a fault are not counted: a list of them is not short as well.
        if each["type"] != "too_short" or not each["input"]
    ]
    return f"{'; '.join(faults[:5])}."


def of_schema(schema: Schema, source: str) -> Description:
    """What a plan's columns know: of a number mean and scale, of a category its values, nothing of how often."""
    from scipy.special import ndtr

    text = [each.name for each in schema.columns if each.kind == "text"]
    if text:
        raise DataError(
            f"{source}: rows are not made of words, which is all that it knows of {names_text(text)}. Copy the plan to "
            "schema.toml, take such columns out of its [schema], and use that."
        )
    borders = np.linspace(-REACH, REACH, 31)
    shares = np.diff(ndtr(borders))
    columns = [
        KnownColumn(name=each.name, categories=each.categories)
        if each.categories
        else KnownColumn(
            name=each.name,
            edges=tuple((each.mean + each.scale * borders).tolist()),
            shares=tuple((shares / shares.sum()).tolist()),
            date=each.date,
        )
        for each in schema.columns
    ]
    return Description(label=schema.label, columns=tuple(columns))
