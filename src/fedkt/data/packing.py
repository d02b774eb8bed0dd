"""Files as the content they stand for: raw files joined into our table, arrays back into bytes.

What a function here returns has one digest however the same data came: see `fedkt.data.sources`. A ValueError says in
words why a file cannot be it.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

HEART_SITES = ("cleveland", "hungarian", "switzerland", "va_long_beach")

MNIST_ARRAYS = {"x_train": (60_000, 28, 28), "y_train": (60_000,), "x_test": (10_000, 28, 28), "y_test": (10_000,)}
"""The arrays of mnist.npz in the order of the public source's four files."""


def join_plain(parts: Sequence[bytes]) -> bytes:
    """The parts one after the other, unchanged."""
    return b"".join(parts)


def join_adult(parts: Sequence[bytes]) -> bytes:
    """UCI's adult.data and adult.test as one CSV with a header and a column `split`."""
    lines = [
        "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
        "capital-gain,capital-loss,hours-per-week,native-country,income,split"
    ]
    for split, part in zip(("train", "test"), parts, strict=True):
        for line in part.decode("ascii").splitlines():
            # adult.test opens with a comment, and its labels end in a dot.
            if line and not line.startswith("|"):
                lines.append(f"{line.replace(', ', ',').removesuffix('.')},{split}")
    return ("\n".join(lines) + "\n").encode("ascii")


def join_heart(parts: Sequence[bytes]) -> bytes:
    """UCI's four processed heart-disease files as one CSV with a header, a column `site` and empty missing values."""
    lines = ["site,age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,num"]
    oldpeak = 9
    for site, part in zip(HEART_SITES, parts, strict=True):
        for line in part.decode("ascii").splitlines():
            # The files disagree about 63.0 and 63, 0.7 and .7; only oldpeak has decimals that mean something.
            values = [
                "" if text == "?" else repr(float(text)) if place == oldpeak else f"{float(text):g}"
                for place, text in enumerate(line.strip().split(","))
            ]
            if line.strip():
                lines.append(",".join([site, *values]))
    return ("\n".join(lines) + "\n").encode("ascii")


def idx_from_mnist_npz(file: bytes) -> bytes:
    """The public source's four idx files, unpacked and one after the other, from the arrays of mnist.npz."""
    arrays = _byte_arrays(file, MNIST_ARRAYS)
    parts: list[bytes] = []
    for name, shape in MNIST_ARRAYS.items():
        # An idx file begins with its type (8: bytes), its number of axes and their lengths.
        parts += [struct.pack(f">4B{len(shape)}I", 0, 0, 8, len(shape), *shape), arrays[name].tobytes()]
    return b"".join(parts)


def svhn_from_npz(file: bytes, n_rows: int) -> bytes:
    """The pixels (row, height, width, channel) and then the digits of an SVHN part from its npz.

    The npz holds the planes R − G, G and B − G, each as the differences along both axes modulo 256.
    """
    arrays = _byte_arrays(file, {"x_delta": (3, n_rows, 32, 32), "y": (n_rows,)})
    planes = arrays["x_delta"]
    # A sum along the height row by row: for bytes a good deal faster than cumsum.
    for row in range(1, 32):
        planes[:, :, row] += planes[:, :, row - 1]
    np.cumsum(planes, axis=-1, dtype=np.uint8, out=planes)
    planes[0] += planes[1]
    planes[2] += planes[1]
    pixels = np.empty((n_rows, 32, 32, 3), dtype=np.uint8)
    for channel, plane in enumerate(planes):
        pixels[..., channel] = plane
    return b"".join([pixels.data, arrays["y"].data])


def _byte_arrays(file: bytes, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[np.uint8]]:
    """The named arrays of bytes in an npz; refused if one is absent or of another form."""
    try:
        # Before anything is unpacked: an npz may claim any size.
        with zipfile.ZipFile(io.BytesIO(file)) as archive:
            sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
        for name, shape in shapes.items():
            if not 0 < sizes.get(name, 0) <= int(np.prod(shape)) + 4_096:
                raise ValueError(f"it has no array {name!r} of shape {shape}")
        with np.load(io.BytesIO(file), allow_pickle=False) as archived:
            arrays = {name: archived[name] for name in shapes}
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, MemoryError, NotImplementedError) as reason:
        raise ValueError(f"it is no npz that can be read: {reason}") from reason
    for name, shape in shapes.items():
        if arrays[name].dtype != np.uint8 or arrays[name].shape != shape:
            raise ValueError(f"{name} is {arrays[name].dtype} of shape {arrays[name].shape}, not uint8 of {shape}")
    return arrays
