"""onnxruntime reports to its makers by default; where fedkt runs a model, it does not."""

import os
import subprocess
import sys

import onnx
from onnx import helper

PROGRAM = """
import sys
import numpy as np
from fedkt.models.exchange import run_with_probabilities
from fedkt.models.sandbox import run_models

data, rows = open(sys.argv[1], "rb").read(), np.eye(3, dtype=np.float32)
print(run_with_probabilities(data, rows, 0)[0].tolist(), run_models([data], rows, n_classes=3)[0].tolist())
"""


def test_a_home_folder_stays_empty_when_parent_and_child_have_run_a_model(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("ArgMax", ["rows"], ["label"], axis=1, keepdims=0)],
        "g",
        [helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("label", onnx.TensorProto.INT64, [None])],
    )
    (tmp_path / "model.onnx").write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    home = tmp_path / "home"
    home.mkdir()
    # Nothing that might keep it quiet by chance: neither a build server's marks nor the variable itself.
    environment = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "model.onnx")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout == "[0, 1, 2] [0, 1, 2]\n"
    assert list(home.rglob("*")) == []
