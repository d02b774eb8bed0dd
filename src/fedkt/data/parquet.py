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
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

import numpy as np

from fedkt.data.bounds import GROWTH, check_growth, share
from fedkt.data.columns import MAX_COLUMNS, Table, Values, check_names, check_size
from fedkt.data.parquet_child import REFUSED
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
"""Bytes of texts of one column in one batch, and of a file's column names."""
TEXT_BYTES = 64
"""What a text takes in memory beside its characters."""
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # Some walls go up around a process of one thread only, and pyarrow's other allocator would start a second.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_MAX_THREADS": "1",
    "LC_ALL": "C.UTF-8",
}

Json = TypeVar("Json")


def read_parquet(path: Path, label: str | None = None, n_features: int | None = None) -> Table:
    """The table in a Parquet file: numbers as float64, everything else as text, nulls as NaN or ""."""
    package = importlib.util.find_spec("pyarrow")
    if package is None or package.origin is None:
        raise DataError(f"{path} is a Parquet file, and reading it needs pyarrow: pip install 'fedkt[parquet]'")
    with _answers(path, sorted({str(Path(each).parent.parent) for each in (package.origin, np.__file__)})) as stream:
        names, kinds, n_rows = stream.head()
        check_size(n_rows, len(names), str(path))
        check_names(names, str(path), label)
        if not n_rows:
            raise DataError(f"{path} has no rows.")
        size = path.stat().st_size
        memory_bytes = n_rows * len(names) * 8
        check_growth(memory_bytes, size, str(path))
        columns = [np.empty(n_rows, dtype=np.float64 if kind == "n" else object) for kind in kinds]
        seen: dict[str, str] = {}
        start = 0
        while rows := stream.number():
            if start + rows > n_rows:
                raise DataError(f"{path} is damaged: it has more rows than the {n_rows:,} it says it has.")
            for column in columns:
                if column.dtype != object:
                    column[start : start + rows] = np.frombuffer(stream.take(rows * 8), dtype="<f8")
                    continue
                texts, codes = stream.texts(rows)
                memory_bytes += sum(TEXT_BYTES + len(each) for each in texts if each not in seen)
                check_growth(memory_bytes, size, str(path))
                column[start : start + rows] = np.array(share(texts, seen), dtype=object)[codes]
            start += rows
        if start != n_rows:
            raise DataError(f"{path} is damaged: it has {start:,} rows and says it has {n_rows:,}.")
    return Table(dict(zip(names, columns, strict=True)), str(path))


@contextmanager
def _answers(path: Path, places: list[str]) -> Iterator[_Answers]:
    """What the child says about a file; it ends with the block."""
    size = path.stat().st_size
    memory = min(max(MEMORY[0], GROWTH * size), MEMORY[1])
    seconds = SECONDS + size // BYTES_PER_SECOND
    request = {"memory": memory, "cpu": seconds, "columns": MAX_COLUMNS, "parent": os.getpid()}
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

    def number(self) -> int:
        """A number of 32 bits; an error where the child sends words instead of it."""
        number = int(struct.unpack("<I", self.take(4))[0])
        if number != REFUSED:
            return number
        reason = str(self.read_json(dict).get("reason", "cannot be read."))[:400]
        raise DataError(f"{self._path} {''.join(each if each.isprintable() else ' ' for each in reason)}")

    def read_json(self, kind: type[Json]) -> Json:
        """What the next bytes of JSON say, which is of this kind."""
        size = self.number()
        if size > FRAME:
            raise DataError(f"{self._path} is not read: names or texts of {size:,} bytes in a few rows are too much.")
        try:
            content = json.loads(self.take(size))
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, kind):
            raise self._broken()
        return content

    def head(self) -> tuple[list[str], str, int]:
        """The names of the columns, for each whether it holds numbers (n) or texts (t), and the number of rows."""
        content = self.read_json(dict)
        names, kinds, rows = content.get("names"), content.get("kinds"), content.get("rows")
        if not (
            isinstance(names, list)
            and all(isinstance(name, str) for name in names)
            and isinstance(kinds, str)
            and set(kinds) <= {"n", "t"}
            and len(kinds) == len(names) > 0
            and type(rows) is int
            and rows >= 0
        ):
            raise self._broken()
        return names, kinds, rows

    def texts(self, rows: int) -> tuple[list[str], Values]:
        """The different texts of some rows, and which of them each row has."""
        texts = self.read_json(list)
        codes = np.frombuffer(self.take(rows * 4), dtype="<u4")
        if not texts or not all(isinstance(each, str) for each in texts) or codes.max() >= len(texts):
            raise self._broken()
        return texts, codes

    def _broken(self) -> DataError:
        return DataError(f"{self._path} cannot be read: the process that unpacked it did not keep to its protocol.")
