"""A folder as transport: bundles are files that somebody carries, by mail, share or stick."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write under a temporary name in the same folder, then rename: the file is whole or not there.

    `private` files can be read by their owner only.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o600 if private else 0o666 & ~current_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def current_umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def read_at_most(path: Path, limit: int) -> bytes | None:
    """The file's bytes, or None if it is longer than `limit`: nobody's file may fill this machine's memory."""
    with path.open("rb") as file:
        data = file.read(limit + 1)
    return None if len(data) > limit else data


def waiting_files(folder: Path, suffix: str) -> list[Path]:
    """The finished files with this ending, by name; files still being written are not among them."""
    if not folder.is_dir():
        return []
    return sorted(
        path for path in folder.iterdir() if path.suffix == suffix and not path.name.startswith(".") and path.is_file()
    )
