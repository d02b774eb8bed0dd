"""One thread for the numeric libraries of this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

_held: ThreadpoolController | None = None
"""The libraries that the innermost block holds to one thread."""


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for every numeric library inside the block: models are spread over cores, not their insides.

    A block within a block costs nothing, but where a library came since.
    """
    global _held
    # A library comes with a module, and the module imported last stands last.
    libraries = _numeric_libraries(len(sys.modules), next(reversed(sys.modules)))
    if libraries is _held:
        yield
        return
    before = _held
    with libraries.limit(limits=1):
        _held = libraries
        try:
            yield
        finally:
            _held = before


@lru_cache(maxsize=1)
def _numeric_libraries(modules: int, last: str) -> ThreadpoolController:
    """The numeric libraries of this process, looked for only when modules came: that takes longer than a small tree."""
    return ThreadpoolController()
