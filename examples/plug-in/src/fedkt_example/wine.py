"""Wine recognition (Forina and others, 1988; UCI): 178 wines of three growers, told apart by 13 measurements."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkt.data import Dataset, KnownDataset
from fedkt.data.dataset import assign_rows, split_rows


def load_wine(*, seed: int, **_: Any) -> Dataset:
    """The wines, as scikit-learn brings them; half of them for the parties, a quarter each public and for the test."""
    from sklearn.datasets import load_wine as bundled

    wine = bundled()
    return assign_rows(
        "wine",
        wine.data.astype(np.float32),
        wine.target.astype(np.int64),
        split_rows(len(wine.target), seed=seed, held_out=0.5),
        classes=tuple(str(name) for name in wine.target_names),
        source="UCI Wine, as bundled with scikit-learn",
        feature_names=tuple(wine.feature_names),
    )


WINE = KnownDataset(load_wine, 3, "bagging", "wines of three growers: 178 rows, 3 classes, no download", "even")
