"""The graph of a final model whose scores are read otherwise than by its estimator: calibrated, its labels moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.graphs import LabelScores, initialisers
from fedkt.models.reading import Calibration, Reading


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


Step = tuple[str, list[str], dict[str, Any]]
"""An operator, its inputs and its attributes."""


def _calibrated_probability(
    scores: LabelScores, n_local: int, calibration: Calibration
) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """Nodes from `score` to the calibrated `local_probability` of the model's classes, and their tables."""
    from onnx import helper

    choice = np.eye(scores.width, n_local, dtype=np.float32)
    floor, slope = np.float32(calibration.floor), np.float32(calibration.slope)
    tables: dict[str, NDArray[Any]] = {"offsets": calibration.offsets.astype(np.float32)}
    steps: list[Step]
    if scores.link == "decision" and n_local == 2:
        steps = [("Gather", ["score", "column"], {"axis": 1})]
        choice = np.array([[0.0, 1.0]], np.float32)
        tables["column"] = np.array([scores.column], np.int64)
    elif scores.link == "decision":
        steps = [("Identity", ["score"], {})]
    elif scores.link == "sum":
        steps = [("Mul", ["score", "share"], {}), ("Clip", ["", "floor"], {}), ("Log", [""], {})]
        tables |= {"share": np.array([1.0 / scores.total], np.float32), "floor": np.array(floor, np.float32)}
    else:
        steps = [("MatMul", ["score", "choice"], {}), ("LogSoftmax", [""], {"axis": 1}), ("Clip", ["", "floor"], {})]
        tables |= {"choice": choice, "floor": np.array(np.log(floor), np.float32)}
        choice = np.eye(n_local, dtype=np.float32)
    tables["slope"] = (choice * slope).astype(np.float32)
    steps += [("MatMul", ["", "slope"], {}), ("Add", ["", "offsets"], {}), ("Softmax", [""], {"axis": 1})]
    nodes = []
    for number, (operator, (first, *more), options) in enumerate(steps):
        # A step without a source of its own goes on with what the last one gave.
        source = first or f"step{number - 1}"
        target = "local_probability" if number == len(steps) - 1 else f"step{number}"
        nodes.append(helper.make_node(operator, [source, *more], [target], **options))
    return nodes, tables


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
