"""A party's own NPZ or LIBSVM file: tables of numbers whose columns are numbered rather than named."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from fedkt.data.columns import MAX_COLUMNS, Table, Values, check_names, check_size, open_text, texts
from fedkt.errors import DataError


def read_npz(path: Path, label: str | None = None, n_features: int | None = None) -> Table:
    """The table in an NPZ file with arrays X (rows, columns) and, where there are any, y and names."""
    try:
        with path.open("rb") as stream:
            # numpy takes anything else for a pickle, and advises to load it.
            if stream.read(2) != b"PK":
                raise ValueError("it does not begin as one does")
            stream.seek(0)
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            arrays = {name: file[name] for name in ("X", "y", "names") if name in file.files}
    except (ValueError, zipfile.BadZipFile, MemoryError, AttributeError) as reason:
        why = "an array holds Python objects" if "pickle" in str(reason) else str(reason)
        raise DataError(
            f"{path} is not an NPZ file of plain arrays: {why.rstrip('.')}. Save numbers and texts with "
            "np.savez(file, X=rows, y=labels, names=column_names)."
        ) from reason
    if "X" not in arrays:
        raise DataError(f"{path} has no array 'X'. Save it with np.savez(file, X=rows, y=labels, names=column_names).")
    X = arrays["X"]
    if X.ndim != 2 or X.dtype.kind not in "biuf" or not X.size:
        raise DataError(
            f"{path}: X has one row per example and one column per number, got {X.dtype} of shape {X.shape}."
        )
    check_size(X.shape[0], X.shape[1], str(path))
    names = (
        [str(name) for name in arrays["names"].ravel()] if "names" in arrays else [f"x{j}" for j in range(X.shape[1])]
    )
    if len(names) != X.shape[1]:
        raise DataError(f"{path}: {len(names)} names for the {X.shape[1]} columns of X.")
    check_names(names, str(path), None)
    columns: dict[str, Values] = {name: X[:, j].astype(np.float64) for j, name in enumerate(names)}
    if "y" in arrays:
        y = arrays["y"]
        if y.shape != (len(X),):
            raise DataError(f"{path}: y has one label per row, got shape {y.shape} for {len(X)} rows.")
        if (label or "label") in columns:
            raise DataError(f"{path}: the label column {label or 'label'!r} is also the name of a column of X.")
        columns[label or "label"] = y.astype(np.float64) if y.dtype.kind in "iuf" else texts(map(str, y.tolist()))
    return Table(columns, str(path))


def read_libsvm(path: Path, label: str | None = None, n_features: int | None = None, least: int = 0) -> Table:
    """The table in a LIBSVM file ("label index:value …" a line), as columns f1 … fd and the label."""
    labels: list[str] = []
    lines: list[int] = []
    places: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    most = MAX_COLUMNS if n_features is None else n_features
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            found = [_libsvm_pair(word, f"{path}, line {number}", most) for word in words[1:]]
            if ":" in words[0]:
                raise DataError(f"{path}, line {number}: starts with {words[0]!r}; a line starts with its label.")
            if len({index for index, _ in found}) != len(found):
                raise DataError(f"{path}, line {number}: a feature occurs twice.")
            places += [len(labels)] * len(found)
            indices += [index - 1 for index, _ in found]
            values += [value for _, value in found]
            labels.append(words[0])
            lines.append(number)
    if not labels:
        raise DataError(f"{path} has no rows.")
    width = n_features if n_features is not None else max(least, max(indices, default=-1) + 1)
    if width < 1:
        raise DataError(f"{path} has labels but no features.")
    check_size(len(labels), width, str(path))
    X = np.zeros((width, len(labels)))
    X[indices, places] = values
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
