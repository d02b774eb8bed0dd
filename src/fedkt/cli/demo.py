"""`fedkt demo`: what FedKT does, on data that is already here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options

ALGORITHMS = ("fedkt-auto", "fedkt", "solo", "centralised")


def demo(
    jobs: options.Jobs = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides split, parties and training.")] = 0,
    report: Annotated[
        Path | None, typer.Option(help="Where to write the HTML report. Default: fedkt-report.html (none with --json).")
    ] = None,
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

    page = options.report_path(report, as_json=as_json)
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
        write_report(page, settings[0], reports, data_dir=None, quiet=True)
        return
    auto, plain, solo, pooled = reports
    stdout.print(
        f"\nFive parties hold {auto.rows['parties']} handwritten digits between them, each mostly other digits than "
        f"its neighbours (Dirichlet, β = {auto.beta}). None shows its rows to anybody.\n"
        "Each party sent one file: a student, which has learned what the party's teacher says of "
        f"{auto.rows['public']} public digits without labels, and sums of features of its rows, digit by digit. That "
        f"is {(auto.bytes_sent or 0) / 1e3:,.0f} kB for all five. The server made a final model of the students, "
        "weighed by who knows which digit, and one of the sums, and serves the one that should be better.\n"
        f"FedKT as in its paper stands beside it: each party cuts its rows {plain.partitions} times into "
        f"{plain.subsets} subsets, a teacher learns each, they vote on the public digits, and {plain.partitions} "
        "students learn the winning labels; the server counts a party where its students agree.\n"
    )
    print_reports(reports)
    stdout.print(
        f"\nOn {auto.rows['test']} digits nobody trained on, a party alone is right {points(solo.accuracy)} % of the "
        f"time (mean of the five), fedkt {points(auto.accuracy)} %, FedKT as in its paper {points(plain.accuracy)} %, "
        f"and a forest on all pooled rows, which nobody may have, {points(pooled.accuracy)} %."
    )
    write_report(page, settings[0], reports, data_dir=None, quiet=False)
