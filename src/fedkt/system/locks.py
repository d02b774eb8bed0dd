"""A lock between processes: a file that one of them holds at a time, and that a killed one gives back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

PAUSE = 0.005
"""Seconds between two looks at a lock that somebody else has."""
MOST_FOLDERS = 100
"""How often a lock's folder is made again that somebody else has taken away."""


def try_lock(path: Path) -> int | None:
    """The handle that holds this lock, None while somebody else has it. Its folder must be there.

    Where the system has no flock, nobody is kept out.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        if fcntl is None:
            return handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A lock on a file that was meanwhile removed keeps nobody out.
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except FileNotFoundError:
            pass
        os.close(handle)


def lock_handle(handle: int, path: Path) -> bool:
    """Lock a file that is open; False where somebody else has it, or it is no longer the one of this name."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def is_free(path: Path) -> bool:
    """Whether nobody holds this file, which is neither made nor changed; where that cannot be told, somebody does."""
    if fcntl is None:
        return False
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return lock_handle(handle, path)
    finally:
        os.close(handle)


def unlock(handle: int) -> None:
    """Give a lock back."""
    if fcntl is not None:
        # Closing alone would leave the lock with a child that was forked meanwhile.
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


@contextmanager
def if_free(path: Path, *, mode: int = 0o777) -> Iterator[bool]:
    """Whether this process has the lock inside the block. Its file goes away with it.

    Its folder is made where there is none, with this mode.
    """
    handle = None
    try:
        # A file that is made, and is not yet known here, would be left behind.
        with signals_later():
            handle = lock_in_folder(path, mode)
        yield handle is not None
    finally:
        if handle is not None:
            give_back(path, handle)


def lock_in_folder(path: Path, mode: int) -> int | None:
    """The handle that holds this lock, None while somebody else has it; its folder is made."""
    for _ in range(MOST_FOLDERS):
        path.parent.mkdir(mode=mode, parents=True, exist_ok=True)
        # Whoever has just finished there may take the folder away.
        with suppress(FileNotFoundError):
            return try_lock(path)
    return try_lock(path)


@contextmanager
def signals_later() -> Iterator[None]:
    """Ctrl-C and SIGTERM are dealt with at the end of the block, not inside it."""
    if threading.current_thread() is not threading.main_thread():
        # Signals interrupt the main thread only.
        yield
        return
    pending: list[int] = []
    handlers = {
        number: handler for number in (signal.SIGINT, signal.SIGTERM) if callable(handler := signal.getsignal(number))
    }
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: pending.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in pending:
            handlers[signal.Signals(late)](late, None)


@contextmanager
def once_free(path: Path) -> Iterator[None]:
    """Wait until nobody else has the lock. Its file goes away with it."""
    while True:
        with if_free(path) as ours:
            if ours:
                yield
                return
        time.sleep(PAUSE)


def give_back(path: Path, handle: int) -> None:
    """Remove the lock's file, then unlock: whoever waits for the removed file looks again."""
    with suppress(OSError):
        path.unlink()
    unlock(handle)
