"""A process for each party, forked from one that has loaded all that is needed.

Starting Python and onnxruntime takes a tenth of a second of CPU time, far more than a small student takes. What forks
knows the rows and nothing else: it opens nothing that a party sent, hands the models on as a descriptor, and answers go
past it. So every party's process begins as the first one did, whatever the others have done.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any

from fedkt.models.child_process import NO_START, ChildEnd, child_process, send_request
from fedkt.system.walls import memory_hidden

END_SECONDS = 5.0
"""So long a fork that has answered may take to end."""


def can_fork() -> bool:
    """Whether processes are forked here: macOS breaks those whose parent has loaded its frameworks."""
    return sys.platform == "linux"


class Fork:
    """A party's process, as its reader sees it."""

    def __init__(self, channel: socket.socket, stdout: IO[bytes]) -> None:
        self.stdout: IO[bytes] | None = stdout
        self._channel = channel
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or the signal that ended it as a negative number."""
        if self._code is None:
            self._channel.settimeout(timeout)
            try:
                message = self._channel.recv(1_000)
            except TimeoutError as reason:
                raise subprocess.TimeoutExpired("a fork", timeout or 0.0) from reason
            except OSError as reason:
                raise ChildEnd(NO_START) from reason
            if not message:
                raise ChildEnd(NO_START)
            said = json.loads(message)
            if "errno" in said:
                # This machine's want of processes or memory is no party's fault, and must drop nobody from a vote.
                raise OSError(said["errno"], f"no process for a party's students: {os.strerror(said['errno'])}")
            self._code = int(said["code"])
        return self._code

    @property
    def has_ended(self) -> bool:
        """Whether it is known to have made room for the next one."""
        return self._code is not None


class ForkingProcess:
    """A process that forks another one for each party, one at a time."""

    def __init__(self, setting: dict[str, Any]) -> None:
        # Messages arrive whole, with the descriptors that they came with.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as opened:
            self._channel = opened.enter_context(ours)
            self._child = opened.enter_context(child_process([theirs.fileno(), setting["rows"]]))
            with suppress(ChildEnd):
                # Who cannot be asked has ended, and whoever wants a fork will hear of it.
                send_request(self._child, {**setting, "channel": theirs.fileno()})
            self._resources = opened.pop_all()

    def fork(self, request: dict[str, Any], models: int) -> Fork:
        """A process that answers this request about the models behind a descriptor."""
        ours, theirs = os.pipe()
        answers = os.fdopen(ours, "rb", buffering=0)
        try:
            socket.send_fds(self._channel, [json.dumps(request).encode()], [models, theirs])
        except OSError as reason:
            answers.close()
            raise ChildEnd(NO_START) from reason
        finally:
            os.close(theirs)
        return Fork(self._channel, answers)

    @property
    def is_there(self) -> bool:
        """Whether it has not ended, for want of memory say."""
        return self._child.poll() is None

    def close(self) -> None:
        """End it, and its fork where there is one."""
        if self._child.poll() is None:
            # They are alone in their group.
            os.killpg(self._child.pid, signal.SIGKILL)
        self._resources.close()


class ForkingProcesses:
    """As many of them as there are threads that want a fork at the same time."""

    def __init__(self, setting: dict[str, Any]) -> None:
        self._setting = setting
        self._idle: list[ForkingProcess] = []
        self._every: set[ForkingProcess] = set()
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def fork(self, request: dict[str, Any], models: int) -> Iterator[Fork]:
        """A process that answers one request, and is gone at the end."""
        process = self._take()
        fork = None
        # Until the end of a fork that does not end by itself.
        with memory_hidden():
            try:
                fork = process.fork(request, models)
                yield fork
                # It has answered; one that was stopped is given no time.
                with suppress(ChildEnd, subprocess.TimeoutExpired):
                    fork.wait(END_SECONDS)
            finally:
                if fork is not None and fork.stdout is not None:
                    fork.stdout.close()
                self._give_back(process, good=fork is not None and fork.has_ended)

    def close(self) -> None:
        """End them all, also those that are at work."""
        with self._lock:
            self._closed = True
            every, self._every = self._every, set()
        for each in every:
            each.close()

    def _take(self) -> ForkingProcess:
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.is_there:
                    return process
                # It had no party's models: the next party is not to suffer from its end.
                self._every.discard(process)
                process.close()
        process = ForkingProcess(self._setting)
        with self._lock:
            if not self._closed:
                self._every.add(process)
                return process
        process.close()
        raise ChildEnd(NO_START)

    def _give_back(self, process: ForkingProcess, *, good: bool) -> None:
        """Keep it for the next party; where its fork did not end, both end here."""
        with self._lock:
            if good:
                self._idle.append(process)
                return
            if process not in self._every:
                # Whoever closes all of them ends it.
                return
            self._every.discard(process)
        process.close()
