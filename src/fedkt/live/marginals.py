"""What a party tells of its columns so that public rows can be made: counts of bins, and how two columns go together.

With an ε everything leaves as one vector with Gaussian noise, once it is written into the party's ledger (`Layout` says
how far a record moves it). Without one the counts are exact, and protect nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from fedkt.data.copula import Copula, Floats, fit_copula
from fedkt.data.description import Description, fault_words
from fedkt.data.marginals import Layout, layout_of, scores_of, tell
from fedkt.data.table import Table
from fedkt.errors import ConfigurationError, DataError, FedKTError
from fedkt.live.public_files import read_toml, toml_bytes
from fedkt.plan.parts import NAME, PartyName
from fedkt.privacy import Ledger, price_together
from fedkt.privacy.calibrate import smallest_noise
from fedkt.privacy.ledger import total_of
from fedkt.privacy.ledger_file import LedgerFile
from fedkt.privacy.price import Price, marginals_release
from fedkt.privacy.statement import rounded_up
from fedkt.privacy.stream import Stream
from fedkt.privacy.sums import GaussianSums

SMALLEST_CELL = 10
"""Exact counts below it are written as 0."""
FEWEST_ROWS = 100
"""Of fewer rows exact sums of products stay at home."""
SLACK = 1e-6
"""How much smaller than ours a file's ε may be, relative to it: another library's last digits."""
MOST = 2**53

Number = Annotated[FiniteFloat, Field(ge=-MOST, le=MOST)]


class Promise(BaseModel):
    """What the noise in a file promises, in the figures that everybody can check."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mechanism: Literal["gaussian-sums"]
    sigma: Annotated[FiniteFloat, Field(gt=0)]
    epsilon: Annotated[FiniteFloat, Field(gt=0)]
    delta: Annotated[FiniteFloat, Field(gt=0, lt=1)]
    unit: Literal["record"]
    adjacency: Literal["replace-one"]


class Marginals(BaseModel):
    """What one party tells of its columns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    party: PartyName
    promise: Promise | None = None
    """None for exact counts."""
    counts: tuple[tuple[Number, ...], ...]
    """Rows in each bin of each column, that of missing values last."""
    products: tuple[Number, ...] = ()
    """Sums of the products of two columns' scores, pair by pair; none where columns are told alone."""
    description: Description

    @model_validator(mode="after")
    def _checked(self) -> Marginals:
        layout = self.layout
        if tuple(len(own) for own in self.counts) != layout.sizes:
            raise ValueError("there is not one count for each bin of each column, and one more for missing values")
        if len(self.products) != layout.n_products:
            raise ValueError(f"{len(self.products)} products of columns, but {layout.n_products} pairs")
        if self.promise is None and any(each < 0 for own in self.counts for each in own):
            raise ValueError("exact counts are not below 0")
        return self

    @property
    def layout(self) -> Layout:
        """What is told, and how it was scaled."""
        return layout_of(self.description, paired=bool(self.products))

    @property
    def in_words(self) -> str:
        """What whoever has the file learns."""
        if self.promise is None:
            return (
                f"exact counts of the rows of {self.party!r} by column and bin; counts below {SMALLEST_CELL} stand as "
                "0. Exact counts protect nobody: who knows all rows but one can work out that one."
            )
        return (
            f"noisy counts of the rows of {self.party!r} by column and bin, epsilon {rounded_up(self.promise.epsilon)} "
            f"at delta {self.promise.delta:g} for one {self.promise.unit} ({self.promise.adjacency}), beside "
            "everything else that is released about the same rows."
        )


@dataclass(frozen=True)
class Told:
    """What a party has released about its columns, and what that cost it."""

    marginals: Marginals
    ledger: str | None
    total_epsilon: float | None
    """What everything in its ledger costs together, this release included."""
    new_ledger: bool = False
    """Whether there was no such ledger before."""


def check_told(description: Description, name: str, label: str | None) -> None:
    """Refuse a name that no party has, and a schema that would tell the label."""
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            f"--name {name}: a party's name has 1 to 64 letters, digits, - or _, and starts with a letter or digit."
        )
    if label is not None and label in {each.name for each in description.columns}:
        raise ConfigurationError(
            f"The schema tells {label!r}, which is the label. Public rows have no labels: take it out of the schema."
        )


def tell_exactly(table: Table, description: Description, name: str, *, paired: bool) -> Told:
    """The counts as they are, small ones left out: no promise."""
    paired = layout_of(description, paired=paired and table.n_rows >= FEWEST_ROWS).paired
    counts, products = tell(description.codes(table), scores_of(description), paired=paired)
    floored = [np.where(own < SMALLEST_CELL, 0.0, own) for own in counts]
    return Told(_marginals(name, description, floored, products), None, None)


def tell_with_noise(
    table: Table,
    description: Description,
    name: str,
    *,
    epsilon: float,
    delta: float,
    ledger_path: Path,
    most_epsilon: float | None = None,
    paired: bool = True,
) -> Told:
    """The counts with noise of this ε, written into the ledger before anything is counted."""
    noise = smallest_noise(
        GaussianSums.name, epsilon=epsilon, delta=delta, queries=1, voters=1, classes=2, unit="record"
    ).rounded()
    assert isinstance(noise, GaussianSums)
    layout, scores, codes = layout_of(description, paired=paired), scores_of(description), description.codes(table)
    release, new = marginals_release(noise), not ledger_path.exists()
    file = LedgerFile.open(ledger_path)
    ledger = Ledger(owner=name, delta=delta, budget=most_epsilon, file=file)
    steps = ledger.release_sums(lambda: layout.total(codes, scores), release, shape=layout.shape, rng=Stream.fresh())
    price = ledger.price()
    assert price is not None
    noisy = steps.astype(np.float64) * noise.step
    told = _marginals(name, description, *layout.parts(noisy), promise=promise_of(noise, price))
    return Told(told, str(ledger_path), total_of(file.spent(who=name), delta), new)


def promise_of(noise: GaussianSums, price: Price) -> Promise:
    """The figures of a price."""
    return Promise(
        mechanism="gaussian-sums",
        sigma=noise.sigma,
        epsilon=price.epsilon,
        delta=price.delta,
        unit="record",
        adjacency="replace-one",
    )


def _marginals(
    name: str, description: Description, counts: Sequence[Floats], products: Floats, promise: Promise | None = None
) -> Marginals:
    return Marginals(
        party=name,
        promise=promise,
        counts=tuple(tuple(float(each) for each in own) for own in counts),
        products=tuple(float(each) for each in products),
        description=description.bins,
    )


def write_marginals(told: Marginals) -> bytes:
    """The file, with a head in words."""
    return toml_bytes(told.model_dump(mode="json", exclude_none=True), [f"fedkt: {told.in_words}"])


def read_marginals(path: Path) -> Marginals:
    """What a party told, every value checked, and its price worked out again."""
    values = read_toml(path, "file of marginals")
    try:
        told = Marginals.model_validate(values)
    except ValidationError as reason:
        raise DataError(f"{path}: {fault_words(reason)} Is it what `fedkt public marginals` wrote?") from reason
    if told.promise is not None:
        try:
            release = marginals_release(GaussianSums(told.promise.sigma))
        except FedKTError as reason:
            raise DataError(f"{path} names an impossible noise: {reason}") from reason
        epsilon = price_together([release], told.promise.delta).epsilon
        if not told.promise.epsilon >= epsilon * (1 - SLACK):
            raise DataError(
                f"{path} understates epsilon: it says {told.promise.epsilon:.6g}, its noise costs {epsilon:.6g}. "
                f"Ask {told.party!r} for the file that `fedkt public marginals` wrote."
            )
    return told


def pooled_copula(parties: Sequence[tuple[Path, Marginals]]) -> Copula:
    """What rows are drawn from, of what several parties told: everybody counts by its rows."""
    first_path, first = parties[0]
    seen: dict[str, Path] = {}
    for path, told in parties:
        if told.description.digest != first.description.digest:
            raise DataError(
                f"{path} has other columns or bins than {first_path}. Everybody needs the same --schema: send it "
                "again, and have the marginals made anew (with noise that is another release)."
            )
        if told.party in seen:
            raise DataError(f"{seen[told.party]} and {path} are both from {told.party!r}. Pass one of them.")
        seen[told.party] = path
    counts = _added(each for _, each in parties)
    both = [each for _, each in parties if each.products]
    if not both:
        return fit_copula(first.description, counts)
    products = np.sum([np.array(each.products) for each in both], axis=0)
    noisy = [GaussianSums(each.promise.sigma).variance for each in both if each.promise is not None]
    variance = sum(noisy) / both[0].layout.product_weight ** 2
    return fit_copula(first.description, counts, pairs=(_added(both), products), variance=variance)


def _added(parties: Iterable[Marginals]) -> list[Floats]:
    """The counts of several parties, column by column."""
    return [np.sum(own, axis=0) for own in zip(*(each.counts for each in parties), strict=True)]
