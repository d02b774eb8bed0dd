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
FITTED_TO_FREQUENCIES = TREE_ENSEMBLES - {"RandomForestClassifier", "ExtraTreesClassifier"} | {
    "DecisionTreeClassifier",
    "ExtraTreeClassifier",
    "LogisticRegression",
}
"""Families that are fitted to how often a class occurs: they find it about as probable as it is.

Forests are averages of trees that differ, which are never quite sure. Naive Bayes is surer than it has reason to be.
"""
WEIGHS_CLASSES: dict[str, Any] = {
    "class_weight": None,
    "class_weights": None,
    "auto_class_weights": None,
    "scale_pos_weight": 1.0,
    "is_unbalance": False,
    "priors": None,
    "class_prior": None,
    "fit_prior": True,
}
"""Parameters that make a class weigh more or less than its rows, and what they are without it."""
NEGLIGIBLE = 1e-6
"""A class of a smaller share is left out of a row."""


def fit_soft(estimator: Any, X: Any, shares: Shares, *, rng: np.random.Generator) -> FittedModel:
    """A copy of `estimator` that has learned a distribution over the classes on each row of X.

    A row is given once for each class, with the class's share as its weight. Weights of the classes themselves are left
    out: whoever found the distribution had them.
    """
    from sklearn import config_context

    known = weighing(estimator)
    if known is None:
        raise ModelError(f"{type(estimator).__name__} cannot learn distributions over the classes, only labels.")
    name, weight = known
    rows, labels = np.nonzero(shares > NEGLIGIBLE)
    # Under metadata routing a pipeline takes no weights for its last step, unless its user has asked for them.
    with config_context(enable_metadata_routing=False):
        given = {name: weight * shares[rows, labels]}
        return fit_model(unweighted(estimator), take_rows(X, rows), labels, rng=rng, given=given)


def unweighted(estimator: Any) -> Any:
    """A copy to which every class weighs as much as its rows."""
    from sklearn.base import clone

    own = clone(estimator)
    last = last_step(own)
    given = {name: value for name, value in last.get_params(deep=False).items() if name in WEIGHS_CLASSES}
    last.set_params(**{name: WEIGHS_CLASSES[name] for name, value in given.items() if value is not None})
    return own


def fitted_to_frequencies(estimator: Any) -> bool:
    """Whether an estimator is of a calibrated family, at the end of a pipeline or alone."""
    return type(last_step(estimator)).__name__ in FITTED_TO_FREQUENCIES


def last_step(estimator: Any) -> Any:
    """What classifies: the end of a pipeline, or the estimator itself."""
    return last_step(estimator.steps[-1][1]) if type(estimator).__name__ == "Pipeline" else estimator


def weighing(estimator: Any) -> tuple[str, float] | None:
    """What an estimator's `fit` calls the weights of rows, and what a row should weigh; None where it should not."""
    if type(estimator).__name__ == "Pipeline":
        name, last = estimator.steps[-1]
        inner = weighing(last)
        return None if inner is None else (f"{name}__{inner[0]}", inner[1])
    weight = ROW_WEIGHTS.get(type(estimator).__name__)
    return None if weight is None else ("sample_weight", weight)
