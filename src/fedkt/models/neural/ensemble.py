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
from fedkt.models.base import take_rows
from fedkt.models.neural.classifier import BLOCK_VALUES, NeuralClassifier
from fedkt.models.neural.networks import built
from fedkt.models.neural.recipe import Correction
from fedkt.models.neural.rows import Shared, flat_rows, image_of, network_shape, scale_of
from fedkt.models.neural.stack import most_in_a_stack, reason_against, train_stack
from fedkt.models.neural.training import Ticks, Training, check_finite, one_torch_thread, train


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


def fit_networks(
    estimators: Sequence[NeuralClassifier],
    sources: Sequence[tuple[Any, NDArray[np.int64] | None]],
    codes: Sequence[NDArray[np.int64]],
    *,
    starts: Sequence[Sequence[NDArray[Any]] | None],
    corrections: Sequence[Correction | None],
    ticks: Ticks | None = None,
) -> list[ModelError | None]:
    """Fit each (prepared) network on its rows, all of one kind in one stack; the result is the same as one by one.

    `sources` are a table and which of its rows each network learns from, None for all. Says for each network why it
    cannot be used, None where it can.
    """
    for estimator, (X, _), start in zip(estimators, sources, starts, strict=True):
        if start is not None:
            estimator.initialise(X).set_weights(start)
    trainings = laid_together(estimators, sources, codes, starts, corrections)
    first = estimators[0]
    with one_torch_thread():
        if len(estimators) > 1:
            train_stack(trainings, first.recipe, ticks=ticks)
        else:
            training, watch = first.held_out(trainings[0])
            train(training, first.recipe, watch=watch, ticks=ticks)
    return [_fault(each) for each in estimators]


class Unfit(Exception):
    """Rows that one network of a group cannot be trained on."""

    def __init__(self, place: int, cause: Exception) -> None:
        super().__init__(str(cause))
        self.place, self.cause = place, cause


def laid_together(
    estimators: Sequence[NeuralClassifier],
    sources: Sequence[tuple[Any, NDArray[np.int64] | None]],
    codes: Sequence[NDArray[np.int64]],
    starts: Sequence[Sequence[NDArray[Any]] | None],
    corrections: Sequence[Correction | None],
) -> list[Training]:
    """The trainings, with the rows of all of them gathered in one tensor: no second copy of it is ever whole."""
    begun: list[Training] = []
    shared = Shared()
    total = sum(len(rows) for _, rows in sources if rows is not None)
    together: torch.Tensor | None = None
    end = 0
    for estimator, (X, rows), y, start, correction in zip(estimators, sources, codes, starts, corrections, strict=True):
        own = X if rows is None else take_rows(X, rows)
        try:
            training = estimator.begin(
                own, y, go_on=start is not None, correction=correction, shared=shared if rows is None else None
            )
        except (ValueError, TypeError) as reason:
            if isinstance(reason, ConfigurationError):
                raise
            raise Unfit(len(begun), reason) from reason
        if rows is not None and len(estimators) > 1:
            if together is None:
                together = training.rows.new_empty((total, *training.rows.shape[1:]))
            first, end = end, end + len(rows)
            together[first:end] = training.rows
            training = replace(training, rows=together, own=np.arange(first, end))
        begun.append(training)
    return begun


def answers(estimators: Sequence[NeuralClassifier], X: Any) -> list[NDArray[np.int64]]:
    """What each network (of one kind, on one scale) says about the same rows, which are prepared once."""
    first = estimators[0]
    rows = first._checked(X, reset=False)
    seen = [torch.from_numpy(np.searchsorted(each.outputs_, each.classes_)) for each in estimators]
    said: list[list[NDArray[np.int64]]] = [[] for _ in estimators]
    block = max(1, BLOCK_VALUES // rows.shape[1])
    with torch.no_grad(), one_torch_thread():
        for start in range(0, len(rows), block):
            batch = first._tensor(rows[start : start + block])
            for each, columns, parts in zip(estimators, seen, said, strict=True):
                parts.append(each.classes_[each.network_(batch)[:, columns].argmax(dim=1).cpu().numpy()])
    return [np.concatenate(parts) if parts else np.empty(0, dtype=np.int64) for parts in said]


def _fault(estimator: NeuralClassifier) -> ModelError | None:
    try:
        check_finite(estimator.network_)
    except ModelError as reason:
        return reason
    return None


def with_weights(
    estimator: NeuralClassifier, X: Any, n_classes: int, weights: Sequence[NDArray[Any]] | None = None
) -> NeuralClassifier:
    """A network for rows like X with an output for every agreed class, and these weights (new ones where None)."""
    made: NeuralClassifier = clone(estimator).set_params(classes=range(n_classes))
    made.initialise(X)
    return made if weights is None else made.set_weights(weights)
