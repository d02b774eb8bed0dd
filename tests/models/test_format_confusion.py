"""What runs is what was checked: bytes that are one graph to the rules and another to the runtime."""

import struct

import numpy as np
import onnx
import pytest
from onnx import helper

from fedkt.errors import ModelError
from fedkt.models.exchange import graph_bytes
from fedkt.models.onnx_rules import check_graph
from fedkt.models.sandbox import run_models
from fedkt.models.sandbox_child import runtime

ROWS = np.random.default_rng(2).normal(size=(50, 3)).astype(np.float32)


def model(nodes=(), **options):
    """A graph from three columns to the place of the largest, or of other nodes."""
    nodes = nodes or [helper.make_node("ArgMax", ["rows"], ["label"], axis=1, keepdims=0)]
    rows = helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, [None, 3])
    label = helper.make_tensor_value_info("label", onnx.TensorProto.INT64, [None])
    graph = helper.make_graph(nodes, "g", [rows], [label])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, **options)


def in_the_runtimes_own_format(proto, path):
    onnxruntime = runtime()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return path.read_bytes()


def two_faced(tame, other):
    """Bytes that protobuf reads as `tame`, and a reader of the runtime's own format as `other`.

    They begin with a version (08 08) and a field of a wrong wire type (09 …), which a parser lays aside; read as a
    number, that is where the other reader finds its root table. A second one (0a …) holds the table and all it needs.
    """

    def at(place, size):
        return int.from_bytes(other[place : place + size], "little")

    root = at(0, 4)
    table = root - at(root, 4)
    # What the root table says where each of its entries is; 0 for none.
    places = [at(table + 4 + 2 * number, 2) for number in range((at(table, 2) - 4) // 2)]
    head = b"\x08\x08\x09\x00ORTM\x00\x00\x00"
    new_root = int.from_bytes(head[:4], "little")
    start, before = len(head) + 5, 16
    base = (new_root + 4 + 4 * len(places) + 15) // 16 * 16
    sizes = struct.pack(f"<HH{len(places)}H", 4 + 2 * len(places), 4 + 4 * len(places), *places)
    offsets = [0] * len(places)
    for place in filter(None, places):
        # From the entry to what it means; the rest of the format is relative and stays as it is.
        offsets[place // 4 - 1] = base + root + place + at(root + place, 4) - new_root - place
    content = bytes(new_root - before - start) + sizes.ljust(before, b"\0")
    content += struct.pack(f"<i{len(offsets)}I", before, *offsets)
    content = content.ljust(base - start, b"\0") + other
    length = [len(content) >> shift & 0x7F for shift in (0, 7, 14, 21)]
    return head + b"\x0a" + bytes([each | 0x80 for each in length[:3]] + length[3:]) + content + tame


def test_bytes_that_are_another_graph_to_the_runtime_are_refused(tmp_path):
    steps = [helper.make_node("ArgMin", ["rows"], ["label"], axis=1, keepdims=0)]
    data = two_faced(model().SerializeToString(), in_the_runtimes_own_format(model(steps), tmp_path / "other.ort"))
    parsed = onnx.ModelProto.FromString(data)
    assert [node.op_type for node in parsed.graph.node] == ["ArgMax"], "to a parser it is a tame graph"
    with pytest.raises(ModelError, match="wrong type"):
        check_graph(data, n_features=3, n_classes=3)
    # And the child by itself reads nothing but ONNX, whatever it is given.
    answer = run_models([data], ROWS, n_classes=3)[0]
    assert isinstance(answer, str) or answer.tolist() == ROWS.argmax(axis=1).tolist()


def test_the_child_reads_no_format_but_onnx(tmp_path):
    data = in_the_runtimes_own_format(model(), tmp_path / "plain.ort")
    assert data[4:8] == b"ORTM"
    assert isinstance(run_models([data], ROWS, n_classes=3)[0], str)


def test_the_mark_of_the_other_format_in_a_name_is_refused():
    data = model(producer_name="ORTM").SerializeToString(deterministic=True)
    assert data[4:8] == b"ORTM"
    with pytest.raises(ModelError, match="another format"):
        check_graph(data, n_features=3, n_classes=3)


def varint(number):
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def field(number, wire):
    """A field whose content is as its wire type wants it."""
    return varint(number << 3 | wire) + {0: b"\x01", 1: bytes(8), 2: b"\x01\x01", 5: bytes(4)}[wire]


def inside(content, *numbers):
    """A message inside others, by their field numbers from the innermost outwards."""
    for number in numbers:
        content = varint(number << 3 | 2) + varint(len(content)) + content
    return content


# The messages of onnx.proto, how to get there from the model, and the wire type that its fields are declared with.
DECLARED = {
    "model": ((), {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2}),
    "opset": ((8,), {1: 2, 2: 0}),
    "entry": ((14,), {1: 2, 2: 2}),
    "graph": ((7,), {2: 2, 10: 2}),
    "node": ((1, 7), {1: 2, 2: 2, 3: 2, 4: 2, 6: 2, 7: 2}),
    "attribute": ((5, 1, 7), {1: 2, 2: 5, 3: 0, 4: 2, 7: 5, 8: 0, 9: 2, 13: 2, 20: 0}),
    "tensor": ((5, 7), {1: 0, 2: 0, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 12: 2}),
    "dimension": ((1, 2, 1, 2, 11, 7), {1: 0, 2: 2, 3: 2}),
}


@pytest.mark.parametrize("kind", DECLARED)
def test_a_field_of_another_wire_type_than_declared_is_refused(kind):
    path, fields = DECLARED[kind]
    tame = model().SerializeToString()
    for number, declared in fields.items():
        for wire in {0, 1, 2, 5} - {declared}:
            with pytest.raises(ModelError, match="wrong type"):
                check_graph(tame + inside(field(number, wire), *path), n_features=3, n_classes=3)


def test_what_runs_is_written_from_what_was_checked():
    proto = model()
    proto.metadata_props.add(key="ort_config", value='{"session_options": {"intra_op_num_threads": 9}}')
    # The same fields in another order, and a number with more bytes than it needs: another file, the same graph.
    graph = proto.graph.SerializeToString()
    rest = onnx.ModelProto()
    rest.CopyFrom(proto)
    rest.ClearField("graph")
    data = inside(graph, 7) + b"\x08\x88\x80\x00" + rest.SerializeToString()
    safe = check_graph(data, n_features=3, n_classes=3)
    assert safe.data == model().SerializeToString(deterministic=True)
    assert run_models([safe.data], ROWS, n_classes=3)[0].tolist() == ROWS.argmax(axis=1).tolist()


def test_a_received_bundle_runs_what_was_written_anew():
    from fedkt.bundle import Bundle, Expected, pack, unpack
    from fedkt.models.exchange import OnnxModel

    proto = model()
    proto.metadata_props.add(key="note", value="for nobody")
    sent = pack(
        Bundle("north", ("a", "b", "c"), (OnnxModel(proto.SerializeToString(), 3, 3),), "81c07e"), check_rows=ROWS
    )
    (got,) = unpack(sent, source="x", expected=Expected(plan="81c07e", classes=("a", "b", "c"), n_features=3)).models
    assert got.data == model().SerializeToString(deterministic=True)


def test_a_constant_keeps_its_bytes():
    graph = graph_bytes(None, [2], 4, double=False)
    assert check_graph(graph, n_features=4, n_classes=3).data == graph
