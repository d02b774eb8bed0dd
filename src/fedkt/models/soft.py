"""Train a classifier on distributions over the classes instead of labels; networks learn them as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ModelError
from fedkt.models.base import FittedModel, fit_model, take_rows
from fedkt.models.catalogue import TREE_ENSEMBLES

Shares = NDArray[np.float64]
"""A distribution over the classes for each row."""
ROW_WEIGHTS: dict[str, float] = {
    # Boosting finds rows of weight 1 too light to be told apart once they are split up; to other trees it is all one.
    **dict.fromkeys((*TREE_ENSEMBLES, "DecisionTreeClassifier", "ExtraTreeClassifier"), 100.0),
    **dict.fromkeys(("LogisticRegression", "GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB"), 1.0),
}
"""What a row weighs in all, by family. Others cannot learn the same row under several labels.

Those that hold rows back to calibrate themselves find rows among them that they have learned, a nearest neighbour has
others at the same distance, and steps that grow with the weight of a row end nowhere.
"""
NEGLIGIBLE = 1e-6
"""A class of a smaller share is left out of a row."""


def fit_soft(estimator: Any, X: Any, shares: Shares, *, rng: np.random.Generator) -> FittedModel:
    """A copy of `estimator` that has learned a distribution over the classes on each row of X.

    A row is given once for each class, with the class's share as its weight.
    """
    known = weighing(estimator)
    if known is None:
        raise ModelError(f"{type(estimator).__name__} cannot learn distributions over the classes, only labels.")
    name, weight = known
    rows, labels = np.nonzero(shares > NEGLIGIBLE)
    return fit_model(estimator, take_rows(X, rows), labels, rng=rng, given={name: weight * shares[rows, labels]})


def weighing(estimator: Any) -> tuple[str, float] | None:
    """What an estimator's `fit` calls the weights of rows, and what a row should weigh; None where it should not."""
    if type(estimator).__name__ == "Pipeline":
        name, last = estimator.steps[-1]
        inner = weighing(last)
        return None if inner is None else (f"{name}__{inner[0]}", inner[1])
    weight = ROW_WEIGHTS.get(type(estimator).__name__)
    return None if weight is None else ("sample_weight", weight)
