"""A Dask cluster: the scheduler at an address, or workers of its own on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import Any

from fedkt.errors import ConfigurationError, WorkerError
from fedkt.system.backends.backend import INSTALL, Backend, Numbered, Queue, Results, Work, block_results
from fedkt.system.versions import check_same, versions

ADDRESS = re.compile(r"inproc://[^\s/]+/\d+/\d+|([a-z]+://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}")
"""HOST:PORT, after a protocol or none; or a scheduler inside this process."""
SECONDS = 10
"""How long a scheduler may take to answer, and its first worker to come."""


class Dask(Backend):
    """The workers of a Dask cluster, one block of work each at a time."""

    name = "dask"
    joblib_name = "DaskDistributedBackend"

    def __init__(self, client: Any, jobs: int) -> None:
        # Never one: that would be this process, whose CPU seconds a report tells as all there are.
        super().__init__(max(2, jobs))
        self.client = client

    @classmethod
    @contextmanager
    def connect(cls, address: str, jobs: int | None) -> Iterator[Backend]:
        """The cluster at this address; where that is empty, workers of this machine, one a core or `jobs`."""
        try:
            from distributed import Client, LocalCluster
            from distributed.comm.addressing import resolve_address
        except ImportError as reason:
            raise ConfigurationError(f"The backend dask needs distributed ({reason}). {INSTALL}") from reason
        with ExitStack() as stack:
            if not address:
                local = LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None, silence_logs=50)
                address = stack.enter_context(local).scheduler_address
            elif not ADDRESS.fullmatch(address):
                # The client would try it for half a minute, and end with a traceback.
                raise ConfigurationError(
                    f"--backend dask={address} has no address of a scheduler. It is like dask=tcp://HOST:8786."
                )
            try:
                # A client of no address at all would wait for itself when it is let go, and end in a traceback.
                resolve_address(address)
                client = stack.enter_context(Client(address, timeout=SECONDS, set_as_default=False))
            except (OSError, TypeError, ValueError) as reason:
                raise WorkerError(
                    f"No Dask scheduler answers at {address}: {reason}. Start one with `dask scheduler`, workers with "
                    "`dask worker ADDRESS --nthreads 1`, and give --backend dask=ADDRESS."
                ) from reason
            yield cls(client, _check_workers(client, jobs))

    @classmethod
    def connected(cls, active: Any, jobs: int | None) -> Backend | None:
        """The cluster of joblib's backend."""
        from distributed import get_worker

        with suppress(ValueError):
            get_worker()
            return None
        return cls(active.client, _check_workers(active.client, jobs))

    def spread(self, work: Work, tasks: Sequence[Numbered], weights: Sequence[int]) -> Results:
        """The results as the workers give them; Dask has the block of a worker that died done by another."""
        import dask.config
        from distributed import KilledWorker, as_completed

        queue = Queue(work, tasks, weights)
        # To all workers: what one of them holds alone would go with it.
        placed = [self.client.scatter(each, broadcast=True, hash=False) for each in queue.share()]
        blocks = iter(lambda: queue.block(self.jobs), None)
        running = as_completed(loop=self.client.loop)
        # A block with its rows is what a task here is; that it is large, nobody needs to be told.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10 GiB"}):
            try:
                # One at work and one waiting: what a scheduler holds is bounded.
                for block in islice(blocks, 2 * self.jobs):
                    running.add(self.client.submit(block_results, block, placed, pure=False))
                for done in running:
                    results = done.result()
                    for block in islice(blocks, 1):
                        running.add(self.client.submit(block_results, block, placed, pure=False))
                    yield from results
            except KilledWorker as reason:
                raise WorkerError(
                    f"A block of work took several workers of the Dask cluster with it, for want of memory as a rule: "
                    f"{reason}"
                ) from reason
            finally:
                queue.clear()
                self.client.cancel([*running.futures, *placed])


def _check_workers(client: Any, jobs: int | None) -> int:
    """How many workers there are, or `jobs` of them; refused where there is none, or one with other versions."""
    with suppress(TimeoutError):
        client.wait_for_workers(1, timeout=SECONDS)
    try:
        found = client.run(versions)
    except ModuleNotFoundError as reason:
        raise WorkerError(
            f"A worker of the Dask cluster lacks {reason.name}. Install there what is installed here."
        ) from reason
    if not found:
        raise WorkerError(
            f"The Dask scheduler at {client.scheduler.address} has no workers. Start some: `dask worker "
            f"{client.scheduler.address} --nthreads 1`."
        )
    for worker, numbers in found.items():
        check_same(f"The Dask worker {worker}", numbers)
    return min(len(found), jobs or len(found))
