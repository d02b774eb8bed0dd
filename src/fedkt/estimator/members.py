"""Whose each row is and how much it counts: the parties of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import DataError
from fedkt.estimator.inputs import check_owner_count, class_codes, row_owners
from fedkt.federation import Party, Server
from fedkt.federation.sides import check_row_weights
from fedkt.models.base import count_rows, take_rows


@dataclass(frozen=True)
class PrivateRows:
    """The labelled rows of all parties."""

    X: Any
    codes: NDArray[np.int64]
    """Each row's class, as an index into the list of classes."""
    owners: NDArray[np.str_]
    """The name of each row's party."""
    weights: NDArray[np.float64] | None = None
    """How much each row counts; None for all the same."""
    usual_weight: float = 1.0
    """What a row weighs on average, or 1 where that must not depend on all of them."""

    def take(self, rows: NDArray[np.int64]) -> PrivateRows:
        """Some of them."""
        weights = None if self.weights is None else self.weights[rows]
        return PrivateRows(
            take_rows(self.X, rows), self.codes[rows], self.owners[rows], weights, usual_weight=self.usual_weight
        )


def row_weights_of(sample_weight: ArrayLike | None, n_rows: int, *, level: str) -> NDArray[np.float64] | None:
    """How much each row counts, None for all the same; a single number stands for every row.

    Only where no record is protected must one of them count: at level L2 whether it does is the last one's secret.
    """
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise DataError(f"sample_weight has to be numbers: {reason}") from reason
    weights = np.full(n_rows, weights) if weights.ndim == 0 else weights
    check_row_weights(weights, n_rows, "sample_weight")
    if level != "L2" and not weights.any():
        raise DataError("sample_weight is zero for every row: there is nothing to learn from.")
    return weights


def private_rows(
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    parties: ArrayLike | None,
    *,
    class_labels: ArrayLike | None,
    n_parties: int,
    level: str,
    rng: np.random.Generator,
) -> tuple[NDArray[Any], PrivateRows]:
    """The classes, and the rows that count with the class and the party of each.

    At level L2 rows of weight 0 stay for now, so that nobody else's place depends on them (see `Lesson`), and what is
    usual does not depend on them either.
    """
    weights = row_weights_of(sample_weight, count_rows(X), level=level)
    classes, codes = class_codes(X, y, class_labels)
    if weights is not None and level != "L2" and not weights.all():
        # Before anything else is drawn or dealt: the same as if these rows had not been given.
        check_owner_count(parties, len(codes))
        counted = np.flatnonzero(weights)
        X, weights = take_rows(X, counted), weights[counted]
        classes, codes = class_codes(X, classes[codes[counted]], class_labels)
        parties = None if parties is None else np.asarray(parties, dtype=object)[counted]
    owners = row_owners(len(codes), parties, n_parties=n_parties, rng=rng)
    usual = 1.0 if weights is None or level == "L2" else float(weights.mean())
    return classes, PrivateRows(X, codes, owners, weights, usual)


def party_per_owner(private: PrivateRows, server: Server, models: Mapping[str, Any]) -> list[Party]:
    """A party for each name that holds rows, with the server's public rows, classes and seed."""
    parties = []
    for name in sorted(set(private.owners.tolist())):
        rows = private.take(np.flatnonzero(private.owners == name))
        parties.append(
            Party(
                server.public,
                server.classes,
                server.seed,
                image=server.image,
                name=name,
                X=rows.X,
                y=rows.codes,
                weights=rows.weights,
                usual_weight=rows.usual_weight,
                model=models.get(name),
            )
        )
    return parties
