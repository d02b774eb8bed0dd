"""Files that hold one packed file: gzip, bz2, xz and zip, known by how they begin and not by their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path
from typing import BinaryIO, cast

from fedkt.errors import DataError

ENDINGS = (".gz", ".bz2", ".xz", ".zip")
"""How the names of packed files end."""
BEGINNINGS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip"}
UNREAD = {
    b"\x28\xb5\x2f\xfd": "is packed with zstd, which is not unpacked here. Unpack it (zstd -d)",
    b"7z\xbc\xaf\x27\x1c": "is packed with 7-Zip, which is not unpacked here. Unpack it",
    b"Rar!": "is packed with RAR, which is not unpacked here. Unpack it",
    b"\xd0\xcf\x11\xe0": "is an Excel file of the old kind (.xls) or locked by a password. Save it as .xlsx or CSV",
    b"%PDF": "is a PDF document, no table. Ask for the table itself, as CSV or .xlsx",
}
"""Files that are told apart by how they begin, and what to do about them."""
XZ_MEMORY = 256 * 2**20
"""Bytes that unpacking xz may take: four times what its strongest setting asks for."""
XZ_BLOCK = 2**16


def packing_of(path: Path) -> str | None:
    """How a file is packed: gzip, bz2, xz or zip; None where it is not. What cannot be unpacked is refused in words."""
    with path.open("rb") as file:
        head = file.read(10)
    for beginning, words in UNREAD.items():
        if head.startswith(beginning):
            raise DataError(f"{path} {words}, and use the file you get.")
    found = next((name for beginning, name in BEGINNINGS.items() if head.startswith(beginning)), None)
    # A text may begin with these three letters.
    return None if found == "bz2" and head[4:10] != b"1AY&SY" else found


def unpacked_name(path: Path) -> str:
    """What the packed file is called: the name without the ending of the packing, or of a zip's only member."""
    name = path.name
    ending = next((each for each in ENDINGS if name.lower().endswith(each)), None)
    name = name if ending is None else name[: -len(ending)]
    if not Path(name).suffix and packing_of(path) == "zip":
        with archive_in(path) as archive:
            return Path(only_member(archive, path).filename).name
    return name


def open_unpacked(path: Path) -> BinaryIO | None:
    """The bytes that are packed into a file, however many; None where nothing is packed."""
    packing = packing_of(path)
    if packing == "gzip":
        return cast(BinaryIO, gzip.GzipFile(path))
    if packing == "bz2":
        return cast(BinaryIO, bz2.BZ2File(path))
    if packing == "xz":
        return cast(BinaryIO, io.BufferedReader(_XzReader(path), XZ_BLOCK))
    if packing == "zip":
        try:
            # The file stays open for as long as its member is read.
            with archive_in(path) as archive:
                return cast(BinaryIO, archive.open(only_member(archive, path)))
        except (RuntimeError, NotImplementedError) as reason:
            raise DataError(f"{path} cannot be unpacked: {reason}. Unpack it, and use the file you get.") from reason
    return None


def archive_in(path: Path) -> zipfile.ZipFile:
    """The zip archive in a file."""
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, LookupError) as reason:
        raise DataError(f"{path} is a damaged zip file: {reason}. Get it again.") from reason


def only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """The one file in an archive; folders and what macOS adds do not count."""
    members = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        names = ", ".join(repr(each.filename[:80]) for each in members[:5])
        raise DataError(
            f"{path} is a zip file of {len(members)} files ({names}{', …' * (len(members) > 5)}); one is read. Unpack "
            "it, and use the file with the table."
            if members
            else f"{path} is a zip file with nothing in it."
        )
    return members[0]


class _XzReader(io.RawIOBase):
    """What an xz file unpacks to: other than the standard library's reader, within bounds of memory."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._new()

    def _new(self) -> None:
        self._unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while True:
            packed = b""
            if self._unpacker.eof:
                # Several streams may stand one after the other.
                packed = self._unpacker.unused_data.lstrip(b"\0") or self._file.read(XZ_BLOCK).lstrip(b"\0")
                if not packed:
                    return 0
                self._new()
            elif self._unpacker.needs_input:
                packed = self._file.read(XZ_BLOCK)
                if not packed:
                    raise EOFError("the packed file is cut short")
            try:
                content = self._unpacker.decompress(packed, len(buffer))
            except lzma.LZMAError as reason:
                raise OSError(f"it is no xz file that can be unpacked ({reason})") from reason
            if content:
                buffer[: len(content)] = content
                return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()
