"""A cache: bytes by a key that is the digest of everything they follow from, in a folder that only its owner can use.

An entry is whole or not there, tells if it was damaged, and is never wrong: what has the same key is the same.
Processes share a folder; the entries used longest ago make room for new ones.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fedkt.system.files import read_at_most, write_atomically
from fedkt.system.locks import if_free, once_free

MOST_BYTES = 2 * 2**30
"""What a cache holds, unless it is told otherwise."""
ENDING = ".kept"
OURS = re.compile(r"[0-9a-f]{64}\.(kept|lock)|\.[0-9a-f]{64}\.kept\.[a-z0-9_]{8}\.part")
"""The only files of a folder that are ever removed."""
SWEEP = "sweep.lock"
DIGEST_BYTES = 32


class DamagedEntry(Exception):
    """An entry that is not what was written; it is gone by now."""


@dataclass(frozen=True)
class Cache:
    """Entries in a folder, which is made when there is one."""

    folder: Path
    most_bytes: int = MOST_BYTES

    def fault(self) -> str:
        """Why its folder is not to be believed, empty if it is: whoever can write there decides what is found."""
        if not self.folder.exists():
            return ""
        if not self.folder.is_dir():
            return f"{self.folder} is not a folder."
        facts = self.folder.stat()
        if hasattr(os, "getuid") and (facts.st_uid != os.getuid() or facts.st_mode & 0o022):
            return f"Others can write into {self.folder}, so what lies there is not believed."
        return ""

    def read(self, key: str) -> bytes | None:
        """What lies under this key, None where nothing does; it counts as used."""
        path = self._path(key)
        try:
            self._check_owner()
            stored = read_at_most(path, self.most_bytes, follow=False)
        except FileNotFoundError:
            return None
        except OSError as reason:
            raise DamagedEntry(str(reason)) from reason
        content = b"" if stored is None else stored[DIGEST_BYTES:]
        if stored is None or _digest(key, content) != stored[:DIGEST_BYTES]:
            self.drop(key)
            raise DamagedEntry("its digest does not fit")
        with suppress(OSError):
            os.utime(path)
        return content

    def write(self, key: str, content: bytes) -> None:
        """Keep this under the key; what was used longest ago goes where there is too much."""
        self._make_folder()
        write_atomically(self._path(key), _digest(key, content) + content, private=True)
        self._make_room()

    def drop(self, key: str) -> None:
        """Remove an entry."""
        self._path(key).unlink(missing_ok=True)

    @contextmanager
    def sole_maker(self, key: str) -> Iterator[None]:
        """Nobody else makes this entry inside the block; whoever comes later waits, and finds it.

        Where no lock can be had, on a full disk say, no entry can be kept either, and nobody waits.
        """
        with ExitStack() as held:
            with suppress(OSError):
                self._make_folder()
                held.enter_context(once_free(self.folder / f"{key}.lock"))
            yield

    def clear(self) -> None:
        """Remove the entries, and the folder where nothing else lies in it."""
        if not self.folder.is_dir():
            return
        for path in list(self.folder.iterdir()):
            if OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{ENDING}"

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_owner()

    def _check_owner(self) -> None:
        """Look again: where there was no folder somebody else may have made one."""
        if fault := self.fault():
            raise PermissionError(fault)

    def _make_room(self) -> None:
        with if_free(self.folder / SWEEP) as ours:
            if not ours:
                return
            entries = []
            for path in self.folder.glob(f"*{ENDING}"):
                if OURS.fullmatch(path.name):
                    # Another process may have removed it meanwhile.
                    with suppress(FileNotFoundError):
                        facts = path.stat()
                        entries.append((facts.st_mtime_ns, facts.st_size, path))
            left = sum(size for _, size, _ in entries)
            for _, size, path in sorted(entries):
                if left <= self.most_bytes:
                    return
                path.unlink(missing_ok=True)
                left -= size


def _digest(key: str, content: bytes) -> bytes:
    """The key is part of it: an entry under another one's name is none."""
    return hashlib.sha256(key.encode() + content).digest()
