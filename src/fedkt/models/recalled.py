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
    """What a model said about some rows."""

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64] | None
    """None where it only names a class."""


@dataclass(frozen=True)
class RecalledModel:
    """A model that answers with what it said."""

    answers: Mapping[str, Answer]
    """By the digest of the rows it was asked about."""

    @property
    def has_probabilities(self) -> bool:
        """Whether it says how probable each class is."""
        return all(each.probabilities is not None for each in self.answers.values())

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The index of the agreed class it named for each row."""
        return self._answer(X).labels

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


def recall(model: FittedModel, tables: Mapping[str, Any], n_classes: int) -> RecalledModel:
    """What is left of a model that was asked about each of these tables, which are named by their digests."""
    soft = model.has_probabilities
    return RecalledModel(
        {
            name: Answer(model.predict(rows), model.predict_proba(rows, n_classes) if soft else None)
            for name, rows in tables.items()
        }
    )
