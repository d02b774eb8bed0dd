"""Datasets of LIBSVM text whose digest has been verified, with two classes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from fedkt.data.dataset import Dataset, assign_rows, split_rows
from fedkt.data.download import Progress, find_content


def load_libsvm(
    name: str,
    file: str,
    n_features: int,
    *,
    classes: tuple[str | int, str | int],
    origin: str,
    seed: int,
    data_dir: str | Path | None,
    progress: Progress | None,
) -> Dataset:
    """The rows of a LIBSVM file as a dense array, split by `seed`; the sign of a label says which class it is.

    The text is known to be well formed: it is read fast, and without words for what is wrong.
    """
    from sklearn.datasets import load_svmlight_file

    text = find_content(file, data_dir=data_dir, progress=progress)
    X, signs = load_svmlight_file(io.BytesIO(text.content), n_features=n_features, dtype=np.float64, zero_based=False)
    return assign_rows(
        name,
        X.toarray().astype(np.float32),
        (signs > 0).astype(np.int64),
        split_rows(len(signs), seed=seed),
        classes=classes,
        source=f"{origin}, {text.source}",
        feature_names=tuple(f"f{j}" for j in range(1, n_features + 1)),
    )
