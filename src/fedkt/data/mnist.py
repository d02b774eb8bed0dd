"""MNIST (LeCun, Cortes, Burges 1998): 28 × 28 grey images of handwritten digits.

The paper's table says 50,000 training rows; its experiments used all 60,000, as here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkt.data.dataset import Dataset
from fedkt.data.download import Progress, find_content
from fedkt.data.packing import MNIST_ARRAYS
from fedkt.data.pixels import image_dataset, normalise

MEAN, SPREAD = (0.1307,), (0.3081,)
"""Of the training part's pixels as numbers from 0 to 1."""


def load_mnist(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """MNIST: all 60,000 training rows for the parties, the 10,000 test rows halved into public and test."""
    file = find_content("mnist", data_dir=data_dir, progress=progress)
    arrays: dict[str, NDArray[np.uint8]] = {}
    start = 0
    for name, shape in MNIST_ARRAYS.items():
        start += 4 + 4 * len(shape)
        size = int(np.prod(shape))
        arrays[name] = np.frombuffer(file.content, dtype=np.uint8, count=size, offset=start).reshape(shape)
        start += size
    return image_dataset(
        "mnist",
        normalise(arrays["x_train"][..., np.newaxis], MEAN, SPREAD),
        arrays["y_train"].astype(np.int64),
        arrays["x_test"][..., np.newaxis],
        arrays["y_test"].astype(np.int64),
        mean=MEAN,
        spread=SPREAD,
        source=f"MNIST, training part for the parties, test part halved into public and test rows, {file.source}",
        seed=seed,
    )
