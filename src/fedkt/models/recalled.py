"""A student of which only is left what it said: enough for whoever asks about the same rows again, to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.base import FittedModel
from fedkt.models.content import rows_digest


@dataclass(frozen=True)
class Answer:
    """What a model said about some rows; None where it was not asked."""

    labels: NDArray[np.int64] | None
    probabilities: NDArray[np.float64] | None


@dataclass(frozen=True)
class RecalledModel:
    """A model that answers with what it said."""

    answers: Mapping[str, Answer]
    """By the digest of the rows it was asked about."""
    has_probabilities: bool
    """Whether it can say how probable each class is."""

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The index of the agreed class it named for each row."""
        found = self._answer(X).labels
        if found is None:
            raise LookupError("a kept student was not asked for labels")
        return found

    def predict_proba(self, X: Any, n_classes: int) -> NDArray[np.float64]:
        """The class probabilities it gave."""
        found = self._answer(X).probabilities
        if found is None or found.shape[1] != n_classes:
            raise LookupError(f"a kept student was not asked about {n_classes} classes")
        return found

    def _answer(self, X: Any) -> Answer:
        found = self.answers.get(rows_digest(X))
        if found is None:
            raise LookupError("a kept student is asked about rows that it was not asked about before")
        return found


def recall(
    model: FittedModel, tables: Mapping[str, Any], n_classes: int, *, labels: bool, probabilities: bool
) -> RecalledModel:
    """What is left of a model that was asked about each of these tables, which are named by their digests.

    One that gives no probabilities is asked for labels in their place.
    """
    soft = probabilities and model.has_probabilities
    answers = {
        name: Answer(
            model.predict(rows) if labels or not soft else None,
            model.predict_proba(rows, n_classes) if soft else None,
        )
        for name, rows in tables.items()
    }
    return RecalledModel(answers, model.has_probabilities)
