"""Which networks are trained as one stack, and the training of one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from fedkt.errors import ConfigurationError, DataError, ModelError
from fedkt.models.base import image_of
from fedkt.models.ensemble import TrainingTask
from fedkt.models.neural.classifier import NeuralClassifier, scores_of
from fedkt.models.neural.networks import build_network
from fedkt.models.neural.rows import TensorKey, flat_rows, network_shape, scale_of
from fedkt.models.neural.stack import most_in_a_stack, reason_against_stack, train_stack
from fedkt.models.neural.training import Training, check_finite, one_torch_thread


def stack_key(estimator: NeuralClassifier, n_columns: int) -> tuple[Any, ...]:
    """What two networks must have in common to stand in one stack: everything but their seed and their scale."""
    parameters = estimator.get_params(deep=False)
    module = parameters.pop("module")
    for free in ("random_state", "normalise"):
        parameters.pop(free)
    same = module if isinstance(module, Hashable) else id(module)
    return (n_columns, same, repr(sorted(parameters.items())))


def network_for_rows(estimator: NeuralClassifier, public: Any, image: tuple[int, int, int] | None) -> NeuralClassifier:
    """A copy with what it left open: the shape of an image, and the scale of the public rows.

    The same scale for everybody comes from rows everybody has; a party's own rows would make models differ in it.
    """
    own: NeuralClassifier = clone(estimator)
    if own.image is None:
        own.image = image
    if isinstance(own.normalise, str):
        if not np.isfinite(flat_rows(public)).all():
            raise DataError(
                "The public rows contain NaN or infinite values, which networks cannot read. Fill the gaps."
            )
        shape = image_of(public, own.image)
        scale = scale_of(public, own.normalise, shape)
        own.normalise = (scale.mean, scale.deviation)
    return own


def stack_size(estimator: NeuralClassifier, X: Any, n_classes: int) -> tuple[int, str | None]:
    """How many networks of this kind one stack holds, and why if it is one."""
    if estimator.early_stopping:
        return 1, "each network stops early by itself"
    image = image_of(X, estimator.image)
    shape = network_shape(flat_rows(X[:1]).shape[1], image)
    one, other = (build_network(estimator.module, shape, max(n_classes, 2), seed) for seed in (0, 1))
    reason = reason_against_stack(one, other, shape)
    return (1 if reason else most_in_a_stack(one)), reason


class StartFailure(Exception):
    """Why the training of one network of a group could not begin."""

    def __init__(self, place: int, cause: Exception) -> None:
        super().__init__(str(cause))
        self.place, self.cause = place, cause


def fit_networks(estimators: Sequence[NeuralClassifier], tasks: Sequence[TrainingTask]) -> dict[int, ModelError]:
    """Fit the untrained network of each task, those of one kind in one stack; the result is as if one by one.

    What comes back says which networks' training ran away, by their places.
    """
    trainings = gather_trainings(estimators, tasks)
    first = estimators[0]
    with one_torch_thread():
        if len(estimators) > 1:
            train_stack(trainings, first.recipe)
            for each, task in zip(estimators, tasks, strict=True):
                each.n_steps_ = first.recipe.steps(task.n_rows)
        else:
            first.train_alone(trainings[0], first.recipe)
    failures: dict[int, ModelError] = {}
    for place, each in enumerate(estimators):
        try:
            check_finite(each.network_)
        except ModelError as reason:
            failures[place] = reason
    return failures


def gather_trainings(estimators: Sequence[NeuralClassifier], tasks: Sequence[TrainingTask]) -> list[Training]:
    """The trainings, with the rows of all of them gathered in one tensor: no second copy of it is ever whole."""
    trainings: list[Training] = []
    cache: dict[TensorKey, torch.Tensor] = {}
    total = sum(len(each.rows) for each in tasks if each.rows is not None)
    joint: torch.Tensor | None = None
    end = 0
    for estimator, task in zip(estimators, tasks, strict=True):
        if task.start is not None:
            estimator.initialise(task.X).set_weights(task.start)
        try:
            training = estimator.begin(
                task.own_rows,
                None if task.shares is not None else task.labels,
                soft=task.shares,
                go_on=task.start is not None,
                correction=task.correction,
                cache=cache if task.rows is None else None,
            )
        except ConfigurationError:
            raise
        except (ValueError, TypeError) as reason:
            raise StartFailure(len(trainings), reason) from reason
        training = replace(training, copies=task.copies)
        if task.rows is not None and len(tasks) > 1:
            if joint is None:
                joint = training.rows.new_empty((total, *training.rows.shape[1:]))
            first, end = end, end + task.n_rows
            joint[first:end] = training.rows
            training = replace(training, rows=joint, own=np.arange(first, end))
        trainings.append(training)
    return trainings


def network_answers(estimators: Sequence[NeuralClassifier], X: Any) -> list[NDArray[np.int64]]:
    """What each network (of one kind, on one scale) says about the same rows, which are prepared once."""
    scores = scores_of(estimators, X)
    return [each.most_probable(part) for each, part in zip(estimators, scores, strict=True)]


def with_weights(
    estimator: NeuralClassifier, X: Any, n_classes: int, weights: Sequence[NDArray[Any]] | None = None
) -> NeuralClassifier:
    """A network for rows like X with an output for every agreed class, and these weights (new ones where None)."""
    own: NeuralClassifier = clone(estimator).set_params(classes=range(n_classes))
    own.initialise(X)
    return own if weights is None else own.set_weights(weights)
