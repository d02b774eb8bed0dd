"""`fedkt demo`: what FedKT does, on data that is already here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options

ALGORITHMS = ("fedkt", "fedkt-expert", "solo", "centralised")


def demo(
    jobs: options.Jobs = 1,
    seed: Annotated[int, typer.Option(min=0, help="Decides split, parties and training.")] = 0,
    report: Annotated[Path, typer.Option(help="Where to write the HTML report.")] = Path("fedkt-report.html"),
    as_json: options.Json = False,
) -> None:
    """See it work: five parties, handwritten digits, about half a minute.

    [bold]Example[/bold]

      fedkt demo --jobs 2
    """
    from fedkt.cli.output import print_json, progress_bar, stdout
    from fedkt.cli.tables import print_reports, write_report
    from fedkt.lab.series import run_all
    from fedkt.lab.setting import Setting
    from fedkt.lab.words import points

    settings = [
        Setting(dataset="digits", algorithm=algorithm, seed=seed, soft_final=True).with_defaults()
        for algorithm in ALGORITHMS
    ]
    with progress_bar("demo", quiet=as_json) as bar:
        reports = run_all(
            settings,
            on_start=lambda number, each: bar.rename(f"{each.algorithm} ({number + 1} of {len(settings)})"),
            jobs=options.cores(jobs),
            measure_bytes=True,
            command=options.this_command(),
            progress=bar,
        )
    if as_json:
        print_json({"runs": [each.as_dict() for each in reports]})
        return
    fedkt, expert, solo, pooled = reports
    stdout.print(
        f"\nFive parties hold {fedkt.rows['parties']} handwritten digits between them, each mostly other digits than "
        f"its neighbours (Dirichlet, β = {fedkt.beta}). None shows its rows to anybody.\n"
        f"Each party cut its rows {fedkt.partitions} times into {fedkt.subsets} subsets, trained a teacher on each, "
        f"let them vote on {fedkt.rows['public']} public digits without labels, and trained {fedkt.partitions} "
        "students on the winning labels.\n"
        f"Only the students travelled, once: {(fedkt.bytes_sent or 0) / 1e3:,.0f} kB for all five parties. The server "
        "counted a party's vote where its students agreed, and trained the final model.\n"
        "With expert voting a party sends one student and how many rows of each digit it has, and its word on a digit "
        "counts by that.\n"
    )
    print_reports(reports)
    stdout.print(
        f"\nOn {fedkt.rows['test']} digits nobody trained on, a party alone is right {points(solo.accuracy)} % of the "
        f"time (mean of the five), FedKT {points(fedkt.accuracy)} %, with expert voting {points(expert.accuracy)} %, "
        f"and a model on all pooled rows, which nobody may have, {points(pooled.accuracy)} %."
    )
    write_report(options.report_path(report, as_json=False), settings[0], reports, data_dir=None, quiet=False)
