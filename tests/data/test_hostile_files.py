"""Small files that stand for large tables: refused before they take memory; honest files are read as before."""

from __future__ import annotations

import gzip
import io
import struct
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from fedkt.data import bounds
from fedkt.data.agreed_column import Column
from fedkt.data.format import PLAIN, Format
from fedkt.data.schema import Schema, fit_schema
from fedkt.data.table import Table, read_table
from fedkt.errors import DataError


@pytest.fixture
def little(monkeypatch):
    """A file may take a megabyte or a hundred times its size: what is refused need not be large."""
    monkeypatch.setattr(bounds, "ALLOWANCE", 2**20)


def npz(path: Path, **members: tuple[str, tuple[int, ...], bytes]) -> Path:
    """An NPZ file of arrays given as type, shape and content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (descr, shape, content) in members.items():
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(head, {"descr": descr, "fortran_order": False, "shape": shape})
            archive.writestr(f"{name}.npy", head.getvalue() + content)
    return path


def parquet(path: Path, columns: dict[str, object], **options: object) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, **options)
    return path


def test_a_packed_text_that_unpacks_to_far_more_is_refused_and_the_same_text_unpacked_is_read(tmp_path, little):
    text = b"a,b\n" + b"1,2\n" * 200_000
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    with pytest.raises(DataError, match=r"a\.csv\.gz has [0-9,]+ bytes and unpacks to more than .*gunzip"):
        read_table(tmp_path / "a.csv.gz")
    (tmp_path / "a.csv").write_bytes(text)
    assert read_table(tmp_path / "a.csv").n_rows == 200_000


def test_a_packed_idx_file_that_unpacks_to_far_more_is_refused(tmp_path, little):
    head = struct.pack(">4B3I", 0, 0, 8, 3, 2_000, 28, 28)
    (tmp_path / "a-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + bytes(2_000 * 784)))
    with pytest.raises(DataError, match="unpacks to more than"):
        read_table(tmp_path / "a-images-idx3-ubyte.gz")


def test_no_more_is_unpacked_than_is_allowed_however_much_is_asked_for(tmp_path, little, monkeypatch):
    monkeypatch.setattr(bounds, "BLOCK", 1_000)
    sizes = []
    readinto = gzip.GzipFile.readinto
    monkeypatch.setattr(gzip.GzipFile, "readinto", lambda self, b: sizes.append(len(b)) or readinto(self, b))
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(4_000_000)))
    with bounds.open_bytes(tmp_path / "a.gz", cost=2) as stream, pytest.raises(DataError, match="unpacks to more"):
        stream.read(4_000_000)
    assert max(sizes) == 1_000
    assert sum(sizes) <= 2**20 // 2 + 1_000


@pytest.mark.parametrize(
    "content", [b"a" * 9_000_000, b'a\n"' + b'\n","' * 2_500_000, b"a" + b",b" * 5_000_000], ids=["line", "row", "head"]
)
def test_a_row_without_end_is_refused(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match="more than 8,388,608 characters"):
        read_table(tmp_path / "a.csv")


def test_a_libsvm_line_without_end_is_refused(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1" + b" 1:1" * 2_500_000)
    with pytest.raises(DataError, match="more than 8,388,608 characters"):
        read_table(tmp_path / "a.svm")
    (tmp_path / "b.svm").write_bytes(b"1" + b" 1:1" * 100_001)
    with pytest.raises(DataError, match="line 1: 100,001 features, more than"):
        read_table(tmp_path / "b.svm")


def test_a_short_libsvm_file_of_wide_rows_is_refused(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 100000:1\n" * 4_000)
    with pytest.raises(DataError, match=r"44,000 bytes and would take 3,200,000,000"):
        read_table(tmp_path / "a.svm")


def test_an_npz_of_zeros_is_refused_before_it_is_unpacked(tmp_path, little):
    path = npz(tmp_path / "a.npz", X=("|u1", (20_000, 100), bytes(2_000_000)))
    with pytest.raises(DataError, match="would take 2,000,000 in memory"):
        read_table(path)
    # Labels count too: of one byte each, they become eight.
    path = npz(tmp_path / "b.npz", X=("|u1", (90_000, 1), bytes(90_000)), y=("|u1", (90_000,), bytes(90_000)))
    with pytest.raises(DataError, match="would take"):
        read_table(path)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"X": ("<f8", (10**9, 1), b"")}, "X has 0 bytes"),
        ({"X": ("<f8", (2, 1), bytes(15))}, "X has 15 bytes"),
        ({"X": ("<f8", (2, 1), bytes(17))}, "X has 17 bytes"),
        ({"X": ("|O", (2, 1), bytes(16))}, "Python objects"),
        ({"X": ("<f8", (2, 1), bytes(16)), "y": ("|O", (2,), bytes(16))}, "Python objects"),
        ({"X": ("<f8", (2, 1), bytes(16)), "names": ("<U501", (1,), b"a\0\0\0" * 501)}, "at most 500 characters"),
        ({"X": ("<f8", (2, 1), bytes(16)), "y": ("<U1001", (2,), b"a\0\0\0" * 2_002)}, "at most 1,000 characters"),
        ({"X": ("<f8", (-2, -1), bytes(16))}, "X has 16 bytes"),
    ],
)
def test_an_npz_whose_heads_do_not_fit_is_refused(tmp_path, members, words):
    with pytest.raises(DataError, match=words) as refused:
        read_table(npz(tmp_path / "a.npz", **members))
    assert str(refused.value).count("a.npz") == 1


def test_an_npz_with_a_damaged_array_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.arange(100.0).reshape(50, 2))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="plain arrays"):
        read_table(path)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i2", "|u1", "|b1", "<f2", ">i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npz_of_any_type_and_order_is_read_as_it_was_written(tmp_path, dtype, order, monkeypatch):
    monkeypatch.setattr("fedkt.data.matrices.BLOCK_BYTES", 64)
    X = np.array((np.arange(300) % 2 if dtype == "|b1" else np.arange(300) % 128), dtype=dtype).reshape(100, 3)
    np.savez_compressed(tmp_path / "a.npz", X=np.array(X, order=order))
    table = read_table(tmp_path / "a.npz")
    for place, values in enumerate(table.columns.values()):
        assert values.dtype.kind in "iuf"
        assert values.astype(float).tolist() == X[:, place].astype(float).tolist()


def test_a_parquet_file_of_one_number_a_million_times_is_refused(tmp_path, little):
    path = parquet(tmp_path / "a.parquet", {"x": np.zeros(1_000_000)})
    with pytest.raises(DataError, match="would take 8,000,000 in memory"):
        read_table(path)


def test_a_text_that_all_rows_of_a_parquet_file_name_is_there_once(tmp_path):
    pa = pytest.importorskip("pyarrow")
    long = "x" * 100_000
    column = pa.DictionaryArray.from_arrays(np.zeros(20_000, dtype=np.int32), pa.array([long]))
    table = read_table(parquet(tmp_path / "a.parquet", {"t": column}, store_schema=False))
    assert table.columns["t"].tolist() == [long] * 20_000
    assert len({id(each) for each in table.columns["t"]}) < 5


def test_different_texts_of_a_parquet_file_count_as_they_come(tmp_path, little):
    texts = [f"{place:x>400}" for place in range(5_000)]
    path = parquet(tmp_path / "a.parquet", {"t": texts}, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 21_000
    with pytest.raises(DataError, match="in memory"):
        read_table(path)


def test_a_page_that_unpacks_to_more_than_the_child_may_take_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fedkt.data.parquet.MEMORY", (64 * 2**20, 64 * 2**20))
    path = parquet(
        tmp_path / "a.parquet", {"t": [b"\0" * 100_000_000]}, compression="zstd", use_dictionary=False,
        write_statistics=False,
    )  # fmt: skip
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match=r"a\.parquet asks for more than 67,108,864 bytes of memory"):
        read_table(path)


def test_a_long_text_and_lists_in_a_parquet_file_are_refused(tmp_path):
    with pytest.raises(DataError, match="a text of 200,000 bytes in column 't'"):
        read_table(parquet(tmp_path / "a.parquet", {"t": ["y" * 200_000]}))
    with pytest.raises(DataError, match="lists or structures in column 'l'"):
        read_table(parquet(tmp_path / "b.parquet", {"l": [[1, 2], [3]]}))
    with pytest.raises(DataError, match="lists or structures in column 's'"):
        read_table(parquet(tmp_path / "c.parquet", {"s": [{"a": 1}]}))


def test_a_parquet_file_of_every_plain_type_is_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from datetime import datetime
    from decimal import Decimal

    columns = {
        "small": pa.array([1, None], type=pa.int8()),
        "half": pa.array(np.array([0.5, 2.0], dtype=np.float16)),
        "money": pa.array([Decimal("0.10"), None]),
        "blob": pa.array([b"a", None]),
        "when": pa.array([datetime(2020, 1, 2, 3), None]),
        "nothing": pa.array([None, None]),
        "code": pa.array([7, None]).dictionary_encode(),
        "big": pa.array([2**60 + 1, 3]),
        "long": pa.array(["é", None], type=pa.large_string()),
    }
    table = read_table(parquet(tmp_path / "a.parquet", columns))
    lists = {name: values.tolist() for name, values in table.columns.items()}
    assert lists["half"] == [0.5, 2.0]
    np.testing.assert_array_equal(lists["small"], [1.0, np.nan])
    np.testing.assert_array_equal(lists["money"], [0.1, np.nan])
    np.testing.assert_array_equal(lists["code"], [7.0, np.nan])
    assert lists["blob"] == ["b'a'", ""]
    assert lists["when"] == ["2020-01-02 03:00:00", ""]
    assert lists["nothing"] == ["", ""]
    assert lists["big"] == [float(2**60), 3.0]
    assert lists["long"] == ["é", ""]


def test_times_in_a_parquet_file_are_texts_that_keep_their_zone_and_their_nanoseconds(tmp_path):
    pa = pytest.importorskip("pyarrow")
    columns = {
        "zone": pa.array([1_600_000_000, None], type=pa.timestamp("s", "Europe/Berlin")),
        "offset": pa.array([0, None], type=pa.timestamp("us", "+05:30")),
        "nanos": pa.array([123_456_789, -1], type=pa.timestamp("ns")),
        "both": pa.array([123_456_789_123, 2_000], type=pa.timestamp("ns", "Asia/Kolkata")),
    }
    table = read_table(parquet(tmp_path / "a.parquet", columns))
    assert {name: values.tolist() for name, values in table.columns.items()} == {
        "zone": ["2020-09-13 14:26:40+02:00", ""],
        "offset": ["1970-01-01 05:30:00+05:30", ""],
        "nanos": ["1970-01-01 00:00:00.123456789", "1969-12-31 23:59:59.999999999"],
        "both": ["1970-01-01 05:32:03.456789123+05:30", "1970-01-01 05:30:00.000002+05:30"],
    }


def test_the_process_that_unpacks_parquet_is_taken_for_hostile(tmp_path, monkeypatch):
    path = parquet(tmp_path / "a.parquet", {"t": ["a", "b"], "x": [1.0, 2.0]})

    def frame(text: bytes) -> bytes:
        return struct.pack("<I", len(text)) + text

    head = frame(b'{"names": ["t"], "kinds": "t", "rows": 2}')
    for answer in (
        b"",
        frame(b"[]"),
        frame(b'{"names": ["t"], "kinds": "q", "rows": 2}'),
        frame(b'{"names": [], "kinds": "", "rows": 2}'),
        frame(b'{"names": ["t"], "kinds": "t", "rows": true}'),
        frame(b"[" * 100_000),
        struct.pack("<I", 2**31),
        head + struct.pack("<I", 3),
        head + struct.pack("<I", 0),
        head + struct.pack("<I", 2) + frame(b'["a"]') + struct.pack("<2I", 0, 1),
        head + struct.pack("<I", 2) + frame(b"[1]") + struct.pack("<2I", 0, 0),
        struct.pack("<I", 2**32 - 1) + frame(b'{"reason": "\\u001b[2J"}'),
    ):
        child = tmp_path / "child.py"
        child.write_text(f"import sys; sys.stdout.buffer.write({answer!r})")
        monkeypatch.setattr("fedkt.data.parquet.CHILD", child)
        with pytest.raises(DataError, match=r"a\.parquet") as caught:
            read_table(path)
        assert str(caught.value).isprintable()


def test_a_folder_of_black_images_is_refused_where_it_is_far_larger_than_its_files(tmp_path, little):
    pillow = pytest.importorskip("PIL.Image")
    for place in range(30):
        pillow.new("L", (300, 300)).save(tmp_path / f"{place}.png")
    with pytest.raises(DataError, match="would take 5,400,000 in memory"):
        read_table(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_million_short_values_take_few_bytes_each(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\n" + b"1,2\n" * 500_000)
    code = (
        "import sys; from fedkt.data.table import read_table; "
        "peak = lambda: int(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]); "
        "before = peak(); read_table(sys.argv[1]); print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.csv")], capture_output=True, check=True)
    # 2 MB of text; as lists of texts they were 100 MB.
    assert int(done.stdout) * 1024 < 16 * 2_000_000 + 16 * 2**20


@pytest.mark.parametrize(
    "text",
    [
        "1" + " " * 120_000 + "(",
        "2024-01-01 10:00" + " " * 120_000 + "x",
        " " * 120_000 + "x",
        "1.000" * 20_000,
        "1," * 60_000,
        "a" * 120_000 + "€",
        "9" * 120_000 + "x",
    ],
    ids=lambda text: text[:5].strip(),
)
@pytest.mark.parametrize("place", ["name", "value"])
def test_no_text_keeps_a_pattern_busy(tmp_path, text, place):
    head, cell = (text, "1") if place == "name" else ("age", text)
    (tmp_path / "a.csv").write_text(f'"{head}",ill\n"{cell}",yes\n', encoding="cp1252")
    for form in (PLAIN, Format(decimal=","), Format(units=(("ill", "mg"),), missing_values=("-",))):
        with suppress(DataError):
            fit_schema(read_table(tmp_path / "a.csv", form=form), label="ill")
    for column in (Column(name="age", kind="number"), Column(name="day", kind="number", date=True)):
        table = Table({column.name: np.array([text], dtype=object)}, "a.csv")
        with pytest.raises(DataError, match="not a"):
            Schema(columns=(column,), label="x").encode(table)
