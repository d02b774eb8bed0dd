"""How much of this machine a file may take: sizes are checked before content, and counted while it comes.

A public file comes from a stranger, and so does the plan with its digest. What a file becomes in memory is bounded by
its own bytes: whoever wants to fill a machine has to send as much.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from fedkt.data.packed import open_unpacked
from fedkt.errors import DataError

GROWTH = 100
"""Bytes in memory for a byte of the file: a number packed into a single bit becomes 64 times as large."""
ALLOWANCE = 512 * 2**20
"""Bytes in memory that any file may take, however small."""
TEXT_COST = 16
"""Bytes in memory for a byte of text cut into values, at worst: short ones, no two alike."""
MAX_LINE = 8 * 2**20
"""Characters of a row: 80 for each of the most columns that are read."""
BLOCK = 2**20
"""Bytes that are unpacked at a time."""
SHARED_TEXTS = 65_536
"""Different texts of a table that are kept once, however often they occur."""


def most_memory(file_bytes: int) -> int:
    """Bytes in memory that a file of this size may take."""
    return max(ALLOWANCE, GROWTH * file_bytes)


def check_growth(memory_bytes: int, file_bytes: int, source: str) -> None:
    """Refuses a file that would take far more memory than it has bytes."""
    if memory_bytes > most_memory(file_bytes):
        raise DataError(
            f"{source} has {file_bytes:,} bytes and would take {memory_bytes:,} in memory; at most {ALLOWANCE:,} or "
            f"{GROWTH} times the file are allowed, so that no small file can fill a machine. If it is yours, leave "
            "out columns or rows that say nothing, or save it without packing: NPZ by np.savez, or CSV."
        )


def open_bytes(path: Path, cost: int) -> BinaryIO:
    """A file's bytes, unpacked where it is packed; `cost` is how many bytes each of them takes in memory."""
    unpacked = open_unpacked(path)
    if unpacked is None:
        return path.open("rb")
    return cast(BinaryIO, io.BufferedReader(_Bounded(path, unpacked, cost), 2**16))


def open_text(path: Path, encoding: str = "utf-8-sig") -> IO[str]:
    """A file as text: UTF-8, with or without a byte order mark, unless another code is named; packed or not."""
    return io.TextIOWrapper(open_bytes(path, TEXT_COST), encoding=encoding, newline="")


def share(values: Iterable[str], seen: dict[str, str]) -> list[str]:
    """The texts, equal ones as one object as long as `seen`, which this adds to, is small."""
    if len(seen) < SHARED_TEXTS:
        return [seen.setdefault(each, each) for each in values]
    return [seen.get(each, each) for each in values]


class _Bounded(io.RawIOBase):
    """What a packed file unpacks to, refused once that is too much."""

    def __init__(self, path: Path, stream: BinaryIO, cost: int) -> None:
        self._path, self._file_bytes = path, path.stat().st_size
        self._most = self._rest = most_memory(self._file_bytes) // cost
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        # Some at a time, however much is asked for: what is too much must not be here before it is counted.
        got = int(self._stream.readinto(memoryview(buffer)[:BLOCK]))  # type: ignore[attr-defined]
        self._rest -= got
        if self._rest < 0:
            raise DataError(
                f"{self._path} has {self._file_bytes:,} bytes and unpacks to more than {self._most:,}, which no data "
                "do. If it is yours, unpack it (gunzip, unzip) and use the file you get."
            )
        return got

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class Lines:
    """The lines of a text, without those that begin as a comment does where a row would.

    A row may take several; call `next_row` after each, since its length is bounded.
    """

    def __init__(self, stream: IO[str], source: str, comment: str | None = None) -> None:
        self._stream, self._source, self._comment = stream, source, comment
        self._ahead: deque[str] = deque()
        self._row = self._number = 0
        self.start = 1
        """The line on which the row starts that was read last."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            line = self._ahead.popleft() if self._ahead else self._stream.readline(MAX_LINE + 1)
            if not line:
                raise StopIteration
            self._number += 1
            if not self._row:
                self.start = self._number
                if self._comment and line.startswith(self._comment):
                    continue
            self._row += len(line)
            self._check(line)
            return line

    def _check(self, line: str) -> None:
        """Refuses what no row has."""
        if self._row > MAX_LINE:
            raise DataError(
                f"{self._source} has a row of more than {MAX_LINE:,} characters, which is not read. Is it text with "
                "line ends, and is every quote closed?"
            )
        if "\0" in line:
            order = {"\0": "utf-16-be"}.get(line[:1], "utf-16-le" if line[1:2] == "\0" else None)
            raise DataError(
                f"{self._source}, line {self._number}: has NUL characters, which no table has. "
                + (f"It may be UTF-16 without a mark: --encoding {order}" if order else "Take them out.")
            )

    def ahead(self, lines: int, characters: int) -> list[str]:
        """The next lines, which stay to be read: no more than so many, with no more than so many characters in all."""
        while len(self._ahead) < lines and sum(map(len, self._ahead)) < characters:
            line = self._stream.readline(MAX_LINE + 1)
            if not line:
                break
            self._ahead.append(line)
        return [each for each in self._ahead if not (self._comment and each.startswith(self._comment))]

    def next_row(self) -> None:
        """What comes next belongs to another row."""
        self._row = 0
