"""What this machine enforces around a received model, found out by trying: `fedkt doctor` asks here."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fedkt.errors import ModelError
from fedkt.system.walls import WALLS, memory_hidden

HIDDEN = "hidden parent"
"""The wall that the parent raises around itself: its memory cannot be read while a child runs."""
ALL = (*WALLS, HIDDEN)
PROGRAM = Path(__file__).with_name("wall_acts.py")
FILES = ("read", "unlink", "rename", "truncate", "chmod")


@dataclass(frozen=True)
class Trial:
    """Which of the wanted walls stood, and what each act came to: `possible`, or `refused: …`."""

    walls: tuple[str, ...]
    acts: dict[str, str]

    @property
    def possible(self) -> tuple[str, ...]:
        """The acts that nothing stopped."""
        return tuple(name for name, end in self.acts.items() if end == "possible")


def try_acts(names: Collection[str] = ALL) -> Trial:
    """What a child process behind these walls can still do, to files and sockets made for that and to this process."""
    if sys.platform != "linux":
        raise ModelError("Acts behind the walls can be tried on Linux only; other systems have no such walls.")
    secret = secrets.token_hex(4)
    buffer = ctypes.create_string_buffer(secret.encode(), 8)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedkt-")))
        (folder / "mount").mkdir()
        for name in FILES:
            (folder / name).write_bytes(b"content")
        port, local = stack.enter_context(socket.socket()), stack.enter_context(socket.socket(socket.AF_UNIX))
        port.bind(("127.0.0.1", 0))
        local.bind(f"\0fedkt-{secret}")
        for each in (port, local):
            each.listen()
        request = {
            "walls": [name for name in WALLS if name in names],
            "folder": str(folder),
            "parent": os.getpid(),
            "port": port.getsockname()[1],
            "socket": f"fedkt-{secret}",
            "program": shutil.which("true", path=os.defpath),
            "address": ctypes.addressof(buffer),
            "secret": secret,
        }
        child = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-I", "-B", str(PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
            )
        )
        if HIDDEN in names:
            stack.enter_context(memory_hidden())
        try:
            reply = json.loads(child.communicate(json.dumps(request).encode() + b"\n", timeout=60)[0])
        except (ValueError, subprocess.TimeoutExpired) as reason:
            child.kill()
            raise ModelError(f"The child process that tries acts gave no answer: {type(reason).__name__}.") from reason
    hidden = (HIDDEN,) if HIDDEN in names else ()
    return Trial((*reply["walls"], *hidden), reply["acts"])


def each_wall() -> dict[str, Trial]:
    """The acts tried without walls, with each of them alone, with all but the filter of system calls, and with all."""
    without = tuple(name for name in ALL if name != "seccomp")
    return {
        "none": try_acts(()),
        **{name: try_acts((name,)) for name in ALL},
        "all but seccomp": try_acts(without),
        "all": try_acts(),
    }


def a_model_runs() -> str:
    """Empty, if a small model gives the right labels behind all walls; else what happened instead."""
    import numpy as np

    from fedkt.models.graphs import constant_graph
    from fedkt.models.sandbox import run_models

    graph = constant_graph(2, 3, None).SerializeToString(deterministic=True)
    answer = run_models([graph], np.zeros((4, 3), np.float32), n_classes=3)[0]
    if isinstance(answer, str):
        return answer
    return "" if answer.tolist() == [2] * 4 else f"it gave the labels {answer.tolist()}, not 2 four times."
