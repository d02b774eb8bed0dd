"""The tables that `final_quality.py` is cut from: real ones, one that scikit-learn brings, and one that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkt.data import load
from fedkt.data.dataset import Dataset

ROWS = {"parties": 4_000, "public": 1_000, "test": 4_000}
"""As many rows of a large table are used; ten seeds of every family would take days otherwise."""
PARTS = (0.6, 0.2)
"""Of a table that nobody has split: the parties' share and the public one; the rest is to test."""
MADE_UP = {"n_samples": 6_000, "n_features": 20, "n_informative": 8, "n_redundant": 4, "n_classes": 4}
MADE_UP_SHARES = (0.70, 0.20, 0.07, 0.03)


def real_table(name: str, data_dir: Path | None, seed: int) -> Dataset:
    """A dataset of fedkt's, some of its rows."""
    data = load(name, seed=seed, data_dir=data_dir)
    assert data.y_public is not None
    rng = np.random.default_rng([seed, 19])
    own, public, test = (
        np.sort(rng.permutation(len(y))[:most])
        for y, most in zip((data.y, data.y_public, data.y_test), ROWS.values(), strict=True)
    )
    return replace(
        data,
        X=data.X[own],
        y=data.y[own],
        X_public=data.X_public[public],
        y_public=data.y_public[public],
        X_test=data.X_test[test],
        y_test=data.y_test[test],
        groups=None if data.groups is None else data.groups[own],
    )


def split_table(name: str, X: NDArray[np.float32], y: NDArray[np.int64], seed: int) -> Dataset:
    """Rows dealt at random to the parties, the public and the test."""
    order = np.random.default_rng([seed, 19]).permutation(len(y))
    own, public, test = np.split(order, (np.cumsum(PARTS) * len(y)).astype(int))
    classes = tuple(range(int(y.max()) + 1))
    names = tuple(f"x{place}" for place in range(X.shape[1]))
    return Dataset(name, X[own], y[own], X[public], y[public], X[test], y[test], classes, None, "scikit-learn", names)


def breast_cancer(seed: int) -> Dataset:
    """569 tumours, 30 measures, two classes."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return split_table("breast cancer", X.astype(np.float32), y.astype(np.int64), seed)


def made_up(seed: int) -> Dataset:
    """Four classes, the rarest on 3 % of the rows, some labels wrong."""
    from sklearn.datasets import make_classification

    X, y = make_classification(**MADE_UP, weights=list(MADE_UP_SHARES), flip_y=0.05, random_state=seed)
    return split_table("made-up", X.astype(np.float32), y.astype(np.int64), seed)


def quality_tables(data_dir: Path | None) -> dict[str, tuple[Callable[[int], Dataset], int]]:
    """How each table is had for a seed, and its parties."""
    return {
        "adult": (partial(real_table, "adult", data_dir), 10),
        "cod-rna": (partial(real_table, "cod-rna", data_dir), 10),
        "heart": (partial(real_table, "heart", data_dir), 4),
        "breast cancer": (breast_cancer, 5),
        "made-up": (made_up, 10),
    }
