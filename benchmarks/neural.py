"""What training many networks as one stack saves: FedKT on MNIST, end to end, in three ways.

    python benchmarks/neural.py [--epochs 10] [--rounds 3] [--data-dir DIR] [--json FILE]
    python benchmarks/neural.py --readme

The ways share parties, cuts, subsets, network and recipe (Adam 1e-3, weight decay 1e-6, batches of 32):
"loader" trains one model at a time with a DataLoader (`dataloader.py`), "single" one at a time with fedkt's own loop
(tensors in memory, fused Adam), "stacks" is fedkt as it is; "stacks, 2 jobs" is the same on two cores. Each runs in a
process of its own, in turn, several times; CPU seconds are the whole process's, imports and data included, and count
for more than the clock's on a busy machine. Medians are reported.

A second table trains networks of one kind in stacks of several sizes. It is why a stack holds what it does
(`STACK_BYTES`), and why convolutions are trained one by one (`SLOW_IN_STACKS`).

--readme writes the section of README.md from results/neural.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
RESULT = HERE / "results" / "neural.json"
README = HERE / "README.md"

WAYS = {
    "loader": "one at a time, DataLoader, plain Adam",
    "single": "one at a time, tensors in memory, fused Adam",
    "stacks": "fedkt's stacks",
    "stacks, 2 jobs": "fedkt's stacks, two processes",
}
SIZES = {"mlp": (1, 5, 10, 20, 40, 100), "cnn": (1, 5, 10)}
SHAPES = {"mlp": (784,), "cnn": (3, 32, 32)}
BATCHES = {"mlp": 32, "cnn": 64}
ROWS_EACH = 640
"""Rows of a network in the second table."""
SAMPLES = {"mlp": 128_000, "cnn": 12_800}
"""Rows trained on, all networks and epochs together, for one number of the second table."""
PARTIES, PARTITION, BETA, PARTITIONS, SUBSETS, SEED = 10, "balanced", 0.5, 2, 5, 0


def fedkt_one_way(way: str, epochs: int | None, data_dir: Path | None) -> dict[str, Any]:
    """Accuracies of one whole run (in a process of its own)."""
    from fedkt.data import load
    from fedkt.lab.runner import assemble, draw_parties, run
    from fedkt.lab.setting import Setting

    setting = Setting(
        "mnist",
        model="mlp",
        parties=PARTIES,
        partition=PARTITION,
        beta=BETA,
        partitions=PARTITIONS,
        subsets=SUBSETS,
        seed=SEED,
        epochs=epochs,
    )
    if way == "loader":
        from dataloader import fedkt_with_a_loader

        from fedkt.models.catalogue import as_estimator, trained_for

        data = load("mnist", seed=SEED, data_dir=data_dir)
        parties = assemble(setting, data, draw_parties(setting, data))
        recipe = as_estimator(trained_for("mlp", epochs=epochs)).recipe
        return fedkt_with_a_loader(data, parties, partitions=PARTITIONS, subsets=SUBSETS, recipe=recipe, seed=SEED)
    if way == "single":
        import fedkt.models.neural.stack

        fedkt.models.neural.stack.STACK_BYTES = 1
    report = run(setting, jobs=2 if way == "stacks, 2 jobs" else 1, data_dir=data_dir)
    return {"accuracy": report.accuracy, "label_accuracy": report.label_accuracy}


def training_speed(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Rows trained on per CPU second, by network and size of the stack (in a process of its own)."""
    import numpy as np
    import torch

    from fedkt.models.neural.networks import NETWORKS
    from fedkt.models.neural.recipe import Recipe
    from fedkt.models.neural.stack import train_stack
    from fedkt.models.neural.training import Training, one_torch_thread, train

    def seconds(kind: str, size: int, epochs: int) -> float:
        generator = torch.Generator().manual_seed(SEED)
        trainings = [
            Training(
                NETWORKS[kind](SHAPES[kind], 10),
                torch.randn((ROWS_EACH, *SHAPES[kind]), generator=generator),
                torch.randint(10, (ROWS_EACH,), generator=generator),
                np.random.default_rng(place),
            )
            for place in range(size)
        ]
        recipe = Recipe(epochs, BATCHES[kind], 1e-3, 1e-6, "adam", 0.0)
        started = time.process_time()
        if size == 1:
            train(trainings[0], recipe)
        else:
            train_stack(trainings, recipe)
        return time.process_time() - started

    speeds: dict[str, dict[str, list[float]]] = {kind: {str(size): [] for size in SIZES[kind]} for kind in SIZES}
    with one_torch_thread():
        for kind in SIZES:
            seconds(kind, 2, 1)  # What torch imports at its first step is not training.
            for _ in range(rounds):
                for size in SIZES[kind]:
                    epochs = -(-SAMPLES[kind] // (size * ROWS_EACH))
                    rows = size * ROWS_EACH * epochs
                    speeds[kind][str(size)].append(rows / seconds(kind, size, epochs))
    return speeds


def in_a_process(*options: str) -> dict[str, Any]:
    """What this file prints with these options, with the seconds and the memory of its process and its children."""
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, __file__, *options], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    printed = child.stdout.read()
    # wait4 counts the processes that the child waited for as well, whatever the way.
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(options)} ended with {child.returncode}; what it said is above.")
    return {
        **json.loads(printed.splitlines()[-1]),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "wall_seconds": round(time.perf_counter() - started, 2),
        "peak_megabytes": round(used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)),
    }


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Everything, in turn."""
    options = [] if arguments.epochs is None else ["--epochs", str(arguments.epochs)]
    command = " ".join(["python benchmarks/neural.py", *options, "--rounds", str(arguments.rounds)])
    options += [] if arguments.data_dir is None else ["--data-dir", str(arguments.data_dir)]
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for number in range(arguments.rounds):
        for way in WAYS:
            runs[way].append(in_a_process("--way", way, *options))
            print(f"round {number + 1}, {way}: {runs[way][-1]}", file=sys.stderr)
    speeds = in_a_process("--way", "speeds", "--rounds", str(arguments.rounds))["speeds"]
    from fedkt.system.versions import versions

    medians = {way: {figure: median(run[figure] for run in runs[way]) for figure in runs[way][0]} for way in WAYS}
    return {
        "benchmark": "neural",
        "command": command,
        "dataset": "mnist",
        "model": "mlp",
        "parties": PARTIES,
        "partition": PARTITION,
        "beta": BETA,
        "partitions": PARTITIONS,
        "subsets": SUBSETS,
        "epochs": "auto" if arguments.epochs is None else arguments.epochs,
        "seed": SEED,
        "runs": runs,
        "medians": medians,
        "ratios": {
            "CPU seconds, loader / stacks": ratio(runs, "loader", "stacks", "cpu_seconds"),
            "CPU seconds, single / stacks": ratio(runs, "single", "stacks", "cpu_seconds"),
            "wall seconds, stacks / stacks with 2 jobs": ratio(runs, "stacks", "stacks, 2 jobs", "wall_seconds"),
        },
        "rows_per_cpu_second": {
            kind: {size: round(median(values)) for size, values in by_size.items()} for kind, by_size in speeds.items()
        },
        "machine": machine(),
        "versions": versions(),
    }


def ratio(runs: dict[str, list[dict[str, Any]]], over: str, under: str, figure: str) -> float:
    """The median over the rounds: rivals of one round ran side by side."""
    return round(median(a[figure] / b[figure] for a, b in zip(runs[over], runs[under], strict=True)), 2)


def machine() -> str:
    """The processor in words, and its cores."""
    name = platform.processor() or platform.machine()
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        named = [line for line in listing.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        name = named[0].partition(":")[2].strip() if named else name
    return f"{name}, {os.cpu_count()} cores"


def tables(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    lines = [
        f"`{result['command']}` — FedKT on MNIST, {result['parties']} parties ({result['partition']} Dirichlet, "
        f"β = {result['beta']}), s = {result['partitions']}, t = {result['subsets']}, {result['epochs']} epochs, seed "
        f"{result['seed']}; {rounds_in_words(len(result['runs']['stacks']))} on {result['machine']}, torch "
        f"{result['versions']['torch']}.",
        "",
        "| way | CPU s | wall s | peak memory, MB | accuracy | accuracy of the labels |",
        "|---|---|---|---|---|---|",
    ]
    for way, figures in result["medians"].items():
        lines.append(
            f"| {WAYS[way]} | {figures['cpu_seconds']:.1f} | {figures['wall_seconds']:.1f} | "
            f"{figures['peak_megabytes']:.0f} | {figures['accuracy']:.4f} | {figures['label_accuracy']:.4f} |"
        )
    cpu, single, two = result["ratios"].values()
    lines += [
        "",
        f"In CPU seconds the loader takes {cpu:.1f} × as long as the stacks, fedkt's own loop one at a time "
        f"{single:.1f} ×; by the clock, which other work on the machine disturbs, one process takes {two:.1f} × as "
        "long as two. CPU seconds are those of the whole process and its children: imports, data, training, votes, "
        "test. The peak is that of the largest process.",
        "",
        "Rows trained on per CPU second, by the number of networks in a stack (1 is the plain loop):",
        "",
        "| network | " + " | ".join(str(size) for size in SIZES["mlp"]) + " |",
        "|---|" + "---|" * len(SIZES["mlp"]),
    ]
    for kind, by_size in result["rows_per_cpu_second"].items():
        cells = [f"{by_size[str(size)]:,}" if str(size) in by_size else "" for size in SIZES["mlp"]]
        lines.append(f"| {kind} (batches of {BATCHES[kind]}) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def rounds_in_words(number: int) -> str:
    """What the figures are."""
    return "one round" if number == 1 else f"medians of {number} rounds"


def write_readme() -> None:
    """Put the kept result where README.md shows it."""
    # `python benchmarks/neural.py` finds what lies beside it, but not the package of the clone.
    sys.path.insert(0, str(HERE.parent))
    from paper.markdown import replace_between

    result = json.loads(RESULT.read_text(encoding="utf-8"))
    text = README.read_text(encoding="utf-8")
    README.write_text(replace_between(text, "neural", tables(result)), encoding="utf-8")


def missing(data_dir: Path | None) -> str | None:
    """Why nothing can be measured, None where it can (in a process of its own: reading MNIST takes memory)."""
    if find_spec("torch") is None:
        return "PyTorch is not installed. Run: pip install 'fedkt[neural]'."
    from fedkt.data import load
    from fedkt.errors import FedKTError

    try:
        load("mnist", seed=SEED, data_dir=data_dir)
    except FedKTError as reason:
        return f"MNIST is missing. {reason}"
    return None


def main() -> None:
    """Measure and print; a child process prints its own figures only."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--epochs", type=int, default=None, help="as many for every network (default: fedkt's own rule)"
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="keep the result in this file")
    parser.add_argument("--readme", action="store_true", help="write README.md's section from the kept result")
    parser.add_argument("--way", choices=[*WAYS, "look", "speeds"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.readme:
        write_readme()
    elif arguments.way == "look":
        print(json.dumps({"missing": missing(arguments.data_dir)}))
    elif arguments.way == "speeds":
        print(json.dumps({"speeds": training_speed(arguments.rounds)}))
    elif arguments.way:
        print(json.dumps(fedkt_one_way(arguments.way, arguments.epochs, arguments.data_dir)))
    else:
        where = [] if arguments.data_dir is None else ["--data-dir", str(arguments.data_dir)]
        reason = in_a_process("--way", "look", *where)["missing"]
        if reason:
            print(f"Networks were not measured: {reason.splitlines()[0]}")
            return
        result = measured(arguments)
        print(tables(result))
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
