"""The 8 × 8 handwritten digits that come with scikit-learn: nothing to download."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedkt.data.dataset import Dataset, assign_rows, split_rows
from fedkt.data.download import Progress
from fedkt.data.pixels import pixel_names

IMAGE = (8, 8, 1)


def load_digits(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """Digits: 1,797 rows of 64 pixels scaled to 0 … 1; 75 % for the parties, the rest public and test."""
    from sklearn.datasets import load_digits as load_arrays

    pixels, digits = load_arrays(return_X_y=True)
    return assign_rows(
        "digits",
        (pixels / 16.0).astype(np.float32),
        digits.astype(np.int64),
        split_rows(len(digits), seed=seed),
        classes=tuple(range(10)),
        source="UCI optical recognition of handwritten digits, test part, as bundled with scikit-learn",
        feature_names=pixel_names(IMAGE),
        image=IMAGE,
    )
