"""A linear head over a feature map, as a classifier: solved from sums, never trained on rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from fedkt.errors import ModelError
from fedkt.models.features.feature_map import FeatureMap, Features, Graph, Table
from fedkt.models.graphs import LabelScores, initialisers
from fedkt.models.onnx_rules import OPSETS
from fedkt.models.reading import softmax

if TYPE_CHECKING:
    from fedkt.models.base import FittedModel

TIE = 1e-4
"""Logits this close, relative to their size, are as good as equal in float32."""
LOGITS = "head_logits"


class FeatureHead(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Probabilities as the softmax of φ(x)·weights + offsets, over the classes 0 … K − 1."""

    def __init__(self, feature_map: Features, weights: Table, offsets: Table) -> None:
        self.feature_map = feature_map
        self.weights = weights
        self.offsets = offsets

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The classes that it tells apart."""
        return np.arange(len(self.offsets))

    @property
    def n_features_in_(self) -> int:
        """Columns of the rows that it reads."""
        return self.feature_map.n_features

    @property
    def holds_received_graph(self) -> bool:
        """Whether a part of its graph was made by somebody else, so that it runs where received graphs do."""
        return not isinstance(self.feature_map, FeatureMap)

    def fit(self, X: Any, y: Any) -> FeatureHead:
        """Refused: it is solved from the sums of all parties, which no rows at hand can replace."""
        raise ModelError("A feature head is not trained on rows. Run fedkt-moments, which solves it from sums.")

    def decision_scores(self, X: Any) -> Table:
        """The logits of each row."""
        return np.asarray(self.feature_map(X) @ self.weights + self.offsets)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The likeliest class of each row."""
        return np.asarray(self.decision_scores(X).argmax(axis=1), dtype=np.int64)

    def predict_proba(self, X: Any) -> Table:
        """How probable each class is."""
        return softmax(self.decision_scores(X))


def head_graph(estimator: FeatureHead, *, double: bool = False) -> Any:
    """The ONNX model of a head, from rows to the likeliest class, in float64 if `double`."""
    from onnx import TensorProto, helper

    graph = Graph(np.float64 if double else np.float32)
    features = estimator.feature_map.add_to(graph, "rows")
    product = graph.binary("MatMul", features, estimator.weights)
    nodes = [
        helper.make_node("Add", [product, graph.table(estimator.offsets)], [LOGITS]),
        helper.make_node("ArgMax", [LOGITS], ["local"], axis=1, keepdims=0),
    ]
    element = TensorProto.DOUBLE if double else TensorProto.FLOAT
    joint = helper.make_graph(
        [*graph.nodes, *nodes],
        "fedkt",
        [helper.make_tensor_value_info("rows", element, [None, estimator.n_features_in_])],
        [helper.make_tensor_value_info("local", TensorProto.INT64, [None])],
        initialisers(graph.tables),
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    return helper.make_model(joint, opset_imports=opsets, ir_version=8)


def head_scores(estimator: FeatureHead) -> LabelScores:
    """Where its logits stand in the graph."""
    return LabelScores(LOGITS, len(estimator.classes_), "softmax")


def near_ties(model: FittedModel, rows: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each row, whether the head finds this label as good as its own, up to rounding."""
    return ties_of(model.estimator, model.labels, rows, labels)


def ties_of(
    head: FeatureHead, classes: NDArray[np.int64], rows: NDArray[np.float32], labels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The same of a head of these agreed classes."""
    scores = head.decision_scores(rows)
    own = np.where(classes[None, :] == labels[:, None], scores, -np.inf).max(axis=1)
    near: NDArray[np.bool_] = scores.max(axis=1) - own <= TIE * (1 + np.abs(scores).max(axis=1))
    return near
