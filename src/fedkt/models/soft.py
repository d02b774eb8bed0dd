"""Train a classifier on distributions over the classes instead of labels; networks learn them as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ModelError
from fedkt.models.base import FittedModel, fit_model
from fedkt.models.catalogue import family_of
from fedkt.models.parameters import untrained_copy
from fedkt.system.threads import one_thread

if TYPE_CHECKING:
    from fedkt.models.forests.bins import Bins

Shares = NDArray[np.float64]
"""A distribution over the classes for each row."""
NEGLIGIBLE = 1e-6
"""A class of a smaller share is left out of a row."""
SAMPLE_WEIGHT = "sample_weight"
"""What scikit-learn's estimators call the weights of rows; a pipeline's have the name of a step before it."""


def fit_soft(
    estimator: Any, X: Any, shares: Shares, *, rng: np.random.Generator, bins: Bins | None = None
) -> FittedModel:
    """A copy of `estimator` that has learned a distribution over the classes on each row of X; `bins` are those of X.

    A row is given once for each class, with the class's share as its weight, unless its family learns shares of two
    classes as they are. Weights of the classes themselves are left out: whoever found the distribution had them.
    """
    from sklearn import config_context

    from fedkt.models.class_weights import without_class_weights

    row = row_weight(estimator)
    if row is None:
        raise ModelError(f"{type(estimator).__name__} cannot learn distributions over the classes, only labels.")
    name, weight = row
    own = untrained_copy(without_class_weights(estimator), rng)
    counted = np.where(shares > NEGLIGIBLE, shares, 0.0)
    present = np.flatnonzero(counted.any(axis=0))
    fit_shares = family_of(own).fit_shares if name == SAMPLE_WEIGHT else None
    total = counted.sum(axis=1)
    if fit_shares is not None and len(present) == 2 and np.allclose(total, 1):
        with one_thread():
            trained = fit_shares(own, X, counted[:, present[1]] / total, weight)
        if trained is not None:
            return FittedModel(trained, present, X.shape[1])
    rows, labels = np.nonzero(counted)
    # Under metadata routing a pipeline takes no weights for its last step, unless its user has asked for them.
    with config_context(enable_metadata_routing=False):
        weights = {name: weight * shares[rows, labels]}
        return fit_model(own, X, labels, rng=rng, fit_params=weights, rows=rows, bins=bins)


def row_weight(estimator: Any) -> tuple[str, float] | None:
    """What an estimator's `fit` calls the weights of rows, and what a row should weigh; None where it should not."""
    if type(estimator).__name__ == "Pipeline":
        step, last = estimator.steps[-1]
        inner = row_weight(last)
        return None if inner is None else (f"{step}__{inner[0]}", inner[1])
    weight = family_of(estimator).row_weight
    return None if weight is None else (SAMPLE_WEIGHT, weight)
