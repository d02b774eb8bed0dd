"""The graph of a final model whose scores are read otherwise than by its estimator: calibrated, its labels moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.graphs import LabelScores, initialisers
from fedkt.models.reading import BEND, LARGEST, LEAST, TAIL, Calibration, Reading, least_logit


def add_reading(proto: Any, scores: LabelScores, labels: Sequence[int], n_classes: int, *, reading: Reading) -> None:
    """Give a graph the probability of each agreed class as a second output, and the label that a reading chooses."""
    from onnx import TensorProto, helper

    n_local = len(labels)
    nodes = [helper.make_node("Cast", [scores.name], ["score"], to=TensorProto.FLOAT)]
    if reading.calibration is None:
        more, tables = _own_probability(scores, n_local)
    else:
        more, tables = _calibrated_probability(scores, n_local, reading.calibration)
    to_agreed = np.zeros((n_local, n_classes), np.float32)
    to_agreed[np.arange(n_local), list(labels)] = 1.0
    nodes += [*more, helper.make_node("MatMul", ["local_probability", "to_classes"], ["probability"])]
    tables["to_classes"] = to_agreed
    if reading.factors is not None:
        nodes += [
            helper.make_node("Mul", ["local_probability", "factors"], ["weighted"]),
            helper.make_node("ArgMax", ["weighted"], ["best"], axis=1, keepdims=0),
            helper.make_node("Gather", ["agreed", "best"], ["label"]),
        ]
        tables |= {"factors": reading.factors.astype(np.float32), "agreed": np.array(labels, np.int64)}
        _drop_label(proto)
    proto.graph.node.extend(nodes)
    proto.graph.initializer.extend(initialisers(tables))
    proto.graph.output.append(helper.make_tensor_value_info("probability", TensorProto.FLOAT, [None, n_classes]))


def _own_probability(scores: LabelScores, n_local: int) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """Nodes from `score` to `local_probability` as the model's own link says, and their tables."""
    from onnx import helper

    # A column that means nothing takes no part.
    choice = np.eye(scores.width, n_local, dtype=np.float32)
    if scores.link == "sum":
        return [helper.make_node("MatMul", ["score", "choice"], ["local_probability"])], {
            "choice": choice / np.float32(scores.total)
        }
    nodes = [
        helper.make_node("MatMul", ["score", "choice"], ["logit"]),
        helper.make_node("Softmax", ["logit"], ["local_probability"], axis=1),
    ]
    return nodes, {"choice": choice}


@dataclass
class Steps:
    """Nodes and tables as they are put together; what a node gives has a name of its own."""

    nodes: list[Any] = field(default_factory=list)
    tables: dict[str, NDArray[Any]] = field(default_factory=dict)

    def node(self, operator: str, *inputs: str, to: str = "", **options: Any) -> str:
        """What a further node of these inputs is called."""
        from onnx import helper

        name = to or f"step{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **options))
        return name

    def table(self, name: str, values: Any, kind: Any = np.float32) -> str:
        """The name of a table that nodes read."""
        self.tables[name] = np.asarray(values, dtype=kind)
        return name


def _calibrated_probability(
    scores: LabelScores, n_local: int, calibration: Calibration
) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """Nodes from `score` to the calibrated `local_probability` of the model's classes, and their tables."""
    steps = Steps()
    least, most = (steps.table(name, each) for name, each in (("least", -LARGEST), ("most", LARGEST)))
    source, choice = _score_of_class(steps, scores, n_local)
    source = steps.node("Clip", source, least, most)
    if np.isfinite(calibration.knee):
        source = _bent(steps, source, calibration.knee)
    source = steps.node("MatMul", source, steps.table("slope", choice * np.float32(calibration.slope)))
    # Infinities would be subtracted from one another.
    source = steps.node("Clip", source, least, most)
    source = steps.node("Add", source, steps.table("offsets", calibration.offsets))
    steps.node("Softmax", _limited(steps, source, n_local), to="local_probability", axis=1)
    return steps.nodes, steps.tables


def _score_of_class(steps: Steps, scores: LabelScores, n_local: int) -> tuple[str, NDArray[Any]]:
    """The scores as `class_scores` has them, and which of their columns is which class's."""
    if scores.link == "decision" and n_local == 2:
        column = steps.table("column", [scores.column], np.int64)
        return steps.node("Gather", "score", column, axis=1), np.array([[0.0, 1.0]])
    if scores.link in ("decision", "logarithm"):
        return "score", np.eye(n_local)
    if scores.link == "sum":
        share = steps.node("Mul", "score", steps.table("share", [1.0 / scores.total]))
        return steps.node("Log", steps.node("Clip", share, steps.table("floor", LEAST))), np.eye(scores.width, n_local)
    choice = steps.table("choice", np.eye(scores.width, n_local))
    logarithm = steps.node("LogSoftmax", steps.node("MatMul", "score", choice), axis=1)
    return steps.node("Clip", logarithm, steps.table("floor", np.log(LEAST))), np.eye(n_local)


def _bent(steps: Steps, source: str, knee: float) -> str:
    """`reading.bend`, of which log(width + a) - log(width + b) is a form that float32 holds."""
    width = steps.table("width", BEND * knee)
    inside = steps.node("Clip", source, steps.table("knee_below", -knee), steps.table("knee", knee))
    outside = steps.node("Sub", source, inside)
    more, less = (
        steps.node("Log", steps.node("Add", steps.node("Relu", each), width))
        for each in (outside, steps.node("Neg", outside))
    )
    return steps.node("Add", inside, steps.node("Mul", steps.node("Sub", more, less), width))


def _limited(steps: Steps, logits: str, n_local: int) -> str:
    """What `reading.soft_limit` takes the softmax of."""
    lowest = least_logit(n_local)
    below = steps.node("Sub", logits, steps.node("ReduceMax", logits, axes=[1], keepdims=1))
    inside = steps.node("Clip", below, steps.table("lowest", -lowest))
    # As far as it lies below the lowest, and 0 for all others.
    beyond = steps.node("Sub", inside, below)
    tail = steps.table("tail", TAIL)
    grown = steps.node("Sub", steps.node("Log", steps.node("Add", beyond, tail)), steps.table("tail_log", np.log(TAIL)))
    return steps.node("Sub", inside, steps.node("Mul", grown, tail))


def _drop_label(proto: Any) -> None:
    """Take out what chose the label before; where scores come from the same node, it stays."""
    graph = proto.graph
    needs = {"label"}
    for node in reversed(list(graph.node)):
        if "label" in node.output and len(node.output) > 1:
            node.output[list(node.output).index("label")] = "own_label"
        elif needs.intersection(node.output) and node.op_type in ("Gather", "Reshape"):
            needs.update(node.input)
            graph.node.remove(node)
    used = {name for node in graph.node for name in node.input}
    for table in [each for each in graph.initializer if each.name not in used]:
        graph.initializer.remove(table)
