"""The program that unpacks a received Parquet file: numpy, pyarrow and walls, nothing else of fedkt.

It is started as a file, `python -I parquet_child.py REQUEST PLACE…`, with the Parquet file as its standard input. The
request is JSON and says how many columns are read, what the walls leave it (see `raise_walls`) and whose child it is.
It raises its walls before it reads a byte of the file, and answers on its standard output.

All numbers are little-endian, those without a type have 32 bits. First the head {"names": […], "kinds": "nt…", "rows":
…} as the length of its JSON and the JSON; then batches: the number of rows, and for every column either its float64 or
the different texts as a list, in the same way as the head, and for every row which of them it has. No rows are the end.
2³² − 1 in the place of the head's length or of a number of rows is followed by {"reason": …}.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
import zoneinfo
from collections.abc import Iterator
from datetime import datetime
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

if __name__ == "__main__":
    # Where the parent found numpy and pyarrow; an isolated interpreter ignores PYTHONPATH.
    sys.path.extend(sys.argv[2:])

import numpy as np
from numpy.typing import NDArray

BATCH_ROWS, BATCH_VALUES = 8_192, 2**20
MAX_TEXT = 131_072
"""Bytes of a text, as in CSV."""
REFUSED = 2**32 - 1
"""Stands in the place of a number, and words follow that say why there is none."""
WALLS_FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system", "walls.py")
LATE = ("_strptime", "decimal", "encodings.idna", "numpy.ma", "pyarrow.compute")
ZONES: list[zoneinfo.ZoneInfo] = []
"""All there are: zoneinfo gives one again without its file as long as somebody has it."""


class Refusal(Exception):
    """The file is not read; the message goes on where the file's name stops."""


def load_all() -> tuple[Any, Any]:
    """pyarrow and its Parquet reader, with everything that they would import or open once they see values.

    Behind the walls nothing more can be had.
    """
    for name in LATE:
        importlib.import_module(name)
    for name in sorted(zoneinfo.available_timezones()):
        ZONES.append(zoneinfo.ZoneInfo(name))
    pa, pq = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # Looks for pandas, which not everybody has: with it, durations are as exact as nanoseconds.
    pa.scalar(0, pa.duration("ns")).as_py()
    return pa, pq


def messages(pa: Any, pq: Any, source: Any, *, columns: int) -> Iterator[bytes]:
    """The whole answer about a Parquet file, which may have so many columns."""
    # Page by page and on one thread, so that little of the file is unpacked at a time.
    options = {"pre_buffer": False, "memory_map": False}
    first = pq.ParquetFile(source, **options)
    kinds = [_kind(pa, field) for field in _fields(first, columns)]
    texts = [field.name for field in first.schema_arrow if _is_text(pa, field.type)]
    # Texts stay numbers of texts: one that all rows name is here once.
    file = pq.ParquetFile(source, metadata=first.metadata, read_dictionary=texts, **options) if texts else first
    head = {"names": first.schema_arrow.names, "kinds": "".join(kinds), "rows": first.metadata.num_rows}
    yield _pack(head)
    rows = max(1, min(BATCH_ROWS, BATCH_VALUES // len(kinds)))
    for batch in file.iter_batches(batch_size=rows, use_threads=False):
        if not batch.num_rows:
            continue
        # A batch is sent whole or not at all: words in the midst of numbers would be taken for numbers.
        parts = [struct.pack("<I", batch.num_rows)]
        for name, kind, column in zip(head["names"], kinds, batch.columns, strict=True):
            if kind == "n":
                parts.append(_numbers(pa, column).astype("<f8").tobytes())
            else:
                different, codes = _texts(pa, column, name)
                parts += [_pack(different), codes.astype("<u4").tobytes()]
        yield b"".join(parts)
    yield struct.pack("<I", 0)


def _fields(file: Any, most: int) -> list[Any]:
    """The columns, refused if there are none or too many."""
    fields = list(file.schema_arrow)
    if not 0 < len(fields) <= most:
        raise Refusal(f"has {len(fields):,} columns; 1 to {most:,} are read.")
    return fields


def _kind(pa: Any, field: Any) -> str:
    """Whether a column is read as numbers (n) or as texts (t)."""
    kind = getattr(field.type, "storage_type", field.type)
    if pa.types.is_nested(getattr(kind, "value_type", kind)) or pa.types.is_nested(kind):
        raise Refusal(f"has lists or structures in column {field.name[:80]!r}, not one value a row. Leave it out.")
    return "n" if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) else "t"


def _is_text(pa: Any, kind: Any) -> bool:
    return any(each(kind) for each in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _numbers(pa: Any, column: Any) -> NDArray[np.float64]:
    """A column of numbers, NaN where it is null."""
    if pa.types.is_decimal(column.type):
        return np.array([np.nan if each is None else float(each) for each in column.to_pylist()], dtype=np.float64)
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _texts(pa: Any, column: Any, name: str) -> tuple[list[str], NDArray[Any]]:
    """The different texts of a column, "" for null, and for every row which of them it has."""
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, AttributeError):
            every = ["" if each is None else str(each) for each in column.to_pylist()]
            return every, np.arange(len(every))
    places = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    distinct, codes = np.unique(places, return_inverse=True)
    if not len(column.dictionary):
        return [""] * len(distinct), codes
    entries = column.dictionary.take(pa.array(np.maximum(distinct, 0)))
    if _is_text(pa, entries.type):
        import pyarrow.compute as pc

        longest = pc.max(pc.binary_length(entries)).as_py() or 0
        if longest > MAX_TEXT:
            raise Refusal(f"has a text of {longest:,} bytes in column {name[:80]!r}; at most {MAX_TEXT:,} are read.")
    values = _values(pa, entries)
    return ["" if place < 0 or v is None else str(v) for place, v in zip(distinct, values, strict=True)], codes


def _values(pa: Any, column: Any) -> list[Any]:
    """What str makes a text of, for each row; None for null."""
    if not (pa.types.is_timestamp(column.type) and column.type.unit == "ns"):
        return list(column.to_pylist())
    # Python's times end at microseconds, and pandas, if there, opens the file of a time zone for every value.
    nanos = column.cast(pa.int64()).to_pylist()
    micros = pa.array([None if each is None else each // 1_000 for each in nanos], pa.int64())
    moments = micros.cast(pa.timestamp("us", column.type.tz)).to_pylist()
    return [_exact(moment, each % 1_000) if moment else None for moment, each in zip(moments, nanos, strict=True)]


def _exact(moment: datetime, nanos: int) -> str:
    """A time with so many nanoseconds after its microseconds, which stand before the offset from UTC."""
    if not nanos:
        return str(moment)
    end = len("2020-01-02 03:04:05.000000")
    text = moment.isoformat(sep=" ", timespec="microseconds")
    return f"{text[:end]}{nanos:03}{text[end:]}"


def _pack(content: Any) -> bytes:
    """JSON with its length before it."""
    text = json.dumps(content).encode("utf-8")
    return struct.pack("<I", min(len(text), REFUSED - 1)) + text


def serve_table() -> None:
    """Answers about the file on standard input."""
    request = json.loads(sys.argv[1])
    # The file by its path, since the package around it costs time and is not for strangers.
    walls = ModuleType("walls")
    SourceFileLoader("walls", WALLS_FILE).exec_module(walls)
    walls.die_with(request["parent"])
    # Answers get a descriptor of their own: whatever a library prints must not end up among them.
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    source = os.fdopen(0, "rb", closefd=False)
    pa, pq = load_all()
    memory, seconds = request["memory"], request["cpu"]
    walls.raise_walls(memory=memory, cpu=seconds, budget=seconds)
    try:
        for message in messages(pa, pq, source, columns=request["columns"]):
            replies.write(message)
        words = ""
    except Refusal as reason:
        words = str(reason)
    except MemoryError:
        words = f"asks for more than {memory:,} bytes of memory while it is unpacked. Save the table as CSV."
    except Exception as reason:
        words = f"is not a Parquet file that can be read: {str(reason)[:300]}"
    if words:
        replies.write(struct.pack("<I", REFUSED) + _pack({"reason": words}))
    replies.flush()


if __name__ == "__main__":
    serve_table()
