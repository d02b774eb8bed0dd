"""LIBSVM cod-rna (Uzilov, Keegan, Mathews 2006): is a stretch of genome a non-coding RNA?

The paper's row counts for it add up to 72,309, which is the size of another dataset; its privacy figures fit the 59,535
rows read here.
"""

from __future__ import annotations

from pathlib import Path

from fedkt.data.dataset import Dataset
from fedkt.data.download import Progress
from fedkt.data.libsvm import load_libsvm


def load_cod_rna(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """cod-rna: 59,535 rows of 8 unscaled features; 75 % for the parties, the rest halved into public and test."""
    origin = "LIBSVM cod-rna, training part"
    return load_libsvm(
        "cod-rna", "cod-rna", 8, classes=(-1, 1), origin=origin, seed=seed, data_dir=data_dir, progress=progress
    )
