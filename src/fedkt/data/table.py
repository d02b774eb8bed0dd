"""A party's own file or folder as a table: named columns, and for every row the line it stood on.

CSV is read here; Parquet in `parquet`, NPZ and LIBSVM in `matrices`, images in `images`.
"""

from __future__ import annotations

import csv
import zlib
from array import array
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from fedkt.data.bounds import Lines, open_text, share
from fedkt.data.columns import (
    MAX_COLUMNS,
    MAX_VALUES,
    Table,
    Values,
    check_names,
    check_size,
    printable,
)
from fedkt.data.images import IDX, read_folder, read_idx
from fedkt.data.matrices import read_libsvm, read_npz
from fedkt.data.parquet import read_parquet
from fedkt.errors import DataError

__all__ = ["MAX_COLUMNS", "MAX_VALUES", "READERS", "Table", "names_its_label", "parse_csv", "printable", "read_table"]

BLOCK_VALUES = 2**18
"""Values of a CSV file that are held as lists; the others lie in arrays."""


class Rows(Protocol):
    """What a reader of the csv module is."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...


def read_table(
    path: str | Path, *, label: str | None = None, n_features: int | None = None, least_features: int = 0
) -> Table:
    """The table in a CSV, Parquet, NPZ, LIBSVM or IDX file, told apart by the name's ending, or in a folder of images.

    `label` is the name of the label column; files that do not name it call it so ("label" otherwise).
    `n_features` is how many features a LIBSVM file has, since trailing ones may never occur in it; `least_features` is
    how many it has at least.
    """
    path = Path(path)
    ending = _ending(path)
    if not path.is_dir() and ending not in READERS:
        raise DataError(
            f"{path} has the ending {ending or '(none)'}, which is not read. What works: {', '.join(READERS)}, or a "
            "folder of PNG or JPEG images."
            if path.exists()
            else f"{path} is not a file, nor a folder. Check the path."
        )
    if not path.is_dir() and not path.is_file():
        raise DataError(f"{path} is not a file. Check the path.")
    try:
        if path.is_dir():
            return read_folder(path, label)
        if READERS[ending] is read_libsvm:
            return read_libsvm(path, label, n_features, least_features)
        return READERS[ending](path, label, n_features)
    except UnicodeDecodeError as reason:
        raise DataError(f"{path} is not UTF-8 text ({reason}). Save it as UTF-8.") from reason
    except (OSError, EOFError, zlib.error) as reason:
        raise DataError(f"{path} cannot be read: {reason}.") from reason


def names_its_label(path: str | Path) -> bool:
    """Whether a file of this kind says itself which column is the label's; the others take the name we give."""
    path = Path(path)
    return not path.is_dir() and READERS.get(_ending(path)) not in (read_npz, read_libsvm, read_idx)


def _ending(path: Path) -> str:
    """What tells how a file is read: the end of its name, with the one before it where it is packed."""
    name = path.name.lower()
    for each in (IDX, f"{IDX}.gz"):
        if name.endswith(each):
            return each
    return "".join(path.suffixes[-2:]).lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def read_csv(path: Path, label: str | None = None, n_features: int | None = None) -> Table:
    """The table in a CSV file whose first line names the columns; comma, semicolon or tab, UTF-8."""
    with open_text(path) as stream:
        return parse_csv(stream, str(path), label)


def parse_csv(stream: IO[str], source: str, label: str | None = None) -> Table:
    """The table in CSV text whose first line names the columns."""
    lines = Lines(stream, source)
    first = next(lines, "")
    if first and not first.strip():
        raise DataError(f"{source} starts with an empty line; the first line of a CSV file names the columns.")
    if not first:
        raise DataError(f"{source} is empty; a CSV file starts with a line that names the columns.")
    try:
        delimiter = max(",;\t", key=lambda each: len(next(csv.reader([first], delimiter=each))))
        # One reader for header and rows: a line break inside quotes belongs to the name or value it stands in.
        reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
        names = [name.strip() for name in next(reader)]
    except csv.Error as reason:
        raise DataError(f"{source}, line 1: {reason}.") from reason
    # A forgotten header would otherwise turn the first example into column names.
    if all(_is_number(name) for name in names):
        raise DataError(
            f"{source}: the first line ({', '.join(names[:5])} …) looks like data; it has to name the columns."
        )
    check_names(names, source, label)
    places = array("q")
    blocks = list(_blocks(reader, lines, len(names), source, places))
    if not blocks:
        raise DataError(f"{source} has a header but no rows.")
    values = np.empty((len(names), len(places)), dtype=object)
    stop = len(places)
    # From the last block on, each is let go once its values are in their place.
    while blocks:
        block = blocks.pop()
        values[:, stop - len(block) : stop] = block.T
        stop -= len(block)
    return Table(dict(zip(names, values, strict=True)), source, np.frombuffer(places, dtype=np.int64))


def _blocks(reader: Rows, lines: Lines, width: int, source: str, places: array[int]) -> Iterator[Values]:
    """The rows of a CSV file, some at a time; the line each starts on is added to `places`."""
    most = max(1, BLOCK_VALUES // width)
    rows: list[list[str]] = []
    seen: dict[str, str] = {}
    start = reader.line_num + 1
    lines.next_row()
    try:
        for values in reader:
            lines.next_row()
            if values:
                if len(values) != width:
                    raise DataError(
                        f"{source}, line {start}: {len(values)} values, but the header names {width} columns. "
                        "Quote values that contain the delimiter."
                    )
                rows.append(share(values, seen))
                places.append(start)
                if len(rows) == most:
                    check_size(len(places), width, source)
                    yield np.array(rows, dtype=object)
                    rows.clear()
            start = reader.line_num + 1
    except csv.Error as reason:
        raise DataError(f"{source}, line {start}: {reason}.") from reason
    if rows:
        yield np.array(rows, dtype=object)


Reader = Callable[[Path, str | None, int | None], Table]
READERS: dict[str, Reader] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".libsvm": read_libsvm,
    ".svm": read_libsvm,
    ".txt": read_libsvm,
    IDX: read_idx,
    f"{IDX}.gz": read_idx,
}
"""How a file is read, by the ending of its name."""


def _is_number(text: str) -> bool:
    """Whether text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
