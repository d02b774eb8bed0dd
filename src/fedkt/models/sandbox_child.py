"""The program that runs received models: numpy, onnxruntime and walls, nothing else of fedkt.

It is started as a file, `python -I sandbox_child.py`, so that importing the package costs nothing here. It reads one
line of JSON from its standard input, which says where the rows and the models are, raises its walls, and answers on its
standard output: one line that says which walls stand, and per model blocks of rows: one line of JSON that says how many
they are, the labels as little-endian int64 and, where the request names a number of classes for it, the probabilities
as float32; a block of no rows ends a model. Where the request names a width of features instead, there is one model,
which is asked about each row by itself, and answers with float32 features.

Where the first request names a channel, the models of many parties are asked about the same rows: over the channel
comes a request for each party, with descriptors of its models and of where to answer, and a fork does all of the above
for it. What forks has opened nothing that a party sent.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

if __name__ == "__main__":
    # Where the parent found numpy and onnxruntime; an isolated interpreter ignores PYTHONPATH.
    sys.path.extend(sys.argv[1:])

import numpy as np
from numpy.typing import NDArray

WALLS_FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system", "walls.py")
BLOCK_ROWS, BLOCK_VALUES = 4_096, 2**18
"""Rows predicted at once, and numbers in them: bounds the memory of a prediction whatever the number of rows.

A convolution of 64 channels makes tens of numbers of each it is given, so wide rows come in smaller blocks.
"""


def runtime() -> Any:
    """onnxruntime, imported nowhere else: since 1.29 it reports home from its import on, unless told not to."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    # For builds that report through Windows instead, which heed this call only.
    onnxruntime.disable_telemetry_events()
    return onnxruntime


def open_session(data: bytes) -> Any:
    """An onnxruntime session on one thread, without rewriting of the graph: the same arithmetic on every machine."""
    onnxruntime = runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    # By default it goes by four bytes of the file whether that is ONNX or its own format, which no rule is about.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def predict_blocks(
    session: Any, rows: NDArray[np.float32], n_classes: int = 0
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32] | None]]:
    """The labels of the rows, block by block, and with a number of classes the probability of each.

    A graph that answers with anything else is a ValueError.
    """
    most = max(1, min(BLOCK_ROWS, BLOCK_VALUES // max(1, rows.shape[1])))
    outputs = ["label", "probability"] if n_classes else ["label"]
    for start in range(0, len(rows), most):
        block = np.ascontiguousarray(rows[start : start + most])
        label, *probabilities = session.run(outputs, {"rows": block})
        if not isinstance(label, np.ndarray) or label.dtype != np.int64 or label.shape != (len(block),):
            raise ValueError(f"the answer to {len(block)} rows is not one int64 label per row")
        for each in probabilities:
            if not isinstance(each, np.ndarray) or each.dtype != np.float32 or each.shape != (len(block), n_classes):
                raise ValueError(f"the answer to {len(block)} rows is not one float32 probability per row and class")
        yield label, probabilities[0] if probabilities else None


def main() -> None:
    """Answers one request from standard input, or one after the other from a channel."""
    request = json.loads(sys.stdin.buffer.readline(1_000_000))
    # The file by its path, since the package around it costs time and is not for strangers.
    walls = ModuleType("walls")
    SourceFileLoader("walls", WALLS_FILE).exec_module(walls)
    walls.die_with(request["parent"])
    # Replies get a descriptor of their own: whatever a library prints must not end up among the labels.
    replies = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    runtime().set_default_logger_severity(4)
    n_rows, n_features = request["shape"]
    rows = np.empty((0, n_features), np.float32)
    if n_rows:
        with open(request["rows"], "rb") as file:
            # A copy on write, because sealed memory cannot be mapped otherwise before Linux 6.7.
            rows = np.memmap(file, np.float32, "c", shape=(n_rows, n_features))
    if "channel" in request:
        os.close(replies)
        # What is forked must not reach what forks, with whatever walls a machine has.
        with walls.memory_hidden():
            fork_for_each(request["channel"], rows, walls)
    else:
        serve(request, rows, walls, replies)


def fork_for_each(descriptor: int, rows: NDArray[np.float32], walls: ModuleType) -> None:
    """A process for each party, forked before anything of the party's is read; its exit code is sent back."""
    import socket

    channel, parent = socket.socket(fileno=descriptor), os.getpid()
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 1_000_000, 2)
        if not message:
            return
        models, replies = descriptors
        try:
            process = os.fork()
        except OSError as reason:
            process = -1
            said = {"errno": reason.errno}
        if process == 0:
            code = 1
            try:
                channel.close()
                walls.die_with(parent)
                serve({**json.loads(message), "models": models}, rows, walls, replies)
                code = 0
            finally:
                # Whatever happens: a fork never goes on to the next party.
                os._exit(code)
        os.close(models)
        os.close(replies)
        if process > 0:
            _, status = os.waitpid(process, 0)
            said = {"code": os.waitstatus_to_exitcode(status)}
        channel.send(json.dumps(said).encode())


def serve(request: dict[str, Any], rows: NDArray[np.float32], walls: Any, descriptor: int) -> None:
    """Answers one request, once the walls stand."""
    replies = os.fdopen(descriptor, "wb", buffering=0)
    with open(request["models"], "rb") as models:
        bounds = {name: request[name] for name in ("memory", "cpu", "budget")}
        walls_up = walls.raise_walls(**bounds)
        write_whole(replies, json.dumps({"walls": walls_up}).encode() + b"\n")
        if request.get("features"):
            for message in features(models.read(), rows, request["features"], walls, request["cpu"]):
                write_whole(replies, message)
            return
        for size, n_classes in zip(request["sizes"], request["classes"], strict=True):
            walls.allow_more_cpu(request["cpu"])
            for message in answer(models.read(size), rows, n_classes):
                write_whole(replies, message)


def write_whole(replies: Any, message: bytes) -> None:
    """Send all of a message, however little of it is taken at a time."""
    offset = 0
    while offset < len(message):
        offset += replies.write(message[offset:]) or 0


def features(data: bytes, rows: NDArray[np.float32], width: int, walls: Any, cpu: int) -> Iterator[bytes]:
    """What is sent about a feature map: a line of JSON, then row by row its features; NaN where it has none.

    A row at a time, or other rows of a block could change what is said about one.
    """
    try:
        session = open_session(data)
    except BaseException as reason:
        yield json.dumps({"reason": f"{type(reason).__name__}: {str(reason)[:300]}"}).encode() + b"\n"
        return
    yield json.dumps({"rows": len(rows)}).encode() + b"\n"
    nothing = np.full(width, np.nan, "<f4").tobytes()
    for place in range(len(rows)):
        walls.allow_more_cpu(cpu)
        try:
            (found,) = session.run(["features"], {"rows": np.ascontiguousarray(rows[place : place + 1])})
            fine = isinstance(found, np.ndarray) and found.dtype == np.float32 and found.shape == (1, width)
            yield found.astype("<f4").tobytes() if fine else nothing
        except Exception:
            yield nothing


def answer(data: bytes, rows: NDArray[np.float32], n_classes: int) -> Iterator[bytes]:
    """What is sent about one model: blocks of rows, of which none come after a reason why it says no more."""
    try:
        for labels, probabilities in predict_blocks(open_session(data), rows, n_classes):
            numbers = labels.astype("<i8").tobytes()
            if probabilities is not None:
                numbers += probabilities.astype("<f4").tobytes()
            yield json.dumps({"rows": len(labels)}).encode() + b"\n" + numbers
    except GeneratorExit:
        raise
    except MemoryError:
        yield json.dumps({"reason": "it asked for more memory than allowed"}).encode() + b"\n"
    except BaseException as reason:
        yield json.dumps({"reason": f"{type(reason).__name__}: {str(reason)[:300]}"}).encode() + b"\n"
    else:
        yield json.dumps({"rows": 0}).encode() + b"\n"


if __name__ == "__main__":
    main()
