"""SVHN, cropped digits (Netzer et al. 2011): 32 × 32 colour images of house numbers. For non-commercial use only.

The paper trained on the parts train and extra together, 604,388 rows: `load_svhn_extra`. Extra is a file of 1.3 GB, so
`load_svhn` does with the 73,257 rows of train, and its results are not like for like with the paper's. The npz files
were cut anew from the full photos: of the 288 official crops they could be compared with, 285 are the same to the bit
and 3 differ in a few values by 1.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkt.data.dataset import Dataset
from fedkt.data.download import Progress, VerifiedFile, find_content
from fedkt.data.pixels import image_dataset, normalise
from fedkt.data.sources import SVHN_ROWS

IMAGE = (32, 32, 3)
MEAN, SPREAD = (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)
"""Of the train part's pixels as numbers from 0 to 1, by channel."""
PAPER_ROWS = 604_388


def load_svhn(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """SVHN: the 73,257 rows of train for the parties, the 26,032 of test halved into public and test."""
    return _load("svhn", ("train",), seed, data_dir, progress)


def load_svhn_extra(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """SVHN as the paper used it: train and extra for the parties, 604,388 rows, which take 7.4 GB of memory."""
    return _load("svhn-extra", ("train", "extra"), seed, data_dir, progress)


def _load(
    name: str, parts: Sequence[str], seed: int, data_dir: str | Path | None, progress: Progress | None
) -> Dataset:
    """SVHN with the given parts, in this order, for the parties."""
    test, y_test, *words = _part("test", data_dir, progress)
    n_rows = sum(SVHN_ROWS[part] for part in parts)
    # One part after the other into its place: as float32 the rows are the largest thing by far, and must not be twice.
    X = np.empty((n_rows, int(np.prod(IMAGE))), dtype=np.float32)
    y = np.empty(n_rows, dtype=np.int64)
    start = 0
    for part in parts:
        stop = start + SVHN_ROWS[part]
        pixels, y[start:stop], source = _part(part, data_dir, progress)
        normalise(pixels, MEAN, SPREAD, out=X[start:stop])
        del pixels
        words.append(source)
        start = stop
    scope = f"{' and '.join(parts)} for the parties ({n_rows:,} rows"
    if n_rows != PAPER_ROWS:
        scope += f"; the paper trained on train and extra, {PAPER_ROWS:,}"
    return image_dataset(
        name,
        X,
        y,
        test,
        y_test,
        mean=MEAN,
        spread=SPREAD,
        source=f"SVHN cropped digits, {scope}), test halved into public and test rows, {', '.join(words)}",
        seed=seed,
    )


def _part(
    part: str, data_dir: str | Path | None, progress: Progress | None
) -> tuple[NDArray[np.uint8], NDArray[np.int64], str]:
    """Images (row, height, width, channel), digits and source of one part, from our npz or the official file."""
    names = (f"{part}_32x32.mat",) if part == "extra" else (f"svhn_{part}.npz", f"{part}_32x32.mat")
    file = find_content(*names, data_dir=data_dir, progress=progress)
    pixels, digits = _from_matlab(file) if file.name.endswith(".mat") else _from_npz(file)
    return pixels, digits.astype(np.int64), file.source


def _from_npz(file: VerifiedFile) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and digits of our npz, as `svhn_from_npz` orders them."""
    content = np.frombuffer(file.content, dtype=np.uint8)
    n_rows = len(content) // (int(np.prod(IMAGE)) + 1)
    return content[:-n_rows].reshape(n_rows, *IMAGE), content[-n_rows:]


def _from_matlab(file: VerifiedFile) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and digits of an official MATLAB file, where rows come last and 10 stands for the digit 0."""
    from scipy.io import loadmat

    arrays = loadmat(io.BytesIO(file.content), variable_names=["X", "y"])
    return arrays["X"].transpose(3, 0, 1, 2), arrays["y"].ravel() % 10
