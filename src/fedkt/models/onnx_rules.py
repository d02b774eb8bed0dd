"""What a received ONNX graph may contain; anything else is refused before any of it runs.

ONNX by itself stops little: a Loop of 2⁶² steps is 231 bytes, a ConstantOfShape of 160 GB is 127, external data reads
files, and forged tree indices are trusted. So the file is walked field by field first (counting, so that parsing cannot
explode), then parsed, then held against short lists: of operators, of types, of sizes. What runs is written anew from
what was parsed: bytes that another reader would take for something else do not get that far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from fedkt.errors import ModelError
from fedkt.models.end_rules import check_ends, check_feature_ends, check_labels, check_probability
from fedkt.models.onnx_walk import walk
from fedkt.models.tree_rules import check_trees
from fedkt.models.window_rules import WINDOWS, check_window

OPSETS = {"": 17, "ai.onnx.ml": 3}
"""The versions of the two operator sets that our own graphs are written in; trees take float64 from ai.onnx.ml 3 on."""

_ALLOWED = """
    Abs Add ArgMax AveragePool BatchNormalization Cast Celu Clip Concat Conv Cos Div Elu Equal Erf Exp Flatten Gather
    Gemm GlobalAveragePool Greater HardSigmoid HardSwish Identity InstanceNormalization LeakyRelu Less Log LogSoftmax
    LpNormalization MatMul MaxPool Mul Neg Not PRelu Pow ReduceLogSumExp ReduceMax ReduceMean ReduceProd
    ReduceSum Relu Reshape Selu Sigmoid Slice Softmax Softplus Sqrt Squeeze Sub Sum Tanh TopK Transpose Unsqueeze
    ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.Imputer ai.onnx.ml.LinearClassifier ai.onnx.ml.Normalizer
    ai.onnx.ml.OneHotEncoder ai.onnx.ml.SVMClassifier ai.onnx.ml.Scaler ai.onnx.ml.TreeEnsembleClassifier
"""
OPERATORS = frozenset(_ALLOWED.split())
"""What the families that travel need, and nothing whose output is large while its inputs are small.

Convolutions can be that by padding, which rules bound, or by many channels, which need as many stored weights.
"""
_OF_FEATURES = """
    Abs Add Clip Concat Conv Cos Div Erf Exp Flatten Gather Identity Log MatMul Mul Neg ReduceMean ReduceSum Relu
    Reshape Sigmoid Softmax Sqrt Sub Sum Tanh Transpose ai.onnx.ml.Imputer
"""
FEATURE_OPERATORS = frozenset(_OF_FEATURES.split())
"""What a feature map may be made of: none makes whole numbers of decimals, which could then decide shapes or places."""

# FLOAT, UINT8, INT8, INT32, INT64, BOOL, DOUBLE of TensorProto.DataType, and the bytes of one element.
ELEMENT_BYTES = {1: 4, 2: 1, 3: 1, 6: 4, 7: 8, 9: 1, 11: 8}


OTHER_FORMAT = b"ORTM"
"""What onnxruntime knows files of its own format by, four bytes after their beginning."""


@dataclass(frozen=True)
class Limits:
    """How much a received bundle, and each model in it, may take."""

    bundle_bytes: int = 256 * 2**20
    member_bytes: int = 64 * 2**20
    """A model, or an array."""
    manifest_bytes: int = 2**20
    unpacked_bytes: int = 2**30
    """All members of a bundle together."""
    models: int = 1_000
    arrays: int = 1_000
    ratio: int = 100
    """How many times larger than its compressed form a member may be."""
    nodes: int = 2_000
    fields: int = 200_000
    """Protobuf fields in a model, the entries of attribute lists not counted."""
    elements: int = 16 * 2**20
    """Numbers in all initialisers and attribute lists together, trees aside."""
    tree_nodes: int = 2_000_000
    tree_depth: int = 2_000
    memory_bytes: int = 2 * 2**30
    cpu_seconds: int = 120
    """Per model."""
    wall_seconds: float = 300.0
    """Per model."""
    party_cpu_seconds: int = 600
    """All models of a party together, each time they are asked: for the vote, and to be measured."""
    run_cpu_seconds: int = 4 * 3_600
    """All parties of a server's vote together; each may have an equal part of it at most."""

    run_bytes: int = 4 * 10**9
    """What the models of all parties may take together, unpacked."""
    shared: bool = False
    """Whether `unpacked_bytes` is a party's share of that, and not what any bundle may take."""

    @property
    def advice(self) -> str:
        """What to do about a bundle that is too large, to be put behind the figure; nothing where nothing helps."""
        return " (a party's share of --memory; pass a larger one)" if self.shared else ""

    def allowing(self, *, gigabytes: float | None = None, cpu_hours: float | None = None) -> Limits:
        """The limits with more or less for all parties together, where it is said."""
        return replace(
            self,
            run_bytes=self.run_bytes if gigabytes is None else int(gigabytes * 10**9),
            run_cpu_seconds=self.run_cpu_seconds if cpu_hours is None else int(cpu_hours * 3_600),
        )

    def share_of(self, parties: int) -> Limits:
        """The limits of one of so many parties: an even share of what all of them may take."""
        seconds, unpacked = self.run_cpu_seconds // parties, min(self.unpacked_bytes, self.run_bytes // parties)
        return replace(
            self,
            party_cpu_seconds=min(self.party_cpu_seconds, max(1, seconds)),
            unpacked_bytes=unpacked,
            shared=unpacked < self.unpacked_bytes,
            bundle_bytes=min(self.bundle_bytes, unpacked + self.manifest_bytes),
        )


@dataclass(frozen=True)
class SafeGraph:
    """A graph that keeps the rules, as it may be run."""

    data: bytes = field(repr=False)
    """Written from what was checked, not as it was received; of graphs that we write ourselves, the same bytes."""
    soft: bool
    """Whether it also gives probabilities."""


def check_graph(
    data: bytes, *, n_features: int, n_classes: int, limits: Limits | None = None, soft: bool = False
) -> SafeGraph:
    """The graph to run, which may give probabilities where `soft` says so.

    A graph that breaks a rule is a ModelError that says which.
    """

    def check(graph: Any, bounds: Limits) -> bool:
        return _check_classifier(graph, n_features, n_classes, bounds, soft=soft)

    return _checked(data, limits or Limits(), check)


def check_feature_graph(data: bytes, *, n_features: int, width: int, limits: Limits | None = None) -> bytes:
    """The graph of a feature map to run, from `rows` to `features`.

    Only float32 numbers are in it that rows decide about: whether it runs, what shapes its tables have, and so about
    how long it takes, hang on no row.
    """

    def check(graph: Any, bounds: Limits) -> bool:
        check_feature_ends(graph, n_features, width)
        _check_body(graph, n_features, bounds, FEATURE_OPERATORS)
        _check_no_table_is_empty(graph)
        return False

    return _checked(data, limits or Limits(), check).data


def _check_no_table_is_empty(graph: Any) -> None:
    """What is made of no numbers may be memory that nobody wrote, in which the row before has left its own."""
    attributes = [each.t for node in graph.node for each in node.attribute if each.type == 4]
    for table in (*graph.initializer, *attributes):
        if 0 in table.dims:
            raise ModelError(f"the stored table {table.name[:40]!r} is empty, which a feature map has no use for.")


def _checked(data: bytes, bounds: Limits, check: Callable[[Any, Limits], bool]) -> SafeGraph:
    """The graph, written anew, if it keeps to the rules of every graph and to those of `check`."""
    if len(data) > bounds.member_bytes:
        raise ModelError(f"the model has {len(data)} bytes; at most {bounds.member_bytes} are read.")
    try:
        walk(data, max_fields=bounds.fields, max_elements=bounds.elements, max_modes=bounds.tree_nodes)
        model = _parse(data)
        if not 3 <= model.ir_version <= 13:
            raise ModelError(f"the model has ONNX version {model.ir_version}; versions 3 to 13 are known.")
        _check_opsets(model)
        gives_probabilities = check(model.graph, bounds)
        return SafeGraph(_write(model), gives_probabilities)
    except ModelError:
        raise
    except Exception as reason:
        # Unknown means refused: what trips the checks themselves must not get past them.
        raise ModelError(f"the model is damaged: {type(reason).__name__}: {str(reason)[:200]}") from reason


def _write(model: Any) -> bytes:
    """The bytes of a checked model, and of nothing that was not checked."""
    model.DiscardUnknownFields()
    # Notes are for readers; the runtime can be told to take its settings from them.
    model.ClearField("metadata_props")
    data = bytes(model.SerializeToString(deterministic=True))
    if data[4:8] == OTHER_FORMAT:
        raise ModelError("the model has the mark of another format (ORTM) in it.")
    return data


def _check_classifier(graph: Any, n_features: int, n_classes: int, bounds: Limits, *, soft: bool) -> bool:
    """Whether the graph gives probabilities too."""
    gives_probabilities = soft and len(graph.output) == 2
    check_ends(graph, n_features)
    if gives_probabilities:
        check_probability(graph.output[1], n_classes)
    elif len(graph.output) != 1:
        raise ModelError(f"the graph has {len(graph.output)} outputs, not one.")
    _check_body(graph, n_features, bounds, OPERATORS)
    check_labels(graph, n_classes)
    return gives_probabilities


def _check_body(graph: Any, n_features: int, bounds: Limits, operators: frozenset[str]) -> None:
    """What lies between the ends of a graph."""
    if len(graph.node) > bounds.nodes:
        raise ModelError(f"the graph has {len(graph.node)} nodes; at most {bounds.nodes} are run.")
    elements = sum(_check_tensor(each, bounds) for each in graph.initializer)
    table = {"rows"}
    for node in graph.node:
        elements += _check_node(node, bounds, operators)
        if node.op_type == "TreeEnsembleClassifier":
            widest = check_trees(node, bounds.tree_nodes, bounds.tree_depth)
            if table.intersection(node.input) and widest >= n_features:
                raise ModelError(f"a tree reads feature {widest}, but the rows have the columns 0 … {n_features - 1}.")
        elif node.op_type == "Cast" and table.intersection(node.input):
            table.update(node.output)
    if elements > bounds.elements:
        raise ModelError(f"the graph holds {elements} numbers; at most {bounds.elements} are read.")


def _parse(data: bytes) -> Any:
    from onnx import ModelProto

    model = ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as reason:
        # protobuf's own exception differs between its implementations.
        raise ModelError(f"the model is not an ONNX file: {reason}") from reason
    if not model.HasField("graph"):
        raise ModelError("the model has no graph: it is not an ONNX file.")
    return model


def _check_opsets(model: Any) -> None:
    domains: set[str] = set()
    for each in model.opset_import:
        domain = "" if each.domain == "ai.onnx" else each.domain
        if domain not in OPSETS:
            raise ModelError(f"the model uses the operator set {domain!r}; only standard ONNX and ai.onnx.ml are run.")
        if domain in domains:
            raise ModelError(f"the model names the operator set {domain!r} twice.")
        domains.add(domain)
        low, high = (9, 23) if domain == "" else (1, 3)
        if not low <= each.version <= high:
            raise ModelError(f"the model uses version {each.version} of operator set {domain!r}, not {low} to {high}.")


def _check_tensor(tensor: Any, bounds: Limits) -> int:
    """The elements of a stored tensor, if it holds exactly what it declares."""
    if tensor.data_type not in ELEMENT_BYTES:
        raise ModelError(f"the stored table {tensor.name[:40]!r} has a type ({tensor.data_type}) that is not allowed.")
    if len(tensor.dims) > 8 or any(not 0 <= each <= bounds.elements for each in tensor.dims):
        raise ModelError(f"the stored table {tensor.name[:40]!r} claims an impossible shape.")
    elements = int(math.prod(tensor.dims))
    lengths = (len(tensor.float_data), len(tensor.int32_data), len(tensor.int64_data), len(tensor.double_data))
    raw = tensor.HasField("raw_data")
    if tensor.string_data or tensor.uint64_data or len([each for each in lengths if each]) + raw > 1:
        raise ModelError(f"the stored table {tensor.name[:40]!r} mixes several kinds of payload.")
    field = {1: 0, 11: 3, 7: 2}.get(tensor.data_type, 1)
    count = len(tensor.raw_data) / ELEMENT_BYTES[tensor.data_type] if raw else lengths[field]
    if count != elements:
        raise ModelError(f"the stored table {tensor.name[:40]!r} claims {elements} numbers but holds {count:g}.")
    return elements


def _check_node(node: Any, bounds: Limits, operators: frozenset[str]) -> int:
    """The numbers in a node's attributes, if operator and attributes are allowed."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    operator = f"{domain}.{node.op_type}" if domain else node.op_type
    if operator not in operators:
        raise ModelError(f"the graph uses the operator {operator[:60]!r}, which is not on the list of allowed ones.")
    names = [each.name for each in node.attribute]
    if len(set(names)) != len(names):
        raise ModelError(f"a {operator} node gives an attribute twice.")
    elements = 0
    for each in node.attribute:
        if each.type not in (1, 2, 3, 4, 6, 7, 8) or each.ref_attr_name:
            raise ModelError(f"a {operator} node has an attribute {each.name[:40]!r} of a kind that is not allowed.")
        elements += len(each.floats) + len(each.ints) + len(each.strings)
        if each.type == 4:
            elements += _check_tensor(each.t, bounds)
    if node.op_type in WINDOWS:
        check_window(node)
    # The lists of a tree ensemble are bounded by its number of nodes instead.
    return 0 if node.op_type == "TreeEnsembleClassifier" else elements
