"""A party's own NPZ or LIBSVM file: tables of numbers whose columns are numbered rather than named."""

from __future__ import annotations

import math
import struct
import zipfile
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from fedkt.data.bounds import Lines, check_growth, open_text, share
from fedkt.data.columns import MAX_COLUMNS, Table, Values, check_names, check_size, texts
from fedkt.errors import DataError

BLOCK_BYTES = 2**22
"""Bytes of an array that are unpacked at a time."""
MAX_NAME_BYTES = 2_000
"""Bytes of a column's name in an array: 500 characters of four."""
MAX_LABEL_BYTES = 4_000


@dataclass(frozen=True)
class _Member:
    """An array in an NPZ file, of which nothing but the head was read."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]
    start: int
    """Where the numbers begin."""


def read_npz(path: Path, label: str | None = None, n_features: int | None = None) -> Table:
    """The table in an NPZ file with arrays X (rows, columns) and, where there are any, y, names and ids."""
    try:
        with path.open("rb") as stream:
            if stream.read(2) != b"PK":
                raise ValueError("it does not begin as one does")
            with zipfile.ZipFile(stream) as archive:
                X, y, names, ids = (_head(archive, name) for name in ("X", "y", "names", "ids"))
                _check_heads(path, X, names, {"label": y, "identity": ids})
                assert X is not None
                rows = _matrix(archive, X)
                labels = None if y is None else _array(archive, y)
                header = None if names is None else _array(archive, names)
                identities = None if ids is None else _as_texts(_array(archive, ids))
    except DataError:
        raise
    # A damaged or encrypted archive shows in many ways, each with an exception of its own.
    except (ValueError, zipfile.BadZipFile, MemoryError, AttributeError, RuntimeError, struct.error, LookupError) as e:
        why = "an array holds Python objects" if "pickle" in str(e) else str(e)
        raise DataError(
            f"{path} is not an NPZ file of plain arrays: {why.rstrip('.')}. Save numbers and texts with "
            "np.savez(file, X=rows, y=labels, names=column_names)."
        ) from e
    column_names = [f"x{j}" for j in range(len(rows))] if header is None else [str(name) for name in header]
    check_names(column_names, str(path), None)
    columns: dict[str, Values] = dict(zip(column_names, rows, strict=True))
    if labels is not None:
        if (label or "label") in columns:
            raise DataError(f"{path}: the label column {label or 'label'!r} is also the name of a column of X.")
        columns[label or "label"] = labels.astype(np.float64) if labels.dtype.kind in "iuf" else _as_texts(labels)
    return Table(columns, str(path), ids=identities)


def _head(archive: zipfile.ZipFile, name: str) -> _Member | None:
    """Shape and type of the named array; None if there is no such array."""
    members = {info.filename: info for info in archive.infolist()}
    info = members.get(f"{name}.npy", members.get(name))
    if info is None:
        return None
    with archive.open(info) as stream:
        # The other versions may have heads of any length, and only records of named fields need them.
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{name} is no plain array")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
        start = stream.tell()
    if dtype.hasobject:
        raise ValueError(f"an array holds Python objects: {name}")
    if min(shape, default=0) < 0 or info.file_size != start + math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} has {info.file_size - start:,} bytes, which {dtype} of shape {shape} has not")
    return _Member(info, shape, by_column, dtype, start)


def _check_heads(path: Path, X: _Member | None, names: _Member | None, by_row: dict[str, _Member | None]) -> None:
    """Refuses arrays that are no table, or one too large, before any of their content is unpacked."""
    if X is None:
        raise DataError(f"{path} has no array 'X'. Save it with np.savez(file, X=rows, y=labels, names=column_names).")
    if len(X.shape) != 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        raise DataError(
            f"{path}: X has one row per example and one column per number, got {X.dtype} of shape {X.shape}."
        )
    n_rows, width = X.shape
    check_size(n_rows, width, str(path))
    if names is not None and math.prod(names.shape) != width:
        raise DataError(f"{path}: {math.prod(names.shape)} names for the {width} columns of X.")
    if names is not None and (names.dtype.kind not in "biufUS" or names.dtype.itemsize > MAX_NAME_BYTES):
        raise DataError(f"{path}: names are texts of at most {MAX_NAME_BYTES // 4} characters, got {names.dtype}.")
    each = width * _storage_type(X.dtype).itemsize
    for what, member in by_row.items():
        if member is None:
            continue
        if member.shape != (n_rows,):
            raise DataError(f"{path}: there is one {what} per row, got shape {member.shape} for {n_rows} rows.")
        if member.dtype.kind not in "biufUSmM" or member.dtype.itemsize > MAX_LABEL_BYTES:
            raise DataError(
                f"{path}: a {what} is a number or a text of at most {MAX_LABEL_BYTES // 4:,} characters, got "
                f"{member.dtype}."
            )
        each += member.dtype.itemsize + 16
    check_growth(n_rows * each, path.stat().st_size, str(path))


def _storage_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which numbers are kept: their own where it is small."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    return np.dtype(np.float64) if dtype.itemsize > 4 else dtype.newbyteorder("=")


def _matrix(archive: zipfile.ZipFile, member: _Member) -> Values:
    """The matrix as (columns, rows), unpacked into its place."""
    n_rows, width = member.shape
    matrix = np.empty((width, n_rows), dtype=_storage_type(member.dtype))
    step = 1 if member.by_column else width
    n_steps, step_bytes = math.prod(member.shape) // step, step * member.dtype.itemsize
    n_block = max(1, BLOCK_BYTES // step_bytes)
    flat = matrix.reshape(-1)
    with archive.open(member.info) as stream:
        stream.read(member.start)
        for start in range(0, n_steps, n_block):
            stop = min(start + n_block, n_steps)
            block = np.frombuffer(_bytes(stream, (stop - start) * step_bytes), dtype=member.dtype)
            if member.by_column:
                flat[start:stop] = block
            else:
                matrix[:, start:stop] = block.reshape(-1, width).T
        _at_end(stream)
    return matrix


def _array(archive: zipfile.ZipFile, member: _Member) -> Values:
    """The array as a list of its values."""
    size = math.prod(member.shape) * member.dtype.itemsize
    with archive.open(member.info) as stream:
        stream.read(member.start)
        content = _bytes(stream, size)
        _at_end(stream)
    return np.frombuffer(content, dtype=member.dtype).reshape(-1)


def _bytes(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        raise ValueError("an array is cut short")
    return content


def _at_end(stream: IO[bytes]) -> None:
    """Only the attempt to read on compares the checksum."""
    if stream.read(1):
        raise ValueError("an array is followed by something else")


def _as_texts(labels: Values) -> Values:
    """Labels as texts, equal ones once."""
    column = np.empty(len(labels), dtype=object)
    seen: dict[str, str] = {}
    for start in range(0, len(labels), 2**16):
        some = labels[start : start + 2**16].tolist()
        column[start : start + len(some)] = share(map(str, some), seen)
    return column


def read_libsvm(path: Path, label: str | None = None, n_features: int | None = None, least: int = 0) -> Table:
    """The table in a LIBSVM file ("label index:value …" a line), as columns f1 … fd and the label."""
    labels: list[str] = []
    lines: list[int] = []
    places, indices, values = array("q"), array("q"), array("d")
    seen: dict[str, str] = {}
    most = MAX_COLUMNS if n_features is None else n_features
    with open_text(path) as stream:
        rows = Lines(stream, str(path))
        for number, line in enumerate(rows, start=1):
            rows.next_row()
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) > most + 1:
                raise DataError(
                    f"{path}, line {number}: {len(words) - 1:,} features, more than the {most:,} there are."
                )
            pairs = [_libsvm_pair(word, f"{path}, line {number}", most) for word in words[1:]]
            if ":" in words[0]:
                raise DataError(f"{path}, line {number}: starts with {words[0]!r}; a line starts with its label.")
            if len({index for index, _ in pairs}) != len(pairs):
                raise DataError(f"{path}, line {number}: a feature occurs twice.")
            places.extend([len(labels)] * len(pairs))
            indices.extend(index - 1 for index, _ in pairs)
            values.extend(value for _, value in pairs)
            labels += share(words[:1], seen)
            lines.append(number)
    if not labels:
        raise DataError(f"{path} has no rows.")
    width = n_features if n_features is not None else max(least, max(indices, default=-1) + 1)
    if width < 1:
        raise DataError(f"{path} has labels but no features.")
    check_size(len(labels), width, str(path))
    check_growth(len(labels) * width * 8, path.stat().st_size, str(path))
    X = np.zeros((width, len(labels)))
    X[np.frombuffer(indices, np.int64), np.frombuffer(places, np.int64)] = np.frombuffer(values, np.float64)
    columns: dict[str, Values] = {f"f{j + 1}": X[j] for j in range(width)}
    if (label or "label") in columns:
        raise DataError(f"{path}: the label cannot be called {label!r}, the name of a feature.")
    columns[label or "label"] = texts(labels)
    return Table(columns, str(path), np.array(lines, dtype=np.int64))


def _libsvm_pair(word: str, place: str, most: int) -> tuple[int, float]:
    """Feature number and value of "index:value"."""
    index, colon, value = word.partition(":")
    try:
        # int() and float() would also take 1_000.
        if not colon or "_" in word:
            raise ValueError(word)
        pair = int(index), float(value)
    except ValueError as reason:
        raise DataError(f"{place}: {word[:80]!r} is not index:value.") from reason
    if not 1 <= pair[0] <= most:
        raise DataError(f"{place}: feature {index[:20]} is outside 1 … {most}. Features are numbered from 1.")
    return pair
