"""The program that runs received models: numpy, onnxruntime and limits, nothing else of fedkt.

It is started as a file, `python -I sandbox_child.py`, so that importing the package costs nothing here. It reads one
line of JSON from its standard input, the rows and the models from two files of its working directory, and answers on
its standard output with one line of JSON per model, followed by the labels as little-endian int64, or by the
probabilities as float32 where the request names a number of classes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

if __name__ == "__main__":
    # Where the parent found numpy and onnxruntime; an isolated interpreter ignores PYTHONPATH.
    sys.path.extend(sys.argv[1:])

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS, BLOCK_VALUES = 4_096, 2**18
"""Rows predicted at once, and numbers in them: bounds the memory of a prediction whatever the number of rows.

A convolution of 64 channels makes tens of numbers of each it is given, so wide rows come in smaller blocks.
"""


def runtime() -> Any:
    """onnxruntime, which is imported nowhere else: since 1.29 it reports home from its import on, unless told not to."""
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


def predict_blocks(session: Any, rows: NDArray[np.float32], n_classes: int = 0) -> Iterator[NDArray[Any]]:
    """The labels of the rows, block by block, or with a number of classes the probability of each.

    A graph that answers with anything else is a ValueError.
    """
    most = max(1, min(BLOCK_ROWS, BLOCK_VALUES // max(1, rows.shape[1])))
    for start in range(0, len(rows), most):
        block = np.ascontiguousarray(rows[start : start + most])
        if n_classes:
            answer = session.run(["probability"], {"rows": block})[0]
            if (
                not isinstance(answer, np.ndarray)
                or answer.dtype != np.float32
                or answer.shape != (len(block), n_classes)
            ):
                raise ValueError(f"the answer to {len(block)} rows is not one float32 probability per row and class")
            yield answer
            continue
        answer = session.run(["label"], {"rows": block})[0]
        if not isinstance(answer, np.ndarray) or answer.dtype != np.int64 or answer.shape != (len(block),):
            raise ValueError(f"the answer to {len(block)} rows is not one int64 label per row")
        yield answer


def set_limits(memory: int, cpu: int, models: int) -> None:
    """Memory, CPU time, files and processes of this process bounded, as far as the platform knows such limits."""
    try:
        import resource
    except ImportError:
        return
    used = 0
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    wanted = {
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_FSIZE": (0, 0),
        "RLIMIT_NPROC": (0, 0),
        "RLIMIT_AS": (used + memory, used + memory),
        "RLIMIT_CPU": (cpu, cpu * (models + 1)),
        "RLIMIT_NOFILE": (0, 0),
    }
    for name, values in wanted.items():
        try:
            resource.setrlimit(getattr(resource, name), values)
        except (AttributeError, ValueError, OSError):
            # macOS knows fewer of them, and a stricter limit may already hold.
            continue


def allow_more_cpu(cpu: int) -> None:
    """The CPU limit counted from now: one model's time is not another's."""
    try:
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        soft = int(usage.ru_utime + usage.ru_stime) + 1 + cpu
        resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))
    except (ImportError, ValueError, OSError):
        return


def serve() -> None:
    """Answers one request from standard input."""
    request = json.loads(sys.stdin.buffer.readline(1_000_000))
    # Replies get a descriptor of their own: whatever a library prints must not end up among the labels.
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    runtime().set_default_logger_severity(4)
    n_rows, n_features = request["shape"]
    rows = np.memmap("rows", np.float32, "r", shape=(n_rows, n_features)) if n_rows else np.empty((0, n_features), "f4")
    with open("models", "rb") as models:
        set_limits(request["memory"], request["cpu"], len(request["sizes"]))
        replies.write(b"{}\n")
        for size in request["sizes"]:
            allow_more_cpu(request["cpu"])
            try:
                session = open_session(models.read(size))
                kind = "<f4" if request["classes"] else "<i8"
                labels = b"".join(
                    block.astype(kind).tobytes() for block in predict_blocks(session, rows, request["classes"])
                )
                reply = {"rows": n_rows}
            except MemoryError:
                labels, reply = b"", {"reason": "it asked for more memory than allowed"}
            except BaseException as reason:
                labels, reply = b"", {"reason": f"{type(reason).__name__}: {str(reason)[:300]}"}
            message = json.dumps(reply).encode() + b"\n" + labels
            sent = 0
            while sent < len(message):
                sent += replies.write(message[sent:]) or 0


if __name__ == "__main__":
    serve()
