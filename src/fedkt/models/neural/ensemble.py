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
from fedkt.models.neural.networks import built
from fedkt.models.neural.rows import Shared, flat_rows, network_shape, scale_of
from fedkt.models.neural.stack import most_in_a_stack, reason_against, train_stack
from fedkt.models.neural.training import Training, check_finite, one_torch_thread, train


def kind(estimator: NeuralClassifier, n_columns: int) -> tuple[Any, ...]:
    """What two networks must have in common to stand in one stack: everything but their seed and their scale."""
    parameters = estimator.get_params(deep=False)
    module = parameters.pop("module")
    for free in ("random_state", "normalise"):
        parameters.pop(free)
    same = module if isinstance(module, Hashable) else id(module)
    return (n_columns, same, repr(sorted(parameters.items())))


def suited_network(estimator: NeuralClassifier, public: Any, image: tuple[int, int, int] | None) -> NeuralClassifier:
    """A copy with what it left open settled: the shape of an image, and the scale of the public rows.

    The same scale for everybody comes from rows everybody has; a party's own rows would make models differ in it.
    """
    settled: NeuralClassifier = clone(estimator)
    if settled.image is None:
        settled.image = image
    if isinstance(settled.normalise, str):
        if not np.isfinite(flat_rows(public)).all():
            raise DataError(
                "The public rows contain NaN or infinite values, which networks cannot read. Fill the gaps."
            )
        shape = image_of(public, settled.image)
        scale = scale_of(public, settled.normalise, shape)
        settled.normalise = (scale.mean, scale.deviation)
    return settled


def stack_size(estimator: NeuralClassifier, X: Any, n_classes: int) -> tuple[int, str | None]:
    """How many networks of this kind one stack holds, and why if it is one."""
    if estimator.early_stopping:
        return 1, "each network stops early by itself"
    if estimator.device != "cpu":
        return 1, f"stacks are for processors, not for {estimator.device}"
    image = image_of(X, estimator.image)
    shape = network_shape(flat_rows(X[:1]).shape[1], image)
    one, other = (built(estimator.module, shape, max(n_classes, 2), seed) for seed in (0, 1))
    reason = reason_against(one, other, shape)
    return (1 if reason else most_in_a_stack(one)), reason


class Unfit(Exception):
    """Why the training of one network of a group could not begin."""

    def __init__(self, place: int, cause: Exception) -> None:
        super().__init__(str(cause))
        self.place, self.cause = place, cause


def fit_networks(estimators: Sequence[NeuralClassifier], problems: Sequence[TrainingTask]) -> dict[int, ModelError]:
    """Fit the (prepared) network of each problem, those of one kind in one stack; the result is as if one by one.

    What comes back says which networks' training ran away, by their places.
    """
    trainings = laid_together(estimators, problems)
    first = estimators[0]
    with one_torch_thread():
        if len(estimators) > 1:
            train_stack(trainings, first.recipe)
            for each, problem in zip(estimators, problems, strict=True):
                each.n_steps_ = first.recipe.steps(problem.n_rows)
        else:
            training, watch = first.held_out(trainings[0])
            first.n_steps_ = train(training, first.recipe, watch=watch)
    unfit: dict[int, ModelError] = {}
    for place, each in enumerate(estimators):
        try:
            check_finite(each.network_)
        except ModelError as reason:
            unfit[place] = reason
    return unfit


def laid_together(estimators: Sequence[NeuralClassifier], problems: Sequence[TrainingTask]) -> list[Training]:
    """The trainings, with the rows of all of them gathered in one tensor: no second copy of it is ever whole."""
    begun: list[Training] = []
    shared = Shared()
    total = sum(len(each.rows) for each in problems if each.rows is not None)
    together: torch.Tensor | None = None
    end = 0
    for estimator, problem in zip(estimators, problems, strict=True):
        if problem.start is not None:
            estimator.initialise(problem.X).set_weights(problem.start)
        try:
            training = estimator.begin(
                problem.own_rows,
                None if problem.shares is not None else problem.labels,
                soft=problem.shares,
                go_on=problem.start is not None,
                correction=problem.correction,
                shared=shared if problem.rows is None else None,
            )
        except ConfigurationError:
            raise
        except (ValueError, TypeError) as reason:
            raise Unfit(len(begun), reason) from reason
        if problem.rows is not None and len(problems) > 1:
            if together is None:
                together = training.rows.new_empty((total, *training.rows.shape[1:]))
            first, end = end, end + problem.n_rows
            together[first:end] = training.rows
            training = replace(training, rows=together, own=np.arange(first, end))
        begun.append(training)
    return begun


def answers(estimators: Sequence[NeuralClassifier], X: Any) -> list[NDArray[np.int64]]:
    """What each network (of one kind, on one scale) says about the same rows, which are prepared once."""
    scores = scores_of(estimators, X)
    return [each.most_probable(said) for each, said in zip(estimators, scores, strict=True)]


def with_weights(
    estimator: NeuralClassifier, X: Any, n_classes: int, weights: Sequence[NDArray[Any]] | None = None
) -> NeuralClassifier:
    """A network for rows like X with an output for every agreed class, and these weights (new ones where None)."""
    made: NeuralClassifier = clone(estimator).set_params(classes=range(n_classes))
    made.initialise(X)
    return made if weights is None else made.set_weights(weights)
