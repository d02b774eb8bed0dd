"""Public and test rows set aside from a table: in every party and class as many as its share of the rows.

Drawn at random from the whole table, a class of six rows would often miss the test rows, and a small party lose all it
has. Here the rows stand party by party and class by class, in random order within, and every so-manieth is taken: no
party and no class gives a row more or less than its share. One row of each party and of each class stays with the
parties before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedkt.data.dataset import Split, split_generator
from fedkt.errors import DataError


def set_aside(
    labels: Sequence[str],
    owners: NDArray[np.str_] | None,
    *,
    seed: int,
    public: float,
    test: float,
    source: str,
) -> Split:
    """Row numbers by role, with these shares of all rows as public and test rows; a share of 0 is none."""
    rng = split_generator(seed)
    order = rng.permutation(len(labels))
    classes = np.unique(np.asarray(labels), return_inverse=True)[1]
    parties = np.zeros_like(classes) if owners is None else np.unique(owners, return_inverse=True)[1]
    # The first row of each in a random order is a random row of it.
    first = [np.unique(groups[order], return_index=True)[1] for groups in (classes, parties)]
    staying = np.unique(np.concatenate(first))
    free = np.delete(order, staying)
    free = free[np.lexsort((classes[free], parties[free]))]
    wanted = [0 if share == 0 else max(1, round(share * len(order))) for share in (public, test)]
    if sum(map(bool, wanted)) > len(free):
        raise DataError(
            f"{source} has {len(order)} rows: too few to set {' and '.join(named(public, test))} rows aside, where "
            f"each of {parties.max() + 1} parties and {classes.max() + 1} classes keeps a row. Pass them as files of "
            "their own (--public-file, --test-file), or bring more rows."
        )
    if sum(wanted) > len(free):
        # Many parties of a row or two: what they can spare is shared out as all rows would have been.
        wanted[0] = min(max(round(len(free) * wanted[0] / sum(wanted)), bool(wanted[0])), len(free) - bool(wanted[1]))
        wanted[1] = len(free) - wanted[0] if wanted[1] else 0
    tested, free = every(free, wanted[1], rng)
    shared, free = every(free, wanted[0], rng)
    # In random order again: a consumer that takes the first rows must not get one party's.
    return Split(*(rng.permutation(rows) for rows in (np.concatenate([order[staying], free]), shared, tested)))


def every(rows: NDArray[np.int64], count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """So many of the rows at equal distances, from a random start, and the others."""
    places = np.floor((np.arange(count) + rng.random()) * len(rows) / max(count, 1)).astype(np.int64)
    return rows[places], np.delete(rows, places)


def named(public: float, test: float) -> list[str]:
    """The roles whose rows are set aside."""
    return [name for name, share in (("public", public), ("test", test)) if share]
