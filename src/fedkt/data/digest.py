"""What a file is told by, whatever it is called: the SHA-256 of its bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fedkt.data.images import folder_digest, labels_file
from fedkt.errors import DataError
from fedkt.system.files import open_plain


def file_digest(path: str | Path, *, with_labels: bool = False) -> str:
    """SHA-256 of a file's bytes, or of a folder of images; with that of the file its labels lie in, if asked for."""
    labels = labels_file(Path(path)) if with_labels else None
    if labels is not None:
        return hashlib.sha256((file_digest(path) + file_digest(labels)).encode()).hexdigest()
    try:
        if Path(path).is_dir():
            return folder_digest(Path(path))
        with open_plain(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as reason:
        raise DataError(f"{path} cannot be read: {reason.strerror}. Check the path.") from reason
