"""How the final model and each party's students do on labelled rows of the server's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.bundle import Bundle
from fedkt.data.format import PLAIN, Format
from fedkt.data.mapping import NO_MAPPING, TableMapping, read_mapped
from fedkt.federation import Diary
from fedkt.models.base import Model
from fedkt.models.exchange import OnnxModel
from fedkt.models.prediction import has_probabilities, labels_and_probabilities, predict_all, probabilities_of_all
from fedkt.models.sandbox import Sandbox
from fedkt.plan import Plan
from fedkt.quality import Quality, measure_quality
from fedkt.report import qualities


@dataclass(frozen=True)
class FinalScores:
    """How the final model and each party's students do on the test rows."""

    accuracy: float | None = None
    balanced: float | None = None
    quality: Quality | None = None
    """All that the test rows tell of the final model."""
    parties: dict[str, float] | None = None


def measure(final: OnnxModel, bundles: Sequence[Bundle], X: Any, y: Any, classes: Sequence[str | int]) -> FinalScores:
    """The quality of the final model, and the accuracy of each party's students alone (the mean over its students)."""
    (quality,) = qualities([final], X, y, classes)
    alone: dict[str, float] = {}
    with Sandbox(X) as sandbox:
        for bundle in bundles:
            answers = [each for each in labels_of(bundle, X, sandbox) if not isinstance(each, str)]
            if answers:
                alone[bundle.sender] = float(np.mean([np.mean(each == y) for each in answers]))
    return FinalScores(quality.accuracy.value, quality.balanced_accuracy.value, quality, alone)


def answers_of(model: Model, X: Any, n_classes: int) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    """The class that a model names on each row, and how probable it finds each, if it says so."""
    if not has_probabilities(model):
        return model.predict(X), None
    if isinstance(model, OnnxModel):
        return labels_and_probabilities(model, X)
    (probabilities,) = probabilities_of_all([model], X, n_classes)
    # One that fails here still names its classes.
    return model.predict(X), None if isinstance(probabilities, str) else probabilities


def quality_on(model: Model, X: Any, y: Any, classes: Sequence[str | int]) -> tuple[Quality, NDArray[np.int64]]:
    """The quality of a model on labelled rows, and the class that it names on each."""
    labels, probabilities = answers_of(model, X, len(classes))
    return measure_quality(y, labels, classes, probabilities), labels


def labels_of(bundle: Bundle, X: Any, sandbox: Sandbox | None = None) -> list[NDArray[np.int64] | str]:
    """The class that each of a party's students votes for, never "not mine"; or why it says nothing.

    Where probabilities vote, theirs are asked for: a label beside them counts for nothing.
    """
    if not bundle.soft:
        return predict_all(bundle.models, X, sandbox)
    probabilities = probabilities_of_all(bundle.models, X, bundle.n_outputs, sandbox)
    return [each if isinstance(each, str) else each[:, : len(bundle.classes)].argmax(axis=1) for each in probabilities]


def labelled_rows(
    plan: Plan, path: Path, diary: Diary, form: Format = PLAIN, choices: TableMapping = NO_MAPPING
) -> tuple[Any, Any]:
    """The rows and class indices of a labelled file; what is odd about its values is noted."""
    table = read_mapped(plan.columns, path, choices.checked(plan.columns, plan.classes), form=form)
    diary.notes.extend(table.notes)
    X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
    diary.notes.extend(plan.columns.unseen_notes(table))
    return X, y
