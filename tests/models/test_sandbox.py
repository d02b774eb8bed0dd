"""Hostile and broken models harm nobody but themselves."""

import json
import os
import time
from dataclasses import asdict

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.tree import DecisionTreeClassifier

from fedkt.models import child_process
from fedkt.models.base import fit_model
from fedkt.models.exchange import to_onnx
from fedkt.models.onnx_rules import Limits
from fedkt.models.sandbox import run_models

ROWS = np.random.default_rng(2).normal(size=(50, 3)).astype(np.float32)


def graph(nodes, tables=(), output=TensorProto.INT64, width=3):
    """The bytes of a graph from 'rows' to 'label'; nothing about it is checked."""
    graph_proto = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, width])],
        [helper.make_tensor_value_info("label", output, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in tables],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph_proto, opset_imports=opsets, ir_version=8).SerializeToString()


def endless():
    """A Loop of 2⁶² steps."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        helper.make_node("Loop", ["steps", "yes", "rows"], ["out"], body=body),
        helper.make_node("ArgMax", ["out"], ["label"], axis=1, keepdims=0),
    ]
    return graph(nodes, [("steps", np.int64(2**62)), ("yes", np.True_)])


def hungry(size=40_000_000_000):
    """A ConstantOfShape of 160 GB."""
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["big"]),
        helper.make_node("ArgMax", ["big"], ["label"], axis=0, keepdims=0),
    ]
    return graph(nodes, [("shape", np.array([size]))])


def labelled(value):
    """The same label for every row."""
    nodes = [
        helper.make_node("ArgMax", ["rows"], ["any"], axis=1, keepdims=0),
        helper.make_node("Mul", ["any", "zero"], ["none"]),
        helper.make_node("Add", ["none", "value"], ["label"]),
    ]
    return graph(nodes, [("zero", np.array([0])), ("value", np.array([value]))])


@pytest.fixture(scope="module")
def good():
    model = fit_model(DecisionTreeClassifier(), ROWS, (ROWS[:, 1] > 0).astype(int), rng=np.random.default_rng(0))
    return to_onnx(model, n_features=3, n_classes=2, check_rows=ROWS).data, model.predict(ROWS)


def test_several_models_share_one_child_and_answer_in_order(good):
    answers = run_models([good[0], labelled(1), good[0]], ROWS, n_classes=2)
    np.testing.assert_array_equal(answers[0], good[1])
    np.testing.assert_array_equal(answers[1], np.ones(50))
    np.testing.assert_array_equal(answers[2], good[1])
    assert all(answer.dtype == np.int64 for answer in answers)


def test_more_rows_than_a_block_come_back_in_order(good):
    rows = np.tile(ROWS, (200, 1))
    np.testing.assert_array_equal(run_models([good[0]], rows, n_classes=2)[0], np.tile(good[1], 200))


def test_no_rows_and_no_models_are_answered(good):
    assert run_models([], ROWS, n_classes=2) == []
    assert run_models([good[0]], ROWS[:0], n_classes=2)[0].shape == (0,)


def test_a_broken_model_fails_alone(good):
    answers = run_models([good[0], b"nothing", good[0]], ROWS, n_classes=2)
    np.testing.assert_array_equal(answers[0], good[1])
    assert "Protobuf" in answers[1]
    np.testing.assert_array_equal(answers[2], good[1])


@pytest.mark.parametrize("label", [-1, 2, 2**62])
def test_a_label_outside_the_classes_is_an_error_not_a_vote(label, good):
    answers = run_models([labelled(label), good[0]], ROWS, n_classes=2)
    assert f"label {label} to row 0" in answers[0]
    np.testing.assert_array_equal(answers[1], good[1])


@pytest.mark.parametrize(
    "model",
    [
        graph([helper.make_node("Identity", ["rows"], ["label"])], output=TensorProto.FLOAT),
        graph([helper.make_node("ArgMax", ["rows"], ["label"], axis=1, keepdims=1)]),
        graph([helper.make_node("ArgMax", ["rows"], ["label"], axis=0, keepdims=0)]),
    ],
    ids=["float", "a column", "one per feature"],
)
def test_an_answer_of_another_form_is_an_error(model):
    assert "not one int64 label per row" in run_models([model], ROWS, n_classes=5)[0]


def test_an_endless_model_is_stopped_by_the_clock_and_keeps_what_was_finished(good):
    started = time.monotonic()
    answers = run_models([good[0], endless(), good[0]], ROWS, n_classes=2, limits=Limits(wall_seconds=1.0))
    assert time.monotonic() - started < 10
    np.testing.assert_array_equal(answers[0], good[1])
    assert "more than 1 seconds" in answers[1]
    assert "not run" in answers[2]


def test_an_endless_model_is_stopped_by_its_cpu_time():
    pytest.importorskip("resource")
    answer = run_models([endless()], ROWS, n_classes=2, limits=Limits(cpu_seconds=1, wall_seconds=60))[0]
    assert "more than 1 seconds of CPU time" in answer


def test_what_models_of_one_party_take_together_is_bounded(good):
    pytest.importorskip("resource")
    limits = Limits(cpu_seconds=60, party_cpu_seconds=1, wall_seconds=600)
    answers = run_models([good[0], endless()], ROWS, n_classes=2, limits=limits)
    np.testing.assert_array_equal(answers[0], good[1])
    assert "those before it used more than 1 seconds of CPU time" in answers[1]


def test_a_child_that_only_waits_is_stopped_by_what_its_models_may_take_together(tmp_path, monkeypatch):
    child = tmp_path / "child.py"
    child.write_text("import sys, time\nsys.stdin.readline()\nprint('{}', flush=True)\ntime.sleep(600)\n")
    monkeypatch.setattr(child_process, "CHILD", child)
    monkeypatch.setattr(child_process, "START_SECONDS", 2.0)
    limits = Limits(cpu_seconds=100, party_cpu_seconds=1, wall_seconds=100)
    answers = run_models([b"x", b"y"], ROWS, n_classes=2, limits=limits)
    assert "those before it ran for more than 1 seconds together" in answers[0]


def test_whoever_was_slow_is_named_and_the_others_vote(good):
    pytest.importorskip("resource")
    from fedkt.algorithms import FedKT
    from fedkt.bundle import Bundle
    from fedkt.federation import Diary, Server
    from fedkt.models.exchange import OnnxModel

    limits = Limits(cpu_seconds=60, party_cpu_seconds=1, wall_seconds=600)
    sent = {"quick": good[0], "slow": endless()}
    bundles = [Bundle(name, ("a", "b"), (OnnxModel(data, 3, 2, limits=limits),)) for name, data in sent.items()]
    diary = Diary()
    server = Server(ROWS, ("a", "b"), 0, diary=diary)
    voters = [bundle.sender for bundle in FedKT("tree").student_answers(server, bundles).bundles]
    assert voters == ["quick"]
    assert list(diary.vote.silent) == ["slow"]
    assert "Party 'slow' does not vote" in diary.vote.silent["slow"]
    assert "more than 1 seconds of CPU time" in diary.vote.silent["slow"]


@pytest.mark.parametrize(("parties", "seconds"), [(1, 600), (24, 600), (25, 576), (1_000, 14), (100_000, 1)])
def test_a_party_has_an_equal_part_of_what_a_vote_may_take(parties, seconds):
    assert Limits().share_of(parties).party_cpu_seconds == seconds


def test_what_a_received_bundle_may_take_changes_on_purpose_only():
    assert asdict(Limits()) == {
        "bundle_bytes": 268_435_456,
        "member_bytes": 67_108_864,
        "manifest_bytes": 1_048_576,
        "unpacked_bytes": 1_073_741_824,
        "models": 1_000,
        "arrays": 1_000,
        "ratio": 100,
        "nodes": 2_000,
        "fields": 200_000,
        "elements": 16_777_216,
        "tree_nodes": 2_000_000,
        "tree_depth": 2_000,
        "memory_bytes": 2_147_483_648,
        "cpu_seconds": 120,
        "wall_seconds": 300.0,
        "party_cpu_seconds": 600,
        "run_cpu_seconds": 14_400,
        "run_bytes": 4_000_000_000,
        "shared": False,
    }


def test_gigabytes_are_thousand_millions_of_bytes_and_hours_have_3600_seconds():
    unchanged = Limits()
    more = unchanged.allowing(gigabytes=2.5, cpu_hours=0.5)
    assert (more.run_bytes, more.run_cpu_seconds) == (2_500_000_000, 1_800)
    assert unchanged.allowing(gigabytes=2.5).run_cpu_seconds == unchanged.run_cpu_seconds == 14_400
    assert unchanged.allowing(cpu_hours=0.5).run_bytes == unchanged.run_bytes == 4_000_000_000


def test_a_share_of_the_memory_bounds_a_bundle_only_where_it_is_less_than_any_may_have():
    limits = Limits(run_bytes=4_000, unpacked_bytes=1_000, bundle_bytes=900, manifest_bytes=50)
    assert limits.share_of(4) == limits.share_of(1)
    assert (limits.share_of(4).unpacked_bytes, limits.share_of(4).shared) == (1_000, False)
    fifth = limits.share_of(5)
    assert (fifth.unpacked_bytes, fifth.bundle_bytes, fifth.shared) == (800, 850, True)
    assert limits.advice == limits.share_of(4).advice == ""
    assert "--memory" in fifth.advice


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="macOS does not enforce a limit on memory")
@pytest.mark.parametrize("size", [40_000_000_000, 200_000_000])
def test_a_model_that_wants_too_much_memory_gets_none(size, good):
    answers = run_models([hungry(size), good[0]], ROWS, n_classes=2, limits=Limits(memory_bytes=300 * 2**20))
    assert isinstance(answers[0], str)
    np.testing.assert_array_equal(answers[1], good[1])


def widened(channels):
    """Rows of pixels through a convolution that makes `channels` numbers of every pixel."""
    nodes = [
        helper.make_node("Reshape", ["rows", "image"], ["x"]),
        helper.make_node("Conv", ["x", "weights"], ["y"], kernel_shape=[1, 1]),
        helper.make_node("GlobalAveragePool", ["y"], ["z"]),
        helper.make_node("Flatten", ["z"], ["w"]),
        helper.make_node("ArgMax", ["w"], ["label"], axis=1, keepdims=0),
    ]
    tables = [("image", np.array([-1, 1, 32, 32])), ("weights", np.arange(channels, dtype="f4").reshape(-1, 1, 1, 1))]
    return graph(nodes, tables, width=1_024)


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="macOS does not enforce a limit on memory")
def test_wide_rows_come_in_blocks_that_leave_room_for_a_convolution():
    # One block of all rows would be 2,000 × 64 × 32 × 32 × 4 bytes = 500 MB after the convolution.
    rows = np.random.default_rng(3).normal(size=(2_000, 1_024)).astype(np.float32)
    answer = run_models([widened(64)], rows, n_classes=64, limits=Limits(memory_bytes=250 * 2**20))[0]
    # Channel j is j times the mean of the row: the last one wins where the mean is positive, else the first.
    np.testing.assert_array_equal(answer, np.where(rows.mean(axis=1, dtype=np.float64) > 0, 63, 0))


def with_external_data(path):
    """A graph whose table lies in a file."""
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Gather", ["table", "index"], ["label"])],
            "g",
            [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, 3])],
            [helper.make_tensor_value_info("label", TensorProto.INT64, None)],
            [numpy_helper.from_array(np.zeros(50, np.int64), "index")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    table = model.graph.initializer.add(name="table", data_type=TensorProto.INT64, dims=[2], data_location=1)
    for key, value in (("location", path), ("offset", "0"), ("length", "16")):
        table.external_data.add(key=key, value=value)
    return model.SerializeToString()


@pytest.mark.parametrize("path", ["rows", "models", "/etc/passwd", "../../etc/passwd"])
def test_the_child_opens_no_file_for_a_model(path):
    assert isinstance(run_models([with_external_data(path)], ROWS, n_classes=2)[0], str)


def test_the_child_sees_neither_the_environment_nor_the_working_folder(tmp_path, monkeypatch):
    spy = tmp_path / "spy.py"
    spy.write_text(
        "import json, os, sys\n"
        "sys.stdin.readline()\n"
        "seen = {'env': sorted(os.environ), 'folder': os.getcwd(), 'home': os.environ['HOME']}\n"
        "print('{}'); print(json.dumps({'reason': json.dumps(seen)}))\n"
    )
    monkeypatch.setattr(child_process, "CHILD", spy)
    monkeypatch.setenv("FEDKT_SECRET", "token")
    assert json.loads(run_models([b"x"], ROWS, n_classes=2)[0]) == {
        "env": ["HOME", "LC_ALL", "MALLOC_PERTURB_", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"],
        "folder": "/",
        "home": "/dev/null",
    }


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no files in memory")
def test_rows_and_models_are_on_no_disk(good, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a temporary folder was made")

    monkeypatch.setattr("tempfile.TemporaryDirectory", forbidden)
    np.testing.assert_array_equal(run_models([good[0]], ROWS, n_classes=2)[0], good[1])


def test_where_there_are_no_files_in_memory_the_rows_lie_in_a_folder_of_their_own(good, monkeypatch):
    def refused(*_):
        raise PermissionError("not here")

    monkeypatch.setattr(os, "memfd_create", refused, raising=False)
    np.testing.assert_array_equal(run_models([good[0]], ROWS, n_classes=2)[0], good[1])


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("import os; os.kill(os.getpid(), 11)", "crashed"),
        ("raise SystemExit(3)", "code 3"),
        ("print('[]')", "protocol"),
        ("print('x' * 100_000)", "protocol"),
        ("print('{}'); print('{\"rows\": 77}')", "other rows"),
        ("print('{}'); print('{\"rows\": 50}'); print('abc')", "ended with code 0"),
    ],
)
def test_a_child_that_crashes_or_lies_is_only_a_reason(tmp_path, monkeypatch, program, word):
    child = tmp_path / "child.py"
    child.write_text(f"import sys\nsys.stdin.readline()\n{program}\n")
    monkeypatch.setattr(child_process, "CHILD", child)
    answers = run_models([b"x", b"y"], ROWS, n_classes=2)
    assert word in answers[0]
    assert "not run" in answers[1]
