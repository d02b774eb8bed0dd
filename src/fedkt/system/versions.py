"""Which versions made something: one list for bundles, reports and unfinished work."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fedkt.errors import WorkerError
from fedkt.system.fast import has_fast

PACKAGES = (
    "numpy",
    "scikit-learn",
    "onnx",
    "onnxruntime",
    "skl2onnx",
    "xgboost-cpu",
    "xgboost",
    "lightgbm",
    "catboost",
    "torch",
    "numba",
)
"""What a trained or converted model depends on; those that are not installed are left out."""
LIBRARIES = ("scipy", "joblib", "numba", "llvmlite", "threadpoolctl")
"""What trains and asks models beside them."""


@cache
def made_by() -> dict[str, str]:
    """What a result depends on besides its inputs: versions, the kind of machine, and fedkt's own source."""
    # A clone is another program from one line to the next, and of one version all the while.
    source = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source.update(hashlib.sha256(path.read_bytes()).digest())
    return versions(*LIBRARIES) | {"machine": platform.machine(), "source": source.hexdigest()}


def versions(*more: str) -> dict[str, str]:
    """The versions that a result depends on, by name; of these packages too."""
    from fedkt import __version__

    numbers = {"fedkt": __version__, "python": platform.python_version()}
    for package in (*PACKAGES, *more):
        if package == "numba" and not has_fast():
            continue
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            continue
    return numbers


def check_same(who: str, theirs: Mapping[str, str]) -> None:
    """Refuse a worker on which fedkt, or a library that trains, is another than here: its models would be others."""
    for name, own in versions().items():
        if name in theirs and theirs[name] != own:
            raise WorkerError(f"{who} has {name} {theirs[name]}, and here is {own}. Install the same on all machines.")
