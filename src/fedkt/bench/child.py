"""What runs in a process of its own: `python -m fedkt.bench.child FOLDER WAY …`.

It prints one line of JSON. A way's process imports what the way needs and nothing else, so that memory and start-up are
its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedkt.bench.work import Array, Work, load_work, save_work
from fedkt.errors import FedKTError
from fedkt.system.parallel import cpu_clock
from fedkt.system.stages import measured_stages


def way_of(name: str) -> Callable[[Work], Array]:
    """The function behind a way's name, with its imports."""
    if name == "fedkt":
        from fedkt.bench import ours

        return ours.play
    from fedkt.bench import plain

    return plain.play_bagging if name == "bagging" else plain.play


def measure(work: Work, play: Callable[[Work], Array]) -> dict[str, Any]:
    """Seconds by stage and accuracy of one run."""
    cpu, wall = cpu_clock(), time.perf_counter()
    with measured_stages() as clock:
        labels = play(work)
    return {
        "cpu_seconds": cpu_clock() - cpu,
        "wall_seconds": time.perf_counter() - wall,
        "accuracy": float((labels == work.y_test).mean()),
        "stages": {name: asdict(spent) for name, spent in clock.spent.items()},
    }


def one_way(folder: Path, name: str) -> dict[str, Any]:
    """One run of a way; before it, what the way loads once, found out by playing a toy."""
    play = way_of(name)
    work = load_work(folder)
    loaded = cpu_clock()
    play(work.toy())
    warm = cpu_clock()
    return {**measure(work, play), "start_seconds": warm, "toy_seconds": warm - loaded}


def prepare(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Write a case's rows into the folder, and say what they are."""
    from fedkt.bench.cases import CASES
    from fedkt.bench.rows import work_of

    work = work_of(CASES[options.case], seed=options.seed, parties=options.parties, data_dir=options.data_dir)
    save_work(work, folder)
    return {
        "setting": {
            **{name: getattr(work, name) for name in ("dataset", "voting", "model", "partitions", "subsets")},
            **{"parties": len(work.sizes), "seed": options.seed, "classes": work.n_classes},
            **{"private_rows": len(work.y), "public_rows": len(work.public), "test_rows": len(work.y_test)},
        }
    }


def growth(options: argparse.Namespace) -> dict[str, Any]:
    """The points along one axis."""
    from fedkt.bench.growth import measure_axis

    return {"points": measure_axis(options.axis, repeats=options.repeats, model=options.model, seed=options.seed)}


def all_versions() -> dict[str, Any]:
    """What a result depends on."""
    from fedkt.system.versions import versions

    return {"versions": versions("numba")}


def main() -> None:
    """Do one thing and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("way", choices=["prepare", "growth", "versions", "fedkt", "plain", "bagging"])
    parser.add_argument("--case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parties", type=int, default=None)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--axis")
    parser.add_argument("--model", default="tree")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    try:
        if options.way == "prepare":
            result = prepare(options.folder, options)
        elif options.way == "growth":
            result = growth(options)
        elif options.way == "versions":
            result = all_versions()
        else:
            result = one_way(options.folder, options.way)
    except FedKTError as reason:
        result = {"error": str(reason)}
    print(json.dumps(result))
    sys.exit("error" in result)


if __name__ == "__main__":
    main()
