"""Honest files to begin from, made by running a small federation; none are committed."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
from datetime import date
from pathlib import Path

import numpy as np


def federation(folder: Path) -> dict[str, list[bytes]]:
    """What a federation at level L2 sends and keeps: plan, bundles, ledger, final model."""
    from typer.testing import CliRunner

    from fedkt.cli import app

    def fedkt(*words: object) -> None:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exit_code:
            raise RuntimeError(f"fedkt {words[0]}: {result.output or result.exception}")

    rng = np.random.default_rng(0)
    plan, public = folder / "plan.toml", folder / "public.csv"
    for name in ("public", "north", "south"):
        rows = rng.normal(size=(40, 3)).round(3).tolist()
        lines = [",".join(map(str, [*row, "ab"[row[0] > 0], "rg"[row[1] > 0]])) for row in rows]
        (folder / f"{name}.csv").write_text("\n".join(["x,y,z,label,colour", *lines]) + "\n")
    fedkt(
        *("plan", "new", "--public", public, "--label", "label", "--classes", "a,b", "--party", "north"),
        *("--party", "south", "--model", "tree", "--level", "L2", "--mechanism", "gaussian", "--sigma", "8"),
        *("--queries", "30", "-o", plan),
    )
    for name in ("north", "south"):
        fedkt(
            *("party", plan, "--name", name, "--data", folder / f"{name}.csv", "--public", public),
            *("-o", folder / "inbox", "--work", folder / "work", "--ledger", folder / f"{name}.ledger"),
        )
    schema, told = folder / "schema.toml", folder / "told.toml"
    fedkt("public", "schema", public, "--label", "label", "--shares", "-o", schema)
    fedkt("public", "marginals", public, "--schema", schema, "--name", "north", "--epsilon", "1", "-o", told)
    fedkt("server", plan, "--public", public, "--bundles", folder / "inbox", "-o", folder / "result")
    return {
        "plan": [plan.read_bytes()],
        "bundle": [path.read_bytes() for path in sorted((folder / "inbox").glob("*.fedkt"))],
        "ledger": [(folder / "north.ledger").read_bytes()],
        "final": [path.read_bytes() for path in (folder / "result").rglob("final.onnx")],
        "schema": [schema.read_bytes(), plan.read_bytes()],
        "marginals": [told.read_bytes()],
        "csv": [public.read_bytes(), b'a;b\n1;"x\ny"\n'],
    }


def tables() -> dict[str, list[bytes]]:
    """Small tables of every kind."""
    npz = io.BytesIO()
    np.savez_compressed(
        npz, X=np.ones((3, 2), dtype=np.float32), y=np.array(["a", "b", "a"]), names=np.array(["p", "q"])
    )
    idx = struct.pack(">4B3I", 0, 0, 8, 3, 2, 2, 2) + bytes(range(8))
    return {
        "csv.gz": [gzip.compress(b"a,b\n1,2\n")],
        "csv.xz": [lzma.compress(b"a;b\n1,5;2\n")],
        "txt": ["a\tb\n1\t2\n".encode("utf-16"), "größe;b\n1,5;2\n".encode("cp1252"), b"sep=;\na;b\n1;2\n"],
        "xlsx": [_workbook()],
        "npz": [npz.getvalue()],
        "libsvm": [b"+1 1:2 3:4e-1 # first\n\n-1 2:1\n"],
        "idx": [idx],
        "idx.gz": [gzip.compress(idx)],
        "parquet": _parquet(),
    }


def _workbook() -> bytes:
    from openpyxl import Workbook

    book, stream = Workbook(), io.BytesIO()
    for row in (["a", "b"], [1, "x"], [date(2024, 3, 31), 2.5]):
        book.active.append(row)
    book.save(stream)
    return stream.getvalue()


def _parquet() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"n": [1, None, 3], "t": ["a", None, "b"], "d": pa.array([0, 1, None], type=pa.date32())})
    files = []
    for options in ({}, {"compression": "none", "use_dictionary": False}, {"data_page_version": "2.0"}):
        stream = io.BytesIO()
        pq.write_table(table, stream, **options)
        files.append(stream.getvalue())
    return files
