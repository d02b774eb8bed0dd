"""Where the verbs of `fedkt public` write."""

from __future__ import annotations

import os
from pathlib import Path

from fedkt.errors import ConfigurationError


def check_free(*paths: Path, force: bool) -> None:
    """Refuse to write over a file, or where nothing can be written, before anything costs."""
    there = [path for path in paths if path.exists()]
    if there and not force:
        raise ConfigurationError(f"{there[0]} is there already. Use --force to replace it, or -o for another name.")
    for folder in {path.parent for path in paths}:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise ConfigurationError(f"Nothing can be written into {folder}. Use -o for another place.")
