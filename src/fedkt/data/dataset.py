"""One drawn split of a dataset: the parties' rows, the public rows and the test rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ConfigurationError

SPLIT_STREAM = 0x5B117
"""Keeps the draw of the split apart from whatever else an experiment draws from the same seed."""
PUBLIC_STREAM = 0x9B11C
"""The same for the draw of some of the public rows."""


@dataclass(frozen=True)
class Dataset:
    """What an experiment needs: rows by role, class indices, and where they came from."""

    name: str
    X: NDArray[np.float32]
    """The parties' rows; a partition deals them out."""
    y: NDArray[np.int64]
    """The index into `classes` of each of the parties' rows."""
    X_public: NDArray[np.float32]
    """Rows that everybody may see, without labels."""
    y_public: NDArray[np.int64] | None
    """True classes of the public rows: only to measure how good the labels of a simulation are; None if not known."""
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    classes: tuple[str | int, ...]
    groups: NDArray[np.str_] | None
    """The natural silo of each of the parties' rows (the hospital), where the data has one."""
    source: str
    """Where the rows came from, in words."""
    feature_names: tuple[str, ...]
    image: tuple[int, int, int] | None = None
    """Height, width and channels, where every row is an image's pixels in this order; None for tables."""
    notes: tuple[str, ...] = ()
    """What is odd about the rows, in sentences."""


def with_fewer_public(data: Dataset, share: float, *, seed: int) -> Dataset:
    """The dataset with this share of its public rows, drawn at random: a smaller share is part of a larger one."""
    if share == 1:
        return data
    order = np.random.default_rng([seed, PUBLIC_STREAM]).permutation(len(data.X_public))
    rows = np.sort(order[: max(1, round(share * len(order)))])
    return replace(data, X_public=data.X_public[rows], y_public=None if data.y_public is None else data.y_public[rows])


def with_skewed_public(data: Dataset, beta: float | None, *, seed: int) -> Dataset:
    """The dataset with public rows of other class shares, which Dirichlet(β) draws; None leaves them as they are.

    For simulations of what happens where public rows do not resemble the parties' rows: it looks at their labels.
    """
    if beta is None:
        return data
    if data.y_public is None:
        raise ConfigurationError(
            "The class shares of the public rows cannot be drawn (--public-beta): these public rows have no labels."
        )
    labels = data.y_public
    rng = np.random.default_rng([seed, PUBLIC_STREAM, 1])
    counts = np.bincount(labels, minlength=len(data.classes))
    shares = rng.dirichlet(np.full(len(counts), beta))
    # A class that runs out is drawn again and again: as many rows as before, with exactly these shares.
    shares = np.where(counts > 0, shares, 0.0)
    numbers = rng.multinomial(len(labels), shares / shares.sum())
    by_class = [
        rng.choice(np.flatnonzero(labels == label), number, replace=bool(number > counts[label]))
        for label, number in enumerate(numbers)
        if number
    ]
    rows = rng.permutation(np.concatenate(by_class))
    return replace(data, X_public=data.X_public[rows], y_public=labels[rows])


@dataclass(frozen=True)
class Split:
    """Row numbers by role; together they are all rows, each once."""

    train: NDArray[np.int64]
    public: NDArray[np.int64]
    test: NDArray[np.int64]


def assign_rows(
    name: str,
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    rows: Split,
    *,
    classes: tuple[str | int, ...],
    source: str,
    feature_names: tuple[str, ...],
    groups: NDArray[np.str_] | None = None,
    image: tuple[int, int, int] | None = None,
) -> Dataset:
    """A dataset with every row in the role that the split gives it."""
    return Dataset(
        name=name,
        X=X[rows.train],
        y=y[rows.train],
        X_public=X[rows.public],
        y_public=y[rows.public],
        X_test=X[rows.test],
        y_test=y[rows.test],
        classes=classes,
        groups=None if groups is None else groups[rows.train],
        source=source,
        feature_names=feature_names,
        image=image,
    )


def split_rows(n_rows: int, *, seed: int, held_out: float = 0.25) -> Split:
    """Rows shuffled, ⌈held_out · n⌉ of them kept from the parties, whose first half is public and the rest test."""
    return _cut(split_generator(seed).permutation(n_rows), int(np.ceil(held_out * n_rows)))


def split_rows_within(groups: NDArray[np.str_], *, seed: int, held_out: float) -> Split:
    """As `split_rows`, but cut within each group, so that every group is in every role in proportion."""
    rng = split_generator(seed)
    parts: list[Split] = []
    for group in np.unique(groups):
        shuffled = rng.permutation(np.flatnonzero(groups == group))
        parts.append(_cut(shuffled, round(held_out * len(shuffled))))
    # Shuffled again: a consumer that takes the first k public rows must not get one group only.
    roles = ([part.train for part in parts], [part.public for part in parts], [part.test for part in parts])
    return Split(*(rng.permutation(np.concatenate(rows)) for rows in roles))


def _cut(shuffled: NDArray[np.int64], n_held_out: int) -> Split:
    """The first rows held out, half of them public and the rest test; all others for the parties."""
    n_public = n_held_out // 2
    return Split(shuffled[n_held_out:], shuffled[:n_public], shuffled[n_public:n_held_out])


def split_generator(seed: int) -> np.random.Generator:
    """The generator a split is drawn from."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigurationError(f"A seed is a whole number of at least 0, got {seed!r}.")
    return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=(SPLIT_STREAM,)))
