"""A party's own Parquet file, unpacked by a child process behind walls.

A file of a few bytes can stand for any number of rows, one text can be named by all of them, and a page says only in
the midst of the file how large it gets: nothing can be told beforehand. So `parquet_child` reads the file, some rows at
a time, behind walls (see `fedkt.system.walls`), and may take only so much memory; what it sends is counted here as if
the file's maker had sent it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedkt.data.bounds import GROWTH, MAX_LINE, check_growth
from fedkt.data.columns import MAX_COLUMNS, Table, Values, check_names, check_size
from fedkt.data.parquet_child import REFUSED
from fedkt.data.texts import KEPT, Block, Texts, Unread, are_whole, pack
from fedkt.errors import DataError
from fedkt.system.walls import memory_hidden

CHILD = Path(__file__).with_name("parquet_child.py")
MEMORY = 512 * 2**20, 4 * 2**30
"""Bytes that the child may take in any case, and at most, however large the file."""
SECONDS, BYTES_PER_SECOND = 120, 500_000
"""CPU time of the child: this much, and a second more for so many bytes of the file."""
PATIENCE = 10
"""Seconds by the clock for a second of CPU time."""
FRAME = 64 * 2**20
"""Bytes of texts of one column in one batch."""
TEXT_LIST = re.compile(rb'\{"(?:new|own)": \[(?:"(?:[^"\\]++|\\.)*+"(?:, (?=")|(?=\])))*+\]\}')
"""How the child writes texts. Anything else could be many small objects, of which a few bytes make 64 in memory."""
TEXT_BYTES = 64
"""What a text takes in memory beside its characters."""
LONGEST_REQUEST = 30_000
"""Characters that a command line surely takes; of a plan with longer names all columns are read."""
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # Some walls go up around a process of one thread only, and pyarrow's other allocator would start a second.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_MAX_THREADS": "1",
    "LC_ALL": "C.UTF-8",
}


def read_parquet(path: Path, label: str | None = None, wanted: Collection[str] = ()) -> Table:
    """The table in a Parquet file: numbers as float64, everything else as text, nulls as NaN or "".

    Where columns are wanted by name, the others are not read.
    """
    package = importlib.util.find_spec("pyarrow")
    if package is None or package.origin is None:
        raise DataError(f"{path} is a Parquet file, and reading it needs pyarrow: pip install 'fedkt[parquet]'")
    if len(json.dumps(sorted(wanted))) > LONGEST_REQUEST:
        wanted = ()
    places = sorted({str(Path(each).parent.parent) for each in (package.origin, np.__file__)})
    with _answers(path, places, wanted) as stream:
        names, kinds, n_rows = stream.head()
        if any(kind == "-" and (not wanted or name in wanted) for name, kind in zip(names, kinds, strict=True)):
            raise stream.broken()
        check_size(n_rows, len(names), str(path))
        check_names(names, str(path), label)
        if not n_rows:
            raise DataError(f"{path} has no rows.")
        room = Room(path, n_rows * sum(COLUMN_BYTES[kind] for kind in kinds))
        columns = [_COLUMNS[kind](n_rows) for kind in kinds]
        start = 0
        while rows := stream.number():
            if start + rows > n_rows:
                raise DataError(f"{path} is damaged: it has more rows than the {n_rows:,} it says it has.")
            for column in columns:
                column.take_rows(stream, start, rows, room)
            start += rows
        if start != n_rows:
            raise DataError(f"{path} is damaged: it has {start:,} rows and says it has {n_rows:,}.")
    return Table({name: column.done() for name, column in zip(names, columns, strict=True)}, str(path))


class Room:
    """What a file takes in memory so far, refused once that is too much for its size."""

    def __init__(self, path: Path, memory_bytes: int) -> None:
        self._path, self._file_bytes, self._bytes = path, path.stat().st_size, 0
        self.add(memory_bytes)

    def add(self, memory_bytes: int) -> None:
        """So much more."""
        self._bytes += memory_bytes
        check_growth(self._bytes, self._file_bytes, str(self._path))


class _Column(Protocol):
    """A column in the making."""

    def take_rows(self, stream: _Answers, start: int, rows: int, room: Room) -> None:
        """The next rows, as the child sends them."""
        ...

    def done(self) -> Any:
        """The column."""
        ...


class _Numbers:
    """Numbers."""

    def __init__(self, n_rows: int) -> None:
        self._values = np.empty(n_rows, dtype="<f8")

    def take_rows(self, stream: _Answers, start: int, rows: int, room: Room) -> None:
        """The next rows, as the child sends them."""
        stream.fill(self._values[start : start + rows])

    def done(self) -> Values:
        """The column."""
        return self._values.astype(np.float64, copy=False)


class _Coded:
    """Texts, of which those that are kept are there once."""

    def __init__(self, n_rows: int) -> None:
        self._codes = np.empty(n_rows, dtype="<u2")
        self._kept: list[str] = []
        self._blocks: list[Block] = []

    def take_rows(self, stream: _Answers, start: int, rows: int, room: Room) -> None:
        """The next rows, as the child sends them."""
        texts, is_new = stream.texts(rows)
        room.add(sum(TEXT_BYTES + len(each) for each in texts))
        if is_new:
            if len(self._kept) + len(texts) > KEPT:
                raise stream.broken()
            self._kept += texts
        known = self._kept if is_new else texts
        codes = self._codes[start : start + rows]
        stream.fill(codes)
        if codes.max() >= len(known):
            raise stream.broken()
        if not is_new:
            # Not one text a row: all rows may name the same long one.
            self._blocks.append(Block(rows, pack(texts).texts, codes))
        elif self._blocks and self._blocks[-1].texts is self._kept:
            whole = self._codes[start - self._blocks[-1].rows : start + rows]
            self._blocks[-1] = Block(len(whole), self._kept, whole)
        else:
            self._blocks.append(Block(rows, self._kept, codes))

    def done(self) -> Texts:
        """The column."""
        return Texts(self._blocks)


class _NotAsked:
    """What is not read."""

    def __init__(self, n_rows: int) -> None:
        self._rows = n_rows

    def take_rows(self, stream: _Answers, start: int, rows: int, room: Room) -> None:
        """Nothing comes."""

    def done(self) -> Unread:
        """The column."""
        return Unread(self._rows)


_COLUMNS: dict[str, Callable[[int], _Column]] = {"n": _Numbers, "t": _Coded, "-": _NotAsked}
COLUMN_BYTES = {"n": 8, "t": 2, "-": 0}
"""What a row takes in memory beside its texts, by the kind of the column."""


@contextmanager
def _answers(path: Path, places: list[str], wanted: Collection[str] = ()) -> Iterator[_Answers]:
    """What the child says about a file; it ends with the block."""
    size = path.stat().st_size
    memory = min(max(MEMORY[0], GROWTH * size), MEMORY[1])
    seconds = SECONDS + size // BYTES_PER_SECOND
    request: dict[str, Any] = {"memory": memory, "cpu": seconds, "columns": MAX_COLUMNS, "parent": os.getpid()}
    request["wanted"] = sorted(wanted)
    with path.open("rb") as file, memory_hidden():
        child = subprocess.Popen(
            [sys.executable, "-I", "-B", str(CHILD), json.dumps(request), *places],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        watch = threading.Timer(seconds * PATIENCE, child.kill)
        watch.daemon = True
        watch.start()
        try:
            assert child.stdout is not None
            yield _Answers(child.stdout, child, path)
        finally:
            watch.cancel()
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()


class _Answers:
    """Bytes from the child, every one of them taken for hostile."""

    def __init__(self, stream: IO[bytes], child: subprocess.Popen[bytes], path: Path) -> None:
        self._stream, self._child, self._path = stream, child, path

    def take(self, size: int) -> bytes:
        """So many bytes; an error that says how the child ended if there are fewer."""
        got = self._stream.read(size)
        if len(got) < size:
            raise DataError(
                f"{self._path} cannot be read: the process that unpacked it ended with code {self._child.wait()}, for "
                "want of memory or of time, or by a fault of the library that reads it. Save the table as CSV."
            )
        return got

    def fill(self, values: NDArray[Any]) -> None:
        """So many bytes as an array has, into it."""
        view = values.view(np.uint8).data
        got = 0
        while got < len(view) and (more := self._stream.readinto(view[got:])):  # type: ignore[attr-defined]
            got += more
        self.take(len(view) - got)

    def number(self) -> int:
        """A number of 32 bits; an error where the child sends words instead of it."""
        number = self._bits()
        if number != REFUSED:
            return number
        reason = self._parsed(self._frame(self._bits(), MAX_LINE)).get("reason")
        if not isinstance(reason, str):
            raise self.broken()
        raise DataError(f"{self._path} {''.join(each if each.isprintable() else ' ' for each in reason[:400])}")

    def _bits(self) -> int:
        return int(struct.unpack("<I", self.take(4))[0])

    def _frame(self, size: int, most: int) -> bytes:
        if size > most:
            raise DataError(f"{self._path} is not read: names or texts of {size:,} bytes in a few rows are too much.")
        return self.take(size)

    def _parsed(self, raw: bytes) -> dict[str, Any]:
        """What JSON says, which is an object."""
        try:
            content = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise self.broken()
        return content

    def head(self) -> tuple[list[str], str, int]:
        """The names of the columns, for each whether it holds numbers (n) or texts (t), and the number of rows."""
        content = self._parsed(self._frame(self.number(), MAX_LINE))
        names, kinds, rows = content.get("names"), content.get("kinds"), content.get("rows")
        if not (
            isinstance(names, list)
            and all(isinstance(name, str) for name in names)
            and isinstance(kinds, str)
            and set(kinds) <= set(_COLUMNS)
            and len(kinds) == len(names) > 0
            and type(rows) is int
            and rows >= 0
        ):
            raise self.broken()
        return names, kinds, rows

    def texts(self, rows: int) -> tuple[list[str], bool]:
        """Texts of a batch of so many rows, and whether they are added to those of earlier ones."""
        raw = self._frame(self._bits(), FRAME)
        # How many they are is told before any is made: this stands between two, and in one at its end at most.
        if rows > KEPT or raw.count(b'", "') >= 2 * rows or not TEXT_LIST.fullmatch(raw):
            raise self.broken()
        ((name, texts),) = self._parsed(raw).items()
        if len(texts) > rows or not are_whole(texts):
            raise self.broken()
        return texts, name == "new"

    def broken(self) -> DataError:
        """That the child did not keep to its protocol."""
        return DataError(f"{self._path} cannot be read: the process that unpacked it did not keep to its protocol.")
