"""Which versions made something: one list for bundles, reports and unfinished work."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

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
