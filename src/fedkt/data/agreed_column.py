"""One agreed column: how it is fitted on the public rows, and how a party's values become its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from fedkt.data.columns import Table, printable
from fedkt.data.disguises import looks_like_dates, refuse_disguised
from fedkt.data.notation import as_number, option
from fedkt.data.pixels import Image
from fedkt.data.texts import by_value, slices
from fedkt.data.truth import FALSE_TRUE, are_truths, truth_of
from fedkt.data.values import (
    as_key,
    dates_of,
    keys_of,
    known_texts,
    names_text,
    numbers_of,
    others,
    spelling_of,
    value_text,
)
from fedkt.data.words import LONGEST_TERM, MOST_TERMS, encode_words, fit_words
from fedkt.errors import DataError

UNSEEN, ABSENT = -1, -2
"""The places of values that are none of a column's categories, and of missing ones."""
MAX_CATEGORIES = 1_000
"""Different values of one category column; more are more likely names or dates than categories."""


def _one_line(text: str) -> str:
    if not printable(text):
        raise ValueError(f"{text[:40]!r} has a line break or another character that cannot be printed")
    return text


Name = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_one_line)]
Value = Annotated[str, Field(max_length=1_000), AfterValidator(_one_line)]
Term = Annotated[str, Field(min_length=1, max_length=LONGEST_TERM), AfterValidator(_one_line)]


Kind = Literal["number", "category", "text"]


class Column(BaseModel):
    """One agreed column: a number with its fill and scale, a category with its values, or text with its words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    kind: Kind
    missing: bool = False
    """Whether a party may have missing values here; they get a column of their own."""
    categories: tuple[Value, ...] = Field(default=(), max_length=MAX_CATEGORIES, fail_fast=True)
    fill: FiniteFloat = 0.0
    """What stands in for a missing number: the median of the public rows."""
    mean: FiniteFloat = 0.0
    scale: Annotated[FiniteFloat, Field(gt=0)] = 1.0
    date: bool = False
    """Whether the number is one of days since 1970-01-01, and each file has dates in its own way."""
    boolean: bool = False
    """Whether the categories are false and true, for which every file has its own words."""
    terms: tuple[Term, ...] = Field(default=(), max_length=MOST_TERMS, fail_fast=True)
    """The words of a text that count, as `fedkt.data.words` spells them."""
    weights: tuple[Annotated[FiniteFloat, Field(gt=0, le=100)], ...] = Field(
        default=(), max_length=MOST_TERMS, fail_fast=True
    )
    """How much each of them counts: the rarer in the public rows, the more."""

    @model_validator(mode="after")
    def _checked(self) -> Column:
        if (self.kind == "category") != bool(self.categories):
            raise ValueError(f"column {self.name!r}: a category has categories, a {self.kind} has none")
        if len(set(map(self.spelling, self.categories))) != len(self.categories):
            raise ValueError(f"column {self.name!r}: two categories are the same")
        if (self.kind == "text") != bool(self.terms) or len(self.terms) != len(self.weights):
            raise ValueError(f"column {self.name!r}: a text has terms and a weight for each, a {self.kind} has none")
        if len(set(self.terms)) != len(self.terms):
            raise ValueError(f"column {self.name!r}: two terms are the same")
        if self.date and self.kind != "number":
            raise ValueError(f"column {self.name!r}: a date is a number")
        if self.boolean and self.categories != FALSE_TRUE:
            raise ValueError(f"column {self.name!r}: the categories of a boolean are {', '.join(FALSE_TRUE)}")
        return self

    @model_serializer(mode="wrap")
    def _plain(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As a plan has it: what a column is not, plans of earlier versions did not say."""
        values: dict[str, Any] = serialize(self)
        later = ("date", "boolean", "terms", "weights")
        return {name: value for name, value in values.items() if value or name not in later}

    @property
    def spelling(self) -> Callable[[Any], str]:
        """How categories are spelt to be compared; plans of earlier versions may tell ä from an a with dots."""
        composed = len(set(map(as_key, self.categories)))
        return as_key if composed == len(set(map(spelling_of, self.categories))) else spelling_of

    def keys(self, values: NDArray[Any] | Sequence[Any], missing_values: Sequence[str]) -> list[str | None]:
        """Values as the categories are spelt, None where they are missing."""
        keys = keys_of(values, missing_values, self.spelling)
        return [None if key is None else truth_of(key) or key for key in keys] if self.boolean else keys

    def places(self, table: Table, missing_values: Sequence[str]) -> NDArray[np.int16]:
        """Which of the categories each row has: UNSEEN where none of them, ABSENT where its value is missing."""
        known: dict[str | None, int] = {self.spelling(text): place for place, text in enumerate(self.categories)}
        known[None] = ABSENT

        def of_some(values: list[Any]) -> NDArray[np.int16]:
            return np.array([known.get(key, UNSEEN) for key in self.keys(values, missing_values)], dtype=np.int16)

        return np.asarray(by_value(table.columns[self.name], of_some), dtype=np.int16)

    def numbers(self, table: Table, missing_values: Sequence[str]) -> NDArray[np.float64]:
        """The table's values as numbers, those of dates in days; NaN where they are missing."""
        return (dates_of if self.date else numbers_of)(table, self.name, missing_values)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns this one becomes."""
        own = {
            "number": (self.name,),
            "category": tuple(f"{self.name}={each}" for each in self.categories),
            "text": tuple(f"{self.name}: {each}" for each in self.terms),
        }[self.kind]
        return (*own, f"{self.name} is missing") if self.missing else own

    @property
    def width(self) -> int:
        """How many encoded columns this one becomes."""
        return max(len(self.categories), len(self.terms), 1) + self.missing

    def encode(
        self, table: Table, out: NDArray[np.float32], *, missing_values: Sequence[str], scale: bool, refuse_unseen: bool
    ) -> None:
        """Writes the encoded values of the table's column into `out`, which is all zeros."""
        values = table.columns[self.name]
        if self.kind == "text":
            texts = known_texts(table, self.name, missing_values)
            unknown = np.array([text is None for text in texts], dtype=bool)
            encode_words([text or "" for text in texts], self.terms, self.weights, out)
        elif self.kind == "number":
            unknown = self._write_numbers(self.numbers(table, missing_values), out, scale=scale)
            large = np.flatnonzero(~np.isfinite(out[:, 0]))
            if len(large):
                raise DataError(
                    f"{table.at(large[0])}: {value_text(values, large[0])} in column {self.name!r} is too large"
                    f"{others(large)}."
                )
        else:
            codes = self.places(table, missing_values)
            unknown = codes == ABSENT
            unseen = np.flatnonzero(codes == UNSEEN)
            if len(unseen) and refuse_unseen:
                raise DataError(
                    f"{table.at(unseen[0])}: {value_text(values, unseen[0])} in column {self.name!r} is not one "
                    f"of its agreed categories {names_text(self.categories)}{others(unseen)}."
                )
            for some in slices(len(codes)):
                matches = np.flatnonzero(codes[some] >= 0)
                out[some][matches, codes[some][matches]] = 1.0
        if self.missing:
            out[:, -1] = unknown
        elif unknown.any():
            rows = np.flatnonzero(unknown)
            raise DataError(
                f"{table.at(rows[0])}: column {self.name!r} is missing ({value_text(values, rows[0])})"
                f"{others(rows)}, but it was agreed to have no missing values. Fill it in, leave the row out, or agree "
                "on a schema that allows missing values."
            )

    def _write_numbers(
        self, numbers: NDArray[np.float64], out: NDArray[np.float32], *, scale: bool
    ) -> NDArray[np.bool_]:
        """Writes numbers as they are encoded into the first column, some rows at a time; which are missing."""
        unknown = np.isnan(numbers)
        for some in slices(len(numbers)):
            known = np.where(unknown[some], self.fill, numbers[some])
            with np.errstate(over="ignore"):
                out[some, 0] = (known - self.mean) / self.scale if scale else known
        return unknown


def fit_column(
    public: Table, name: str, kind: Kind | None, missing: str, unknowns: tuple[str, ...], terms: int
) -> Column:
    """The agreed form of one column: of that kind, or else a number where it can be and a category where not."""
    values = public.columns[name]
    numeric = kind is None and values.dtype.kind in "iuf"
    # Spelling out every number of a wide table would take minutes.
    keys = [] if numeric else keys_of(values, unknowns)
    absent = np.isnan(values) if numeric else np.array([key is None for key in keys], dtype=bool)
    present = [key for key in keys if key is not None]
    if absent.all():
        raise DataError(
            f"{public.source}: column {name!r} has no value in the public rows, so nothing can be agreed about it. "
            f"Leave it out ({option('--ignore', name)}) or use other public rows."
        )
    if absent.any() and missing == "refuse":
        row = np.flatnonzero(absent)[0]
        raise DataError(f"{public.at(row)}: column {name!r} is missing, and missing values were to be refused.")
    allowed = bool(absent.any()) if missing == "as-seen" else missing == "allow"
    if kind == "text":
        texts = [each for each in known_texts(public, name, unknowns) if each is not None]
        return fit_text(public, name, texts, allowed, terms)
    text = next((key for key in present if as_number(key) is None), None)
    known: Counter[str] = Counter()
    if text is not None and kind is None:
        known.update(each for each in known_texts(public, name, unknowns) if each is not None)
    dates = bool(known) and looks_like_dates(public, name, known)
    if dates or (kind is None and text is None):
        return _fit_number(public, name, allowed, unknowns, dates=dates)
    if kind is None:
        refuse_disguised(public, name, known)
        if are_truths(set(present)):
            return Column(name=name, kind="category", missing=allowed, categories=FALSE_TRUE, boolean=True)
    categories = sorted(set(present))
    if len(categories) > MAX_CATEGORIES:
        hint = f" ({text[:80]!r} is not a number)" if text is not None else ""
        raise DataError(
            f"{public.source}: column {name!r}{hint} has {len(categories):,} different values, more than the "
            f"{MAX_CATEGORIES:,} a category may have. Leave it out ({option('--ignore', name)}), correct it if it "
            f"should hold numbers, or say that it holds texts of many words: {option('--text', name)} "
            f"(text={[name]!r} in Python)."
        )
    return Column(name=name, kind="category", missing=allowed, categories=tuple(categories))


def fit_text(public: Table, name: str, texts: Sequence[str], missing: bool, most: int) -> Column:
    """The agreed words of a column of texts."""
    terms, weights = fit_words(texts, most)
    if not terms:
        raise DataError(
            f"{public.source}: the texts in column {name!r} have no word in the public rows, so nothing can be agreed "
            f"about them. Leave it out ({option('--ignore', name)}) or use other public rows."
        )
    return Column(name=name, kind="text", missing=missing, terms=terms, weights=weights)


def _fit_number(public: Table, name: str, missing: bool, unknowns: tuple[str, ...], *, dates: bool) -> Column:
    """The agreed form of a column of numbers, or of dates."""
    numbers = (dates_of if dates else numbers_of)(public, name, unknowns)
    numbers = numbers[~np.isnan(numbers)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = float(numbers.mean()), float(numbers.std())
    if not (np.isfinite(mean) and np.isfinite(spread)):
        raise DataError(f"{public.source}: the numbers in column {name!r} are too large to be averaged.")
    fill = float(np.median(numbers))
    return Column(name=name, kind="number", missing=missing, fill=fill, mean=mean, scale=spread or 1.0, date=dates)


def fit_pixels(public: Table, names: Sequence[str], image: Image, unknowns: Sequence[str]) -> list[Column] | None:
    """The agreed form of an image's pixels: one mean and scale for each channel; None if a pixel is missing.

    A scale for every pixel would blow up those that are nearly always black. No column says that a pixel is missing:
    it would be a second image, and an image has no gaps.
    """
    channels = image[2]
    columns: list[Column] = []
    for channel in range(channels):
        own = names[channel::channels]
        with np.errstate(over="ignore", invalid="ignore"):
            # Read twice, so that the images are never all here as float64.
            mean = float(np.mean([numbers_of(public, name, unknowns).mean() for name in own]))
            if np.isnan(mean):
                return None
            spread = float(np.sqrt(np.mean([np.mean((numbers_of(public, n, unknowns) - mean) ** 2) for n in own])))
        if not (np.isfinite(mean) and np.isfinite(spread)):
            raise DataError(f"{public.source}: the numbers in its pixels are too large to be averaged.")
        columns.append(Column(name=names[channel], kind="number", mean=mean, scale=spread or 1.0))
    return [columns[place % channels].model_copy(update={"name": name}) for place, name in enumerate(names)]
