"""The program that tries from behind the walls what nobody should be able to do there.

It is started as a file, like the child that runs models, raises the walls it is told to, tries one act after the other
on things that its parent has put there for that, and says of each whether it succeeded. It stands for an attacker who
has taken over that child.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import socket
import struct
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

walls = ModuleType("walls")
SourceFileLoader("walls", str(Path(__file__).absolute().parents[1] / "system" / "walls.py")).exec_module(walls)

CLONE_NEW_USER, PTRACE_SEIZE = 0x10000000, 0x4206
NUMBERS = {"x86_64": (250, 425, 310), "aarch64": (219, 425, 270)}
"""Of the system calls keyctl, io_uring_setup and process_vm_readv."""


def acts(request: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Every act by name; one that fails raises, or says False."""
    folder, parent = request["folder"], request["parent"]
    keyctl, ring, peek = NUMBERS.get(os.uname().machine, (-1, -1, -1))
    return {
        "read a file": lambda: os.open(f"{folder}/read", os.O_RDONLY),
        "write a file": lambda: os.open(f"{folder}/write", os.O_WRONLY | os.O_CREAT, 0o600),
        "remove a file": lambda: os.unlink(f"{folder}/unlink"),
        "rename a file": lambda: os.rename(f"{folder}/rename", f"{folder}/renamed"),
        "cut a file off": lambda: os.truncate(f"{folder}/truncate", 0),
        "change a file's mode": lambda: os.chmod(f"{folder}/chmod", 0o777),
        "mount a file system": lambda: mount(f"{folder}/mount".encode()),
        "reach the network": lambda: connect(request["port"]),
        "reach a local socket": lambda: connect(request["socket"]),
        "start a process": start,
        "start a program": lambda: os.posix_spawn(request["program"], [request["program"]], {}),
        "signal the parent": lambda: os.kill(parent, 0),
        "trace the parent": lambda: walls.call("ptrace", PTRACE_SEIZE, parent, None, None),
        "read the parent's memory": lambda: spy(peek, parent, request["address"]) == request["secret"],
        "open the parent's memory": lambda: (
            os.pread(os.open(f"/proc/{parent}/mem", os.O_RDWR), 8, request["address"]) == request["secret"].encode()
        ),
        "change the parent's limits": lambda: resource.prlimit(parent, resource.RLIMIT_CORE, (0, 0)),
        "raise its own limits": more_processes,
        "make memory that can be executed": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC),
        "ask for keys": lambda: walls.call("syscall", keyctl, 0, -3, 1),
        "use io_uring": lambda: walls.call("syscall", ring, 1, ctypes.create_string_buffer(120)),
        "enter a namespace": lambda: walls.call("unshare", CLONE_NEW_USER),
    }


def mount(where: bytes) -> bool:
    """Whether something can be mounted; it is taken away again."""
    walls.call("mount", b"none", where, b"tmpfs", 0, None)
    walls.call("umount2", where, 0)
    return True


def connect(where: Any) -> bool:
    """Whether a connection can be made: to a port of this machine, or to an abstract local socket."""
    local = isinstance(where, str)
    with socket.socket(socket.AF_UNIX if local else socket.AF_INET, socket.SOCK_STREAM) as one:
        one.settimeout(5)
        one.connect(f"\0{where}" if local else ("127.0.0.1", where))
    return True


def start() -> bool:
    """Whether there can be a second process."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitpid(child, 0)[0] == child


def spy(number: int, process: int, address: int) -> str:
    """Eight bytes of another process."""
    buffer = ctypes.create_string_buffer(8)
    here = ctypes.c_char_p(struct.pack("<QQ", ctypes.addressof(buffer), 8))
    there = ctypes.c_char_p(struct.pack("<QQ", address, 8))
    walls.call("syscall", number, process, here, 1, there, 1, 0)
    return buffer.raw.decode("ascii", "replace")


def more_processes() -> bool:
    """Whether the limit on processes can go up after it was lowered, or was never there."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if most != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NPROC, (most + 1, most + 1))
    return True


def attempt(act: Callable[[], object]) -> str:
    """`possible`, or `refused` and why."""
    try:
        result = act()
    except Exception as reason:
        return f"refused: {getattr(reason, 'strerror', None) or type(reason).__name__}"
    return "possible" if result is not False else "refused: nothing happened"


def attempt_all() -> None:
    """Tries what the line on standard input says, and answers with one line of JSON."""
    request = json.loads(sys.stdin.readline())
    walls.die_with(request["parent"])
    all_acts = acts(request)
    walls_up = walls.raise_walls(request["walls"], memory=2**30, cpu=60, budget=60)
    outcomes = {name: attempt(act) for name, act in all_acts.items()}
    print(json.dumps({"walls": walls_up, "acts": outcomes}), flush=True)


if __name__ == "__main__":
    attempt_all()
