"""The readers of received bytes. Each reads, or raises one of fedkt's own errors; anything else is a finding."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(".fuzz")
"""Where seeds, what was learnt and findings lie."""


def read_bundle(data: bytes) -> object:
    """A bundle, as the server unpacks it."""
    from fedkt.bundle import Expected, unpack

    return unpack(data, source="b", expected=Expected(max_models=2, parties=("north", "south"), **_agreed()))


def read_manifest(data: bytes) -> object:
    """A bundle, as `fedkt inspect` looks into it."""
    from fedkt.bundle import peek

    return peek(data, source="b")


def read_graph(data: bytes) -> object:
    """A model in ONNX."""
    from fedkt.models.onnx_rules import check_graph

    agreed = _agreed()
    return check_graph(data, n_features=agreed["n_features"], n_classes=len(agreed["classes"]), soft=True)


def read_card(data: bytes) -> object:
    """What a final model says about itself."""
    from fedkt.final_card import parse_card

    return parse_card(data, "final.onnx")


def read_plan(data: bytes) -> object:
    """A plan."""
    from fedkt.plan import parse_plan

    return parse_plan(data, "plan.toml")


def read_schema(data: bytes) -> object:
    """What is known of columns, and a row that is made of it."""
    from fedkt.live.made_rows import from_schema

    return from_schema(_written(data, ".toml")).copula.draw(1, np.random.default_rng(0))


def read_marginals(data: bytes) -> object:
    """What a party tells of its columns, and a row that is made of it."""
    from fedkt.live.made_rows import from_marginals

    return from_marginals([_written(data, ".toml")]).copula.draw(1, np.random.default_rng(0))


def read_ledger(data: bytes) -> object:
    """A ledger file without its head."""
    from fedkt.privacy.ledger_file import LedgerFile

    with tempfile.TemporaryDirectory(dir=_folder()) as folder:
        path = Path(folder) / "ledger"
        path.write_bytes(data)
        return LedgerFile.open(path, create=False)


def read_table(data: bytes, ending: str) -> object:
    """A table in a file with this ending."""
    from fedkt.data.table import read_table as read

    return read(_written(data, ending))


def read_parquet(data: bytes) -> object:
    """A Parquet file, in this process: a crash of the library, which a child process bears otherwise, shows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fedkt.data.columns import MAX_COLUMNS
    from fedkt.data.parquet_child import Refusal, messages
    from fedkt.errors import DataError

    try:
        return sum(len(each) for each in messages(pa, pq, io.BytesIO(data), columns=MAX_COLUMNS))
    except (Refusal, pa.ArrowException, OSError, ValueError, MemoryError, KeyError, TypeError, OverflowError) as reason:
        # The child turns every exception into words.
        raise DataError(str(reason)) from reason


@cache
def _agreed() -> dict[str, Any]:
    """What the plan of the seeds says, so that their bundles are taken."""
    from fedkt.plan import parse_plan

    plan = parse_plan((FOLDER / "seeds" / "plan" / "0").read_bytes(), "plan.toml")
    return {"plan": plan.digest, "classes": plan.classes, "n_features": plan.columns.n_features}


def _written(data: bytes, ending: str) -> Path:
    path = _folder() / f"{os.getpid()}{ending}"
    path.write_bytes(data)
    return path


def _folder() -> Path:
    """A folder in memory, where there is one."""
    return Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())


TARGETS: dict[str, tuple[Callable[[bytes], object], str]] = {
    "bundle": (read_bundle, "bundle"),
    "manifest": (read_manifest, "bundle"),
    "graph": (read_graph, "final"),
    "card": (read_card, "final"),
    "plan": (read_plan, "plan"),
    "schema": (read_schema, "schema"),
    "marginals": (read_marginals, "marginals"),
    "ledger": (read_ledger, "ledger"),
    "csv": (partial(read_table, ending=".csv"), "csv"),
    "csv.gz": (partial(read_table, ending=".csv.gz"), "csv.gz"),
    "csv.xz": (partial(read_table, ending=".csv.xz"), "csv.xz"),
    "txt": (partial(read_table, ending=".txt"), "txt"),
    "xlsx": (partial(read_table, ending=".xlsx"), "xlsx"),
    "npz": (partial(read_table, ending=".npz"), "npz"),
    "libsvm": (partial(read_table, ending=".libsvm"), "libsvm"),
    "idx": (partial(read_table, ending="-images-idx3-ubyte"), "idx"),
    "idx.gz": (partial(read_table, ending="-images-idx3-ubyte.gz"), "idx.gz"),
    "parquet": (read_parquet, "parquet"),
}
"""Reader and kind of seed by name."""
