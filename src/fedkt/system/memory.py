"""How much memory this process may have: the machine's, or less where a container or a job has a limit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/")


def total_memory(root: Path = ROOT) -> int | None:
    """Bytes beyond which nothing runs here, swap included; None where the system does not say."""
    known = _meminfo(root)
    machine = known["MemTotal"] + known.get("SwapTotal", 0) if "MemTotal" in known else _pages(root)
    limits = [limit for limit, _ in _limits(root)]
    return min([*limits, *([] if machine is None else [machine])], default=None)


def free_memory(root: Path = ROOT) -> int | None:
    """Bytes that can be had now without pushing others out; None where the system does not say."""
    free = _meminfo(root).get("MemAvailable")
    left = [max(0, limit - used) for limit, used in _limits(root)]
    return min([*left, *([] if free is None else [free])], default=None)


def in_gigabytes(count: int) -> str:
    """A number of bytes in words."""
    return f"{count / 1e9:,.1f} GB"


def _meminfo(root: Path) -> dict[str, int]:
    """Linux's figures about memory by name, in bytes; empty elsewhere."""
    with suppress(OSError):
        text = (root / "proc/meminfo").read_text(encoding="ascii", errors="replace")
        return {name: 1024 * int(count) for name, count in re.findall(r"^(\w+):\s+([0-9]+) kB$", text, re.MULTILINE)}
    return {}


def _pages(root: Path) -> int | None:
    """The machine's memory where /proc does not say."""
    if root == ROOT:
        with suppress(AttributeError, OSError, ValueError):
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """The limits of the control groups that this process is in, and what is used of each."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines():
            kinds, _, place = line.partition(":")[2].partition(":")
            if kinds == "":
                yield from _group_limits(root / "sys/fs/cgroup", place, "memory.max", "memory.current")
            elif "memory" in kinds.split(","):
                names = "memory.limit_in_bytes", "memory.usage_in_bytes"
                yield from _group_limits(root / "sys/fs/cgroup/memory", place, *names)


def _group_limits(mount: Path, place: str, limit: str, used: str) -> Iterator[tuple[int, int]]:
    """The limit of a group and of each that it is in; in a container only the outermost of them may be seen."""
    parts = [part for part in place.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        folder = mount.joinpath(*parts[:depth])
        # "max", or a number of 2⁶³, where there is none.
        with suppress(OSError, ValueError):
            yield int((folder / limit).read_text()), int((folder / used).read_text())
