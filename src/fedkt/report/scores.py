"""How good the models of a run are, and the labels they learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import DataError
from fedkt.federation import Outcome
from fedkt.models.prediction import has_probabilities, predict_all, probabilities_of_all
from fedkt.quality import Interval, Quality, measure_quality
from fedkt.report.record import FIGURES
from fedkt.votes import NO_VOTE, Labels


def qualities(models: Sequence[Any], X: Any, y: Labels, classes: Sequence[Any]) -> list[Quality]:
    """The quality of each model on these rows, with that of its probabilities where it gives any."""
    soft = [model for model in models if has_probabilities(model)]
    # Those that fail to give them, or give numbers that are none, are judged by their labels alone.
    given = iter(probabilities_of_all(soft, X, len(classes)))
    measured = []
    for model, labels in zip(models, labels_of_all(models, X), strict=True):
        probabilities = next(given) if has_probabilities(model) else None
        usable = None if isinstance(probabilities, str) else probabilities
        measured.append(measure_quality(y, labels, classes, usable))
    return measured


def accuracies(models: Sequence[Any], X: Any, y: Labels) -> tuple[list[float], list[float]]:
    """Accuracy and balanced accuracy of each model."""
    measured = []
    for labels in labels_of_all(models, X):
        classes = range(int(max(np.max(y), np.max(labels))) + 1)
        measured.append(measure_quality(y, labels, classes))
    return [each.accuracy.value for each in measured], [each.balanced_accuracy.value for each in measured]


def labels_of_all(models: Sequence[Any], X: Any) -> list[NDArray[np.int64]]:
    """Each model's class indices, or a refusal in words."""
    answers = []
    for labels in predict_all(models, X):
        if isinstance(labels, str):
            raise DataError(f"A model could not be run on the test rows: {labels}")
        answers.append(labels)
    return answers


def figures_alone(measured: Sequence[Quality], rows: Sequence[int]) -> dict[str, dict[str, float | None]]:
    """Each figure of the parties' own models: its mean over the parties, and weighted by their rows."""
    figures: dict[str, dict[str, float | None]] = {"majority": dict.fromkeys(("mean", "by_rows"), measured[0].majority)}
    for name in FIGURES:
        values = [getattr(each, name) for each in measured]
        pairs = [
            (each.value if isinstance(each, Interval) else each, weight)
            for each, weight in zip(values, rows, strict=True)
            if each is not None
        ]
        figures[name] = {"mean": None, "by_rows": None}
        if pairs:
            known, weights = zip(*pairs, strict=True)
            figures[name] = {"mean": float(np.mean(known)), "by_rows": float(np.average(known, weights=weights))}
    return figures


def label_accuracy(outcome: Outcome, truth: Labels) -> float | None:
    """The share of the labelled public rows whose label is right; None where an algorithm labels none.

    Only a simulation knows the truth about public rows; nothing is trained or chosen with it.
    """
    diaries = [outcome.server] if outcome.server.vote.labels else list(outcome.parties.values())
    pairs = [pair for diary in diaries for pair in diary.vote.labels]
    if not pairs:
        return None
    answers = np.concatenate([labels for _, labels in pairs])
    truths = np.concatenate([truth if queries is None else truth[queries] for queries, _ in pairs])
    labelled = answers != NO_VOTE
    return float(np.mean(answers[labelled] == truths[labelled])) if labelled.any() else None


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation (0 for a single value)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
