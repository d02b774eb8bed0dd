"""What reading a hostile data file costs: peak memory, seconds and verdict, beside honest files of a common size.

    python benchmarks/hostile_files.py            # hostile files only, a minute
    python benchmarks/hostile_files.py --honest   # also Adult, MNIST and a million rows, in size

Every file is made here, read in a process of its own and removed. A reader's peak is its own and that of its child.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

READ = """
import json, resource, sys, time
from pathlib import Path
start = time.perf_counter()
if sys.argv[1].endswith(".toml"):
    from fedkt.plan import read_plan as read
else:
    from fedkt.data.table import read_table as read
try:
    verdict = f"{read(sys.argv[1]).n_rows:,} rows"
except Exception as reason:
    verdict = f"{type(reason).__name__}: {reason}"
own = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps({"mb": (own + child) / 1024, "seconds": time.perf_counter() - start, "verdict": verdict}))
"""


def packed(start: bytes, block: bytes, times: int) -> bytes:
    """A gzip file of `start` and `block` so many times."""
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as file:
        file.write(start)
        for _ in range(times):
            file.write(block)
    return stream.getvalue()


def parquet_of_one_number(path: Path) -> None:
    """100 million times the same number, as a run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("x", pa.int32())])
    block = pa.table({"x": np.zeros(10_000_000, dtype=np.int32)}, schema=schema)
    with pq.ParquetWriter(path, schema, compression="zstd", data_page_version="2.0") as writer:
        for _ in range(10):
            writer.write_table(block, row_group_size=10_000_000)


def parquet_of_one_text(path: Path) -> None:
    """One text of 100,000 characters, named by 50,000 rows: 5 GB if every row gets its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pa.DictionaryArray.from_arrays(np.zeros(50_000, dtype=np.int32), pa.array(["x" * 100_000]))
    # Without the Arrow schema in the footer the reader is told of plain text.
    pq.write_table(pa.table({"t": column}), path, store_schema=False)


def parquet_of_one_page(path: Path) -> None:
    """One page of 1.6 GB of zeros, which zstd makes small."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"x": pa.array([b"\0" * 1_600_000_000])})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)


def parquet_of_lists(path: Path) -> None:
    """One row, in it a list of 100 million numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = pa.array(np.zeros(100_000_000, dtype=np.int8))
    pq.write_table(pa.table({"x": pa.ListArray.from_arrays([0, len(numbers)], numbers)}), path, compression="zstd")


def npz_of_zeros(path: Path) -> None:
    """X of 400 million bytes, all zero."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (4_000_000, 100)})
        for _ in range(400):
            file.write(bytes(1_000_000))


def npz_of_names(path: Path) -> None:
    """One column, whose name is an array of 400 MB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("X.npy", "w") as file:
            np.save(file, np.zeros((2, 1)))
        with archive.open("names.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<U100000000", "fortran_order": False, "shape": (1,)})
            for _ in range(400):
                file.write(b"a\0\0\0" * 250_000)


def idx_of_zeros(path: Path) -> None:
    """490 million pixels, all black."""
    path.write_bytes(packed(struct.pack(">4B3I", 0, 0, 8, 3, 4_900, 100, 1_000), bytes(1_000_000), 490))


def png_that_claims(path: Path) -> None:
    """A folder of one PNG of 30,000 × 30,000 pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    path.mkdir()
    head = struct.pack(">2I5B", 30_000, 30_000, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(30_001 * 30_000))
    (path / "a.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def bytes_of(make: Callable[[], bytes]) -> Callable[[Path], None]:
    """A maker of a file with these bytes."""
    return lambda path: path.write_bytes(make()) and None


HOSTILE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "one number, 100 million rows": ("a.parquet", parquet_of_one_number),
    "one long text, 50,000 rows": ("b.parquet", parquet_of_one_text),
    "one page of 1.6 GB": ("c.parquet", parquet_of_one_page),
    "a list of 100 million": ("d.parquet", parquet_of_lists),
    "40 million short rows": ("e.csv.gz", bytes_of(lambda: packed(b"a,b\n", b"1,2\n" * 100_000, 400))),
    "one line of 1 GB": ("f.csv.gz", bytes_of(lambda: packed(b"", b"a" * 1_000_000, 1_000))),
    "one row, quoted over 50 million lines": ("g.csv.gz", bytes_of(lambda: packed(b'a\n"', b'\n","' * 100_000, 500))),
    "a header of 200 million names": ("h.csv.gz", bytes_of(lambda: packed(b"a", b",b" * 500_000, 400))),
    "50 million values": ("i.csv.gz", bytes_of(lambda: packed(b"a\n", b"1\n" * 500_000, 100))),
    "X of 400 million zeros": ("j.npz", npz_of_zeros),
    "a name of 400 MB": ("k.npz", npz_of_names),
    "490 million black pixels": ("l-images-idx3-ubyte.gz", idx_of_zeros),
    "5,000 rows, 100,000 wide": ("m.libsvm", bytes_of(lambda: b"1 1:1 100000:1\n" * 5_000)),
    "one line of 20 million pairs": ("n.libsvm", bytes_of(lambda: b"1" + b" 1:1" * 20_000_000)),
    "30,000 × 30,000 pixels": ("o", png_that_claims),
    "a key of 60,000 parts": ("p.toml", bytes_of(lambda: b".".join([b"a"] * 60_000) + b" = 1\n")),
    "a table of 60,000 parts": ("q.toml", bytes_of(lambda: b"[" + b".".join([b"a"] * 60_000) + b"]\n")),
    "600,000 tables": (
        "r.toml",
        bytes_of(lambda: b"format = 1\n" + b"".join(b"[[a%d]]\n" % place for place in range(600_000))),
    ),
}


def adult_like(path: Path) -> None:
    """48,842 rows of 15 columns."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(1_000, 100_000, (48_842, 6))
    words = rng.choice(["Private", "State-gov", "Never-married", "Adm-clerical", "Not-in-family"], (48_842, 9))
    lines = [",".join([*map(str, n), *w]) for n, w in zip(numbers.tolist(), words.tolist(), strict=True)]
    path.write_text(",".join(f"c{j}" for j in range(15)) + "\n" + "\n".join(lines) + "\n")


def mnist_like(path: Path) -> None:
    """60,000 images of 28 × 28, a fifth of their pixels not black."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, 60_000 * 784, dtype=np.uint8)
    pixels[rng.random(len(pixels)) < 0.8] = 0
    path.write_bytes(gzip.compress(struct.pack(">4B3I", 0, 0, 8, 3, 60_000, 28, 28) + pixels.tobytes(), 1))


def million_rows(path: Path) -> None:
    """A million rows: five decimals, three categories."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write("a,b,c,d,e,f,g,h\n")
        for _ in range(10):
            numbers = rng.normal(size=(100_000, 5)).round(6).tolist()
            words = rng.choice(["red", "green", "blue"], (100_000, 3)).tolist()
            file.writelines(",".join([*map(str, n), *w]) + "\n" for n, w in zip(numbers, words, strict=True))


def million_rows_of_parquet(path: Path) -> None:
    """The same million rows."""
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    million_rows(path.with_suffix(".csv"))
    pq.write_table(csv.read_csv(path.with_suffix(".csv")), path)


def million_rows_of_npz(path: Path) -> None:
    """A million rows of 50 decimals."""
    np.savez(path, X=np.random.default_rng(0).normal(size=(1_000_000, 50)).astype(np.float32))


HONEST: dict[str, tuple[str, Callable[[Path], None]]] = {
    "Adult in size": ("honest-a.csv", adult_like),
    "MNIST in size": ("honest-b-images-idx3-ubyte.gz", mnist_like),
    "a million rows, CSV": ("honest-c.csv", million_rows),
    "a million rows, Parquet": ("honest-d.parquet", million_rows_of_parquet),
    "a million rows of 50, NPZ": ("honest-e.npz", million_rows_of_npz),
}


def measured(path: Path) -> dict[str, float | str]:
    """Peak memory, seconds and verdict of reading one file in a process of its own."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True)
    if done.returncode:
        return {
            "mb": float("nan"),
            "seconds": time.perf_counter() - start,
            "verdict": f"the process ended with code {done.returncode}",
        }
    figures: dict[str, float | str] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Makes the files and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--honest", action="store_true", help="also files as people have them")
    files = HOSTILE | (HONEST if parser.parse_args().honest else {})
    print("| file | kind | bytes | peak MB | seconds | verdict |\n|---|---|---|---|---|---|")
    for words, (name, make) in files.items():
        with tempfile.TemporaryDirectory(prefix="fedkt-hostile-") as folder:
            path = Path(folder) / name
            make(path)
            size = sum(each.stat().st_size for each in path.iterdir()) if path.is_dir() else path.stat().st_size
            figures = measured(path)
            verdict = str(figures["verdict"]).replace(f"{folder}/", "").replace("|", "\\|").splitlines()[0][:160]
            kind = "png" if path.is_dir() else name.partition(".")[2] or "idx.gz"
            print(
                f"| {words} | {kind} | {size:,} | {figures['mb']:,.0f} | {figures['seconds']:.1f} | {verdict} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
