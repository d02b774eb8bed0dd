"""Reading a hostile file field by field costs neither memory nor time of its reader."""

import tracemalloc

import pytest

from fedkt.errors import ModelError
from fedkt.models.onnx_rules import check_graph
from fedkt.models.onnx_walk import walk

BOUNDS = {"max_fields": 1_000, "max_elements": 1_000, "max_modes": 1_000}


def varint(number):
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def inside(content, *numbers):
    """A message inside others, by their field numbers from the innermost outwards."""
    for number in numbers:
        content = varint(number << 3 | 2) + varint(len(content)) + content
    return content


@pytest.mark.parametrize("entry", [b"\x40\x01", b"\x40\xff\xff\x01", b"\x3d\0\0\0\0", b"\x40\x01\x3d\0\0\0\0"])
def test_a_long_list_is_read_without_remembering_its_entries(entry):
    data = inside(entry * (4_000_000 // len(entry)), 5, 1, 7)
    tracemalloc.start()
    try:
        walk(data, **BOUNDS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_a_run_of_entries_that_breaks_off_is_refused_at_once():
    data = inside(b"\x40\x01" * 1_000_000 + b"\x40" + b"\xff" * 20, 5, 1, 7)
    with pytest.raises(ModelError, match="damaged"):
        walk(data, **BOUNDS)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (inside(b"\x4a\x04LEAF" * 1_001, 5, 1, 7), "too many tree nodes"),
        (inside(inside(b"\x01" * 1_001, 7), 5, 7), "too many numbers"),
        (inside(inside(b"\x81\x01" * 1_001, 5), 5, 7), "too many numbers"),
        (inside(inside(bytes(4_004), 4), 5, 7), "too many numbers"),
        (inside(inside(bytes(8_008), 10), 5, 7), "too many numbers"),
        (inside(b"a" * 70_000, 6), "a text of 70000 bytes"),
        (inside(b"a" * 17 * 2**20, 2, 14), "a text of 17825792 bytes"),
    ],
    ids=["modes", "int64", "int32", "float", "double", "a name", "a note"],
)
def test_what_would_grow_in_a_parser_is_counted_before_it_is_parsed(data, why):
    with pytest.raises(ModelError, match=why):
        walk(data, **BOUNDS)


def test_as_many_numbers_as_allowed_are_read():
    walk(inside(inside(b"\x81\x01" * 1_000, 7), 5, 7), **BOUNDS)
    walk(inside(b"\x4a\x04LEAF" * 500 + b"\x4a\x0aBRANCH_LEQ" * 500, 5, 1, 7), **BOUNDS)


def test_a_table_of_many_labels_is_checked_without_a_python_number_for_each():
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, 3])
    label = helper.make_tensor_value_info("label", TensorProto.INT64, [None])
    steps = [
        helper.make_node("ArgMax", ["rows"], ["local"], axis=1, keepdims=0),
        helper.make_node("Gather", ["table", "local"], ["label"]),
    ]
    table = numpy_helper.from_array(np.full(1_000_000, 999, np.int64), "table")
    graph = helper.make_graph(steps, "g", [rows], [label], [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data = model.SerializeToString()
    tracemalloc.start()
    try:
        check_graph(data, n_features=3, n_classes=1_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The table's own eight million bytes, in a few copies.
    assert peak < 30_000_000
