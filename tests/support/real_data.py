"""Where the real data files lie, for tests that need them: $FEDKT_DATA, else ../shared/data beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA_DIR = Path(os.environ.get("FEDKT_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")

needs_real_data = pytest.mark.skipif(
    not (DATA_DIR / "a9a.gz").is_file(), reason="the data files are not here; name their folder with FEDKT_DATA"
)


def real_data_dir() -> Path:
    """The folder with the real data files."""
    return DATA_DIR
