"""Files read as others leave them, and written whole or not at all: a name may stand for a pipe, a disk may be full."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from unicodedata import category

from fedkt.system.locks import is_free, lock_handle


def open_plain(path: str | os.PathLike[str], *, follow: bool = True) -> BufferedReader:
    """A regular file, open for reading; an OSError for a pipe, a device or a folder, and for a link unless `follow`.

    What was opened is asked, not what the name stood for a moment ago, and nobody waits for a pipe's other end.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file", os.fspath(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


@contextmanager
def name_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """An OSError inside the block that names no file names this one: "no space left" comes without."""
    try:
        yield
    except OSError as reason:
        if reason.filename is None:
            reason.filename = os.fspath(path)
        raise


def printable_text(text: str) -> str:
    """The text with a question mark for whatever would speak to a terminal instead of being read."""
    return "".join(each if each.isprintable() or each == "\n" or category(each) == "Zs" else "?" for each in text)


def printable_name(name: str) -> str:
    """A file's name for people: it may hold anything."""
    return printable_text(name).replace("\n", "?")


def write_atomically(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write under a temporary name in the same folder, then rename: the file is whole or not there.

    `private` files can be read by their owner only. What a killed process left of an earlier try is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path)
    with name_in_errors(path), unfinished(path) as (handle, temporary):
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o600 if private else 0o666 & ~current_umask())
        os.replace(temporary, path)


@contextmanager
def unfinished(path: Path) -> Iterator[tuple[int, str]]:
    """A new file beside `path` that nobody sweeps while the block runs; it is gone afterwards, unless renamed."""
    while True:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        # Whoever sweeps may have been faster than the lock.
        if lock_handle(handle, Path(temporary)):
            break
        os.close(handle)
    try:
        yield handle, temporary
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def sweep(path: Path) -> None:
    """Remove what killed processes have left of this file: ours by its name, held by nobody."""
    remains = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.part")
    with suppress(OSError):
        for each in path.parent.iterdir():
            if remains.fullmatch(each.name) and not each.is_symlink() and is_free(each):
                with suppress(OSError):
                    each.unlink()


def current_umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def nearest_folder(path: Path) -> Path:
    """The folder that is there already of those that a file would be written under."""
    path = path.absolute()
    return next(each for each in (path, *path.parents) if each.is_dir())


def can_be_written(folder: Path) -> bool:
    """Whether files can be put into a folder, or into the one that it would be made in."""
    return os.access(nearest_folder(folder), os.W_OK | os.X_OK)


def read_at_most(path: Path, limit: int, *, follow: bool = True) -> bytes | None:
    """The file's bytes, or None if it is longer than `limit`: nobody's file may fill this machine's memory.

    Only a regular file is read, and a link only with `follow`.
    """
    with name_in_errors(path), open_plain(path, follow=follow) as file:
        if os.fstat(file.fileno()).st_size > limit:
            return None
        data = file.read(limit + 1)
    return None if len(data) > limit else data
