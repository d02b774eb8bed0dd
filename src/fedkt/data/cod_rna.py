"""LIBSVM cod-rna (Uzilov, Keegan, Mathews 2006): is a stretch of genome a non-coding RNA?

The paper's row counts for it add up to 72,309, which is the size of another dataset; its privacy figures fit the 59,535
rows read here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedkt.data.dataset import Dataset, dealt, split_rows
from fedkt.data.download import Progress, read_text
from fedkt.data.libsvm import parse_verified

N_FEATURES = 8


def load_cod_rna(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """cod-rna: 59,535 rows of 8 unscaled features; 75 % for the parties, the rest halved into public and test."""
    text, source = read_text("cod-rna", data_dir=data_dir, progress=progress)
    X, signs = parse_verified(text, N_FEATURES)
    y = (signs > 0).astype(np.int64)
    return dealt(
        "cod-rna",
        X,
        y,
        split_rows(len(y), seed=seed),
        classes=(-1, 1),
        source=f"LIBSVM cod-rna, training part, {source}",
        feature_names=tuple(f"f{j}" for j in range(1, N_FEATURES + 1)),
    )
