"""Where work is spread: processes of this machine, or a cluster's. Adding one is one file here and one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from fedkt.errors import ConfigurationError
from fedkt.system.backends.backend import Backend
from fedkt.system.backends.dask import Dask
from fedkt.system.backends.loky import Loky
from fedkt.system.backends.ray import Ray

BACKENDS: dict[str, type[Backend]] = {each.name: each for each in (Loky, Dask, Ray)}
"""The backends by the name they have on the command line."""
_active: ContextVar[Backend | None] = ContextVar("backend", default=None)


def backend_for(jobs: int, *, stay: bool = False) -> Backend | None:
    """The backend of the block we are in; outside of any, so many processes of this machine, None where it is one.

    What should `stay` is no work for a cluster.
    """
    cluster = _active.get()
    if cluster is None:
        return Loky(jobs) if jobs > 1 else None
    return None if stay else cluster


@contextmanager
def on_backend(text: str | None, jobs: int | None) -> Iterator[int]:
    """How much is done at the same time inside the block, in which work goes to `dask=tcp://host:8786`, say.

    Without a text it goes to so many processes of this machine, without a number to one.
    """
    name, _, address = (text or Loky.name).partition("=")
    if name not in BACKENDS:
        raise ConfigurationError(f"--backend is one of {', '.join(BACKENDS)}, or like dask=ADDRESS; got {text!r}.")
    with BACKENDS[name].connect(address, jobs) as backend, _use(None if name == Loky.name else backend):
        yield backend.jobs


@contextmanager
def joblibs_backend(jobs: int | None) -> Iterator[int]:
    """How much is done at the same time inside the block, in which work goes where `joblib.parallel_config` sends it.

    A cluster that is active in joblib gets whole blocks of work; what is inside them is not spread again.
    """
    from joblib import effective_n_jobs, parallel_config
    from joblib.parallel import get_active_backend

    active, _ = get_active_backend()
    kind = next((each for each in BACKENDS.values() if each.joblib_name == type(active).__name__), Loky)
    if kind is Loky:
        yield int(effective_n_jobs(jobs))
        return
    with parallel_config(backend="sequential"):
        backend = kind.connected(active, jobs)
        if backend is None:
            # Whoever waits in a worker for other workers holds one up, and all of them in the end.
            yield 1
            return
        with _use(backend):
            yield backend.jobs


@contextmanager
def _use(backend: Backend | None) -> Iterator[None]:
    before = _active.set(backend)
    try:
        yield
    finally:
        _active.reset(before)
