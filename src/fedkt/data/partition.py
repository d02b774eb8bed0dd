"""One party per row: how the rows of a simulation are dealt out.

Every function here returns an array with one entry per row, the party that holds it. That array is what
`FedKTClassifier.fit(..., parties=…)` takes, so a column of hospital names does as well.

`by_dirichlet` is the partition the paper describes, `by_balanced_dirichlet` the one that its tables were made with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError, DataError

MAX_TRIES = 10_000
"""Draws before a Dirichlet partition gives up. A draw touches class counts only, not rows, so many are affordable."""

SMALLEST_BETA, LARGEST_BETA = 1e-6, 1e6
"""Beyond these the gamma variates behind a Dirichlet draw under- or overflow."""


def by_dirichlet(
    y: ArrayLike,
    n_parties: int,
    *,
    beta: float = 0.5,
    rng: np.random.Generator,
    min_rows: int | None = None,
    max_tries: int = MAX_TRIES,
) -> NDArray[np.int64]:
    """One party number per row: each class is cut among the parties by p ~ Dir(β), as the paper describes.

    The smaller `beta` (β), the more the parties differ in size and in their share of each class. Draws that leave a
    party without rows are repeated; where none of `max_tries` has a row for everybody the last one stands, and the
    numbers of parties that got none do not occur. With `min_rows` a party below that many is helped out instead, by
    rows drawn from the party that is largest at the time.
    """
    return _deal(y, n_parties, beta, rng, min_rows, max_tries, balanced=False)


def by_balanced_dirichlet(
    y: ArrayLike,
    n_parties: int,
    *,
    beta: float = 0.5,
    rng: np.random.Generator,
    min_rows: int = 10,
    max_tries: int = MAX_TRIES,
) -> NDArray[np.int64]:
    """One party number per row: Dirichlet shares, but a party that holds its N/n rows gets no more of later classes.

    With class proportions p, party j takes part in p_j · [size_j < N/n], renormalised; the rarest class is dealt first.
    The paper does not mention the step; its tables were made with it, and in this order on its two-class sets. Draws
    that leave a party with fewer than `min_rows` rows are repeated; where all of `max_tries` do, such parties of the
    last one get rows drawn from the party that is largest at the time.
    """
    return _deal(y, n_parties, beta, rng, min_rows, max_tries, balanced=True)


def evenly(n_rows: int, n_parties: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """One party number per row: at random, party sizes differing by at most one."""
    n_rows = _integer(n_rows, "The number of rows", 1)
    n_parties = _integer(n_parties, "The number of parties", 1)
    if n_parties > n_rows:
        raise ConfigurationError(
            f"{n_rows} rows cannot be dealt to {n_parties} parties: every party needs a row. Ask for fewer parties."
        )
    return rng.permutation(np.arange(n_rows, dtype=np.int64) % n_parties)


def by_column(values: ArrayLike | None) -> NDArray[np.str_]:
    """One party name per row: the values themselves, as text (a hospital, a branch, a device)."""
    if values is None:
        raise DataError(
            "This dataset has no column that says which party a row belongs to. "
            "Choose one of the partitions dirichlet, balanced or even."
        )
    column = np.asarray(values)
    if column.ndim != 1:
        raise DataError(f"A column of parties has one value per row, got an array of shape {column.shape}.")
    if len(column) == 0:
        raise DataError("The column of parties has no rows.")
    names = np.array(["" if value is None or value != value else str(value).strip() for value in column.tolist()])
    nameless = np.flatnonzero(names == "")
    if len(nameless):
        raise DataError(
            f"The column of parties is empty in {len(nameless)} of {len(names)} rows, first in row {nameless[0]}. "
            "Every row belongs to a party: fill the column in, or leave those rows out."
        )
    return names


PARTITIONERS: dict[str, Callable[..., NDArray[Any]]] = {
    "dirichlet": by_dirichlet,
    "balanced": by_balanced_dirichlet,
    "even": evenly,
    "column": by_column,
}
"""The partitions by the name they have on the command line and in plans."""


def partition(
    name: str,
    y: ArrayLike,
    n_parties: int,
    *,
    rng: np.random.Generator,
    beta: float = 0.5,
    groups: ArrayLike | None = None,
) -> NDArray[Any]:
    """One party per row by the partition called `name`; `column` uses `groups` and no other argument."""
    if name not in PARTITIONERS:
        raise ConfigurationError(f"Unknown partition {name!r}. Choose one of: {', '.join(PARTITIONERS)}.")
    if name == "column":
        return by_column(groups)
    if name == "even":
        return evenly(len(np.asarray(y)), n_parties, rng)
    return PARTITIONERS[name](y, n_parties, beta=beta, rng=rng)


def _deal(
    y: ArrayLike,
    n_parties: int,
    beta: float,
    rng: np.random.Generator,
    min_rows: int | None,
    max_tries: int,
    *,
    balanced: bool,
) -> NDArray[np.int64]:
    """Each row's party: first how many rows of each class a party gets, then which."""
    labels = np.asarray(y)
    n_parties = _integer(n_parties, "The number of parties", 1)
    floor = 1 if min_rows is None else _integer(min_rows, "min_rows, the rows every party must have,", 0)
    max_tries = _integer(max_tries, "max_tries", 1)
    if isinstance(beta, bool) or not isinstance(beta, Real) or not SMALLEST_BETA <= beta <= LARGEST_BETA:
        raise ConfigurationError(
            f"beta, the concentration of the Dirichlet partition, is a number from {SMALLEST_BETA:g} to "
            f"{LARGEST_BETA:g}, got {beta!r}. The paper uses 0.5; for equal shares choose the partition 'even'."
        )
    if labels.ndim != 1:
        raise DataError(f"Labels come one per row, got an array of shape {labels.shape}.")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise DataError(
            f"{int(np.isnan(labels).sum())} of {len(labels)} labels are NaN; a partition by class needs all."
        )
    if n_parties * max(floor, 1) > len(labels):
        raise ConfigurationError(
            f"{len(labels)} rows are too few for {n_parties} parties with at least {max(floor, 1)} rows each. "
            "Ask for fewer parties."
        )
    _, codes = np.unique(labels, return_inverse=True)
    counts = np.bincount(codes)
    usable = None
    for _ in range(max_tries):
        shares = _draw_shares(counts, n_parties, float(beta), rng, balanced=balanced)
        usable = usable if shares is None else shares
        if shares is not None and shares.sum(axis=0).min() >= floor:
            break
    if usable is None:
        raise ConfigurationError(
            f"None of {max_tries} Dirichlet draws (beta={beta:g}) dealt all of the {len(labels)} rows to {n_parties} "
            "parties. Ask for a larger beta, or the partition 'even'."
        )
    shares = usable if min_rows is None else _filled_up(usable, floor, rng)
    parties = np.empty(len(labels), dtype=np.int64)
    for label, share in enumerate(shares):
        parties[rng.permutation(np.flatnonzero(codes == label))] = np.repeat(np.arange(n_parties), share)
    return parties


def _draw_shares(
    counts: NDArray[np.int64], n_parties: int, beta: float, rng: np.random.Generator, *, balanced: bool
) -> NDArray[np.int64] | None:
    """Rows of each class (row) for each party (column), or None where the draw cannot be used."""
    shares = np.zeros((len(counts), n_parties), dtype=np.int64)
    # The order matters to the balanced variant only: whoever is full gets nothing of the classes drawn later.
    for label in np.argsort(counts, kind="stable"):
        count = counts[label]
        p = rng.dirichlet(np.full(n_parties, beta))
        if balanced:
            p = p * (shares.sum(axis=0) < counts.sum() / n_parties)
        total = p.sum()
        if not (math.isfinite(total) and total > 0):
            return None
        # The last cut is the count itself, whatever the rounding of the sum: no row is lost.
        cuts = np.minimum((np.cumsum(p / total)[:-1] * count).astype(np.int64), count)
        shares[label] = np.diff(cuts, prepend=0, append=count)
    return shares


def _filled_up(shares: NDArray[np.int64], floor: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The shares with at least `floor` rows for every party: one by one, at random, from the largest party."""
    sizes = shares.sum(axis=0)
    for party in np.flatnonzero(sizes < floor):
        while sizes[party] < floor:
            giver = int(sizes.argmax())
            label = int(rng.choice(len(shares), p=shares[:, giver] / sizes[giver]))
            for whose, more in ((giver, -1), (party, 1)):
                shares[label, whose] += more
                sizes[whose] += more
    return shares


def _integer(value: Any, what: str, least: int) -> int:
    """`value` as an int, refused unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ConfigurationError(f"{what} is a whole number of at least {least}, got {value!r}.")
    return int(value)
