"""Running models that someone else made: in a child process that can do little and not for long.

The child starts in an empty folder with an empty environment, on one thread, and gives up files, memory and CPU time
before it looks at a model. On Linux all limits hold; macOS does not enforce the one on memory; where Python has no
`resource` module (Windows) only the wall clock and the separate process are left.
"""

from __future__ import annotations

import importlib.util
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.onnx_rules import Limits

Answer = NDArray[np.int64] | str
"""The labels of one model, or why there are none."""
SoftAnswer = NDArray[np.float32] | str
"""The probabilities of one model, or why there are none."""
SLACK = 1e-3
"""How far probabilities may be from such by rounding: below 0, or from 1 in their sum over the classes."""

CHILD = Path(__file__).with_name("sandbox_child.py")
START_SECONDS = 60.0
LINE_BYTES = 4_096


class _Stopped(Exception):
    """The child says no more; the message is the reason."""


def run_models(
    models: Sequence[bytes], rows: NDArray[np.float32], *, n_classes: int, limits: Limits | None = None
) -> list[Answer]:
    """What each model says about the rows, as indices 0 … n_classes − 1, or the reason why it says nothing.

    All models share one child. A model that crashes it, or makes it run out of time, takes along those not yet run.
    """
    answers: list[Answer] = _run(models, rows, n_classes, limits or Limits(), soft=False)
    return answers


def run_soft_models(
    models: Sequence[bytes], rows: NDArray[np.float32], *, n_classes: int, limits: Limits | None = None
) -> list[SoftAnswer]:
    """How probable each model finds each class of each row, or the reason why it does not say."""
    answers: list[SoftAnswer] = _run(models, rows, n_classes, limits or Limits(), soft=True)
    return answers


def _run(models: Sequence[bytes], rows: NDArray[np.float32], n_classes: int, bounds: Limits, *, soft: bool) -> Any:
    table = np.ascontiguousarray(rows, dtype="<f4")
    answers: list[Any] = []
    if not models:
        return answers
    with tempfile.TemporaryDirectory(prefix="fedkt-") as folder:
        table.tofile(Path(folder) / "rows")
        (Path(folder) / "models").write_bytes(b"".join(models))
        request = {
            "shape": list(table.shape),
            "sizes": [len(each) for each in models],
            "memory": bounds.memory_bytes,
            "cpu": bounds.cpu_seconds,
            "classes": n_classes if soft else 0,
        }
        child = _started(folder)
        try:
            for answer in _answers(child, request, len(table), n_classes, bounds):
                answers.append(answer)
        except _Stopped as stopped:
            first = f"the model was stopped: {stopped}"
            answers += [
                first if place == len(answers) else "not run: a model before it was stopped"
                for place in range(len(answers), len(models))
            ]
        finally:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    stream.close()
    return answers


def _started(folder: str) -> subprocess.Popen[bytes]:
    places = {_place(name) for name in ("numpy", "onnxruntime")}
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "HOME": folder}
    if "SYSTEMROOT" in os.environ:
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return subprocess.Popen(
        [sys.executable, "-I", "-B", str(CHILD), *sorted(places)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
        bufsize=0,
        start_new_session=True,
    )


def _place(package: str) -> str:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ImportError(f"Running received models needs the package {package}. Install it: pip install {package}")
    return str(Path(found.origin).parent.parent)


def _answers(
    child: subprocess.Popen[bytes], request: dict[str, Any], n_rows: int, n_classes: int, bounds: Limits
) -> Iterator[Answer | SoftAnswer]:
    """One answer after the other; every byte the child sends is taken for hostile."""
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.close()
    except OSError as reason:
        raise _Stopped("the child process did not start.") from reason
    reader = _Reader(child, bounds)
    reader.line(START_SECONDS)
    for _ in request["sizes"]:
        head = reader.line(bounds.wall_seconds)
        if "reason" in head:
            yield _printable(head["reason"])
        elif head.get("rows") != n_rows:
            raise _Stopped("the child answered about other rows.")
        else:
            if request["classes"]:
                raw = reader.take(n_rows * n_classes * 4, bounds.wall_seconds)
                yield checked_probabilities(np.frombuffer(raw, dtype="<f4").reshape(-1, n_classes))
                continue
            labels = np.frombuffer(reader.take(n_rows * 8, bounds.wall_seconds), dtype="<i8").astype(np.int64)
            outside = np.flatnonzero((labels < 0) | (labels >= n_classes))
            if len(outside):
                yield (
                    f"it gives the label {labels[outside[0]]} to row {outside[0]}; "
                    f"only 0 … {n_classes - 1} are classes."
                )
            else:
                yield labels


def checked_probabilities(numbers: NDArray[Any]) -> SoftAnswer:
    """What a model says about rows × classes, each row's sum made 1; or what is wrong with it."""
    said = np.asarray(numbers, dtype=np.float64)
    # Written so that NaN is refused too.
    fine = (said >= -SLACK).all(axis=1) & (np.abs(said.sum(axis=1) - 1) <= SLACK)
    if not fine.all():
        return f"what it says about row {int(np.flatnonzero(~fine)[0])} are no probabilities."
    clipped = np.maximum(said, 0)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True), dtype=np.float32)


def _printable(reason: object) -> str:
    return "".join(each if each.isprintable() else " " for each in str(reason)[:400])


class _Reader:
    """Bytes from the child, under a deadline."""

    def __init__(self, child: subprocess.Popen[bytes], bounds: Limits) -> None:
        assert child.stdout is not None
        self._child, self._bounds, self._file = child, bounds, child.stdout
        self._held = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(child.stdout, selectors.EVENT_READ)

    def line(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (end := self._held.find(b"\n")) < 0:
            if len(self._held) > LINE_BYTES:
                raise _Stopped("the child did not keep to its protocol.")
            self._more(deadline, seconds)
        raw = bytes(self._held[:end])
        del self._held[: end + 1]
        try:
            head = json.loads(raw)
        except ValueError:
            head = None
        if not isinstance(head, dict):
            raise _Stopped("the child did not keep to its protocol.")
        return head

    def take(self, size: int, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        while len(self._held) < size:
            self._more(deadline, seconds)
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _more(self, deadline: float, seconds: float) -> None:
        if not self._selector.select(max(0.0, deadline - time.monotonic())):
            raise _Stopped(f"it ran for more than {seconds:g} seconds.")
        got = os.read(self._file.fileno(), 1 << 20)
        if not got:
            raise _Stopped(self._why())
        self._held += got

    def _why(self) -> str:
        try:
            code = self._child.wait(5)
        except subprocess.TimeoutExpired:
            return "the child closed its answers."
        if code == -getattr(signal, "SIGXCPU", 0) or code == -signal.SIGKILL:
            return f"it used more than {self._bounds.cpu_seconds} seconds of CPU time, or the system ended it."
        if code < 0:
            return f"it crashed the process that ran it (signal {signal.Signals(-code).name})."
        return f"the process that ran it ended with code {code}."
