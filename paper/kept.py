"""What is to be measured, one key a line: made where it is missing, kept at once, and shared between processes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fedkt.lab.results import append_line, lock_of, read_lines
from fedkt.report import versions
from fedkt.system.locks import if_free

Key = dict[str, Any]


def make_missing(
    results: Path, keys: Iterable[Key], make: Callable[[Key], dict[str, Any]], *, say: Callable[[str], None] = print
) -> None:
    """Make what no line of the file has; what another process is making is left to it.

    A line has the key, what was made, and the CPU seconds that it took.
    """
    for key in keys:
        if is_kept(results, key):
            continue
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
        with if_free(lock_of(results, digest)) as ours:
            # Another process may have made it since.
            if not ours or is_kept(results, key):
                continue
            started = time.process_time()
            made = make(key)
            seconds = time.process_time() - started
            append_line(results, {**key, **made, "cpu_seconds": seconds, "versions": versions()})
            say(f"{seconds:7.1f} s  {json.dumps(key)}")


def is_kept(results: Path, key: Key) -> bool:
    """Whether a line of the file has this key."""
    return any(key.items() <= each.items() for each in read_lines(results))
