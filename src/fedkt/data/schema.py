"""What everyone agrees on about columns, so that the same value becomes the same number at every party.

A schema is fitted on the public rows only: kinds, categories, fills and scales cannot tell anything about a party. It
is plain data (JSON, TOML) and lives in the plan. `encode` makes a party's table the rows its models are trained on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fedkt.data.agreed_column import UNSEEN, Column, Kind, Name, Value, fit_column, fit_pixels
from fedkt.data.columns import check_encoded_size
from fedkt.data.dates import form_of
from fedkt.data.disguises import refuse_odd_table
from fedkt.data.format import PLAIN, Format
from fedkt.data.images import image_shape, where_labels_lie
from fedkt.data.nearest import map_offer, nearest, partners, rename_offer
from fedkt.data.notation import option
from fedkt.data.table import MAX_COLUMNS, Table, names_its_label, read_table
from fedkt.data.texts import by_value
from fedkt.data.truth import truth_of, truth_places
from fedkt.data.values import (
    MISSING_VALUES,
    as_key,
    different_texts,
    footer_hint,
    keys_of,
    known_texts,
    names_text,
    others,
    value_text,
)
from fedkt.data.words import MOST_TERMS, USUAL_TERMS, words_of
from fedkt.errors import ConfigurationError, DataError

MAX_EXAMPLES = 3
"""Values that a message about unseen categories shows."""


class Schema(BaseModel):
    """The agreed columns of a table, its label, and how they become numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[Column, ...] = Field(min_length=1, max_length=MAX_COLUMNS, fail_fast=True)
    label: Name
    missing_values: tuple[Annotated[Value, Field(max_length=100)], ...] = Field(
        default=MISSING_VALUES, max_length=100, fail_fast=True
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
        return sum(column.width for column in self.columns)

    def read(
        self,
        path: str | Path,
        *,
        labelled: bool = True,
        form: Format = PLAIN,
        others: Collection[str] | None = None,
    ) -> Table:
        """The table in a file, refused without the agreed label unless `labelled` is false; LIBSVM in full width.

        `form` is how this file is written, as far as that cannot be found out. Of all columns but those agreed on only
        `others` are needed, if they are named.
        """
        indices = [int(c.name[1:]) for c in self.columns if re.fullmatch(r"f[1-9][0-9]{0,6}", c.name)]
        # Files that do not name their label lend it the agreed name, also where nobody needs it.
        label = None if names_its_label(path) else self.label
        agreed = [*(column.name for column in self.columns), self.label]
        wanted = () if others is None else (*agreed, *others, *(name for name, _ in (*form.dates, *form.units)))
        table = read_table(path, label=label, least_features=max(indices, default=0), form=form, wanted=wanted)
        if labelled:
            self.require_label(table)
        return table

    def require_label(self, table: Table) -> None:
        """Refuse a table without the agreed label."""
        if self.label in table.columns:
            return
        hint = where_labels_lie(Path(table.source))
        if hint is not None:
            raise DataError(f"{table.source} has images but no labels. {hint}")
        raise DataError(
            f"{table.source} has no label column {self.label!r}. It has: {names_text(list(table.columns))}.{table.hint}"
            f"{self._label_offer(table)}"
        )

    def _label_offer(self, table: Table) -> str:
        """The column that is probably the label's: by its name, or the only one that nothing else explains."""
        unused = self.unused(table)
        absent = [column.name for column in self.columns if column.name not in table.columns]
        explained = set(partners(absent, unused).values())
        left = [name for name in unused if name not in explained]
        if len(left) != 1 or partners([self.label], left):
            return rename_offer([self.label], left)
        return f" If it is {left[0]!r}: {option('--rename', left[0], self.label)}"

    def require_columns(self, table: Table) -> None:
        """Refuse a table that lacks agreed columns."""
        absent = [column.name for column in self.columns if column.name not in table.columns]
        if absent:
            raise DataError(
                f"{table.source} lacks the agreed column{'s' * (len(absent) > 1)} {names_text(absent)}. "
                f"It has: {names_text(list(table.columns))}.{table.hint}{rename_offer(absent, self.unused(table))}"
            )

    def encode(self, table: Table) -> NDArray[np.float32]:
        """The table's rows as (rows, features) in the schema's order, whatever the order of its columns."""
        self.require_columns(table)
        check_encoded_size(table.n_rows, self.n_features, table.source)
        X = np.zeros((table.n_rows, self.n_features), dtype=np.float32)
        start = 0
        for column in self.columns:
            column.encode(
                table,
                X[:, start : start + column.width],
                missing_values=self.missing_values,
                scale=self.scale,
                refuse_unseen=self.unseen == "refuse",
            )
            start += column.width
        return X

    def labels(self, table: Table, classes: Sequence[str | int]) -> NDArray[np.int64]:
        """The index into the agreed `classes` of each row's label; "1", 1 and 1.0 are the same label."""
        places = {as_key(each): index for index, each in enumerate(classes)}
        if len(places) != len(classes):
            raise ConfigurationError(f"The classes {names_text(classes)} contain the same class twice.")
        self.require_label(table)
        values = table.columns[self.label]
        truths = truth_places(classes)

        def of_some(values: list[Any]) -> NDArray[np.int64]:
            keys = map(as_key, values)
            return np.array([places.get(key, truths.get(truth_of(key) or "", -1)) for key in keys], dtype=np.int64)

        codes = by_value(values, of_some)
        wrong = np.flatnonzero(codes < 0)
        if len(wrong):
            raise DataError(self._label_fault(table, wrong, classes))
        return codes

    def _label_fault(self, table: Table, wrong: NDArray[np.int64], classes: Sequence[str | int]) -> str:
        """What is wrong with the labels of these rows: missing, or no agreed classes."""
        values = table.columns[self.label]
        absent = np.array([key is None for key in keys_of(values[wrong], ("", *self.missing_values))], dtype=bool)
        count, strange = int(absent.sum()), wrong[~absent]
        first = wrong[0] if count == len(wrong) else strange[0]
        said = (
            f"{table.at(first)}: the label {value_text(values, first)} in column {self.label!r} is not "
            f"one of the agreed classes {names_text(classes)}{others(strange)}. {footer_hint(table, wrong)}"
        )
        if len(strange):
            said += (
                f"Correct it or leave the row out.{label_offer(values[strange], classes)}{' Besides, ' * (count > 0)}"
            )
        if count == 1:
            said += "1 label is missing: fill it in or leave the row out."
        elif count:
            said += f"{count:,} labels are missing: fill them in or leave the rows out."
        return said

    def check_dates_decided(self, table: Table) -> None:
        """Refuses dates with slashes: what comes first other rows would say, and one row could turn them all."""
        for column in self.columns:
            texts = different_texts(table, column.name, self.missing_values) if column.date else ()
            if any(form_of(text) == "slashes" for text in texts):
                raise DataError(
                    f"{table.source}: the dates in column {column.name!r} have slashes or dashes. Where records are "
                    "protected, no row may decide how others are read. Say what comes first: "
                    f"{option('--dates', column.name, 'dd/mm/yyyy')} or {option('--dates', column.name, 'mm/dd/yyyy')}"
                )

    def unused(self, table: Table) -> tuple[str, ...]:
        """The table's columns that the schema does not use, apart from the label."""
        agreed = {column.name for column in self.columns} | {self.label}
        return tuple(name for name in table.columns if name not in agreed)

    def unseen_notes(self, table: Table) -> tuple[str, ...]:
        """A sentence for every column with values that are not among its agreed categories, and the first few."""
        notes: list[str] = []
        for column in self.columns:
            if column.kind == "category" and column.name in table.columns:
                rows = np.flatnonzero(column.places(table, self.missing_values) == UNSEEN)
                unseen = column.keys(table.columns[column.name][rows], self.missing_values) if len(rows) else []
                examples = [key for key in dict.fromkeys(unseen) if key is not None][:MAX_EXAMPLES]
                if unseen:
                    notes.append(
                        f"{len(unseen)} of {table.n_rows} values of {column.name!r} in {table.source} "
                        f"({', '.join(repr(each[:80]) for each in examples)}{', …' * (len(unseen) > len(examples))}) "
                        f"{'is' if len(unseen) == 1 else 'are'} not among the agreed categories and "
                        f"count{'s' * (len(unseen) == 1)} as none of them."
                    )
            if column.kind == "text" and column.name in table.columns:
                notes.extend(self._wordless_notes(table, column))
        return tuple(notes)

    def _wordless_notes(self, table: Table, column: Column) -> Iterator[str]:
        """A sentence where texts have none of the agreed words."""
        agreed = frozenset(column.terms)
        texts = known_texts(table, column.name, self.missing_values)
        silent = sum(agreed.isdisjoint(words_of(text)) for text in texts if text is not None)
        if silent:
            yield (
                f"{silent} of {table.n_rows} texts in {column.name!r} of {table.source} "
                f"{'has' if silent == 1 else 'have'} none of the agreed words and "
                f"say{'s' * (silent == 1)} nothing to the models."
            )


def label_offer(unknown: NDArray[Any], classes: Sequence[str | int]) -> str:
    """How labels that are no agreed classes would be called as agreed; the class stays open where none is like them."""
    found = list(dict.fromkeys(as_key(each) for each in unknown.tolist()))[: len(classes)]
    near = {label: nearest(label, [str(each) for each in classes]) for label in found}
    offer = map_offer("--label-map", {label: agreed or "CLASS" for label, agreed in near.items()})
    if any(near.values()):
        return f" Did you mean {offer}?"
    return f" If the file has names of its own for the classes, say which is which: {offer}"


def fit_schema(
    public: Table,
    *,
    label: str,
    categorical: Collection[str] | None = None,
    text: Collection[str] = (),
    terms: int = USUAL_TERMS,
    ignore: Collection[str] = (),
    missing: Literal["as-seen", "allow", "refuse"] = "as-seen",
    unseen: Literal["ignore", "refuse"] = "ignore",
    scale: bool = True,
    missing_values: Sequence[str] | None = None,
) -> Schema:
    """The schema of the public rows: a column of numbers is a number, unless listed in `categorical`; else a category.

    A column listed in `text` holds texts, of which at most `terms` words count (see `fedkt.data.words`).
    `missing` says which columns may have missing values at a party: those that have some in the public rows
    ("as-seen"), all ("allow") or none ("refuse"). A label column among the public rows is not looked at. Images have
    one scale for each channel and no missing pixels.
    """
    if missing not in ("as-seen", "allow", "refuse"):
        raise ConfigurationError(f"missing is 'as-seen', 'allow' or 'refuse', got {missing!r}.")
    if isinstance(terms, bool) or not isinstance(terms, int) or not 1 <= terms <= MOST_TERMS:
        raise ConfigurationError(f"terms is a whole number from 1 to {MOST_TERMS:,}, got {terms!r}.")
    categories, texts = frozenset(categorical or ()), frozenset(text)
    if both := sorted(texts & (categories | frozenset(ignore))):
        raise ConfigurationError(f"Column {both[0]!r} is to be text, and a category or left out as well. Choose one.")
    unknown = [name for name in (*categories, *texts, *ignore) if name not in public.columns and name != label]
    if unknown:
        raise DataError(
            f"{public.source} has no column {names_text(sorted(unknown))}. It has: {names_text(list(public.columns))}."
        )
    refuse_odd_table(public, label, ignore)
    names = [name for name in public.columns if name != label and name not in ignore]
    if not names or not public.n_rows:
        raise DataError(f"{public.source} has no {'columns' if not names else 'rows'} to fit a schema on.")
    unknowns = tuple(MISSING_VALUES if missing_values is None else missing_values)
    try:
        image = None if (categories | texts) & set(names) else image_shape(names)
        columns = None if image is None else fit_pixels(public, names, image, unknowns)
        if columns is None:
            kinds: dict[str, Kind] = {**dict.fromkeys(categories, "category"), **dict.fromkeys(texts, "text")}
            columns = [fit_column(public, name, kinds.get(name), missing, unknowns, terms) for name in names]
        return Schema(columns=tuple(columns), label=label, missing_values=unknowns, unseen=unseen, scale=scale)
    except ValidationError as reason:
        faults = "; ".join(fault["msg"].removeprefix("Value error, ") for fault in reason.errors()[:5])
        raise DataError(f"{public.source} cannot be used as public rows: {reason.title}: {faults}.") from reason
