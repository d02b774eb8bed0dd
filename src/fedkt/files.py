"""Files as others leave them: a name may stand for a pipe, a device or a link, and a disk may be full."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from unicodedata import category


def open_plain(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
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
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """An OSError inside the block that names no file names this one: "no space left" comes without."""
    try:
        yield
    except OSError as reason:
        if reason.filename is None:
            reason.filename = os.fspath(path)
        raise


def shown(text: str) -> str:
    """The text with a question mark for whatever would speak to a terminal instead of being read."""
    return "".join(each if each.isprintable() or each == "\n" or category(each) == "Zs" else "?" for each in text)


def shown_name(path: Path) -> str:
    """A file's name for people: it may hold anything."""
    return shown(path.name).replace("\n", "?")
