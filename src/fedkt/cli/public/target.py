"""Where the verbs of `fedkt public` write."""

from __future__ import annotations

from pathlib import Path

from fedkt.errors import ConfigurationError


def check_free(*paths: Path, force: bool) -> None:
    """Refuse to write over a file, before anything costs."""
    there = [path for path in paths if path.exists()]
    if there and not force:
        raise ConfigurationError(f"{there[0]} is there already. Use --force to replace it, or -o for another name.")
