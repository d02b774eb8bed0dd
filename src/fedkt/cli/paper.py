"""The verbs about the paper's tables and figures: list, run, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options

app = typer.Typer(no_args_is_help=True)

Folder = Annotated[Path, typer.Option(help="The folder with plans, the paper's numbers and results.")]
Quick = Annotated[bool, typer.Option("--quick", help="A rehearsal: one seed, reduced work, kept apart.")]
HERE = Path("paper")


@app.callback()
def group() -> None:
    """Every table and figure of the paper, one command each, beside the paper's numbers.

    [bold]Examples[/bold]

      fedkt paper list

      fedkt paper run all --quick

      fedkt paper report --html report.html
    """


@app.command("list")
def list_plans(folder: Folder = HERE, quick: Quick = False, as_json: options.Json = False) -> None:
    """What there is: tables and figures, their runs, and how many of them are made.

    [bold]Example[/bold]

      fedkt paper list
    """
    from rich.table import Table as Grid

    from fedkt.cli.output import print_json, stdout
    from fedkt.paper.work import overview

    entries = overview(folder, quick=quick)
    if as_json:
        print_json({"plans": entries})
        return
    grid = Grid("name", "what", "in the paper", "runs made", "hours so far")
    for each in entries:
        made = f"{each['made']} of {each['runs']}"
        grid.add_row(each["name"], each["title"], each["where"] or "beyond it", made, f"{each['hours']:.1f}")
    stdout.print(grid)


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(help="Names from `fedkt paper list`, or all.")],
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of every run. Default: the plan's.")] = None,
    quick: Quick = False,
    folder: Folder = HERE,
    jobs: options.Jobs = 1,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Make the runs that are missing. A finished run is kept at once and never made again.

    Start the command several times to share the work: a run is made by one process, and the others go on with the rest
    (all but private and private-curve, which are for one process each).

    [bold]Examples[/bold]

      fedkt paper run all --quick

      fedkt paper run partitions subsets --jobs 2
    """
    from fedkt.cli.output import print_json, progress_bar, stderr, stdout
    from fedkt.cli.paper_tables import print_table
    from fedkt.paper.work import chosen_names, make_missing, overview, tables

    chosen = chosen_names(folder, names)
    with progress_bar("paper", quiet=as_json) as bar:
        for name in chosen:
            left_out = make_missing(
                folder,
                name,
                seeds=seeds,
                quick=quick,
                jobs=options.cores(jobs),
                data_dir=data_dir,
                command=options.this_command(),
                progress=bar,
                on_start=bar.rename,
            )
            for dataset, reason in left_out.items():
                stderr.print(f"{name}: {dataset} was left out: {reason}", markup=False, soft_wrap=True)
    if as_json:
        print_json([each for each in overview(folder, quick=quick) if each["name"] in chosen])
        return
    for each in tables(folder, quick=quick):
        if each.plan.name in chosen:
            print_table(stdout, each)


@app.command()
def report(
    html: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("paper-report.html"),
    quick: Quick = False,
    folder: Folder = HERE,
) -> None:
    """Every table in the terminal, and all of them with pictures as one self-contained HTML page.

    [bold]Example[/bold]

      fedkt paper report --html report.html
    """
    from fedkt.cli.output import stdout
    from fedkt.cli.paper_tables import print_table
    from fedkt.paper.outcome import counts_in_words, verdicts
    from fedkt.paper.page import private_part, write_paper_page
    from fedkt.paper.work import results_folder, tables

    found = tables(folder, quick=quick)
    for each in found:
        if each.reports:
            print_table(stdout, each)
    write_paper_page(html, found, private_part(folder, results_folder(folder, quick=quick)))
    stdout.print(counts_in_words(verdicts(found)))
    stdout.print(f"The page with pictures is {html}.")
