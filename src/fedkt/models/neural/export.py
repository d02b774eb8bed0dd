"""A network as an ONNX graph: from rows of a table or of pixels to the classes it answers with.

The module is torch's to export; what stands before it (the shape and scale of the rows) and after it (the choice among
the classes it was shown) is written here, in the arithmetic and order of `classifier`.
"""

from __future__ import annotations

import copy
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedkt.errors import ModelError
from fedkt.models.graphs import LabelScores, initialisers, library_code
from fedkt.models.neural.rows import network_shape
from fedkt.models.neural.training import one_torch_thread
from fedkt.models.onnx_rules import OPERATORS, OPSETS

if TYPE_CHECKING:
    from fedkt.models.base import FittedModel
    from fedkt.models.neural.classifier import NeuralClassifier

TIE = 1e-4
"""Logits this close, relative to their size, are as good as equal: float32 sums of other order differ by less."""
MODULE_OPSET = 16
"""The operator set modules are exported in: all of 17 but layer normalisation, which is thus written out in arithmetic.

As one operator it would need rules of its own: onnxruntime accepts scales and shifts of several wrong lengths.
"""
BATCHES = (7, 11)
"""The two numbers of rows a module is exported for; what differs between the graphs is the number of rows."""


def network_graph(estimator: NeuralClassifier, *, double: bool = False) -> Any:
    """The ONNX model of a trained network, from flat rows to `classes_`, in float64 if `double`."""
    from onnx import TensorProto, helper

    kind = np.float64 if double else np.float32
    graph = _module_graph(estimator, double=double)
    tables: dict[str, NDArray[Any]] = {}
    before, after = _before(estimator, kind, tables), _after(estimator, "module.out", tables)
    # A module may call its weights what we call ours.
    names = {"": "", "in": before[-1].output[0] if before else "rows"}
    for node in graph.node:
        for fields in (node.input, node.output):
            fields[:] = [names.get(each, f"module.{each}") for each in fields]
    for table in graph.initializer:
        table.name = f"module.{table.name}"
    element = TensorProto.DOUBLE if double else TensorProto.FLOAT
    joint = helper.make_graph(
        [*before, *graph.node, *after],
        "fedkt",
        [helper.make_tensor_value_info("rows", element, [None, estimator.n_features_in_])],
        [helper.make_tensor_value_info("local", TensorProto.INT64, [None])],
        [*graph.initializer, *initialisers(tables)],
    )
    return helper.make_model(joint, opset_imports=[helper.make_opsetid("", OPSETS[""])], ir_version=8)


def network_scores(estimator: NeuralClassifier) -> LabelScores:
    """Where the logits of the classes it was shown stand in the graph."""
    some = len(estimator.classes_) < max(len(estimator.outputs_), 2)
    return LabelScores("net_logits" if some else "module.out", len(estimator.classes_), "softmax")


def near_ties(model: FittedModel, rows: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each row, whether the network finds this label as good as its own, up to rounding.

    The measure is the larger of the row's largest logit and a typical row's: where large sums cancel, the row's own
    logits are small, but their error is not.
    """
    estimator, inputs = model.estimator, rows
    if type(estimator).__name__ == "Pipeline":
        estimator, inputs = estimator[-1], estimator[:-1].transform(rows)
    scores = np.asarray(estimator.decision_scores(inputs), dtype=np.float64)
    same_class = model.labels[np.asarray(estimator.classes_, dtype=np.int64)][None, :] == labels[:, None]
    largest = np.abs(scores).max(axis=1)
    behind = scores.max(axis=1) - np.where(same_class, scores, -np.inf).max(axis=1)
    near: NDArray[np.bool_] = behind <= TIE * np.maximum(largest, np.median(largest))
    return near


def _before(estimator: NeuralClassifier, kind: Any, tables: dict[str, NDArray[Any]]) -> list[Any]:
    """The nodes from flat rows to what the module reads, as `rows.as_tensor` does it."""
    from onnx import helper

    steps: list[tuple[str, list[str], dict[str, Any]]] = []
    if estimator.image_ is not None:
        tables["net_image"] = np.array([-1, *estimator.image_], np.int64)
        steps.append(("Reshape", ["net_image"], {}))
    scale = estimator.scale_
    if scale.mean.any() or (scale.deviation != 1).any():
        tables["net_mean"], tables["net_deviation"] = scale.mean.astype(kind), scale.deviation.astype(kind)
        steps += [("Sub", ["net_mean"], {}), ("Div", ["net_deviation"], {})]
    if estimator.image_ is not None:
        steps.append(("Transpose", [], {"perm": [0, 3, 1, 2]}))
    nodes = []
    source = "rows"
    for place, (operator, others, options) in enumerate(steps):
        nodes.append(helper.make_node(operator, [source, *others], [f"net_row_{place}"], **options))
        source = f"net_row_{place}"
    return nodes


def _after(estimator: NeuralClassifier, logits: str, tables: dict[str, NDArray[Any]]) -> list[Any]:
    """The nodes from logits to the chosen class; outputs of classes the network was not shown take no part."""
    from onnx import helper

    nodes = []
    places = np.searchsorted(estimator.outputs_, estimator.classes_).astype(np.int64)
    if len(places) < max(len(estimator.outputs_), 2):
        tables["net_shown"] = places
        nodes.append(helper.make_node("Gather", [logits, "net_shown"], ["net_logits"], axis=1))
        logits = "net_logits"
    tables["net_classes"] = np.asarray(estimator.classes_, dtype=np.int64)
    nodes.append(helper.make_node("ArgMax", [logits], ["net_place"], axis=1, keepdims=0))
    nodes.append(helper.make_node("Gather", ["net_classes", "net_place"], ["local"]))
    return nodes


def _module_graph(estimator: NeuralClassifier, *, double: bool) -> Any:
    """The graph of the module alone, for any number of rows and of operators that receivers run."""
    kind = torch.float64 if double else torch.float32
    module = copy.deepcopy(estimator.network_).to(device="cpu", dtype=kind).eval()
    shape = network_shape(estimator.n_features_in_, estimator.image_)
    graph, other = (_export_module(module, torch.zeros((batch, *shape), dtype=kind)) for batch in BATCHES)
    unsafe = sorted({each.op_type for each in graph.node if each.domain or each.op_type not in OPERATORS})
    if unsafe:
        raise ModelError(f"the network needs the operator {', '.join(unsafe)}, which receivers do not run.")
    _loosen(graph, other)
    return graph


def _export_module(module: torch.nn.Module, batch: torch.Tensor) -> Any:
    """What torch's exporter makes of a module and a batch of exactly this shape, with constants worked out."""
    import onnx

    buffer: Any = io.BytesIO()
    with torch.no_grad(), torch.random.fork_rng(devices=[]), one_torch_thread(), _quiet(), library_code():
        try:
            # The exporter that traces is a hundred times as fast as its successor on small networks.
            torch.onnx.export(
                module,
                (batch,),
                buffer,
                input_names=["in"],
                output_names=["out"],
                opset_version=MODULE_OPSET,
                dynamo=False,
            )
        except torch.onnx.OnnxExporterError as reason:
            operator = re.search(r"[Ee]xporting the operator '([^']+)'", str(reason))
            if operator is None:
                raise
            raise ModelError(f"the network needs the operator {operator[1]}, which ONNX does not have.") from reason
    model = onnx.load_from_string(buffer.getvalue())
    _fold(model, batch.numpy())
    return model.graph


@contextmanager
def _quiet() -> Iterator[None]:
    """No notes of the exporter, which its user can do nothing about; the labels are compared on every row instead."""
    notes = (
        ("You are using the legacy TorchScript-based ONNX export", DeprecationWarning),
        ("The feature will be removed", DeprecationWarning),
        ("Constant folding - ", UserWarning),
        ("ONNX export mode is set to TrainingMode.EVAL", UserWarning),
        ("", torch.jit._trace.TracerWarning),
    )
    # It switches its log on for good, and prints the whole graph to it where an operator is missing.
    enabled, log = torch._C._jit_is_onnx_log_enabled(), torch._C._jit_onnx_log
    torch._C._jit_onnx_log = lambda *_: None
    try:
        with warnings.catch_warnings():
            for words, kind in notes:
                warnings.filterwarnings("ignore", words, kind)
            yield
    finally:
        torch._C._jit_onnx_log = log
        torch._C._jit_set_onnx_log_enabled(enabled)


def _fold(model: Any, batch: NDArray[Any]) -> None:
    """Replace nodes that depend on shapes and constants only by tables of what they say: no Shape, no Constant left."""
    from onnx import helper

    from fedkt.models.sandbox_child import open_session

    graph = model.graph
    tables = {"", *(each.name for each in graph.initializer)}
    constants, remaining = set(tables), []
    for node in graph.node:
        if node.op_type == "Shape" or constants.issuperset(node.input):
            constants.update(node.output)
        else:
            remaining.append(node)
    names = sorted({each for node in remaining for each in node.input if each in constants - tables})
    if names:
        outputs = list(graph.output)
        graph.output.extend(helper.make_empty_tensor_value_info(each) for each in names)
        with library_code():
            values = open_session(model.SerializeToString()).run(names, {"in": batch})
        del graph.output[len(outputs) :]
        graph.initializer.extend(initialisers(dict(zip(names, values, strict=True))))
    copies = [copy.deepcopy(each) for each in remaining]
    del graph.node[:]
    graph.node.extend(copies)


def _loosen(graph: Any, other: Any) -> None:
    """Make the graph of 7 rows one of any number of rows, by comparison with the graph of 11.

    A module that writes the number of rows into a new shape (`x.view(len(x), -1)`) has it in the graph as a constant.
    """
    from onnx import numpy_helper

    tables = {each.name: each for each in graph.initializer}
    others = {each.name: numpy_helper.to_array(each) for each in other.initializer}
    same = tables.keys() == others.keys() and [_form(each) for each in graph.node] == [_form(e) for e in other.node]
    shapes = {each.input[1] for each in graph.node if each.op_type == "Reshape"}
    other_inputs = {
        name for each in graph.node for name in (each.input[:1] if each.op_type == "Reshape" else each.input)
    }
    for name, table in tables.items() if same else ():
        one, two = numpy_helper.to_array(table), others[name]
        if np.array_equal(one, two, equal_nan=one.dtype.kind == "f"):
            continue
        changes = np.flatnonzero(one != two) if one.shape == two.shape else np.empty(0)
        same = name in shapes - other_inputs and len(changes) == 1
        # In a shape, −1 is whatever is left over; where that is taken, 0 is as many as come in.
        has_rest = bool((one == -1).any())
        same &= not has_rest or (one[changes] == BATCHES[0]).all()
        if not same:
            break
        loose = one.copy()
        loose[changes] = 0 if has_rest else -1
        table.CopyFrom(numpy_helper.from_array(loose, name))
    if not same:
        raise ModelError("the network does something else with another number of rows, beyond putting it in a shape.")


def _form(node: Any) -> tuple[Any, ...]:
    return (node.op_type, *node.input, *node.output, *(each.SerializeToString() for each in node.attribute))
