"""A party's own file or folder as a table: named columns, and for every row the line it stood on.

Text is read in `delimited`, spreadsheets in `excel`, Parquet in `parquet`, NPZ and LIBSVM in `matrices`, images in
`images`; what single values mean, in `notation`.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import replace
from itertools import islice
from pathlib import Path

from fedkt.data.bounds import Lines, open_text
from fedkt.data.columns import MAX_COLUMNS, MAX_VALUES, Table, printable
from fedkt.data.delimited import parse_csv, read_text
from fedkt.data.excel import WORKBOOK, read_excel
from fedkt.data.format import OF_SHEETS, OF_TEXTS, OF_VALUES, PLAIN, Format
from fedkt.data.images import IDX, read_folder, read_idx
from fedkt.data.matrices import read_libsvm, read_npz
from fedkt.data.packed import ENDINGS, archive_in, packing_of, unpacked_name
from fedkt.data.parquet import read_parquet
from fedkt.data.rewriting import apply_format
from fedkt.errors import DataError

__all__ = ["MAX_COLUMNS", "MAX_VALUES", "READERS", "Table", "names_its_label", "parse_csv", "printable", "read_table"]

READERS = {
    ".csv": "text",
    ".tsv": "text",
    ".tab": "text",
    ".psv": "text",
    ".txt": "text or LIBSVM",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".parquet": "parquet",
    ".npz": "npz",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    IDX: "idx",
}
"""What kind of file it is, by the ending of its name without that of its packing."""
LIBSVM_LINE = re.compile(r"\S+(\s+[0-9]+:\S+)+\s*(#.*)?")


def read_table(
    path: str | Path,
    *,
    label: str | None = None,
    n_features: int | None = None,
    least_features: int = 0,
    form: Format = PLAIN,
    wanted: Collection[str] = (),
) -> Table:
    """The table in a text, Parquet, NPZ, LIBSVM or IDX file, or in a folder of images.

    `label` is the name of the label column; files that do not name it call it so ("label" otherwise).
    `n_features` is how many features a LIBSVM file has, since trailing ones may never occur in it; `least_features` is
    how many it has at least. `form` is how the file is written, as far as that cannot be found out. Where columns are
    `wanted` by name, the others of a format that keeps each by itself (Parquet) are not read, and only named.
    """
    path = Path(path)
    if not path.is_dir() and not path.is_file():
        raise DataError(f"{path} is not a file, nor a folder. Check the path.")
    try:
        return _read(path, label, n_features, least_features, form, wanted)
    except UnicodeError as reason:
        raise DataError(f"{path} is not UTF-8 text ({reason}). Save it as UTF-8.") from reason
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as reason:
        raise DataError(
            f"{path} cannot be read: {reason}. If it is packed, unpack it yourself, or get it again."
        ) from reason


def _read(
    path: Path, label: str | None, n_features: int | None, least: int, form: Format, wanted: Collection[str]
) -> Table:
    """The table of a file or folder that is there."""
    kind = kind_of(path)
    if kind is None:
        raise DataError(
            f"{path} has the ending {path.suffix or '(none)'}, which is not read. What works: {', '.join(READERS)}, "
            f"each also packed ({', '.join(ENDINGS)}), or a folder of PNG or JPEG images. Rename it, if it is one of "
            "these."
        )
    if kind == "text":
        form.check_kind(str(path), "text", OF_TEXTS)
        table = read_text(path, label, form)
    elif kind == "excel":
        form.check_kind(str(path), "an Excel file", OF_SHEETS)
        table = read_excel(path, label, form)
    elif kind == "parquet":
        form.check_kind(str(path), "a Parquet file", OF_VALUES)
        table = read_parquet(path, label, wanted)
    else:
        form.check_kind(str(path), "a file of numbers" if kind in ("npz", "libsvm") else "made of images", ())
        if kind == "folder":
            return read_folder(path, label)
        if kind == "libsvm":
            return read_libsvm(path, label, n_features, least)
        return read_npz(path, label) if kind == "npz" else read_idx(path, label)
    return apply_format(replace(table, form=form), form)


def names_its_label(path: str | Path) -> bool:
    """Whether a file of this kind says itself which column is the label's; the others take the name we give."""
    return kind_of(Path(path)) not in ("folder", "npz", "libsvm", "idx")


def kind_of(path: Path) -> str | None:
    """What reads a file: by its content where that tells, else by the ending of its name; None where nothing does."""
    if path.is_dir():
        return "folder"
    there = path.is_file()
    name = (unpacked_name(path) if there else path.name).lower()
    kind = READERS[IDX] if name.endswith(IDX) else READERS.get(Path(name).suffix)
    if not there:
        return kind
    packing = packing_of(path)
    if packing == "zip" and kind != "npz":
        members = _members(path)
        if WORKBOOK in members:
            return "excel"
        if "content.xml" in members:
            raise DataError(f"{path} is an OpenDocument file. Save it as .xlsx or CSV.")
    elif packing is None and _begins(path, b"PAR1"):
        return "parquet"
    elif packing is not None and kind in ("npz", "parquet", "excel") and name != path.name.lower():
        raise DataError(f"{path} is a packed {kind} file, which would have to be unpacked whole. Unpack it yourself.")
    elif packing is not None and kind is None and not Path(name).suffix:
        return "text"
    if kind == "text or LIBSVM":
        return "libsvm" if _looks_like_libsvm(path) else "text"
    return kind


def _begins(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _members(path: Path) -> set[str]:
    """The names of the files in a zip."""
    with archive_in(path) as archive:
        return set(archive.namelist())


def _looks_like_libsvm(path: Path) -> bool:
    """Whether one of a text's first lines is a label with numbered values."""
    try:
        with open_text(path) as stream:
            return any(LIBSVM_LINE.fullmatch(line.strip()) for line in islice(Lines(stream, str(path)), 20))
    except (UnicodeError, DataError):
        return False
