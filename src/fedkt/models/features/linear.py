"""Logistic regression on the public rows' main directions, half-whitened: what a handful of rows can teach.

Columns are standardised, and directions divided by the fourth root of their variance, as the public rows have it. So a
model of ten rows need not learn which columns go together, and directions in which rows hardly differ count for less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression

from fedkt.models.features import head
from fedkt.models.features.feature_map import FeatureMap, Table
from fedkt.models.features.tables import linear_map

if TYPE_CHECKING:
    from fedkt.models.base import FittedModel
    from fedkt.models.graphs import LabelScores


class PublicLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A logistic regression over φ, a `linear_map` of public rows; of its own rows where nobody has given one."""

    def __init__(
        self,
        feature_map: FeatureMap | None = None,
        C: float = 1.0,
        class_weight: Any = None,
    ) -> None:
        self.feature_map = feature_map
        self.C = C
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Trained on rows with labels."""
        features = linear_map(X) if self.feature_map is None else self.feature_map
        numbers = features(X) * features.limit
        model = LogisticRegression(C=self.C, class_weight=self.class_weight, max_iter=1000)
        model.fit(numbers[:, 1:], y, sample_weight=sample_weight)
        slopes, offsets = model.coef_, model.intercept_
        if len(model.classes_) == 2:
            # The first class is what the other one is compared with.
            slopes, offsets = np.vstack([0 * slopes, slopes]), np.append(0.0, offsets)
        weights = np.vstack([np.zeros(len(offsets)), slopes.T]) * features.limit
        self.classes_ = model.classes_
        self.n_features_in_ = features.n_features
        self.head_ = head.FeatureHead(features, weights, offsets)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        return np.asarray(self.classes_[self.head_.predict(X)])

    def predict_proba(self, X: Any) -> Table:
        """How probable each class is."""
        return self.head_.predict_proba(X)


def fit_to_public(estimator: PublicLogistic, public: Any, image: Any = None) -> PublicLogistic:
    """A copy whose φ is that of the public rows, unless it was given one."""
    own: PublicLogistic = clone(estimator)
    return own if own.feature_map is not None else own.set_params(feature_map=linear_map(public))


def linear_graph(estimator: PublicLogistic, *, double: bool = False) -> Any:
    """The ONNX model of its head."""
    return head.head_graph(estimator.head_, double=double)


def linear_scores(estimator: PublicLogistic) -> LabelScores:
    """Where its logits stand in the graph."""
    return head.head_scores(estimator.head_)


def near_ties(model: FittedModel, rows: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each row, whether the head finds this label as good as its own, up to rounding."""
    return head.ties_of(model.estimator.head_, model.labels, rows, labels)
