"""Real clusters of two workers on this machine: the same results as one process, also when a worker is killed.

One file, so that each cluster is started once.
"""

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import cluster_work
from cluster_work import die_once, nested, refuse, total
from command_line import fedkt
from fedkt import FedKT, FedKTClassifier, Party, Server, simulate
from fedkt.errors import ConfigurationError, DataError, WorkerError
from fedkt.system.backends import dask, joblibs_backend, on_backend, ray
from fedkt.system.parallel import in_parallel

X, Y = load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def scheduler():
    distributed = pytest.importorskip("distributed", reason="needs fedkt[cluster]")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def dask_text(scheduler):
    return f"dask={scheduler.scheduler_address}"


@pytest.fixture(scope="module")
def ray_cluster():
    library = pytest.importorskip("ray", reason="needs fedkt[cluster]")
    # Workers of Dask get this process's path for modules, those of Ray its environment.
    path = os.pathsep.join([str(Path(cluster_work.__file__).parent), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", path)
        yield from running_ray(library)


def running_ray(library):
    library.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", address="local")
    yield library
    library.shutdown()


@pytest.fixture(params=["dask", "ray"])
def cluster(request):
    """A block in which work goes to a cluster."""
    if request.param == "dask":
        return on_backend, (request.getfixturevalue("dask_text"), None)
    request.getfixturevalue("ray_cluster")
    return in_joined_ray, ()


@contextmanager
def in_joined_ray():
    """The Ray cluster that this program has joined already, as joblib's users come to it."""
    from joblib import parallel_config
    from ray.util.joblib import register_ray

    register_ray()
    with parallel_config("ray"), joblibs_backend(None) as jobs:
        yield jobs


def federation():
    rows = np.array_split(np.arange(600), 12)
    parties = [
        Party(X[700:800], tuple(range(10)), place, name=f"party {place}", X=X[each], y=Y[each])
        for place, each in enumerate(rows)
    ]
    forest = RandomForestClassifier(4, max_depth=4)
    return FedKT(forest, teacher=DecisionTreeClassifier(), subsets=2, partitions=1, soft_final=False), parties


def answers(jobs):
    algorithm, parties = federation()
    done = []
    outcome = simulate(
        algorithm, parties, Server(X[700:800], tuple(range(10)), 5), jobs=jobs, progress=lambda *each: done.append(each)
    )
    models = [model for bundle in (*outcome.bundles, outcome.final) for model in bundle.models]
    assert done[-1] == (12, 12)
    return np.concatenate([model.predict_proba(X, 10).ravel() for model in models])


def test_a_cluster_trains_the_very_models_of_one_process_and_progress_is_told(cluster):
    expected = answers(1)
    block, arguments = cluster
    with block(*arguments) as jobs:
        assert jobs == 2
        np.testing.assert_array_equal(answers(jobs), expected)


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(cluster, tmp_path):
    block, arguments = cluster
    with block(*arguments) as jobs:
        found = list(in_parallel(die_once, [(str(tmp_path), os.getpid(), number) for number in range(12)], jobs=jobs))
    assert found == list(range(12))
    killed = int((tmp_path / "killed").read_text())
    assert killed != os.getpid()


def test_tasks_share_a_table_nothing_in_them_is_spread_and_errors_keep_their_words(cluster):
    table = np.arange(40_000.0).reshape(4, -1)
    block, arguments = cluster
    with block(*arguments) as jobs:
        assert list(in_parallel(total, [(table, row) for row in range(4)], jobs=jobs)) == table.sum(axis=1).tolist()
        assert set(in_parallel(nested, range(3), jobs=jobs)) == {("SequentialBackend", 1)}
        with pytest.raises(DataError, match=r"^Row \d is none\.$"):
            list(in_parallel(refuse, [1, 2], jobs=jobs))


def test_the_cluster_that_is_active_in_joblib_gets_blocks_and_no_tree_becomes_a_task(scheduler):
    from distributed import Client
    from joblib import parallel_config

    parties = np.arange(400) % 4
    model = FedKTClassifier(RandomForestClassifier(6), random_state=1)
    alone = model.fit(X[:400], Y[:400], parties=parties, public=X[700:800]).predict_proba(X[800:])
    with Client(scheduler.scheduler_address, set_as_default=True), parallel_config("dask"):
        spread = model.fit(X[:400], Y[:400], parties=parties, public=X[700:800])
    np.testing.assert_array_equal(spread.predict_proba(X[800:]), alone)
    assert spread.report_.cpu_seconds is None
    work = {name for name in scheduler.scheduler.task_prefixes if not name.startswith(("ndarray", "versions"))}
    assert work == {"block_results"}


def test_a_scheduler_that_does_not_answer_or_has_no_workers_is_an_error_in_words(scheduler, monkeypatch):
    monkeypatch.setattr(dask, "SECONDS", 0.5)
    words = r"No Dask scheduler answers at tcp://127\.0\.0\.1:9.*dask worker"
    with pytest.raises(WorkerError, match=words), on_backend("dask=tcp://127.0.0.1:9", None):
        pass
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address=None, processes=False) as empty,
        pytest.raises(WorkerError, match="has no workers"),
        on_backend(f"dask={empty.scheduler_address}", None),
    ):
        pass


def test_of_an_address_that_nobody_speaks_no_client_is_made(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs fedkt[cluster]")
    monkeypatch.setattr(distributed, "Client", None)
    address = "tpc://head:8786"
    with (
        pytest.raises(WorkerError, match=f"No Dask scheduler answers at {address}: "),
        on_backend(f"dask={address}", None),
    ):
        pass


def test_a_worker_with_other_versions_is_refused(dask_text, monkeypatch):
    import fedkt

    monkeypatch.setattr(fedkt, "__version__", "9.9")
    with pytest.raises(WorkerError, match=r"has fedkt .*, and here is 9\.9"), on_backend(dask_text, None):
        pass


@pytest.mark.parametrize("address", ["foo", ":", "http:", "tcp://[::1", "inproc://x", "tcp://a b:1"])
def test_what_is_no_address_of_a_scheduler_is_refused_before_it_is_tried(address):
    pytest.importorskip("distributed", reason="needs fedkt[cluster]")
    with pytest.raises(ConfigurationError, match="has no address of a scheduler"), on_backend(f"dask={address}", None):
        pass


def test_what_is_no_address_of_a_head_node_is_an_error_in_words():
    pytest.importorskip("ray", reason="needs fedkt[cluster]")
    words = r"No Ray cluster could be joined at a\.\.b:1"
    with pytest.raises(WorkerError, match=words), on_backend("ray=a..b:1", None):
        pass


def test_words_of_ray_that_end_in_a_full_stop_get_no_second_one():
    words = ray._no_answer("auto", ConnectionError("Could not find any running Ray instance."))
    assert "at auto: Could not find any running Ray instance. Start one with" in words


def test_a_head_node_that_does_not_answer_is_an_error_in_words():
    pytest.importorskip("ray", reason="needs fedkt[cluster]")
    words = r"No Ray cluster could be joined at 127\.0\.0\.1:9.*ray start --head"
    with pytest.raises(WorkerError, match=words), on_backend("ray=127.0.0.1:9", None):
        pass


@pytest.mark.parametrize(("name", "library"), [("dask", "distributed"), ("ray", "ray")])
def test_without_the_extra_the_backend_says_what_to_install(name, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigurationError, match=r"pip install 'fedkt\[cluster\]'"), on_backend(name, None):
        pass


def test_a_command_sends_its_work_to_the_cluster_that_is_named(dask_text, tmp_path, monkeypatch):
    words = (
        "simulate",
        "digits",
        "--algorithm",
        "fedkt",
        "--model",
        "tree",
        "--parties",
        "4",
        "--subsets",
        "2",
        "--json",
    )
    alone = json.loads(fedkt(*words, cwd=tmp_path).stdout)
    spread = json.loads(fedkt(*words, "--backend", dask_text, cwd=tmp_path).stdout)
    assert (spread["accuracy"], spread["seed"]) == (alone["accuracy"], alone["seed"])
    # CPU seconds of other machines are unknown here.
    assert (alone["cpu_seconds"] is None, spread["cpu_seconds"]) == (False, None)
    monkeypatch.setenv("FEDKT_BACKEND", "dusk")
    refused = fedkt(*words, cwd=tmp_path)
    assert refused.returncode != 0
    assert "--backend is one of loky, dask, ray" in refused.stderr
