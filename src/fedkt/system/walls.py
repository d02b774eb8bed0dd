"""What a process gives up before it reads a stranger's bytes, so that a fault in what reads them leads nowhere.

Each wall is the system's own and stands by itself; where it cannot be had, the others still hold, and `raise_walls`
says which ones do. No privileges are needed. Nothing but the standard library is imported: the children load this
file by its path, before and without fedkt.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

if sys.platform != "win32":
    # Here, and not where it is used: behind the walls nothing more can be imported.
    import resource

WALLS = ("namespaces", "landlock", "capabilities", "limits", "seccomp")
"""In the order in which they are raised: each leaves possible what the next one needs."""

# The system calls that numpy, onnxruntime and pyarrow make once all is loaded and open: numbers on x86_64 and aarch64.
CALLS = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "getpid": (39, 172),
    "exit": (60, 93),
    "getrusage": (98, 165),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
}
NO_CODE = {"mmap": (9, 222), "mprotect": (10, 226)}
"""Allowed as well, but not for memory that could be executed."""
OWN_LIMITS = {"prlimit64": (302, 261)}
"""Allowed as well, but on the process itself only."""
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The place of its numbers above, and what the kernel calls it (AUDIT_ARCH)."""
CAPSET, SECCOMP = (126, 91), (317, 277)

LANDLOCK_CREATE, LANDLOCK_RESTRICT = 444, 446
PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 3, 4, 38
NEW_USER, NEW_NET, NEW_IPC = 0x10000000, 0x40000000, 0x08000000


def raise_walls(names: Collection[str] = WALLS, *, memory: int, cpu: int, budget: int) -> list[str]:
    """The names of the walls that stand from now on, of those that are wanted; the process cannot take them down.

    `memory` is what it may take beside what it has, in bytes; `cpu` and `budget` are seconds (see `set_limits`).
    """
    used = _bytes_in_use()
    # Some walls go around one thread and those it starts; others that run already would stand outside.
    alone = threads() == 1
    steps = {
        "namespaces": _leave_namespaces,
        "landlock": _landlock,
        "capabilities": _drop_capabilities,
        "limits": lambda: set_limits(used + memory, cpu, budget),
        "seccomp": _seccomp,
    }
    standing = []
    for name in WALLS:
        if name in names and (alone or name in ("limits", "seccomp")):
            with suppress(OSError, AttributeError, KeyError):
                steps[name]()
                standing.append(name)
    return standing


def die_with(parent: int) -> None:
    """End this process when its parent does, however that ends."""
    with suppress(OSError, AttributeError):
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            # It went before it could be asked about.
            os._exit(1)


_hidden = threading.Lock()
_children = 0
_before = 1


@contextmanager
def memory_hidden() -> Iterator[None]:
    """While it lasts, no other process of the same user can read or write this one's memory, nor trace it.

    Nor is there a core dump, and the files of this process in /proc belong to root for so long.
    """
    global _children, _before
    if sys.platform != "linux":
        yield
        return
    with _hidden:
        if _children == 0:
            _before = call("prctl", PR_GET_DUMPABLE, 0, 0, 0, 0)
            call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)
        _children += 1
    try:
        yield
    finally:
        with _hidden:
            _children -= 1
            if _children == 0 and _before == 1:
                call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)


def set_limits(memory: int, cpu: int, budget: int) -> None:
    """Memory, CPU time, files and processes of this process bounded, as far as the platform knows such limits.

    Of CPU time, counted from now, `cpu` seconds until more are allowed, and never more than `budget`.
    """
    if sys.platform == "win32":
        raise OSError("Windows has no such limits")
    spent = _cpu_seconds()
    limits = {
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_FSIZE": (0, 0),
        "RLIMIT_NPROC": (0, 0),
        "RLIMIT_AS": (memory, memory),
        "RLIMIT_CPU": (spent + min(cpu, budget), spent + budget),
        "RLIMIT_NOFILE": (0, 0),
    }
    for name, values in limits.items():
        # macOS knows fewer of them, and a stricter limit may already hold.
        with suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), values)


def allow_more_cpu(cpu: int) -> None:
    """The CPU limit counted from now, as far as the budget goes: one model's time is not another's."""
    if sys.platform == "win32":
        return
    with suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        soft = _cpu_seconds() + cpu
        resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))


def threads() -> int:
    """How many threads this process has; 1 where that cannot be seen."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def _cpu_seconds() -> int:
    """Whole seconds of CPU time that this process has had, rounded up."""
    if sys.platform == "win32":
        return 0
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return int(usage.ru_utime + usage.ru_stime) + 1


def _bytes_in_use() -> int:
    """The addresses this process has taken, as the limit on memory counts them; 0 where that cannot be seen."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def call(name: str, *arguments: object) -> int:
    """A function of the C library with whole numbers and pointers, or an OSError."""
    if sys.platform != "linux":
        raise OSError("only Linux has it")
    library = ctypes.CDLL(None, use_errno=True)
    # Variadic functions read whole registers: a number must fill one.
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(getattr(library, name)(*values))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _leave_namespaces() -> None:
    """No network, and no memory or queues shared with other processes; an ordinary user may do so in many systems."""
    try:
        call("unshare", NEW_USER | NEW_NET | NEW_IPC)
    except OSError:
        call("unshare", NEW_NET | NEW_IPC)


def _landlock() -> None:
    """No file can be opened, made, moved, cut or removed; no port reached, no process outside signalled or traced."""
    version = call("syscall", LANDLOCK_CREATE, None, 0, 1)
    # All that the kernel knows to forbid: files by version 1, 2 (moves), 3 (cuts) and 5 (devices), TCP by version 4,
    # abstract sockets and signals by version 6.
    files = (1 << 13) - 1 | (version >= 2) << 13 | (version >= 3) << 14 | (version >= 5) << 15
    handled = struct.pack("<QQQ", files, 3 * (version >= 4), 3 * (version >= 6))
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = call("syscall", LANDLOCK_CREATE, ctypes.c_char_p(handled), size, 0)
    try:
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        call("syscall", LANDLOCK_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _drop_capabilities() -> None:
    """None of root's powers, nor those over a namespace of one's own."""
    header = ctypes.c_char_p(struct.pack("<Ii", 0x20080522, 0))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call("syscall", CAPSET[MACHINES[os.uname().machine][0]], header, ctypes.c_char_p(bytes(24)))


def _seccomp() -> None:
    """No system call but those on the lists above, in all threads; any other fails.

    It does not end the process: libraries try things that they can do without.
    """
    machine = os.uname().machine
    if machine not in MACHINES or struct.calcsize("P") != 8:
        raise OSError(f"there is no list of system calls for {machine}")
    place, name = MACHINES[machine]
    code = seccomp_program(place, name)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Mode 1 sets a filter, flag 1 for all threads; one that cannot have it is what comes back.
    if call("syscall", SECCOMP[place], 1, 1, ctypes.c_char_p(program)):
        raise OSError("a thread is outside")


def seccomp_program(place: int, machine: int) -> bytes:
    """The filter as the kernel runs it: eight bytes an instruction, all jumps forward."""
    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
    allow, fail, kill = 0x7FFF0000, 0x00050000 | 1, 0x80000000
    number, architecture, first, third = 0, 4, 16, 32
    plain = sorted(numbers[place] for numbers in CALLS.values())
    no_code = sorted(numbers[place] for numbers in NO_CODE.values())
    own = sorted(numbers[place] for numbers in OWN_LIMITS.values())
    # At the end stand: fail, two lines on memory, two on limits, fail, allow.
    tests = [
        *((each, "allow") for each in plain),
        *((each, "code") for each in no_code),
        *((each, "own") for each in own),
    ]
    begin = 4
    ends = begin + len(tests)
    where = {"code": ends + 1, "own": ends + 3, "fail": ends + 5, "allow": ends + 6}
    lines = [(load, 0, 0, architecture), (equal, 1, 0, machine), (give, 0, 0, kill), (load, 0, 0, number)]
    lines += [(equal, where[target] - (begin + at) - 1, 0, each) for at, (each, target) in enumerate(tests)]
    lines += [
        (give, 0, 0, fail),
        (load, 0, 0, third),
        (any_bit, where["fail"] - ends - 3, where["allow"] - ends - 3, 4),
        (load, 0, 0, first),
        (equal, where["allow"] - ends - 5, where["fail"] - ends - 5, 0),
        (give, 0, 0, fail),
        (give, 0, 0, allow),
    ]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
