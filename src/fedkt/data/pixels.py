"""Rows that are images: the names of their columns, their numbers, and datasets made of them.

Inside a federation an image is a row like any other: its pixels in the order height, width, channel. What makes rows
images is their shape, which is public and which the names of the columns spell out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedkt.data.dataset import Dataset, split_rows

Image = tuple[int, int, int]
"""Height, width and channels."""

ROWS_AT_A_TIME = 4_096
"""Rows normalised in one go: enough to be fast, too few for a second copy of the images to matter."""


def pixel_names(image: Image) -> tuple[str, ...]:
    """The names of an image's columns: "pixel 0,0", "pixel 0,1" … or, in colour, "pixel 0,0,0", "pixel 0,0,1" …."""
    height, width, channels = image
    places = [f"pixel {row},{column}" for row in range(height) for column in range(width)]
    return tuple(places) if channels == 1 else tuple(f"{each},{c}" for each in places for c in range(channels))


def image_shape(feature_names: Sequence[str]) -> Image | None:
    """Height, width and channels of rows with these columns; None unless they are exactly an image's pixels."""
    last = re.fullmatch(r"pixel ([0-9]{1,6}),([0-9]{1,6})(?:,([0-9]))?", feature_names[-1]) if feature_names else None
    if last is None:
        return None
    image = int(last[1]) + 1, int(last[2]) + 1, int(last[3] or 0) + 1
    # Sizes first: the last name alone could ask for a list of any length.
    if image[0] * image[1] * image[2] != len(feature_names) or pixel_names(image) != tuple(feature_names):
        return None
    return image


def normalise(
    pixels: NDArray[np.uint8],
    mean: Sequence[float],
    spread: Sequence[float],
    *,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Images (row, height, width, channel) as rows of (value / 255 − mean) / spread, by channel; written to `out`."""
    n_rows, height, width, _ = pixels.shape
    centre = np.tile(np.asarray(mean), height * width)
    scale = np.tile(np.asarray(spread), height * width)
    factor, shift = (1 / (255 * scale)).astype(np.float32), (centre / scale).astype(np.float32)
    rows = np.empty((n_rows, len(factor)), dtype=np.float32) if out is None else out
    for start in range(0, n_rows, ROWS_AT_A_TIME):
        some = rows[start : start + ROWS_AT_A_TIME]
        np.multiply(pixels[start : start + ROWS_AT_A_TIME].reshape(len(some), -1), factor, out=some)
        some -= shift
    return rows


def image_dataset(
    name: str,
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    mean: Sequence[float],
    spread: Sequence[float],
    source: str,
    seed: int,
) -> Dataset:
    """Images of digits: rows `X` of the parties, and held-out images halved at random by `seed`, then normalised."""
    rows = split_rows(len(labels), seed=seed, held_out=1.0)
    height, width, channels = images.shape[1:]
    return Dataset(
        name=name,
        X=X,
        y=y,
        X_public=normalise(images[rows.public], mean, spread),
        y_public=labels[rows.public],
        X_test=normalise(images[rows.test], mean, spread),
        y_test=labels[rows.test],
        classes=tuple(range(10)),
        groups=None,
        source=source,
        feature_names=pixel_names((height, width, channels)),
        image=(height, width, channels),
    )
