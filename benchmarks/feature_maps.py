"""What a feature map weighs inside a plan, and what it costs to ask about a row at a time, behind walls.

python benchmarks/feature_maps.py [adult mnist …]
"""

from __future__ import annotations

import base64
import lzma
import sys
import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fedkt.algorithms.moments import Moments
from fedkt.data import load
from fedkt.data.dataset import Dataset
from fedkt.models.features.received import received_map

ROWS = 1_000


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """How long something takes, and what it gives."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def describe(name: str, data: Dataset, level: str) -> None:
    """Print what the map of a dataset weighs and costs."""
    made, features = seconds(partial(Moments(None, level=level).map_of, data.X_public, data.image))
    packed, smaller = zlib.compress(features.onnx, 9), lzma.compress(features.onnx)
    print(
        f"{name} {level}: {features.width} features, made in {made:.1f} s; graph {len(features.onnx):,} bytes, zlib "
        f"{len(packed):,}, lzma {len(smaller):,}, zlib in base64 {len(base64.b64encode(packed)):,}"
    )
    rows = np.asarray(data.X_public[:ROWS], dtype=np.float32)
    received = received_map(features.onnx, n_features=features.n_features, width=features.width)
    here, expected = seconds(partial(features, rows))
    apart, found = seconds(partial(received, rows))
    print(
        f"  {len(rows)} rows: {1e3 * here / len(rows):.2f} ms a row in blocks by numpy, {1e3 * apart / len(rows):.2f} "
        f"ms one by one in the sandbox, its start included; largest difference {np.abs(found - expected).max():.1e}"
    )


if __name__ == "__main__":
    for each in sys.argv[1:] or ["heart", "adult", "mnist"]:
        dataset = load(each, seed=200)
        for at in ("L0", "L2"):
            describe(each, dataset, at)
