"""`python -m paper`: every table and figure of the paper, one command each."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import main, options

if TYPE_CHECKING:
    from paper.outcome import ResultTable

app = typer.Typer(
    name="python -m paper",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[
    Path, typer.Option(help="The folder with experiments, the paper's numbers and results.", show_default="paper")
]
Quick = Annotated[bool, typer.Option("--quick", help="A rehearsal: one seed, reduced work, kept apart.")]
HERE = Path(__file__).parent
COLOURS = {"within": "green", "better": "cyan", "worse": "red"}


@app.callback()
def group() -> None:
    """Every table and figure of the paper, one command each, beside the paper's numbers.

    [bold]Examples[/bold]

      python -m paper list

      python -m paper run all --quick

      python -m paper report --html report.html
    """


@app.command("list")
def list_experiments(folder: Folder = HERE, quick: Quick = False, as_json: options.Json = False) -> None:
    """What there is: tables and figures, their runs, and how many of them are made.

    [bold]Example[/bold]

      python -m paper list
    """
    from fedkt.cli.grids import print_grid
    from fedkt.cli.output import print_json
    from fedkt.lab.grid import Grid
    from paper.work import overview
    from paper.workplace import Workplace

    entries = overview(Workplace(folder, quick))
    if as_json:
        print_json({"experiments": entries})
        return
    lines = [
        [
            each["name"],
            each["title"],
            each["where"] or "beyond it",
            f"{each['made']} of {each['runs']}",
            f"{each['hours']:.1f}",
        ]
        for each in entries
    ]
    head = ["name", "what", "in the paper", "runs made", "hours so far"]
    print_grid(Grid(head, lines, words=("what", "in the paper")))


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(help="Names from `python -m paper list`, or all.")],
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of every run. Default: the experiment's.")] = None,
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

      python -m paper run all --quick

      python -m paper run partitions subsets --jobs 2
    """
    from fedkt.cli.output import print_json, progress_bar, stderr
    from paper.work import make_missing, overview, requested_names, result_tables
    from paper.workplace import Workplace

    place = Workplace(folder, quick, data_dir)
    experiments = requested_names(folder, names)
    with progress_bar("paper", quiet=as_json) as bar:
        for name in experiments:
            left_out = make_missing(
                place,
                name,
                seeds=seeds,
                jobs=options.cores(jobs),
                command=shlex.join(["python", "-m", "paper", *sys.argv[1:]]),
                progress=bar,
                on_start=bar.rename,
            )
            for dataset, reason in left_out.items():
                stderr.print(f"{name}: {dataset} was left out: {reason}", markup=False, soft_wrap=True)
    if as_json:
        print_json([each for each in overview(place) if each["name"] in experiments])
        return
    for each in result_tables(place):
        if each.experiment.name in experiments:
            print_results(each)


@app.command()
def report(
    html: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("paper-report.html"),
    quick: Quick = False,
    folder: Folder = HERE,
) -> None:
    """Every table in the terminal, and all of them with pictures as one self-contained HTML page.

    [bold]Example[/bold]

      python -m paper report --html report.html
    """
    from fedkt.cli.output import stdout
    from paper.outcome import counts_in_words, verdicts
    from paper.page import private_section, write_paper_page
    from paper.work import result_tables
    from paper.workplace import Workplace

    place = Workplace(folder, quick)
    tables = result_tables(place)
    for each in tables:
        if each.reports:
            print_results(each)
    write_paper_page(html, tables, private_section(folder, place.results))
    stdout.print(counts_in_words(verdicts(tables)))
    stdout.print(f"The page with pictures is {html}.")


def print_results(table: ResultTable) -> None:
    """Ours in each cell with the paper's number under it; then differences seed by seed, and bytes."""
    from fedkt.cli.grids import print_grid
    from fedkt.cli.output import stdout
    from paper.comparison import comparison_table, tables_beside

    for grid in (comparison_table(table), *tables_beside(table)):
        print_grid(grid, colours=COLOURS)
        stdout.print()


if __name__ == "__main__":
    main(app)
