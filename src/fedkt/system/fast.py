"""Whether what the extra `fast` brings is used."""

from __future__ import annotations

import os
from importlib.util import find_spec

SWITCH = "FEDKT_FAST"
"""The environment variable that is set to 0 by who wants scikit-learn's own forests, as results without numba have."""


def has_fast() -> bool:
    """Whether numba is installed and nobody has switched it off. Results depend on it, so `versions` has it."""
    return os.environ.get(SWITCH) != "0" and find_spec("numba") is not None
