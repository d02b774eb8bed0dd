"""Graphs put together by hand: a constant, nearest neighbours, a pipeline's steps; and what makes any graph ours.

Every graph goes from `rows` to `label`, and some to `probability` as well (see `exchange`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ModelError
from fedkt.models.onnx_rules import OPSETS


class LibraryFailure(Exception):
    """A library could not do what it was asked for; the cause is what it raised."""


@contextmanager
def library_code() -> Iterator[None]:
    """Whatever a converter, a runtime or a stranger's estimator raises inside the block is a LibraryFailure."""
    try:
        yield
    except ModelError:
        raise
    except Exception as reason:
        raise LibraryFailure(str(reason)) from reason


def label_model(nodes: Sequence[Any], n_features: int, tables: Sequence[Any] = ()) -> Any:
    """The model of nodes from `rows` to `label`, in the operator sets our graphs are written in."""
    from onnx import TensorProto, helper

    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, n_features])
    label = helper.make_tensor_value_info("label", TensorProto.INT64, [None])
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    graph = helper.make_graph(nodes, "fedkt", [rows], [label], tables)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def initialisers(tables: Mapping[str, NDArray[Any]]) -> list[Any]:
    """The tables of a graph by their names."""
    from onnx import numpy_helper

    return [numpy_helper.from_array(values, name) for name, values in tables.items()]


@dataclass(frozen=True)
class LabelScores:
    """Where in a graph the numbers stand that its label is chosen by, and how they become probabilities."""

    name: str
    """The tensor: rows × local classes."""
    width: int
    """Its columns; one more than there are classes where the last one means nothing."""
    link: str
    """"softmax"; "sum": the numbers of a row add up to `total`; "logarithm": they are those of probabilities; or
    "decision": they are no probabilities at all."""
    total: float = 1.0
    column: int = -1
    """Of a decision function between two classes: the column in which the second one has the larger numbers."""


def add_probability(proto: Any, scores: LabelScores, labels: Sequence[int], n_classes: int) -> None:
    """Give a graph a second output: the probability of each agreed class, from its scores."""
    from onnx import TensorProto, helper

    to_agreed = np.zeros((scores.width, n_classes), np.float32)
    to_agreed[np.arange(len(labels)), list(labels)] = 1.0 / scores.total if scores.link == "sum" else 1.0
    tables = {"to_classes": to_agreed}
    nodes = [helper.make_node("Cast", [scores.name], ["score"], to=TensorProto.FLOAT)]
    if scores.link == "softmax":
        # A column that means nothing takes no part.
        tables["taking_part"] = np.where(np.arange(scores.width) < len(labels), 0.0, -1e30).astype(np.float32)
        nodes.append(helper.make_node("Add", ["score", "taking_part"], ["partaking"]))
        nodes.append(helper.make_node("Softmax", ["partaking"], ["local_probability"], axis=1))
    source = nodes[-1].output[0]
    nodes.append(helper.make_node("MatMul", [source, "to_classes"], ["probability"]))
    proto.graph.node.extend(nodes)
    proto.graph.initializer.extend(initialisers(tables))
    proto.graph.output.append(helper.make_tensor_value_info("probability", TensorProto.FLOAT, [None, n_classes]))


def constant_graph(label: int, n_features: int, n_classes: int | None = None) -> Any:
    """Always the same label; where the number of classes is given, with certainty.

    The arg max over one column is 0, and entry 0 of the table is the label.

    ConstantOfShape would be shorter, but a receiver refuses it: 127 bytes of it can ask for 160 GB.
    """
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("MatMul", ["rows", "zeros"], ["column"]),
        helper.make_node("ArgMax", ["column"], ["local"], axis=1, keepdims=0),
        helper.make_node("Gather", ["labels", "local"], ["label"]),
    ]
    tables: dict[str, NDArray[Any]] = {
        "zeros": np.zeros((n_features, 1), np.float32),
        "labels": np.array([label], np.int64),
    }
    model = label_model(nodes, n_features, initialisers(tables))
    if n_classes is not None:
        model.graph.node.append(helper.make_node("Gather", ["certain", "local"], ["probability"]))
        model.graph.initializer.extend(initialisers({"certain": np.eye(n_classes, dtype=np.float32)[[label]]}))
        model.graph.output.append(helper.make_tensor_value_info("probability", TensorProto.FLOAT, [None, n_classes]))
    return model


def neighbours_graph(estimator: Any, *, double: bool) -> Any:
    """k nearest neighbours by plain arithmetic: |c|² − 2 x·c orders the stored rows c as the distance does.

    In float64 throughout, whether it is asked for or not.
    """
    from onnx import TensorProto, helper

    metric = estimator.effective_metric_
    if estimator.weights != "uniform" or metric != "euclidean" or estimator.outputs_2d_:
        raise ModelError("only uniform weights and the Euclidean distance travel.")
    rows = estimator._fit_X
    centres = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)
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
        helper.make_node("Gather", ["votes", "who"], ["teacher_votes"], axis=0),
        helper.make_node("ReduceSum", ["teacher_votes", "axis"], ["counts"], keepdims=0),
        helper.make_node("ArgMax", ["counts"], ["label"], axis=1, keepdims=0),
    ]
    return label_model(nodes, int(estimator.n_features_in_), initialisers(tables))


def neighbours_scores(estimator: Any) -> LabelScores:
    """Where in `neighbours_graph` the neighbours of each class are counted."""
    return LabelScores("counts", len(estimator.classes_), "sum", float(estimator.n_neighbors))


def join_graphs(before: Any, after: Any) -> Any:
    """The steps of a pipeline followed by our own graph of its classifier."""
    from onnx import TensorProto, helper

    source = before.graph.output[0].name
    stable = {"", "rows", *(each.name for each in before.graph.initializer)}
    for node in before.graph.node:
        for names in (node.input, node.output):
            names[:] = [each if each in stable else f"step_{each}" for each in names]
    # Our own graphs read what float32 rows became; float64 steps are rounded the same way.
    before.graph.node.append(helper.make_node("Cast", [f"step_{source}"], ["prepared"], to=TensorProto.FLOAT))
    for node in after.graph.node:
        node.input[:] = ["prepared" if each == "rows" else each for each in node.input]
        before.graph.node.append(node)
    before.graph.initializer.extend(after.graph.initializer)
    before.graph.output[0].CopyFrom(after.graph.output[0])
    return before


def canonical_graph(
    proto: Any,
    labels: list[int],
    n_features: int,
    *,
    double: bool,
    scores: LabelScores | None = None,
    n_classes: int = 0,
    add: Callable[..., None] = add_probability,
) -> Any:
    """Only what the label needs, under our names, with local labels replaced by the agreed ones.

    With `scores` and the number of agreed classes, also what their probabilities need, put in by `add`.
    """
    from onnx import TensorProto, helper

    graph = proto.graph
    source, target = graph.input[0].name, graph.output[0].name
    nodes, needs = [], {target, *(() if scores is None else (scores.name,))}
    for node in reversed(list(graph.node)):
        if needs.intersection(node.output):
            nodes.append(node)
            needs.update(node.input)
    nodes.reverse()
    tables = [each for each in graph.initializer if each.name in needs]
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
    tables += initialisers({"flat": np.array([-1], np.int64), "labels": np.array(labels, np.int64)})
    nodes += [
        helper.make_node("Reshape", [names[target], "flat"], ["local"]),
        helper.make_node("Gather", ["labels", "local"], ["label"]),
    ]
    model = label_model(nodes, n_features, tables)
    if scores is not None:
        add(model, replace(scores, name=names[scores.name]), labels, n_classes)
    for opset in model.opset_import:
        for own in proto.opset_import:
            if own.domain == opset.domain == "":
                opset.version = own.version
    return model
