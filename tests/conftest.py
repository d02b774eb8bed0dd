"""One thread a process for the numeric libraries: `-n auto` gives every core a process, and tests start more."""

import os

# A library reads it when it is loaded, which comes after this file; children inherit it.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(variable, "1")
