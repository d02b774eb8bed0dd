"""A Ray cluster: the one at an address, or one of its own on this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from fedkt.errors import ConfigurationError, WorkerError
from fedkt.system.backends.backend import INSTALL, Backend, Block, Numbered, Queue, Results, Work, block_results
from fedkt.system.versions import check_same, versions

SECONDS = 5
"""How long a head node may take to answer."""
RETRIES = 3
"""How often a block is done again whose worker died."""


class Ray(Backend):
    """The cores of a Ray cluster, one block of work each at a time."""

    name = "ray"
    joblib_name = "RayBackend"

    def __init__(self, jobs: int) -> None:
        # Never one: that would be this process, whose CPU seconds a report tells as all there are.
        super().__init__(max(2, jobs))

    @classmethod
    @contextmanager
    def connect(cls, address: str, jobs: int | None) -> Iterator[Backend]:
        """The cluster at this address (`auto`: this machine's), or cores of this machine."""
        # Ray reports to its makers unless told not to.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError as reason:
            raise ConfigurationError(f"The backend ray needs ray ({reason}). {INSTALL}") from reason
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": None}
        if address:
            _check_answers(address)
            own: dict[str, Any] = {"address": address}
        else:
            own = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
        try:
            ray.init(**quiet | own)
        except (ConnectionError, RuntimeError, ValueError) as reason:
            raise WorkerError(_no_answer(address, reason)) from reason
        try:
            yield cls(_check_cores(jobs))
        finally:
            ray.shutdown()

    @classmethod
    def connected(cls, active: Any, jobs: int | None) -> Backend | None:
        """The cluster that this program has joined."""
        import ray

        if ray.get_runtime_context().worker.mode == ray.WORKER_MODE:
            return None
        return cls(_check_cores(jobs))

    def spread(self, work: Work, tasks: Sequence[Numbered], weights: Sequence[int]) -> Results:
        """The results as the workers give them; Ray has the block of a worker that died done by another."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        queue = Queue(work, tasks, weights)
        placed = [ray.put(each) for each in queue.share()]
        blocks = iter(lambda: queue.block(self.jobs), None)
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_results)
        running: list[Any] = []
        try:
            while True:
                # One at work and one waiting: what the cluster holds is bounded.
                running += [remote.remote(block, *placed) for block in islice(blocks, 2 * self.jobs - len(running))]
                if not running:
                    return
                (done,), running = ray.wait(running)
                yield from ray.get(done)
        except RayError as reason:
            if isinstance(reason, RayTaskError) and not isinstance(reason.cause, RayError):
                raise reason.cause from reason
            raise WorkerError(
                "Workers of the Ray cluster could not do a block of work. As a rule they want memory, or a module that "
                f"only this machine has: {reason}"
            ) from reason
        finally:
            queue.clear()
            for each in running:
                ray.cancel(each, force=True)


def _results(block: Block, *shared: Any) -> list[Numbered]:
    return block_results(block, shared)


def _check_answers(address: str) -> None:
    """Refuse an address where nobody answers; Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if "//" in address or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
    except (OSError, ValueError, OverflowError) as reason:
        raise WorkerError(_no_answer(address, reason)) from reason


def _no_answer(address: str, reason: Exception) -> str:
    words = str(reason).rstrip(".")
    return (
        f"No Ray cluster could be joined at {address or 'this machine'}: {words}. Start one with `ray start --head`, "
        "join it on other machines with `ray start --address=HEAD:6379`, and give --backend ray=auto on one of them."
    )


def _check_cores(jobs: int | None) -> int:
    """How many cores there are, or `jobs` of them; refused where a worker has other versions."""
    import ray

    theirs: Any = ray.remote(versions).remote()
    check_same("A Ray worker", ray.get(theirs))
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    return min(cores, jobs or cores)
