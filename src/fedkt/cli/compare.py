"""`fedkt compare`: several algorithms on the same splits, over several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.groups import DataOptions, OutputOptions, RunOptions
from fedkt.cli.own_table import TableOptions
from fedkt.cli.panels import FEDERATION, OUTPUT, with_groups
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.lab.setting import Setting
    from fedkt.report import Report


@dataclass(frozen=True)
class ComparisonFiles:
    """What a comparison keeps and draws."""

    panel: ClassVar[str] = OUTPUT
    results: Annotated[
        Path | None,
        typer.Option(
            help="JSON-lines file: every finished run is kept there at once, and none is run again. A run that was "
            "killed goes on with the students it had finished."
        ),
    ] = None
    curve: Annotated[
        Path | None,
        typer.Option(help="Where to draw accuracy against rounds and megabytes: a .svg, .png or .pdf file."),
    ] = None


Algorithms = Annotated[
    str | None,
    typer.Option(
        help="With commas: {algorithms}, or a class in a file of your own, mine.py:Mine. Default: {compared}.",
        rich_help_panel=FEDERATION,
    ),
]
Votings = Annotated[
    str | None,
    typer.Option(
        help="How FedKT's server weighs the parties, with commas where fedkt is to be compared with several. "
        "{votings}.",
        rich_help_panel=FEDERATION,
    ),
]
Seeds = Annotated[
    str, typer.Option(help="How many seeds (5 means 0 to 4), or which: 3-7 or 0,2,9.", rich_help_panel=FEDERATION)
]


@with_groups
def compare(
    dataset: options.Dataset,
    data: DataOptions,
    table: TableOptions,
    algorithms: Algorithms = None,
    voting: Votings = None,
    *,
    run: RunOptions,
    seeds: Seeds = "5",
    files: ComparisonFiles,
    output: OutputOptions,
    file: FileOptions,
) -> None:
    """Compare algorithms on the same splits and parties.

    [bold]Examples[/bold]

      fedkt compare digits --algorithms fedkt,solo,centralised --seeds 5

      fedkt compare adult --partition balanced --seeds 10 --jobs 2 --results adult.jsonl

      fedkt compare mnist --algorithms fedkt,solo,fedavg,fedprox,scaffold,feddf,pfnm,pate --seeds 5

      fedkt compare svhn --algorithms fedkt-prox,fedavg,fedprox --rounds 50 --results svhn-rounds.jsonl

      fedkt compare patients.csv --label ill --party-column hospital --seeds 5 --results patients.jsonl

      fedkt compare digits --model mlp --algorithms fedkt,fedavg --rounds 10 --bytes --curve curve.svg
    """
    from fedkt.cli.runs import algorithms_with, chosen_among, settings_of
    from fedkt.cli.tables import write_curve, write_report
    from fedkt.lab.curves import check_curve

    values = settings_of(dataset, data, table, file, run)
    names = algorithms_with(algorithms, voting, level=run.privacy.level, chosen=chosen_among(values))
    settings = settings_to_compare(values, names, seeds_in(seeds))
    if not settings:
        raise ConfigurationError("There is nothing to compare: name at least one algorithm and one seed.")
    if files.curve is not None:
        options.check_pictures()
        check_curve(files.curve, settings)
    page = options.report_path(output.report, as_json=output.as_json)
    reports, unfit = run_settings(settings, data_dir=data.data_dir, results=files.results, output=output)
    if not reports:
        raise ConfigurationError(" ".join(unfit.values()))
    print_comparison(settings[0].dataset, reports, unfit, as_json=output.as_json)
    write_report(page, settings[0], reports, data_dir=data.data_dir, quiet=output.as_json)
    write_curve(files.curve, reports, quiet=output.as_json)


def settings_to_compare(values: dict[str, Any], algorithms: Sequence[str], seeds: Sequence[int]) -> list[Setting]:
    """Every algorithm with every seed; methods of one round stand beside those of many."""
    from fedkt.algorithms import known_algorithm
    from fedkt.lab.setting import Setting

    settings = []
    for seed in dict.fromkeys(seeds):
        for name in algorithms:
            one_round = {"rounds": None} if known_algorithm(name).one_shot else {}
            own = {"soft_final": True, **values, **one_round, "algorithm": name, "seed": seed}
            settings.append(Setting(**own).with_defaults())
    return settings


def run_settings(
    settings: Sequence[Setting], *, data_dir: Path | None, results: Path | None, output: OutputOptions
) -> tuple[list[Report], dict[str, str]]:
    """The reports of the runs, and why an algorithm is not among them."""
    from fedkt.cli.output import progress_bar
    from fedkt.cli.runs import student_cache
    from fedkt.lab.series import run_all

    cache = student_cache(output, settings)
    unfit: dict[str, str] = {}
    with options.workers(output.jobs, output.backend) as jobs, progress_bar("compare", quiet=output.as_json) as bar:
        reports = run_all(
            settings,
            results=results,
            cache=cache,
            resume=True,
            on_start=lambda number, each: bar.rename(
                f"run {number + 1} of {len(settings)}: {each.algorithm}, seed {each.seed}"
            ),
            on_wait=lambda runs: bar.rename(f"waiting for runs of another process: {runs}"),
            jobs=jobs,
            data_dir=data_dir,
            measure_bytes=output.bytes_,
            command=options.this_command(),
            progress=bar,
            on_unsuited=lambda each, reason: unfit.update({each.algorithm: str(reason)}),
        )
    return reports, unfit


def print_comparison(dataset: str, reports: list[Report], unfit: dict[str, str], *, as_json: bool) -> None:
    """The runs side by side: as tables, or as one JSON object."""
    from fedkt.cli.output import print_json
    from fedkt.cli.tables import print_summaries
    from fedkt.lab.quality_summary import IN_POINTS
    from fedkt.lab.results import less_first, summarise

    if not as_json:
        print_summaries(reports, unfit)
        return
    first, apart = less_first(reports)
    print_json(
        {
            "dataset": dataset,
            "algorithms": [asdict(summary) for summary in summarise(reports)],
            "differences": {
                "less": first,
                "points": apart,
                **{figure: less_first(reports, figure)[1] for figure in IN_POINTS if figure != "accuracy"},
            },
            "unsuited": unfit,
            "runs": [each.as_dict() for each in reports],
        }
    )


def seeds_in(text: str) -> list[int]:
    """The seeds behind `5` (0 to 4), `3-7` or `0,2,9`."""
    try:
        if "," in text:
            return [int(part) for part in text.split(",") if part.strip()]
        if "-" in text:
            first, last = (int(part) for part in text.split("-"))
            if last < first:
                raise ValueError
            return list(range(first, last + 1))
        return list(range(int(text)))
    except ValueError:
        raise ConfigurationError(
            f"--seeds is a number of seeds (5), a range (3-7) or a list (0,2,9); got {text!r}."
        ) from None
