"""The program that unpacks a received Parquet file: numpy, pyarrow and walls, nothing else of fedkt.

It is started as a file, `python -I parquet_child.py REQUEST PLACE…`, with the Parquet file as its standard input. The
request is JSON and says how many columns there may be, which of them are asked for (all, if none are named), what the
walls leave it (see `raise_walls`) and whose child it is. It raises its walls before it reads a byte of the file, and
answers on its standard output.

All numbers are little-endian, those without a type have 32 bits. First the head {"names": […], "kinds": "nt-…",
"rows": …} as the length of its JSON and the JSON; then batches: the number of rows, and for every column of numbers (n)
its float64, for one of texts (t) JSON in the same way as the head, and for every row in 16 bits which text it has; for
one that nobody asked for (-), nothing. {"new": […]} are texts that come after those of the column's earlier batches;
{"own": […]} are all texts of this batch, where there would be too many of them to be kept. No rows are the end.
2³² − 1 in the place of the head's length or of a number of rows is followed by {"reason": …}.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
import zoneinfo
from collections.abc import Collection, Iterator
from datetime import datetime
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

if __name__ == "__main__":
    # Where the parent found numpy and pyarrow; an isolated interpreter ignores PYTHONPATH.
    sys.path.extend(sys.argv[2:])

import numpy as np
from numpy.typing import NDArray

BATCH_VALUES = 2**20
BATCH_ROWS = 65_536, 8_192
"""Rows of a batch, and of one with long texts. No more than 16 bits tell apart."""
SHORT_TEXTS = 16 * 2**20
"""Bytes of the texts of a large batch, as far as the file says how many there are."""
KEPT = 65_536
"""Different texts of a column that are sent once only."""
EXACT_DIGITS, EXACT_POWER = 15, 22
"""Whole numbers of so many digits, and so high a power of ten, are exact as float64."""
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


def messages(pa: Any, pq: Any, source: Any, *, columns: int, wanted: Collection[str] = ()) -> Iterator[Any]:
    """The whole answer about a Parquet file, which may have so many columns, or about those that are wanted."""
    # Page by page and on one thread, so that little of the file is unpacked at a time.
    options = {"pre_buffer": False, "memory_map": False}
    first = pq.ParquetFile(source, **options)
    names = first.schema_arrow.names
    # Of two columns with one name the wrong one might be read: then all are, and are refused for their names.
    some_names = set(wanted) if len(set(names)) == len(names) else set()
    fields = _fields(first, columns)
    kinds = [_kind(pa, field) if not some_names or field.name in some_names else "-" for field in fields]
    asked = [place for place, kind in enumerate(kinds) if kind != "-"]
    yield _pack({"names": names, "kinds": "".join(kinds), "rows": first.metadata.num_rows})
    if not asked:
        yield from (struct.pack("<I", rows) for rows in _steps(first.metadata.num_rows))
        yield struct.pack("<I", 0)
        return
    texts = [names[place] for place in asked if _is_text(pa, first.schema_arrow.field(place).type)]
    # Texts stay numbers of texts: one that all rows name is here once.
    file = pq.ParquetFile(source, metadata=first.metadata, read_dictionary=texts, **options) if texts else first
    places: dict[int, dict[str, int]] = {place: {} for place in asked if kinds[place] == "t"}
    # Lists and structures that nobody asks for move the places of what is stored.
    stored = {first.metadata.schema.column(place).path: place for place in range(first.metadata.num_columns)}
    most = BATCH_ROWS[0 if all(_short(first.metadata, stored[names[place]]) for place in places) else 1]
    rows = max(1, min(most, BATCH_VALUES // len(asked)))
    # Asked about "a", the library gives "a.b" as well.
    some = {} if len(asked) == len(kinds) else {"columns": [names[place] for place in asked]}
    for batch in file.iter_batches(batch_size=rows, use_threads=False, **some):
        if not batch.num_rows:
            continue
        # A batch is sent whole or not at all: words in the midst of numbers would be taken for numbers.
        parts: list[Any] = [struct.pack("<I", batch.num_rows)]
        for place in asked:
            column = batch.column(names[place] if some else place)
            if kinds[place] == "n":
                parts.append(np.ascontiguousarray(_numbers(pa, column), dtype="<f8").view(np.uint8).data)
            else:
                parts += _coded(*_texts(pa, column, names[place]), places[place])
        yield from parts
    yield struct.pack("<I", 0)


def _steps(rows: int) -> Iterator[int]:
    """Numbers of rows that come to so many in all, for a table of which no column is asked for."""
    while rows > 0:
        yield min(rows, 2**31)
        rows -= 2**31


def _short(metadata: Any, place: int) -> bool:
    """Whether the texts of a column in a large batch are few bytes, by what the file says."""
    groups = (metadata.row_group(each) for each in range(metadata.num_row_groups))
    sizes = [(group.column(place).total_uncompressed_size, max(group.num_rows, 1)) for group in groups]
    return all(size <= SHORT_TEXTS or size * BATCH_ROWS[0] <= SHORT_TEXTS * rows for size, rows in sizes)


def _coded(different: list[str], codes: NDArray[Any], places: dict[str, int]) -> list[bytes]:
    """The texts of a batch as they are sent: those that are new, and for each row the place of its text."""
    new = [text for text in dict.fromkeys(different) if text not in places]
    if len(places) + len(new) > KEPT:
        return [_pack({"own": different}), codes.astype("<u2").tobytes()]
    places.update(zip(new, range(len(places), len(places) + len(new)), strict=True))
    kept = np.fromiter(map(places.__getitem__, different), dtype="<u2", count=len(different))
    return [_pack({"new": new}), kept[codes].tobytes()]


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
        exact = _short_decimals(pa, column)
        if exact is not None:
            return exact
        return np.array([np.nan if each is None else float(each) for each in column.to_pylist()], dtype=np.float64)
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _short_decimals(pa: Any, column: Any) -> NDArray[np.float64] | None:
    """Decimals whose digits and power of ten a float64 holds, so that one division is exact; None for longer ones."""
    kind = column.type
    if not (pa.types.is_decimal128(kind) and kind.precision <= EXACT_DIGITS and 0 <= kind.scale <= EXACT_POWER):
        return None
    # Of 128 bits the lower half is the number, the upper its sign once more.
    halves = np.frombuffer(column.buffers()[1], dtype="<i8", count=2 * (column.offset + len(column)))
    numbers = halves[2 * column.offset :: 2] / 10.0**kind.scale
    numbers[column.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return np.asarray(numbers, dtype=np.float64)


def _texts(pa: Any, column: Any, name: str) -> tuple[list[str], NDArray[Any]]:
    """The different texts of a column, "" for null, and for every row which of them it has."""
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, AttributeError):
            every = ["" if each is None else str(each) for each in column.to_pylist()]
            return every, np.arange(len(every))
    places = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    distinct, codes = _distinct(places, len(column.dictionary))
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


def _distinct(places: NDArray[Any], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The different places in order, and which of them each row has; all below `most`, and -1."""
    if most > 2 * len(places) or (len(places) and not -1 <= places.min() <= places.max() < most):
        distinct, codes = np.unique(places, return_inverse=True)
        return distinct, codes
    # Without a sort: by a mark at each place that occurs.
    marks = np.zeros(most + 1, dtype=np.int64)
    marks[places + 1] = 1
    distinct = np.flatnonzero(marks) - 1
    marks[distinct + 1] = np.arange(len(distinct))
    return distinct, marks[places + 1]


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
        for message in messages(pa, pq, source, columns=request["columns"], wanted=request["wanted"]):
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
