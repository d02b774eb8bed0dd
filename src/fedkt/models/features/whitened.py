"""The main directions of public rows, whitened: few features, each as wide as any other, and uncorrelated.

What a vector of fixed length can say of many features is little of each. So where a whole party has one vector, these
are the columns alone, or what filters say of images, and no random waves of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkt.models.base import Image
from fedkt.models.exchange import float_rows
from fedkt.models.features.feature_map import BLOCK_ROWS, FeatureMap, Layer, finish_map, turn_of
from fedkt.models.features.images import patches_layer
from fedkt.models.features.tables import scale_of
from fedkt.system.threads import one_thread


def whitened_map(public: Any, image: Image | None, *, seed: int, width: int) -> FeatureMap:
    """φ with so many main directions of the public rows, in falling order; times its limit they have variance 1."""
    columns = int(np.shape(public)[1] if image is None else np.prod(image))
    rows = float_rows(public, columns)
    with one_thread():
        layer: Layer = scale_of(rows) if image is None else patches_layer(rows, image, seed=seed)
        blocks = [layer(rows[start : start + BLOCK_ROWS]) for start in range(0, len(rows), BLOCK_ROWS)]
        numbers = np.concatenate(blocks)
        turn = turn_of(numbers, width, 0.5)
        return finish_map(columns, turn(numbers), (layer, turn), quantile=1.0)
