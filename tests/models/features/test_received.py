"""Feature maps of strangers: checked before they run, run row by row, and cut to what an honest map says."""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from fedkt.errors import ModelError
from fedkt.models.base import FittedModel
from fedkt.models.exchange import to_onnx
from fedkt.models.features.feature_map import Graph
from fedkt.models.features.head import FeatureHead
from fedkt.models.features.received import ReceivedMap, map_rows, received_map, shortened
from fedkt.models.features.tables import table_map
from fedkt.models.final_exchange import to_final_onnx
from fedkt.models.prediction import labels_and_probabilities

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(40, 3)).astype(np.float32)
WIDE = {"n_features": 3, "width": 3}


def graph(nodes, tables=(), *, inputs=("rows",), output="features", width=3, kind=TensorProto.FLOAT):
    """The bytes of a graph from `rows`; nothing about it is checked."""
    made = helper.make_graph(
        [helper.make_node(*each[:3], **(each[3] if len(each) > 3 else {})) for each in nodes],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 3]) for name in inputs],
        [helper.make_tensor_value_info(output, kind, [None, width])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in tables],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8).SerializeToString()


def one_and(*more):
    """Nodes that put a 1 before two numbers of each row, and what may stand between."""
    return [
        ("Gather", ["rows", "first"], ["own"], {"axis": 1}),
        *more,
        ("Mul", ["one_column", "zero"], ["nothing"]),
        ("Add", ["nothing", "one"], ["ones"]),
        ("Concat", ["ones", "last"], ["features"], {"axis": 1}),
    ]


TABLES = [
    ("first", np.array([0, 1])),
    ("column", np.array([2])),
    ("zero", np.float32(0)),
    ("one", np.float32(1)),
    ("huge", np.float32(1e30)),
    ("tenth", np.float32(0.1)),
]
COLUMN = ("Gather", ["rows", "column"], ["one_column"], {"axis": 1})
HUGE = graph(one_and(COLUMN, ("Mul", ["own", "huge"], ["last"])), TABLES)
ROOTS = graph(one_and(COLUMN, ("Sqrt", ["own"], ["last"])), TABLES)
SMALL = graph(one_and(COLUMN, ("Tanh", ["own"], ["bent"]), ("Mul", ["bent", "tenth"], ["last"])), TABLES)


def test_a_map_says_the_same_after_travelling():
    made = table_map(ROWS, seed=1)
    received = received_map(made.onnx, n_features=3, width=made.width, prefixes=made.prefixes)
    assert received.graph == made.onnx
    assert received.digest == made.digest
    rows = np.vstack([ROWS, [[np.nan, np.inf, -1e30]]]).astype(np.float32)
    np.testing.assert_allclose(received(rows)[:-1], made(rows)[:-1], atol=1e-6)


def test_features_are_cut_to_the_length_of_an_honest_map_whatever_the_graph_says():
    said = ReceivedMap(HUGE, 3, 3)(ROWS)
    assert (said[:, 0] == 1).all()
    lengths = np.sqrt((said[:, 1:] ** 2).sum(axis=1))
    assert (lengths <= 1).all()
    assert (lengths > 0.999).all()


def test_a_row_for_which_a_graph_has_no_numbers_has_the_constant_alone_and_others_keep_theirs():
    rows = np.abs(ROWS)
    rows[3, 1] = -1.0
    said, without = ReceivedMap(ROOTS, 3, 3)(rows), ReceivedMap(ROOTS, 3, 3)(np.delete(rows, 3, axis=0))
    assert said[3].tolist() == [1, 0, 0]
    np.testing.assert_array_equal(np.delete(said, 3, axis=0), without)


def test_what_is_said_of_a_row_hangs_on_no_other_row():
    """A graph may add up all the rows that it is given: it is given one."""
    mixing = graph(
        [("ReduceMean", ["rows"], ["mean"], {"axes": [0], "keepdims": 1}), ("Add", ["rows", "mean"], ["features"])]
    )
    check = received_map(mixing, **WIDE)
    other = ROWS.copy()
    other[0] = 50
    np.testing.assert_array_equal(check(ROWS)[1:], check(other)[1:])
    assert (check(ROWS)[0] != check(other)[0]).any()


def test_a_row_that_ends_the_child_or_fails_in_it_is_lost_alone():
    """The rules let no such graph through; if one came, it could not tell of a row by taking others along."""
    rows = np.zeros((6, 3), np.float32)
    rows[2] = 9
    reaching = graph(
        [
            ("Cast", ["rows"], ["places"], {"to": TensorProto.INT64}),
            ("Gather", ["table", "places"], ["features"]),
        ],
        [("table", np.float32([0.5]))],
    )
    said = map_rows(reaching, rows, 3)
    assert np.isnan(said[2]).all()
    assert (np.delete(said, 2, axis=0) == 0.5).all()
    dividing = graph(
        [
            ("Cast", ["rows"], ["whole"], {"to": TensorProto.INT64}),
            ("Sub", ["nine", "whole"], ["away"]),
            ("Div", ["nine", "away"], ["parts"]),
            ("Cast", ["parts"], ["features"], {"to": TensorProto.FLOAT}),
        ],
        [("nine", np.int64([9]))],
    )
    # A whole number divided by 0 is the end of a process.
    said = map_rows(dividing, rows, 3)
    assert np.isnan(said[2]).all()
    assert (np.delete(said, 2, axis=0) == 1).all()


REFUSED = {
    "two inputs": (graph([("Add", ["rows", "more"], ["features"])], inputs=("rows", "more")), "2 inputs"),
    "another output": (graph([("Abs", ["rows"], ["label"])], output="label"), "to 'label'"),
    "another width": (graph([("Abs", ["rows"], ["features"])], width=4), r"\[0, 4\], not \(N, 3\)"),
    "float64": (graph([("Abs", ["rows"], ["features"])], kind=TensorProto.DOUBLE), "not float32"),
    "places that rows decide": (
        graph([("Cast", ["rows"], ["places"], {"to": 7}), ("Gather", ["t", "places"], ["features"])], [("t", [0.5])]),
        "operator 'Cast'",
    ),
    "a tree": (graph([("ArgMax", ["rows"], ["features"])]), "operator 'ArgMax'"),
    "no graph": (b"nothing of the kind", "not allowed|damaged"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_graph_that_is_no_feature_map_is_refused_before_it_runs(name):
    data, words = REFUSED[name]
    with pytest.raises(ModelError, match=words):
        received_map(data, **WIDE)


@pytest.mark.parametrize("data", [HUGE, ROOTS, graph([("Abs", ["rows"], ["features"])])], ids=["huge", "odd", "no 1"])
def test_a_map_that_is_none_on_public_rows_is_refused_by_them(data):
    with pytest.raises(ModelError, match=r"of public row [0-9]+ it gives no 1 with numbers of length 1 at most"):
        received_map(data, **WIDE).try_on(ROWS)


def test_a_map_that_cannot_run_at_all_is_refused_in_words():
    wrong = graph([("Reshape", ["rows", "shape"], ["features"])], [("shape", np.array([7, 7]))])
    with pytest.raises(ModelError, match="of public row 0 it gives no 1"):
        received_map(wrong, **WIDE).try_on(ROWS)
    unknown = graph([("Abs", ["nobody"], ["features"])])
    with pytest.raises(ModelError, match="the feature map could not be run"):
        received_map(unknown, **WIDE).try_on(ROWS)


def test_shortened_rows_have_no_number_that_is_odd():
    odd = np.array([[1, np.nan, 0], [np.inf, 0, 0], [1, 3e38, 3e38], [7, 0.25, 0.5]], np.float32)
    fine = shortened(odd)
    assert fine[0].tolist() == fine[1].tolist() == [1, 0, 0]
    np.testing.assert_allclose(fine[2], [1, 0.5**0.5, 0.5**0.5], rtol=1e-5)
    assert fine[3].tolist() == [1, 0.25, 0.5]


def test_the_head_and_a_received_map_are_one_graph_that_is_run_apart():
    received = received_map(SMALL, **WIDE)
    head = FeatureHead(received, RNG.normal(size=(3, 2)) * 20, np.zeros(2))
    model = FittedModel(head, np.array([0, 2]), 3)
    final = to_final_onnx(model, n_features=3, n_classes=3, check_rows=ROWS)
    assert final.soft
    labels, probabilities = labels_and_probabilities(final, ROWS)
    expected = model.predict_proba(ROWS, 3)
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)
    assert (labels == expected.argmax(axis=1)).all()


def test_a_map_that_says_other_things_of_many_rows_than_of_one_makes_no_final_model():
    mixing = graph(
        one_and(
            COLUMN,
            ("ReduceMean", ["own"], ["mean"], {"axes": [0], "keepdims": 1}),
            ("Sub", ["own", "mean"], ["away"]),
            ("Add", ["away", "own"], ["both"]),
            ("Tanh", ["both"], ["bent"]),
            ("Mul", ["bent", "tenth"], ["last"]),
        ),
        TABLES,
    )
    head = FeatureHead(received_map(mixing, **WIDE), np.array([[0, 0], [90, -90], [-90, 90]]), np.zeros(2))
    with pytest.raises(ModelError, match="would not say the same after travelling"):
        to_final_onnx(FittedModel(head, np.array([0, 1]), 3), n_features=3, n_classes=2, check_rows=ROWS)


def test_nothing_of_a_received_map_runs_in_this_process(monkeypatch):
    head = FeatureHead(received_map(SMALL, **WIDE), RNG.normal(size=(3, 2)) * 20, np.zeros(2))

    def here(data):
        raise AssertionError("a stranger's graph was run here")

    monkeypatch.setattr("fedkt.models.sandbox_child.open_session", here)
    for convert in (to_final_onnx, to_onnx):
        assert convert(FittedModel(head, np.array([0, 1]), 3), n_features=3, n_classes=2, check_rows=ROWS).data


def test_a_received_map_keeps_its_names_apart_from_those_of_the_graph_around_it():
    around = Graph()
    own = around.node("Abs", "rows")
    name = received_map(SMALL, **WIDE).add_to(around, own)
    names = [output for node in around.nodes for output in node.output]
    assert len(set(names)) == len(names)
    assert name in names
    proto = ModelProto()
    proto.ParseFromString(SMALL)
    assert not {each.name for each in proto.graph.initializer} & set(around.tables)


def test_an_empty_table_is_refused_because_what_is_made_of_it_is_memory_that_nobody_wrote():
    """A convolution of no channels left what the row before it had in memory, so that one record moved all others."""
    nothing = [("nothing", np.zeros((1, 0, 1), np.float32)), ("filters", np.zeros((8, 0, 1), np.float32))]
    data = graph(
        [
            ("Conv", ["nothing", "filters"], ["left"], {"kernel_shape": [1]}),
            *one_and(COLUMN, ("Tanh", ["own"], ["last"])),
        ],
        [*TABLES, *nothing],
    )
    with pytest.raises(ModelError, match="'nothing' is empty"):
        received_map(data, **WIDE)
