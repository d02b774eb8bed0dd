"""Train any classifier on distributions over the classes instead of labels; networks learn them as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from fedkt.models.base import FittedModel, fit_model, take_rows

Shares = NDArray[np.float64]
"""A distribution over the classes for each row."""
WEIGHT = 100.0
"""What a row weighs in all. Boosting finds rows of weight 1 too light to be told apart once they are split up."""
NEGLIGIBLE = 1e-6
"""A class of a smaller share is left out of a row."""
DRAWS = 10
"""Labels drawn for each row where a family takes no weights."""


def fit_soft(estimator: Any, X: Any, shares: Shares, *, rng: np.random.Generator) -> FittedModel:
    """A copy of `estimator` that has learned a distribution over the classes on each row of X.

    A row is given once for each class, with the class's share as its weight; where the family takes no weights, a few
    times with labels drawn from the shares.
    """
    name = weight_parameter(estimator)
    if name is None:
        rows, labels = drawn(shares, rng)
        return fit_model(estimator, take_rows(X, rows), labels, rng=rng)
    rows, labels = np.nonzero(shares > NEGLIGIBLE)
    return fit_model(estimator, take_rows(X, rows), labels, rng=rng, given={name: WEIGHT * shares[rows, labels]})


def weight_parameter(estimator: Any) -> str | None:
    """What an estimator's `fit` calls the weights of rows, None where it takes none."""
    if type(estimator).__name__ == "Pipeline":
        name, last = estimator.steps[-1]
        inner = weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def drawn(shares: Shares, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """DRAWS times each row, with labels in evenly spread steps through its distribution."""
    steps = (np.arange(DRAWS) + rng.random((len(shares), 1))) / DRAWS
    ends = np.cumsum(shares, axis=1)[:, :-1]
    labels = sum((steps > end[:, None]).astype(np.int64) for end in ends.T)
    return np.repeat(np.arange(len(shares)), DRAWS), np.asarray(labels, dtype=np.int64).reshape(-1)
