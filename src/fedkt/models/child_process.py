"""The child process that runs received models: what it is handed, how it is started, and what is read from it.

The child starts with an empty environment and descriptors of the rows and the models, which on Linux lie in memory
only. Before it looks at a model it raises its walls (see `fedkt.system.walls`).
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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from fedkt.models.onnx_rules import Limits

CHILD = Path(__file__).with_name("sandbox_child.py")
START_SECONDS = 60.0
LINE_BYTES = 4_096
NO_START = "the child process did not start."


class ChildEnd(Exception):
    """The child says no more; the message is the reason."""


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


def plain_text(reason: object) -> str:
    """What a child says, in printable letters and not too many of them."""
    words = reason if isinstance(reason, str) else "it gave no reason in words."
    return "".join(each if each.isprintable() else " " for each in words[:400])


class Process(Protocol):
    """A process that answers: one that was started, or one that was forked from it."""

    stdout: IO[bytes] | None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or the signal that ended it as a negative number."""
        ...


def send_request(child: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    """Send a child that was started what it waits for."""
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.close()
    except OSError as reason:
        raise ChildEnd(NO_START) from reason


class ChildReader:
    """Bytes from a process, under a deadline; every one of them is taken for hostile."""

    def __init__(self, child: Process, bounds: Limits) -> None:
        assert child.stdout is not None
        self._child, self._bounds, self._file = child, bounds, child.stdout
        self._buffer = bytearray()
        # Time spent waiting is not CPU time: as much longer in all as it may be for each model.
        self._seconds = bounds.party_cpu_seconds * bounds.wall_seconds / bounds.cpu_seconds
        self._end = time.monotonic() + START_SECONDS + self._seconds
        self._selector = selectors.DefaultSelector()
        self._selector.register(child.stdout, selectors.EVENT_READ)
        self.allow(START_SECONDS)

    def close(self) -> None:
        """Nothing more is read."""
        self._selector.close()

    def allow(self, seconds: float) -> None:
        """What is read from here on has to come within so many seconds."""
        self._allowed, self._deadline = seconds, time.monotonic() + seconds

    def line(self) -> dict[str, Any]:
        """The next line, which is a JSON object."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > LINE_BYTES:
                raise ChildEnd("the child did not keep to its protocol.")
            self._more()
        if end > LINE_BYTES:
            raise ChildEnd("the child did not keep to its protocol.")
        raw = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            head = json.loads(raw)
        except (ValueError, RecursionError):
            head = None
        if not isinstance(head, dict):
            raise ChildEnd("the child did not keep to its protocol.")
        return head

    def take(self, size: int) -> bytes:
        """The next so many bytes."""
        while len(self._buffer) < size:
            self._more()
        part = bytes(self._buffer[:size])
        del self._buffer[:size]
        return part

    def _more(self) -> None:
        if not self._selector.select(max(0.0, min(self._deadline, self._end) - time.monotonic())):
            if self._end < self._deadline:
                raise ChildEnd(f"it and those before it ran for more than {self._seconds:g} seconds together.")
            raise ChildEnd(f"it ran for more than {self._allowed:g} seconds.")
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
            # Not all signals have a name.
            name = next((each.name for each in signal.Signals if each == -code), -code)
            return f"it crashed the process that ran it (signal {name})."
        return f"the process that ran it ended with code {code}."
