"""`fedkt bench`: what fedkt costs beside the same models in a bare loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedkt.cli import options


def bench(
    names: Annotated[
        list[str],
        typer.Argument(
            help="What to measure: a dataset with one of its votings, such as adult-expert; a dataset alone for all of "
            "them; growth for how CPU seconds grow. All names: {benchmarks}.",
            metavar="NAME...",
        ),
    ],
    repeats: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Turns of every way. Default: 3, and 1 for mnist and svhn."),
    ] = None,
    parties: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of parties. Default: the dataset's.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Family that growth is measured with: tree, forest, boosting, naive-bayes. Default: tree."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Decides split, parties and training.")] = 0,
    data_dir: options.DataDir = None,
    results: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the figures to this file, after every case.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Measure what fedkt costs beside the same models in a bare loop of scikit-learn, XGBoost or PyTorch.

    Both ways train the same models on the same rows, in turn, each in a process of its own and on one thread. CPU
    seconds count: the clock also measures what else the machine does.

    [bold]Examples[/bold]

      fedkt bench digits

      fedkt bench adult-consistent cod-rna-moments --repeats 5

      fedkt bench growth --results growth.json

      fedkt bench mnist --json
    """
    import json

    from fedkt.bench.measure import measure_all
    from fedkt.cli.output import print_json, progress_bar
    from fedkt.system.files import write_atomically

    def keep(found: dict[str, Any]) -> None:
        if results is not None:
            write_atomically(results, (json.dumps(found, indent=1) + "\n").encode())

    with progress_bar("bench", quiet=as_json) as bar:
        found = measure_all(
            names,
            repeats=repeats,
            seed=seed,
            parties=parties,
            model=model,
            data_dir=data_dir,
            progress=bar,
            on_start=bar.rename,
            keep=keep,
            command=options.this_command(),
        )
    if as_json:
        print_json(found)
    else:
        print_found(found)


def print_found(found: dict[str, Any]) -> None:
    """The figures as tables."""
    from fedkt.bench.tables import cost_grid, growth_grid, machine_in_words, runs_in_words, stages_grid
    from fedkt.cli.grids import print_below, print_grid
    from fedkt.cli.output import stdout

    if found["benchmarks"]:
        print_grid(cost_grid(found["benchmarks"]))
        print_below(stages_grid(found["benchmarks"]))
        stdout.print()
        for case in found["benchmarks"]:
            stdout.say(runs_in_words(case))
    print_below(growth_grid(found["growth"]))
    stdout.say(f"Measured {machine_in_words(found['machine'])}")
