"""Running models that someone else made: in a child process that can do little and not for long.

The child starts with an empty environment and two descriptors, the rows and the models, which on Linux lie in memory
only. Before it looks at a model it raises its walls (see `fedkt.system.walls`). On Linux all of them hold as far as the
kernel has them (`fedkt doctor` says so); macOS has the limits without the one on memory; where Python has no
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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.onnx_rules import Limits
from fedkt.system.walls import memory_hidden

Answer = NDArray[np.int64] | str
"""The labels of one model, or why there are none."""
Said = tuple[NDArray[np.int64], NDArray[np.float32] | None] | str
"""The labels of one model and its probabilities, where it was asked for them; or why there are none."""
SoftAnswer = NDArray[np.float32] | str
"""The probabilities of one model, or why there are none."""
SLACK = 1e-3
"""How far probabilities may be from such by rounding: below 0, or from 1 in their sum over the classes."""
SAME_TONGUE = 1e-4
"""How much less probable than the likeliest class a model's label may be.

Both are float32 of the same sums, which round by about 1e-6; a row on which they differ by less than this has no
likeliest class worth the name. Whoever says one thing as label and another as probability is off by far more.
"""

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
    said = ask_models(models, rows, n_classes=n_classes, soft=[False] * len(models), limits=limits)
    return [each if isinstance(each, str) else each[0] for each in said]


def ask_models(
    models: Sequence[bytes],
    rows: NDArray[np.float32],
    *,
    n_classes: int,
    soft: Sequence[bool],
    limits: Limits | None = None,
) -> list[Said]:
    """The labels of each model, and the probabilities of those that are `soft`; all in one child.

    A model that says something else with the one than with the other says nothing.
    """
    bounds = limits or Limits()
    table = np.ascontiguousarray(rows, dtype="<f4")
    answers: list[Said] = []
    if not models:
        return answers
    with ExitStack() as held:
        where = [held.enter_context(_handed_over(each)) for each in ([table.data], models)]
        request = {
            "parent": os.getpid(),
            "rows": where[0],
            "models": where[1],
            "shape": list(table.shape),
            "sizes": [len(each) for each in models],
            "classes": [n_classes if each else 0 for each in soft],
            "memory": bounds.memory_bytes,
            "cpu": bounds.cpu_seconds,
            "budget": bounds.party_cpu_seconds,
        }
        child = held.enter_context(_child([each for each in where if isinstance(each, int)]))
        held.enter_context(memory_hidden())
        try:
            for answer in _answers(child, request, len(table), n_classes, bounds):
                answers.append(answer)
        except _Stopped as stopped:
            first = f"the model was stopped: {stopped}"
            answers += [
                first if place == len(answers) else "not run: a model before it was stopped"
                for place in range(len(answers), len(models))
            ]
    return answers


@contextmanager
def _handed_over(parts: Sequence[bytes | memoryview]) -> Iterator[int | str]:
    """Where the child finds the data: a descriptor that it inherits, or where there is no such thing a path."""
    descriptor = _memory_file()
    if descriptor is not None:
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.writelines(parts)
            _seal(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="fedkt-") as folder:
        path = Path(folder) / "data"
        with path.open("wb") as file:
            file.writelines(parts)
        yield str(path)


def _memory_file() -> int | None:
    """A file that is in memory only, None where the system has or allows none."""
    if sys.platform != "linux":
        return None
    with suppress(AttributeError, OSError):
        return os.memfd_create("fedkt", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    return None


def _seal(descriptor: int) -> None:
    """From now on nobody can change the file in memory; who reads it begins at its beginning."""
    if sys.platform == "linux":
        import fcntl

        os.lseek(descriptor, 0, os.SEEK_SET)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)


@contextmanager
def _child(descriptors: Sequence[int]) -> Iterator[subprocess.Popen[bytes]]:
    """The child process, which waits for a request; gone at the end."""
    places = {_place(name) for name in ("numpy", "onnxruntime")}
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "HOME": os.devnull}
    if "SYSTEMROOT" in os.environ:
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    child = subprocess.Popen(
        [sys.executable, "-I", "-B", str(CHILD), *sorted(places)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=os.path.abspath(os.sep),
        env=environment,
        bufsize=0,
        start_new_session=True,
        pass_fds=descriptors,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _place(package: str) -> str:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ImportError(f"Running received models needs the package {package}. Install it: pip install {package}")
    return str(Path(found.origin).parent.parent)


def _answers(
    child: subprocess.Popen[bytes], request: dict[str, Any], n_rows: int, n_classes: int, bounds: Limits
) -> Iterator[Said]:
    """One answer after the other; every byte the child sends is taken for hostile."""
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.close()
    except OSError as reason:
        raise _Stopped("the child process did not start.") from reason
    reader = _Reader(child, bounds)
    reader.line(START_SECONDS)
    for soft in request["classes"]:
        head = reader.line(bounds.wall_seconds)
        if "reason" in head:
            yield _printable(head["reason"])
            continue
        if head.get("rows") != n_rows:
            raise _Stopped("the child answered about other rows.")
        labels = np.frombuffer(reader.take(n_rows * 8, bounds.wall_seconds), dtype="<i8").astype(np.int64)
        raw = reader.take(n_rows * n_classes * 4, bounds.wall_seconds) if soft else b""
        outside = np.flatnonzero((labels < 0) | (labels >= n_classes))
        if len(outside):
            yield f"it gives the label {labels[outside[0]]} to row {outside[0]}; only 0 … {n_classes - 1} are classes."
        elif soft:
            sure = checked_probabilities(np.frombuffer(raw, dtype="<f4").reshape(-1, n_classes))
            yield (sure if isinstance(sure, str) else two_tongues(labels, sure) or (labels, sure))
        else:
            yield labels, None


def two_tongues(labels: NDArray[np.int64], sure: NDArray[np.float32]) -> str:
    """What is wrong where a model names another class than the one it finds likeliest; empty if nothing is."""
    named = np.take_along_axis(sure, labels[:, None], axis=1)[:, 0]
    differing = np.flatnonzero(named < sure.max(axis=1, initial=0) - SAME_TONGUE)
    if not len(differing):
        return ""
    first = int(differing[0])
    return (
        f"it gives the label {labels[first]} to row {first} but finds {int(sure[first].argmax())} likelier, and so on "
        f"{len(differing)} of {len(labels)} rows."
    )


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
        # Time spent waiting is not CPU time: as much longer in all as it may be for each model.
        self._seconds = bounds.party_cpu_seconds * bounds.wall_seconds / bounds.cpu_seconds
        self._end = time.monotonic() + START_SECONDS + self._seconds
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
        if not self._selector.select(max(0.0, min(deadline, self._end) - time.monotonic())):
            if self._end < deadline:
                raise _Stopped(f"it and those before it ran for more than {self._seconds:g} seconds together.")
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
        if code == -getattr(signal, "SIGXCPU", 0):
            return f"it used more than {self._bounds.cpu_seconds} seconds of CPU time."
        if code == -getattr(signal, "SIGKILL", 0):
            most = self._bounds.party_cpu_seconds
            return f"it and those before it used more than {most} seconds of CPU time, or the system ended it."
        if code < 0:
            return f"it crashed the process that ran it (signal {signal.Signals(-code).name})."
        return f"the process that ran it ended with code {code}."
