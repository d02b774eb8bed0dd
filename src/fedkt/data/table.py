"""A party's own file as a table: named columns, and for every row the line it stood on.

CSV and Parquet name their columns; NPZ and LIBSVM have x0 … and f1 …. Nothing is interpreted here: what is a number,
a category or missing is the schema's business, and its errors can name the file's line.
"""

from __future__ import annotations

import csv
import gzip
import math
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import DataError

Values = NDArray[Any]
"""float64, or an object array of str."""

MAX_COLUMNS = 100_000
MAX_VALUES = 500_000_000
"""Rows times columns of a table: 4 GB of numbers. A forged index in a LIBSVM file could ask for any amount."""


@dataclass(frozen=True)
class Table:
    """Columns by name, all of the same length."""

    columns: dict[str, Values]
    source: str
    """The file, as errors name it."""
    lines: NDArray[np.int64] | None = None
    """The line of the file each row starts on; None where the format has no lines."""

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def line_of(self, row: int) -> int:
        """The line of the file that row number `row` starts on; in a format without lines, the row counted from 1."""
        return row + 1 if self.lines is None else int(self.lines[row])

    def at(self, row: int | np.integer[Any]) -> str:
        """The file and the place of a row in words: "ward.csv, line 17", or "row 17" in a format without lines."""
        return f"{self.source}, {'row' if self.lines is None else 'line'} {self.line_of(int(row))}"

    def take(self, rows: NDArray[np.int64]) -> Table:
        """The given rows, which keep the lines they stood on."""
        kept = np.arange(1, self.n_rows + 1) if self.lines is None else self.lines
        return Table({name: values[rows] for name, values in self.columns.items()}, self.source, kept[rows])


def read_table(
    path: str | Path, *, label: str | None = None, n_features: int | None = None, least_features: int = 0
) -> Table:
    """The table in a CSV, Parquet, NPZ or LIBSVM file, told apart by the name's ending.

    `label` is the name of the label column; NPZ and LIBSVM, which do not name it, call it so ("label" otherwise).
    `n_features` is how many features a LIBSVM file has, since trailing ones may never occur in it; `least_features` is
    how many it has at least.
    """
    path = Path(path)
    ending = _ending(path)
    if ending not in READERS:
        raise DataError(
            f"{path} has the ending {ending or '(none)'}, which is not read. What works: {', '.join(READERS)}."
        )
    if not path.is_file():
        raise DataError(f"{path} is not a file. Check the path.")
    try:
        if READERS[ending] is read_libsvm:
            return read_libsvm(path, label, n_features, least_features)
        return READERS[ending](path, label, n_features)
    except UnicodeDecodeError as reason:
        raise DataError(f"{path} is not UTF-8 text ({reason}). Save it as UTF-8.") from reason
    except (OSError, EOFError, zlib.error) as reason:
        raise DataError(f"{path} cannot be read: {reason}.") from reason


def names_its_label(path: str | Path) -> bool:
    """Whether a file of this ending says itself which column is the label's; NPZ and LIBSVM take the name we give."""
    return READERS.get(_ending(Path(path))) not in (read_npz, read_libsvm)


def _ending(path: Path) -> str:
    return "".join(path.suffixes[-2:]).lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def read_csv(path: Path, label: str | None = None, n_features: int | None = None) -> Table:
    """The table in a CSV file whose first line names the columns; comma, semicolon or tab, UTF-8."""
    with _open_text(path) as stream:
        return parse_csv(stream, str(path), label)


def parse_csv(stream: IO[str], source: str, label: str | None = None) -> Table:
    """The table in CSV text whose first line names the columns."""
    first = stream.readline()
    if first and not first.strip():
        raise DataError(f"{source} starts with an empty line; the first line of a CSV file names the columns.")
    if not first:
        raise DataError(f"{source} is empty; a CSV file starts with a line that names the columns.")
    try:
        delimiter = max(",;\t", key=lambda each: len(next(csv.reader([first], delimiter=each))))
        # One reader for header and rows: a line break inside quotes belongs to the name or value it stands in.
        reader = csv.reader(chain([first], stream), delimiter=delimiter, strict=True)
        names = [name.strip() for name in next(reader)]
    except csv.Error as reason:
        raise DataError(f"{source}, line 1: {reason}.") from reason
    # A forgotten header would otherwise turn the first example into column names.
    if all(_is_number(name) for name in names):
        raise DataError(
            f"{source}: the first line ({', '.join(names[:5])} …) looks like data; it has to name the columns."
        )
    _check_names(names, source, label)
    rows: list[list[str]] = []
    lines: list[int] = []
    start = reader.line_num + 1
    try:
        for values in reader:
            if values:
                if len(values) != len(names):
                    raise DataError(
                        f"{source}, line {start}: {len(values)} values, but the header names {len(names)} columns. "
                        "Quote values that contain the delimiter."
                    )
                rows.append(values)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as reason:
        raise DataError(f"{source}, line {start}: {reason}.") from reason
    if not rows:
        raise DataError(f"{source} has a header but no rows.")
    columns = {name: _texts(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    return Table(columns, source, np.array(lines, dtype=np.int64))


def read_parquet(path: Path, label: str | None = None, n_features: int | None = None) -> Table:
    """The table in a Parquet file: numbers as float64, everything else as text, nulls as NaN or ""."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as reason:
        raise DataError(
            f"{path} is a Parquet file, and reading it needs pyarrow: pip install 'fedkt[parquet]'"
        ) from reason
    try:
        with pq.ParquetFile(path) as file:
            _check_size(file.metadata.num_rows, file.metadata.num_columns, str(path))
            names = [field.name for field in file.schema_arrow]
            _check_names(names, str(path), label)
            table = file.read()
    except pa.ArrowException as reason:
        raise DataError(f"{path} is not a Parquet file that can be read: {reason}") from reason
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows.")
    columns: dict[str, Values] = {}
    for name, values in zip(names, table.columns, strict=True):
        kind = values.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            columns[name] = np.array(
                [math.nan if v is None else float(v) for v in values.to_pylist()], dtype=np.float64
            )
        else:
            columns[name] = _texts("" if v is None else str(v) for v in values.to_pylist())
    return Table(columns, str(path))


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
    _check_size(X.shape[0], X.shape[1], str(path))
    names = (
        [str(name) for name in arrays["names"].ravel()] if "names" in arrays else [f"x{j}" for j in range(X.shape[1])]
    )
    if len(names) != X.shape[1]:
        raise DataError(f"{path}: {len(names)} names for the {X.shape[1]} columns of X.")
    _check_names(names, str(path), None)
    columns: dict[str, Values] = {name: X[:, j].astype(np.float64) for j, name in enumerate(names)}
    if "y" in arrays:
        y = arrays["y"]
        if y.shape != (len(X),):
            raise DataError(f"{path}: y has one label per row, got shape {y.shape} for {len(X)} rows.")
        if (label or "label") in columns:
            raise DataError(f"{path}: the label column {label or 'label'!r} is also the name of a column of X.")
        columns[label or "label"] = y.astype(np.float64) if y.dtype.kind in "iuf" else _texts(map(str, y.tolist()))
    return Table(columns, str(path))


def read_libsvm(path: Path, label: str | None = None, n_features: int | None = None, least: int = 0) -> Table:
    """The table in a LIBSVM file ("label index:value …" a line), as columns f1 … fd and the label."""
    labels: list[str] = []
    lines: list[int] = []
    places: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    most = MAX_COLUMNS if n_features is None else n_features
    with _open_text(path) as stream:
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
    _check_size(len(labels), width, str(path))
    X = np.zeros((width, len(labels)))
    X[indices, places] = values
    columns: dict[str, Values] = {f"f{j + 1}": X[j] for j in range(width)}
    if (label or "label") in columns:
        raise DataError(f"{path}: the label cannot be called {label!r}, the name of a feature.")
    columns[label or "label"] = _texts(labels)
    return Table(columns, str(path), np.array(lines, dtype=np.int64))


Reader = Callable[[Path, str | None, int | None], Table]
READERS: dict[str, Reader] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".libsvm": read_libsvm,
    ".svm": read_libsvm,
    ".txt": read_libsvm,
}
"""How a file is read, by the ending of its name."""


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


def _check_names(names: list[str], source: str, label: str | None) -> None:
    """Refuses column names that cannot tell columns apart, and a table without its label."""
    if len(names) > MAX_COLUMNS:
        raise DataError(f"{source} has {len(names):,} columns; at most {MAX_COLUMNS:,} are read.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if "" in names:
        raise DataError(
            f"{source}: column {names.index('') + 1} of the header has no name. Name it; if it is pandas' row number, "
            "save with index=False."
        )
    strange = next((name for name in names if not printable(name)), None)
    if strange is not None:
        raise DataError(
            f"{source}: the column name {strange[:80]!r} has a line break or another character that cannot be printed. "
            "Rename the column."
        )
    if twice:
        raise DataError(f"{source}: the header names {', '.join(map(repr, twice))} more than once. Rename the columns.")
    if label is not None and label not in names:
        raise DataError(f"{source} has no label column {label!r}. Its columns are: {', '.join(names[:50])}.")


def _check_size(n_rows: int, n_columns: int, source: str) -> None:
    """Refuses a table that would not fit in memory."""
    if n_columns > MAX_COLUMNS or n_rows * n_columns > MAX_VALUES:
        raise DataError(
            f"{source} has {n_rows:,} rows and {n_columns:,} columns; at most {MAX_COLUMNS:,} columns and "
            f"{MAX_VALUES:,} values are read."
        )


def printable(text: str) -> bool:
    """Whether text is one line that a terminal shows as it is; unusual spaces are let through."""
    return all(each.isprintable() or unicodedata.category(each) == "Zs" for each in text)


def _is_number(text: str) -> bool:
    """Whether text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _texts(values: Any) -> Values:
    """An object array of the given strings."""
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


def _open_text(path: Path) -> IO[str]:
    """A file as text: UTF-8, with or without a byte order mark, with or without gzip."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("r", encoding="utf-8-sig", newline="")
