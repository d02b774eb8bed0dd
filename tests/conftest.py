"""One thread a process for the numeric libraries: `-n auto` gives every core a process, and tests start more."""

import gc
import os

import pytest

# A library reads it when it is loaded, which comes after this file; children inherit it.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(variable, "1")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Tests and libraries stay to the end: of the time to collect them a third was a search for what may go."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
