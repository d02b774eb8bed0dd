"""What goes into a received graph and what comes out: rows of the agreed width, agreed labels or features."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkt.errors import ModelError


def check_ends(graph: Any, n_features: int) -> None:
    """One input `rows`, and a first output `label`."""
    target = _first_output(graph, n_features, "label").type.tensor_type
    if target.elem_type != 7:
        raise ModelError("the graph's output 'label' is not int64.")
    if len(target.shape.dim) != 1 or target.shape.dim[0].HasField("dim_value"):
        raise ModelError("the graph's output 'label' is not one label per row.")


def check_feature_ends(graph: Any, n_features: int, width: int) -> None:
    """One input `rows`, and one output `features`, so many float32 numbers for each row."""
    kind = _first_output(graph, n_features, "features").type.tensor_type
    if len(graph.output) != 1:
        raise ModelError(f"the graph has {len(graph.output)} outputs, not one.")
    if kind.elem_type != 1:
        raise ModelError("the graph's output 'features' is not float32.")
    _check_shape("output 'features'", kind, width)


def _first_output(graph: Any, n_features: int, name: str) -> Any:
    """The first output of this name, of a graph with one input `rows` of the agreed width."""
    if len(graph.input) != 1 or not graph.output:
        raise ModelError(f"the graph has {len(graph.input)} inputs and {len(graph.output)} outputs, not one of each.")
    rows, first = graph.input[0], graph.output[0]
    if rows.name != "rows" or first.name != name:
        raise ModelError(f"the graph goes from {rows.name!r} to {first.name!r}, not from 'rows' to {name!r}.")
    source = rows.type.tensor_type
    if source.elem_type != 1:
        raise ModelError("the graph's input 'rows' is not float32.")
    _check_shape("input 'rows'", source, n_features)
    if any(each.name == "rows" for each in graph.initializer):
        raise ModelError("the graph overwrites its input 'rows'.")
    return first


def check_probability(output: Any, n_classes: int) -> None:
    """A second output is one probability for each row and class."""
    kind = output.type.tensor_type
    if output.name != "probability" or kind.elem_type != 1:
        raise ModelError(f"the graph's second output {output.name[:40]!r} is not 'probability' in float32.")
    _check_shape("output 'probability'", kind, n_classes)


def _check_shape(what: str, kind: Any, width: int) -> None:
    """Any number of rows, and so many columns."""
    widths = [(each.dim_value, each.HasField("dim_value")) for each in kind.shape.dim]
    if len(widths) != 2 or widths[0][1] or widths[1] != (width, True):
        raise ModelError(f"the graph's {what} has the shape {[w for w, _ in widths]}, not (N, {width}).")


def check_labels(graph: Any, n_classes: int) -> None:
    """Where the labels stand in the graph in plain sight, they are classes; the rest shows when it runs."""
    for node in graph.node:
        if "label" not in node.output:
            continue
        if node.op_type == "TreeEnsembleClassifier":
            tables = [np.fromiter(part.ints, np.int64) for part in node.attribute if part.name == "classlabels_int64s"]
        elif node.op_type == "Gather" and node.input:
            tables = [
                np.frombuffer(each.raw_data, "<i8") if each.raw_data else np.fromiter(each.int64_data, np.int64)
                for each in graph.initializer
                if each.name == node.input[0] and each.data_type == 7
            ]
        else:
            return
        wrong = [int(each) for table in tables for each in table[(table < 0) | (table >= n_classes)][:1]]
        if wrong:
            raise ModelError(f"the graph answers with the label {wrong[0]}; only 0 … {n_classes - 1} are classes.")
