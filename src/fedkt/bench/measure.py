"""Ways measured against each other: each in a child process, one after the other and that several times."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from fedkt.bench.cases import CASES, GROWTH, Case, cases_of
from fedkt.bench.growth import AXES, growth_along
from fedkt.errors import ConfigurationError
from fedkt.system.parallel import Progress

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
REPEATS, REPEATS_OF_IMAGES = 3, 1
FIGURES = ("cpu_seconds", "wall_seconds", "process_cpu_seconds", "start_seconds", "peak_megabytes", "accuracy")


def measure_all(
    names: Sequence[str],
    *,
    repeats: int | None = None,
    seed: int = 0,
    parties: int | None = None,
    model: str | None = None,
    data_dir: Path | None = None,
    progress: Progress | None = None,
    on_start: Callable[[str], None] | None = None,
    keep: Callable[[dict[str, Any]], None] | None = None,
    command: str = "",
) -> dict[str, Any]:
    """The figures of every case that is named, of growth where it is, and of the machine they were measured on.

    `keep` is given them after each case: a run of an hour that is stopped has not been for nothing.
    """
    cases = cases_of([name for name in names if name != GROWTH])
    if parties is not None and not cases:
        raise ConfigurationError("--parties is for datasets: growth has numbers of parties of its own. Leave it out.")
    if model is not None and GROWTH not in names:
        raise ConfigurationError("--model is for growth: a dataset is measured with its own family. Leave it out.")
    here = {**machine(), "versions": in_a_child("", "versions")["versions"]}
    found: dict[str, Any] = {"command": command, "benchmarks": [], "growth": [], "machine": here}
    own = chosen(seed=seed, parties=parties, data_dir=data_dir)
    for name in (*(case.name for case in cases), *({GROWTH} & set(names))):
        if on_start is not None:
            on_start(name)
        if name == GROWTH:
            found["growth"] = measure_growth(chosen(seed=seed, model=model, repeats=repeats or REPEATS), progress)
        else:
            case = CASES[name]
            found["benchmarks"].append(measure_case(case, repeats or usual_repeats(case), own, progress))
        here["load_after"] = load_average()
        if keep is not None:
            keep(found)
    return found


def usual_repeats(case: Case) -> int:
    """How often a case is measured where nobody says."""
    return REPEATS_OF_IMAGES if case.dataset in ("mnist", "svhn") else REPEATS


def chosen(**options: Any) -> list[str]:
    """Options as words for a child, without those that nobody gave."""
    pairs = ((f"--{name.replace('_', '-')}", str(value)) for name, value in options.items() if value is not None)
    return [word for pair in pairs for word in pair]


def measure_case(case: Case, repeats: int, options: list[str], progress: Progress | None) -> dict[str, Any]:
    """The figures of one case."""
    ways = [way for way in case.ways if way != "bagging" or find_spec("xgboost") is not None]
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="fedkt-bench-") as place:
        # By a child as well: a process that has held all rows would hand its peak of memory on to those it starts.
        setting = in_a_child(place, "prepare", "--case", case.name, *options)["setting"]
        for turn in range(repeats):
            for number, way in enumerate(ways, start=1):
                runs[way].append(in_a_child(place, way))
                if progress is not None:
                    progress(turn * len(ways) + number, repeats * len(ways))
    return {"name": case.name, "setting": setting, **summary(runs), "runs": runs}


def measure_growth(options: list[str], progress: Progress | None) -> list[dict[str, Any]]:
    """The exponents along every axis."""
    found = []
    for number, axis in enumerate(AXES, start=1):
        found.append(growth_along(axis, in_a_child("", "growth", "--axis", axis, *options)["points"]))
        if progress is not None:
            progress(number, len(AXES))
    return found


def in_a_child(*words: str) -> dict[str, Any]:
    """What a child says, with the CPU seconds and the memory of its whole process."""
    started = time.perf_counter()
    one_thread = {**os.environ, **dict.fromkeys(THREADS, "1")}
    command = [sys.executable, "-m", "fedkt.bench.child", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=one_thread)
    try:
        assert child.stdout is not None
        with child.stdout as output:
            printed = output.read().strip()
        # wait4 counts the processes that the child has waited for as well, whatever the way.
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if child.returncode is None:
            child.kill()
            child.wait()
    said = json.loads(printed.splitlines()[-1]) if printed else {}
    if child.returncode:
        raise ConfigurationError(said.get("error", f"The process of {words[1]!r} ended with {child.returncode}."))
    return {
        **said,
        "process_cpu_seconds": used.ru_utime + used.ru_stime,
        "process_wall_seconds": time.perf_counter() - started,
        "peak_megabytes": used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10),
    }


def summary(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians of every way, and by how much fedkt costs more than another in the same turn."""
    medians = {
        way: {
            **{figure: median(run[figure] for run in own) for figure in FIGURES},
            "stages": {
                name: median(run["stages"].get(name, {"cpu": 0.0})["cpu"] for run in own)
                for name in dict.fromkeys(name for run in own for name in run["stages"])
            },
        }
        for way, own in runs.items()
    }
    ratios = {way: ratio(runs, way) for way in runs if way != "fedkt"}
    return {"medians": medians, "ratios": ratios}


def ratio(runs: dict[str, list[dict[str, Any]]], rival: str) -> dict[str, list[float]]:
    """Median, least and largest ratio of fedkt's figures to a rival's, turn by turn."""
    found = {}
    for figure in ("cpu_seconds", "process_cpu_seconds", "peak_megabytes"):
        each = [ours[figure] / theirs[figure] for ours, theirs in zip(runs["fedkt"], runs[rival], strict=True)]
        found[figure] = [median(each), min(each), max(each)]
    return found


def machine() -> dict[str, Any]:
    """What a figure depends on besides the code."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "load_before": load_average(),
    }


def load_average() -> list[float]:
    """How many processes wanted a core in the last 1, 5 and 15 minutes."""
    return [round(each, 2) for each in os.getloadavg()]


def processor() -> str:
    """Its name, as far as the system tells."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
