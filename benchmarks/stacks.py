"""Rows that networks are trained on per CPU second, by how many of them are trained as one stack.

    python benchmarks/stacks.py [--rounds 1] [--json FILE]
    python benchmarks/stacks.py --readme     write the table of README.md from results/stacks.json

It is why a stack holds what it does (`STACK_BYTES`), and why convolutions are trained one by one (`SLOW_IN_STACKS`).
What stacks save in a whole federation is measured by `fedkt bench mnist`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
RESULT = HERE / "results" / "stacks.json"
SIZES = {"mlp": (1, 5, 10, 20, 40, 100), "cnn": (1, 5, 10)}
SHAPES = {"mlp": (784,), "cnn": (3, 32, 32)}
BATCHES = {"mlp": 32, "cnn": 64}
ROWS_EACH = 640
"""Rows of a network."""
SAMPLES = {"mlp": 128_000, "cnn": 12_800}
"""Rows trained on, all networks and epochs together, for one number."""
SEED = 0


def seconds(kind: str, size: int, epochs: int) -> float:
    """CPU seconds of training so many networks at once."""
    import numpy as np
    import torch

    from fedkt.models.neural.networks import NETWORKS
    from fedkt.models.neural.recipe import Recipe
    from fedkt.models.neural.stack import train_stack
    from fedkt.models.neural.training import Training, train

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


def speeds(rounds: int) -> dict[str, dict[str, int]]:
    """Rows trained on per CPU second, by network and size of the stack: the median over the rounds."""
    from fedkt.models.neural.training import one_torch_thread

    found: dict[str, dict[str, int]] = {}
    with one_torch_thread():
        for kind, sizes in SIZES.items():
            seconds(kind, 2, 1)  # What torch imports at its first step is not training.
            measured: dict[int, list[float]] = {size: [] for size in sizes}
            for _ in range(rounds):
                for size in sizes:
                    epochs = -(-SAMPLES[kind] // (size * ROWS_EACH))
                    measured[size].append(size * ROWS_EACH * epochs / seconds(kind, size, epochs))
            found[kind] = {str(size): round(median(each)) for size, each in measured.items()}
    return found


def table(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    lines = [
        f"`{result['command']}`, on {result['machine']}, torch {result['versions']['torch']}; 1 is the plain loop.",
        "",
        "| network | " + " | ".join(str(size) for size in SIZES["mlp"]) + " |",
        "|---|" + "---|" * len(SIZES["mlp"]),
    ]
    for kind, by_size in result["rows_per_cpu_second"].items():
        cells = [f"{by_size[str(size)]:,}" if str(size) in by_size else "" for size in SIZES["mlp"]]
        lines.append(f"| {kind} (batches of {BATCHES[kind]}) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_readme() -> None:
    """Put the kept result where README.md shows it."""
    # `python benchmarks/stacks.py` finds what lies beside it, but not the package of the clone.
    sys.path.insert(0, str(HERE.parent))
    from paper.markdown import replace_between

    readme, result = HERE / "README.md", json.loads(RESULT.read_text(encoding="utf-8"))
    readme.write_text(replace_between(readme.read_text(encoding="utf-8"), "stacks", table(result)), encoding="utf-8")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="keep the result in this file")
    parser.add_argument("--readme", action="store_true", help="write README.md's table from the kept result")
    options = parser.parse_args()
    if options.readme:
        write_readme()
        return
    from fedkt.bench.measure import processor
    from fedkt.system.versions import versions

    result = {
        "command": " ".join(["python", "benchmarks/stacks.py", *sys.argv[1:]]),
        "rounds": options.rounds,
        "rows_per_cpu_second": speeds(options.rounds),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "versions": versions(),
    }
    print(table(result))
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
