"""Ask several trained models at once, wherever each of them has to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import FedKTError
from fedkt.models.answer_rules import check_probabilities
from fedkt.models.base import FittedModel, Model
from fedkt.models.exchange import OnnxModel
from fedkt.models.sandbox import ask_models, run_models


def predict_all(models: Sequence[Model], rows: Any) -> list[NDArray[np.int64] | str]:
    """Each model's class indices, or the reason why it has none.

    Models that were received run together in one limited child process; a model trained here runs here.
    """
    answers: list[NDArray[np.int64] | str] = [""] * len(models)
    received = [(place, model) for place, model in enumerate(models) if isinstance(model, OnnxModel)]
    if received:
        results = run_models(
            [model.data for _, model in received],
            np.asarray(rows, dtype=np.float32),
            n_classes=received[0][1].n_classes,
            limits=received[0][1].limits,
        )
        for (place, _), result in zip(received, results, strict=True):
            answers[place] = result
    for place, model in enumerate(models):
        if not isinstance(model, OnnxModel):
            try:
                answers[place] = model.predict(rows)
            except (FedKTError, ValueError) as reason:
                answers[place] = f"{type(reason).__name__}: {reason}"
    return answers


def has_probabilities(model: Model) -> bool:
    """Whether a model gives probabilities, wherever it has to run."""
    if isinstance(model, OnnxModel):
        return model.soft
    return isinstance(model, FittedModel) and (model.estimator is None or hasattr(model.estimator, "predict_proba"))


def probabilities_of_all(models: Sequence[Model], rows: Any, n_classes: int) -> list[NDArray[np.float32] | str]:
    """How probable each model finds each class of each row, or the reason why it does not say.

    One that only names a class is sure of it. Models that were received run together in one limited child process.
    """
    answers: list[NDArray[np.float32] | str] = [""] * len(models)
    received = [(place, model) for place, model in enumerate(models) if isinstance(model, OnnxModel)]
    if received:
        results = ask_models(
            [model.data for _, model in received],
            np.asarray(rows, dtype=np.float32),
            n_classes=n_classes,
            soft=[model.soft for _, model in received],
            limits=received[0][1].limits,
        )
        for (place, _), result in zip(received, results, strict=True):
            if isinstance(result, str):
                answers[place] = result
            else:
                labels, probabilities = result
                answers[place] = certain(labels, n_classes) if probabilities is None else probabilities
    for place, model in enumerate(models):
        if isinstance(model, FittedModel):
            try:
                if has_probabilities(model):
                    answers[place] = check_probabilities(model.predict_proba(rows, n_classes))
                else:
                    answers[place] = certain(model.predict(rows), n_classes)
            except Exception as reason:  # whatever an arbitrary estimator raises
                answers[place] = f"{type(reason).__name__}: {reason}"
    return answers


def certain(labels: NDArray[np.int64], n_classes: int) -> NDArray[np.float32]:
    """All of the probability on the class that is named."""
    return np.eye(n_classes, dtype=np.float32)[labels]
