"""Ask several trained models at once, wherever each of them has to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import FedKTError, ModelError
from fedkt.models.answer_rules import check_probabilities
from fedkt.models.base import FittedModel, Model
from fedkt.models.exchange import OnnxModel, float_rows
from fedkt.models.recalled import RecalledModel
from fedkt.models.sandbox import FullAnswer, Question, Sandbox


def predict_all(models: Sequence[Model], rows: Any, sandbox: Sandbox | None = None) -> list[NDArray[np.int64] | str]:
    """Each model's class indices, or the reason why it has none.

    Models that were received run together in one limited child process, of the `sandbox` that holds these rows where
    there is one; a model trained here runs here.
    """
    received = _ask_received(models, rows, sandbox=sandbox)
    answers: list[NDArray[np.int64] | str] = []
    for model in models:
        if isinstance(model, OnnxModel):
            answer = next(received)
            answers.append(answer if isinstance(answer, str) else answer[0])
            continue
        if isinstance(model, RecalledModel):
            # What it does not know is fedkt's mistake, and no reason to leave a party out.
            answers.append(model.predict(rows))
            continue
        try:
            answers.append(model.predict(rows))
        except (FedKTError, ValueError) as reason:
            answers.append(f"{type(reason).__name__}: {reason}")
    return answers


def has_probabilities(model: Model) -> bool:
    """Whether a model gives probabilities, wherever it has to run."""
    if isinstance(model, OnnxModel):
        return model.soft
    return isinstance(model, FittedModel | RecalledModel) and model.has_probabilities


def probabilities_of_all(
    models: Sequence[Model], rows: Any, n_classes: int, sandbox: Sandbox | None = None
) -> list[NDArray[np.float32] | str]:
    """How probable each model finds each class of each row, or the reason why it does not say.

    One that only names a class is sure of it. Models that were received run together in one limited child process.
    """
    received = _ask_received(models, rows, n_classes, sandbox=sandbox)
    answers: list[NDArray[np.float32] | str] = []
    for model in models:
        if isinstance(model, OnnxModel):
            answer = next(received)
            if isinstance(answer, str):
                answers.append(answer)
            else:
                labels, probabilities = answer
                answers.append(certain(labels, n_classes) if probabilities is None else probabilities)
            continue
        if isinstance(model, RecalledModel):
            answers.append(recalled_probabilities(model, rows, n_classes))
            continue
        try:
            if isinstance(model, FittedModel) and has_probabilities(model):
                answers.append(check_probabilities(model.predict_proba(rows, n_classes)))
            else:
                answers.append(certain(model.predict(rows), n_classes))
        except Exception as reason:  # whatever an arbitrary estimator raises
            answers.append(f"{type(reason).__name__}: {reason}")
    return answers


def recalled_probabilities(model: RecalledModel, rows: Any, n_classes: int) -> NDArray[np.float32] | str:
    """What a student said, as one that is asked now would; what it does not know is fedkt's mistake."""
    if not model.has_probabilities:
        return certain(model.predict(rows), n_classes)
    return check_probabilities(model.predict_proba(rows, n_classes))


def labels_and_probabilities(model: OnnxModel, X: Any) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """What a received model that gives probabilities says about the rows, run once for both."""
    (answer,) = _ask_received([model], float_rows(X, model.n_features), model.n_classes)
    if isinstance(answer, str):
        raise ModelError(f"{model.name} could not be run: {answer}")
    labels, probabilities = answer
    return labels, certain(labels, model.n_classes) if probabilities is None else probabilities


def _ask_received(
    models: Sequence[Model], rows: Any, n_classes: int | None = None, *, sandbox: Sandbox | None = None
) -> Iterator[FullAnswer]:
    """The answers of those models that were received; with a number of classes, their probabilities as well."""
    received = [model for model in models if isinstance(model, OnnxModel)]
    if not received:
        return iter(())
    question = Question(
        models=[model.data for model in received],
        n_classes=received[0].n_classes if n_classes is None else n_classes,
        soft=[n_classes is not None and model.soft for model in received],
        free_labels=[model.free_label for model in received],
        limits=received[0].limits,
    )
    if sandbox is not None:
        return iter(sandbox.ask(question))
    with Sandbox(rows, fork=False) as own:
        return iter(own.ask(question))


def certain(labels: NDArray[np.int64], n_classes: int) -> NDArray[np.float32]:
    """All of the probability on the class that is named."""
    return np.eye(n_classes, dtype=np.float32)[labels]
