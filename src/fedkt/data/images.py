"""A party's own images as a table: an IDX file, or a folder of PNG or JPEG files.

Every image is a row of its pixels, 0 … 255, in columns that `image_shape` recognises. All images of a table have one
size and are all grey or all in colour; nothing is cropped, resized or converted, since every party would have to do it
alike.
"""

from __future__ import annotations

import hashlib
import struct
import unicodedata
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkt.data.bounds import check_growth, open_bytes
from fedkt.data.columns import Table, Values, check_size, printable, texts
from fedkt.data.pixels import Image, image_shape, pixel_names
from fedkt.errors import DataError

__all__ = ["folder_digest", "image_shape", "labels_file", "read_folder", "read_idx", "where_labels_lie"]

IDX = "idx3-ubyte"
"""How the names of IDX files of images end, as in train-images-idx3-ubyte."""
ENDINGS = (".png", ".jpg", ".jpeg")
CLUTTER = ("thumbs.db", "desktop.ini")
"""Files that a desktop leaves in a folder of images."""
CHANNELS = {"L": 1, "RGB": 3}
"""Pillow's names for the two kinds of image that are read: 8 bits of grey, 3 × 8 bits of colour."""


def read_idx(path: Path, label: str | None = None, n_features: int | None = None) -> Table:
    """The grey images of an IDX file, labelled where the file with its labels lies beside it."""
    pixels = _idx_array(path, 3)
    beside = labels_file(path)
    labels = None if beside is None else _idx_array(beside, 1)
    if labels is not None and len(labels) != len(pixels):
        raise DataError(f"{beside} has {len(labels):,} labels for the {len(pixels):,} images of {path}.")
    return _table(pixels.reshape(len(pixels), -1), (*pixels.shape[1:3], 1), labels, label, str(path))


def labels_file(path: Path) -> Path | None:
    """The file with the labels of an IDX file of images, packed or not; None if there is none."""
    if path.is_dir() or IDX not in path.name:
        return None
    name = _labels_name(path)
    other = name.removesuffix(".gz") if name.endswith(".gz") else f"{name}.gz"
    return next((path.with_name(each) for each in (name, other) if path.with_name(each).is_file()), None)


def where_labels_lie(path: Path) -> str | None:
    """Where the labels of images are looked for, in words; None for a file of another kind."""
    if path.is_dir():
        return "Put the images into folders named like their classes: <folder>/<class>/<image>.png."
    return f"Put its labels beside it, in {_labels_name(path)}." if IDX in path.name else None


def _labels_name(path: Path) -> str:
    return path.name.replace("images", "labels").replace("idx3", "idx1")


def _idx_array(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array in an IDX file of bytes with so many axes."""
    kind = "images" if axes == 3 else "labels"
    # Twice in memory: as they come, and column by column.
    with open_bytes(path, cost=2) as stream:
        start = stream.read(4 + 4 * axes)
        if start[:4] != bytes([0, 0, 8, axes]) or len(start) < 4 + 4 * axes:
            raise DataError(
                f"{path} is not an IDX file of {kind}: it begins with {start[:4].hex(' ') or 'nothing'}, expected "
                f"00 00 08 {axes:02x} (bytes in {axes} {'axes' if axes > 1 else 'axis'}) and their lengths."
            )
        shape = struct.unpack(f">{axes}I", start[4:])
        if 0 in shape:
            raise DataError(f"{path} has no {kind}: its shape is {' × '.join(map(str, shape))}.")
        size = int(np.prod(shape, dtype=object))
        check_size(shape[0], size // shape[0], str(path))
        content = stream.read(size + 1)
    if len(content) != size:
        least = "at least " if len(content) > size else ""
        raise DataError(
            f"{path} is damaged: {' × '.join(map(str, shape))} {kind} are {size:,} bytes, got {least}{len(content):,}."
        )
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def read_folder(folder: Path, label: str | None = None) -> Table:
    """The images in a folder in the order of their names, labelled by their folders where it has one for each class."""
    places = _image_files(folder)
    labelled = "/" in places[0]
    image: Image | None = None
    pixels = np.empty((0, 0), dtype=np.uint8)
    for row, place in enumerate(places):
        path = folder / place
        image, values = _read_image(path, image, folder / places[0], len(places))
        if not row:
            size = sum((folder / each).stat().st_size for each in places)
            check_growth(2 * len(places) * values.size, size, str(folder))
            pixels = np.empty((len(places), values.size), dtype=np.uint8)
        pixels[row] = values
    assert image is not None
    classes = texts(_spelling(place).partition("/")[0] for place in places) if labelled else None
    names = texts(_spelling(place).rpartition("/")[2] for place in places)
    return _table(pixels, image, classes, label, str(folder), texts(places), names)


def folder_digest(folder: Path) -> str:
    """SHA-256 of a folder of images: of their names and their bytes, whatever else a desktop left there."""
    digest = hashlib.sha256()
    for place in _image_files(folder):
        with (folder / place).open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        # The name's length keeps the end of one name apart from the beginning of the next.
        name = _spelling(place).encode()
        digest.update(struct.pack(">I", len(name)) + name + content)
    return digest.hexdigest()


def _image_files(folder: Path) -> list[str]:
    """The images in a folder as seen from it, sorted: all in it, or all in folders of it."""
    places: list[str] = []
    for path in folder.iterdir():
        if path.is_dir() and not path.name.startswith("."):
            places += [f"{path.name}/{each.name}" for each in path.iterdir() if not _clutter(each)]
        elif not _clutter(path):
            places.append(path.name)
    places.sort(key=_spelling)
    for place in places:
        if not place.lower().endswith(ENDINGS) or not (folder / place).is_file():
            raise DataError(
                f"{folder / place} is not a PNG or JPEG file. A folder of images has images and nothing else, or "
                "one folder of images for each class."
            )
        if not printable(place):
            raise DataError(f"{folder}: the name {place[:80]!r} has a character that cannot be printed. Rename it.")
    if not places:
        raise DataError(f"{folder} has no images. What is read: {', '.join(ENDINGS)}.")
    loose = [place for place in places if "/" not in place]
    if 0 < len(loose) < len(places):
        raise DataError(
            f"{folder} has images of its own ({loose[0]!r}) beside folders of images. Either every image lies in the "
            "folder of its class, or none does."
        )
    return places


def _spelling(place: str) -> str:
    """A name as every machine spells it: some write ë as one character, some as two."""
    return unicodedata.normalize("NFC", place)


def _clutter(path: Path) -> bool:
    """Whether a file is not the user's."""
    return path.name.startswith(".") or path.name.lower() in CLUTTER


def _read_image(path: Path, expected: Image | None, first: Path, n_images: int) -> tuple[Image, NDArray[np.uint8]]:
    """Shape and pixels of one image; looked at before it is unpacked, since a small file can claim any size."""
    try:
        from PIL import Image as pillow
    except ImportError as reason:
        raise DataError(f"{path} is an image, and reading it needs Pillow: pip install 'fedkt[images]'") from reason
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            opened = pillow.open(path, formats=("PNG", "JPEG"))
    except (pillow.DecompressionBombWarning, pillow.DecompressionBombError) as reason:
        raise DataError(f"{path} is too large an image: {reason}.") from reason
    # A decoder meets damage in many ways, each with an exception of its own.
    except Exception as reason:
        raise DataError(f"{path} is not a PNG or JPEG image that can be read: {reason}.") from reason
    with opened:
        if opened.mode not in CHANNELS:
            raise DataError(
                f"{path} has pixels of kind {opened.mode!r}. Save it as 8-bit grey or as RGB, without transparency."
            )
        shape = opened.height, opened.width, CHANNELS[opened.mode]
        if expected is None:
            check_size(n_images, shape[0] * shape[1] * shape[2], str(first.parent))
        elif shape != expected:
            raise DataError(
                f"{path} is {_in_words(shape)}, but {first.name} is {_in_words(expected)}. All images have one size "
                "and are all grey or all in colour."
            )
        try:
            return shape, np.asarray(opened, dtype=np.uint8).reshape(-1)
        except Exception as reason:
            raise DataError(f"{path} is damaged: {reason}.") from reason


def _in_words(image: Image) -> str:
    """Size and kind of an image: "28 × 28, grey"."""
    return f"{image[0]} × {image[1]}, {'grey' if image[2] == 1 else 'in colour'}"


def _table(
    pixels: NDArray[np.uint8],
    image: Image,
    labels: Values | None,
    label: str | None,
    source: str,
    files: Values | None = None,
    ids: Values | None = None,
) -> Table:
    """The table of images given as rows of pixels."""
    # A column at a time is how a schema reads them.
    by_column = np.ascontiguousarray(pixels.T)
    columns: dict[str, Values] = dict(zip(pixel_names(image), by_column, strict=True))
    if labels is not None:
        if (label or "label") in columns:
            raise DataError(f"{source}: the label cannot be called {label!r}, the name of a pixel.")
        columns[label or "label"] = labels
    return Table(columns, source, files=files, ids=ids)
