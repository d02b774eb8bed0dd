"""Weights of rows: who takes them in training, and by what name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ConfigurationError
from fedkt.models.catalogue import family_of


def takes_row_weights(estimator: Any) -> bool:
    """Whether an estimator can be trained on rows that weigh more or less than others."""
    return family_of(estimator).network or row_weights_name(estimator) is not None


def row_weights_name(estimator: Any) -> str | None:
    """What an estimator's `fit` calls the weights of rows; None where it takes none.

    In a pipeline they are the last step's; what stands before it sees all rows alike.
    """
    from sklearn.utils.validation import has_fit_parameter

    if type(estimator).__name__ == "Pipeline":
        step, last = estimator.steps[-1]
        inner = row_weights_name(last)
        return None if inner is None else f"{step}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def row_weights_for_fit(estimator: Any, weights: NDArray[np.float64] | None) -> Mapping[str, Any]:
    """What `fit` is to be given so that rows have these weights; nothing where they have none."""
    if weights is None:
        return {}
    name = row_weights_name(estimator)
    if name is None:
        raise ConfigurationError(no_row_weights(estimator))
    return {name: weights}


def no_row_weights(estimator: Any) -> str:
    """The words for an estimator to which all rows are alike."""
    return (
        f"Rows have weights, and {type(estimator).__name__} takes none in its training. Choose another family, or "
        "leave sample_weight out."
    )


def weighted_targets(labels: NDArray[np.int64], weights: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Labels as a network learns them: each row's class with the row's weight, of which the mean is 1.

    Cross entropy is linear in its targets, so a row counts as much as its targets sum to. Only rows of the same network
    decide the mean: nobody else's weight moves it.
    """
    targets = np.zeros((len(labels), n_classes))
    targets[np.arange(len(labels)), labels] = weights / weights.mean()
    return targets
