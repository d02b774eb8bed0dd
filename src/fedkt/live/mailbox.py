"""The mailbox between parties and server: names, bytes, and a mark that tells what has changed. A folder is one.

Whoever can reach a mailbox may put anything there. A mailbox knows nothing of what a bundle is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fedkt.errors import ConfigurationError, DataError
from fedkt.system.files import can_be_written, read_at_most, write_atomically

ENDING = ".fedkt"


@dataclass(frozen=True)
class MailboxEntry:
    """One thing that lies in a mailbox."""

    name: str
    mark: str
    """Opaque: another one says that the bytes may be others. An entity tag is one."""
    ignored: str = ""
    """Why it is not to be read, though somebody may have meant it as a bundle; empty for a bundle."""


class Mailbox(Protocol):
    """Where parties put their bundles and a server finds them; as a text, what messages call it."""

    def put(self, name: str, data: bytes) -> None:
        """Put these bytes there under this name, whole or not at all, in place of what was there."""
        ...

    def entries(self) -> Iterator[MailboxEntry]:
        """Everything that lies there, in any order, found anew at each call; what is half there is left out."""
        ...

    def read(self, name: str, limit: int) -> bytes | None:
        """The bytes under a name, None if they are more than `limit`; a FileNotFoundError where there are none.

        An OSError says why they cannot be read. They may be newer than the mark that was listed, never older.
        """
        ...

    def check_writable(self, name: str) -> None:
        """Refuse, before anything is trained, a mailbox that this name cannot be put into."""
        ...

    def where(self, name: str) -> str:
        """What messages call the bytes under this name."""
        ...


@dataclass(frozen=True)
class FolderMailbox:
    """A folder, shared or carried to and fro: a bundle is a file whose name ends with .fedkt."""

    folder: Path
    own: bool = False
    """Whether its reader alone writes there: its links are followed, nobody else's."""

    def __str__(self) -> str:
        return str(self.folder)

    def where(self, name: str) -> str:
        """The path of the file of this name."""
        return str(self.folder / name)

    def check_writable(self, name: str) -> None:
        """Refuse a file in place of the folder, and a folder that is others' alone."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ConfigurationError(f"--output {self.folder} is a file. It takes the folder to write {name} to.")
        if not can_be_written(self.folder):
            raise ConfigurationError(
                f"--output {self.folder} cannot be written to, or not be made there. Choose a folder of yours."
            )

    def put(self, name: str, data: bytes) -> None:
        """Write a file under a temporary name, which is passed over here, then rename it."""
        write_atomically(self.folder / name, data)

    def read(self, name: str, limit: int) -> bytes | None:
        """The bytes of a regular file; an OSError for a pipe or a device, and for a link in a folder of others."""
        return read_at_most(self.folder / name, limit, follow=self.own)

    def entries(self) -> Iterator[MailboxEntry]:
        """The bundle files, and what looks like one by its name."""
        if not self.folder.is_dir():
            raise DataError(
                f"{self.folder} is not a folder. --bundles takes the folder that the parties' .fedkt files are in."
            )
        for path in self.folder.iterdir():
            if path.name.startswith(".") or ENDING not in path.name.casefold():
                continue
            try:
                facts = path.lstat()
            except FileNotFoundError:
                continue
            mark = f"{facts.st_ino}-{facts.st_size}-{facts.st_mtime_ns}-{facts.st_ctime_ns}"
            yield MailboxEntry(path.name, mark, reason_to_ignore(path, facts))


def reason_to_ignore(path: Path, facts: os.stat_result) -> str:
    """Why something with a name like a bundle's is none, or nothing where it is a file to be read."""
    if not path.name.endswith(ENDING):
        return f"a bundle's name ends with {ENDING}"
    if stat.S_ISLNK(facts.st_mode):
        return "it is a link" if path.exists() else "it is a link to nothing"
    return "" if stat.S_ISREG(facts.st_mode) else "it is not a file"


def bundle_name(party: str) -> str:
    """What a party's bundle is called in every mailbox."""
    return f"{party}{ENDING}"


def mailbox_at(place: str | Path, *, own: bool = False) -> Mailbox:
    """The mailbox at a place, by the form of the place. Another transport is a line here and a file beside this one."""
    return FolderMailbox(Path(place), own=own)


def file_at(place: str | Path, *, own: bool = False) -> tuple[Mailbox, str]:
    """The mailbox that one thing lies in, and its name there."""
    folder, name = os.path.split(place)
    return mailbox_at(folder, own=own), name
