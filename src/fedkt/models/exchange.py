"""How a trained model travels: as an ONNX graph from rows to indices into the agreed class list.

One convention for every family: one input `rows` (float32, N × features), one output `label` (int64, N). The graph says
which agreed class it means itself, so a receiver needs neither the estimator's library nor its idea of labels.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import DataError, ModelError
from fedkt.models.onnx_rules import OPSETS, Limits, check_graph

if TYPE_CHECKING:
    from fedkt.models.base import FittedModel

WORKING = (
    "decision trees, random forests, extra trees, gradient boosting (scikit-learn, histogram, XGBoost, LightGBM, "
    "CatBoost), logistic and other linear classifiers, SVC, naive Bayes, discriminant analysis, MLP, nearest "
    "neighbours (uniform weights, no equal distances), soft voting, bagging, and pipelines of these after imputers and "
    "scalers"
)
"""The families that are known to travel, for messages."""


@dataclass(frozen=True)
class OnnxModel:
    """A model that has travelled, or is ready to: its graph, and what goes in and comes out."""

    data: bytes = field(repr=False)
    n_features: int
    n_classes: int
    name: str = "model"
    """What messages call it."""

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The index of the agreed class predicted for each row, computed in a child process with limits."""
        from fedkt.models.sandbox import run_models

        rows = float_rows(X, self.n_features)
        answer = run_models([self.data], rows, n_classes=self.n_classes, limits=Limits())[0]
        if isinstance(answer, str):
            raise ModelError(f"{self.name} could not be run: {answer}")
        return answer


def float_rows(X: Any, n_features: int) -> NDArray[np.float32]:
    """The rows as a dense float32 table of the given width."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    rows = np.ascontiguousarray(dense, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise DataError(f"The model reads rows of {n_features} columns, got an array of shape {rows.shape}.")
    return rows


def to_onnx(model: FittedModel, *, n_features: int, n_classes: int, check_rows: ArrayLike) -> OnnxModel:
    """The model as ONNX, with labels equal to the native model's on every one of `check_rows`.

    The bytes depend on the model only. Where float32 arithmetic changes a label, float64 is tried before giving up.
    """
    rows = float_rows(check_rows, n_features)
    labels = [int(each) for each in model.labels]
    if not all(0 <= each < n_classes for each in labels):
        raise ModelError(f"The model answers with classes {labels}, but only 0 … {n_classes - 1} were agreed on.")
    name = "a constant" if model.estimator is None else type(model.estimator).__name__
    wanted = model.predict(rows)
    wrong = 0
    reason: Exception | None = None
    for double in (False, True):
        try:
            data = _graph_bytes(model.estimator, labels, n_features, double=double)
            check_graph(data, n_features=n_features, n_classes=n_classes)
            wrong = int((_run_own(data, rows) != wanted).sum())
        except Exception as caught:
            # A converter may raise anything; its user needs the list of what works.
            reason = reason or caught
            continue
        if wrong == 0:
            return OnnxModel(data, n_features, n_classes, name)
        reason = None
        if model.estimator is None:
            break
    if reason is not None:
        raise ModelError(
            f"{name} cannot be converted to ONNX, the form in which models travel: {type(reason).__name__}: "
            f"{str(reason)[:500]} Families that work: {WORKING}."
        ) from reason
    raise ModelError(
        f"{name} would not say the same after travelling: as ONNX it gives another label on {wrong} of {len(rows)} "
        f"rows. Families that work: {WORKING}."
    )


def _run_own(data: bytes, rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """The labels of our own graph, in this process and with the session that a receiver's child process uses."""
    from fedkt.models.sandbox_child import open_session, predict_blocks

    parts = list(predict_blocks(open_session(data), rows))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _graph_bytes(estimator: Any, labels: list[int], n_features: int, *, double: bool) -> bytes:
    from fedkt.models import tree_graphs

    if estimator is None:
        proto = _constant_graph(labels[0], n_features)
    elif (forest := tree_graphs.forest_of(estimator)) is not None:
        proto = tree_graphs.forest_graph(forest, labels, n_features)
    else:
        with warnings.catch_warnings():
            # The converter reads attributes of SVC that scikit-learn will drop; its user can do nothing about it.
            warnings.filterwarnings("ignore", r"Attribute `prob[AB]_` was deprecated", FutureWarning)
            converted = _converted(estimator, n_features, double=double)
        proto = _tidied(converted, labels, n_features, double=double)
    return bytes(proto.SerializeToString(deterministic=True))


def _constant_graph(label: int, n_features: int) -> Any:
    """Always the same label: the arg max over one column is 0, and entry 0 of the table is the label.

    ConstantOfShape would be shorter, but a receiver refuses it: 127 bytes of it can ask for 160 GB.
    """
    from onnx import helper, numpy_helper

    nodes = [
        helper.make_node("MatMul", ["rows", "zeros"], ["column"]),
        helper.make_node("ArgMax", ["column"], ["local"], axis=1, keepdims=0),
        helper.make_node("Gather", ["labels", "local"], ["label"]),
    ]
    tables = [
        numpy_helper.from_array(np.zeros((n_features, 1), np.float32), "zeros"),
        numpy_helper.from_array(np.array([label], np.int64), "labels"),
    ]
    return _model(helper.make_graph(nodes, "fedkt", [_rows(n_features)], [_label()], tables))


def _rows(n_features: int) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, n_features])


def _label() -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info("label", TensorProto.INT64, [None])


def _model(graph: Any) -> Any:
    from onnx import helper

    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _converted(estimator: Any, n_features: int, *, double: bool) -> Any:
    """What the family's own converter makes of it: first input the rows, first output the local label."""
    package = type(estimator).__module__.partition(".")[0]
    if package == "catboost":
        return _catboost(estimator)
    if package == "sklearn" and type(estimator).__name__ == "KNeighborsClassifier":
        return _neighbours(estimator, n_features)
    from skl2onnx import to_onnx as convert
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = DoubleTensorType if double else FloatTensorType
    last = estimator[-1] if type(estimator).__name__ == "Pipeline" else None
    if last is not None and len(estimator) > 1 and _has_own_graph(last):
        # The steps before are the converter's, the classifier's graph is ours: faster, and exact on ties.
        before = convert(estimator[:-1], initial_types=[("rows", kind([None, n_features]))], target_opset=dict(OPSETS))
        return _joined(before, last)
    return convert(estimator, initial_types=[("rows", kind([None, n_features]))], target_opset=dict(OPSETS))


def _has_own_graph(estimator: Any) -> bool:
    from fedkt.models import tree_graphs

    return type(estimator).__name__ == "KNeighborsClassifier" or tree_graphs.forest_of(estimator) is not None


def _joined(before: Any, last: Any) -> Any:
    """The steps of a pipeline followed by our own graph of its classifier."""
    from onnx import TensorProto, helper

    from fedkt.models import tree_graphs

    width = int(last.n_features_in_)
    forest = tree_graphs.forest_of(last)
    after = (
        _neighbours(last, width)
        if forest is None
        else tree_graphs.forest_graph(forest, list(range(forest.n_classes)), width)
    )
    source = before.graph.output[0].name
    kept = {"", "rows", *(each.name for each in before.graph.initializer)}
    for node in before.graph.node:
        for names in (node.input, node.output):
            names[:] = [each if each in kept else f"step_{each}" for each in names]
    # Trees and neighbours were trained on what float32 rows became; float64 steps are rounded the same way.
    before.graph.node.append(helper.make_node("Cast", [f"step_{source}"], ["prepared"], to=TensorProto.FLOAT))
    for node in after.graph.node:
        node.input[:] = ["prepared" if each == "rows" else each for each in node.input]
        before.graph.node.append(node)
    before.graph.initializer.extend(after.graph.initializer)
    before.graph.output[0].CopyFrom(after.graph.output[0])
    return before


def _catboost(estimator: Any) -> Any:
    import tempfile
    from pathlib import Path

    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        estimator.save_model(str(path), format="onnx")
        return onnx.load(path)


def _neighbours(estimator: Any, n_features: int) -> Any:
    """k nearest neighbours by plain arithmetic: |c|² − 2 x·c orders the stored rows c as the distance does."""
    from onnx import TensorProto, helper, numpy_helper

    metric = estimator.effective_metric_
    if estimator.weights != "uniform" or metric != "euclidean" or estimator.outputs_2d_:
        raise ModelError("only uniform weights and the Euclidean distance travel.")
    stored = estimator._fit_X
    centres = np.asarray(stored.toarray() if hasattr(stored, "toarray") else stored, np.float64)
    one_hot = np.eye(len(estimator.classes_), dtype=np.float32)[estimator._y]
    tables = {
        "minus_twice": np.ascontiguousarray(-2.0 * centres.T),
        "squares": (centres**2).sum(axis=1),
        "neighbours": np.array([estimator.n_neighbors], np.int64),
        "votes": one_hot,
        "axis": np.array([1], np.int64),
    }
    nodes = [
        helper.make_node("Cast", ["rows"], ["wide"], to=TensorProto.DOUBLE),
        helper.make_node("MatMul", ["wide", "minus_twice"], ["product"]),
        helper.make_node("Add", ["product", "squares"], ["distance"]),
        helper.make_node("TopK", ["distance", "neighbours"], ["nearest", "who"], axis=1, largest=0, sorted=1),
        helper.make_node("Gather", ["votes", "who"], ["ballots"], axis=0),
        helper.make_node("ReduceSum", ["ballots", "axis"], ["counts"], keepdims=0),
        helper.make_node("ArgMax", ["counts"], ["label"], axis=1, keepdims=0),
    ]
    initialisers = [numpy_helper.from_array(value, name) for name, value in tables.items()]
    return _model(helper.make_graph(nodes, "fedkt", [_rows(n_features)], [_label()], initialisers))


def _tidied(proto: Any, labels: list[int], n_features: int, *, double: bool) -> Any:
    """Only what the label needs, under our names, with local labels replaced by the agreed ones."""
    from onnx import TensorProto, helper, numpy_helper

    graph = proto.graph
    source, target = graph.input[0].name, graph.output[0].name
    nodes, needed = [], {target}
    for node in reversed(list(graph.node)):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(node.input)
    nodes.reverse()
    tables = [each for each in graph.initializer if each.name in needed]
    names = {"": "", source: "wide" if double else "rows"}
    for each in tables:
        each.name = names.setdefault(each.name, f"t{len(names)}")
        each.doc_string = ""
    for node in nodes:
        for fields in (node.input, node.output):
            fields[:] = [names.setdefault(each, f"v{len(names)}") for each in fields]
        node.name = node.doc_string = ""
        if node.domain == "ai.onnx":
            node.domain = ""
        for attribute in node.attribute:
            attribute.doc_string = ""
        node.attribute.sort(key=lambda attribute: attribute.name)
    if double:
        nodes.insert(0, helper.make_node("Cast", ["rows"], ["wide"], to=TensorProto.DOUBLE))
    tables += [
        numpy_helper.from_array(np.array([-1], np.int64), "flat"),
        numpy_helper.from_array(np.array(labels, np.int64), "labels"),
    ]
    nodes += [
        helper.make_node("Reshape", [names[target], "flat"], ["local"]),
        helper.make_node("Gather", ["labels", "local"], ["label"]),
    ]
    tidy = _model(helper.make_graph(nodes, "fedkt", [_rows(n_features)], [_label()], tables))
    for opset in tidy.opset_import:
        for own in proto.opset_import:
            if own.domain == opset.domain == "":
                opset.version = own.version
    return tidy
