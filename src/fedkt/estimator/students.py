"""What parties have sent, as classifiers in the user's own labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.estimator.rows import readable_rows
from fedkt.federation import Outcome
from fedkt.models.base import FittedModel

if TYPE_CHECKING:
    from fedkt.estimator import FedKTClassifier


@dataclass(frozen=True)
class Student:
    """A student of one party, which reads rows as the final model does."""

    party: str
    model: FittedModel
    federation: FedKTClassifier

    @property
    def estimator(self) -> Any:
        """The trained estimator, whose labels are 0 … k − 1; None for a constant."""
        return self.model.estimator

    @property
    def classes_(self) -> NDArray[Any]:
        """The class labels."""
        return self.federation.classes_

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted label of each row."""
        rows = readable_rows(self.federation, X)
        codes = self.model.predict(rows) if not self._knows_background else self._shares(rows).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, of rows that are its party's."""
        return self._shares(readable_rows(self.federation, X))

    @property
    def _knows_background(self) -> bool:
        """Whether it also says of a row that it is not its party's, as one class more."""
        return bool(self.model.labels.max() >= len(self.classes_))

    def _shares(self, rows: Any) -> NDArray[np.float64]:
        """The probabilities of the classes among themselves."""
        n_classes = len(self.classes_)
        own = self.model.predict_proba(rows, n_classes + self._knows_background)[:, :n_classes]
        sums = own.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(own, sums, out=np.full_like(own, 1 / n_classes), where=sums > 0))


def students_in(outcome: Outcome) -> dict[str, tuple[FittedModel, ...]]:
    """The students that each party has sent."""
    return {
        bundle.sender: tuple(each for each in bundle.models if isinstance(each, FittedModel))
        for bundle in outcome.bundles
    }
