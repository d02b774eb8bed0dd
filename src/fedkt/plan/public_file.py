"""The public file of a new plan: as it is, or rewritten so that everybody reads the same rows in it.

How a file is written is for whoever has it to say, and not agreed on. The public file is read by all, so where its
maker has to say something, it is written anew, plainly, and that file is the one that goes with the plan.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fedkt.data.format import PLAIN, Format
from fedkt.data.rewriting import plain_csv
from fedkt.data.table import Table, names_its_label, read_table
from fedkt.plan.agreement import file_digest


@dataclass(frozen=True)
class PublicFile:
    """The rows of a public file, and the file that everybody is to get."""

    table: Table
    name: str
    sha256: str
    copy: bytes | None = None
    """The file's content where it is not the one that was read."""


def read_public_file(path: str | Path, label: str, form: Format = PLAIN) -> PublicFile:
    """The public rows in a file that is written as `form` says; the label need not be among them."""
    # Formats that do not name their label call it what we say; in the others it need not be there.
    table = read_table(path, label=None if names_its_label(path) else label, form=form)
    path = Path(path)
    if form == PLAIN:
        return PublicFile(table, path.name, file_digest(path))
    copy = plain_csv(table)
    return PublicFile(table, f"{path.name.partition('.')[0]}.plain.csv", hashlib.sha256(copy).hexdigest(), copy)
