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

from fedkt.models.answer_rules import check_probabilities, contradiction
from fedkt.models.onnx_rules import Limits
from fedkt.system.walls import memory_hidden

Answer = NDArray[np.int64] | str
"""The labels of one model, or why there are none."""
FullAnswer = tuple[NDArray[np.int64], NDArray[np.float32] | None] | str
"""The labels of one model and its probabilities, where it was asked for them; or why there are none."""
CHILD = Path(__file__).with_name("sandbox_child.py")
START_SECONDS = 60.0
LINE_BYTES = 4_096


class ChildEnd(Exception):
    """The child says no more; the message is the reason."""


def run_models(
    models: Sequence[bytes], rows: NDArray[np.float32], *, n_classes: int, limits: Limits | None = None
) -> list[Answer]:
    """What each model says about the rows, as indices 0 … n_classes − 1, or the reason why it says nothing.

    All models share one child. A model that crashes it, or makes it run out of time, takes along those not yet run.
    """
    answers = ask_models(models, rows, n_classes=n_classes, soft=[False] * len(models), limits=limits)
    return [each if isinstance(each, str) else each[0] for each in answers]


def ask_models(
    models: Sequence[bytes],
    rows: NDArray[np.float32],
    *,
    n_classes: int,
    soft: Sequence[bool],
    free_labels: Sequence[bool] | None = None,
    limits: Limits | None = None,
) -> list[FullAnswer]:
    """The labels of each model, and the probabilities of those that are `soft`; all in one child.

    A model that says something else with the one than with the other says nothing, but for those that may: a final
    model's label can follow thresholds, a student that votes has no reason to.
    """
    bounds = limits or Limits()
    table = np.ascontiguousarray(rows, dtype="<f4")
    answers: list[FullAnswer] = []
    if not models:
        return answers
    with ExitStack() as resources:
        where = [resources.enter_context(hand_over(each)) for each in ([table.data], models)]
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
        child = resources.enter_context(child_process([each for each in where if isinstance(each, int)]))
        resources.enter_context(memory_hidden())
        try:
            for answer in _read_answers(child, request, len(table), n_classes, bounds):
                free = free_labels is not None and free_labels[len(answers)]
                answers.append(answer if free else _one_answer(answer))
        except ChildEnd as end:
            first = f"the model was stopped: {end}"
            answers += [
                first if place == len(answers) else "not run: a model before it was stopped"
                for place in range(len(answers), len(models))
            ]
    return answers


@contextmanager
def hand_over(parts: Sequence[bytes | memoryview]) -> Iterator[int | str]:
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
def child_process(descriptors: Sequence[int]) -> Iterator[subprocess.Popen[bytes]]:
    """The child process, which waits for a request; gone at the end."""
    places = {_package_folder(name) for name in ("numpy", "onnxruntime")}
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "HOME": os.devnull}
    # Memory is filled when it is given and taken (glibc): a graph that reads what nobody wrote reads nothing of rows.
    environment["MALLOC_PERTURB_"] = "85"
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


def _package_folder(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"Running received models needs the package {package}. Install it: pip install {package}")
    return str(Path(spec.origin).parent.parent)


def _read_answers(
    child: subprocess.Popen[bytes], request: dict[str, Any], n_rows: int, n_classes: int, bounds: Limits
) -> Iterator[FullAnswer]:
    """One answer after the other; every byte the child sends is taken for hostile."""
    reader = ChildReader(child, bounds)
    reader.ask(request)
    for soft in request["classes"]:
        head = reader.line(bounds.wall_seconds)
        if "reason" in head:
            yield plain_text(head["reason"])
            continue
        if head.get("rows") != n_rows:
            raise ChildEnd("the child answered about other rows.")
        labels = np.frombuffer(reader.take(n_rows * 8, bounds.wall_seconds), dtype="<i8").astype(np.int64)
        raw = reader.take(n_rows * n_classes * 4, bounds.wall_seconds) if soft else b""
        outside = np.flatnonzero((labels < 0) | (labels >= n_classes))
        if len(outside):
            yield f"it gives the label {labels[outside[0]]} to row {outside[0]}; only 0 … {n_classes - 1} are classes."
        elif soft:
            probabilities = check_probabilities(np.frombuffer(raw, dtype="<f4").reshape(-1, n_classes))
            yield probabilities if isinstance(probabilities, str) else (labels, probabilities)
        else:
            yield labels, None


def _one_answer(answer: FullAnswer) -> FullAnswer:
    """The answer of a model whose label is its likeliest class; else what is wrong with it."""
    if isinstance(answer, str) or answer[1] is None:
        return answer
    return contradiction(answer[0], answer[1]) or answer


def plain_text(reason: object) -> str:
    """What a child says, in printable letters and not too many of them."""
    return "".join(each if each.isprintable() else " " for each in str(reason)[:400])


class ChildReader:
    """Bytes from the child, under a deadline."""

    def __init__(self, child: subprocess.Popen[bytes], bounds: Limits) -> None:
        assert child.stdout is not None
        self._child, self._bounds, self._file = child, bounds, child.stdout
        self._buffer = bytearray()
        # Time spent waiting is not CPU time: as much longer in all as it may be for each model.
        self._seconds = bounds.party_cpu_seconds * bounds.wall_seconds / bounds.cpu_seconds
        self._end = time.monotonic() + START_SECONDS + self._seconds
        self._selector = selectors.DefaultSelector()
        self._selector.register(child.stdout, selectors.EVENT_READ)

    def ask(self, request: dict[str, Any]) -> None:
        """Send the child its request, and wait until its walls stand."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.close()
        except OSError as reason:
            raise ChildEnd("the child process did not start.") from reason
        self.line(START_SECONDS)

    def line(self, seconds: float) -> dict[str, Any]:
        """The next line, which is a JSON object."""
        deadline = time.monotonic() + seconds
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > LINE_BYTES:
                raise ChildEnd("the child did not keep to its protocol.")
            self._more(deadline, seconds)
        raw = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            head = json.loads(raw)
        except ValueError:
            head = None
        if not isinstance(head, dict):
            raise ChildEnd("the child did not keep to its protocol.")
        return head

    def take(self, size: int, seconds: float) -> bytes:
        """The next so many bytes."""
        deadline = time.monotonic() + seconds
        while len(self._buffer) < size:
            self._more(deadline, seconds)
        part = bytes(self._buffer[:size])
        del self._buffer[:size]
        return part

    def _more(self, deadline: float, seconds: float) -> None:
        if not self._selector.select(max(0.0, min(deadline, self._end) - time.monotonic())):
            if self._end < deadline:
                raise ChildEnd(f"it and those before it ran for more than {self._seconds:g} seconds together.")
            raise ChildEnd(f"it ran for more than {seconds:g} seconds.")
        chunk = os.read(self._file.fileno(), 1 << 20)
        if not chunk:
            raise ChildEnd(self._why())
        self._buffer += chunk

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
