"""`fedkt simulate`: one algorithm, one dataset, all parties on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.groups import DataOptions, OutputOptions, RunOptions
from fedkt.cli.own_table import TableOptions
from fedkt.cli.panels import FEDERATION, with_groups
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.lab.setting import Setting


@with_groups
def simulate(
    dataset: options.Dataset,
    data: DataOptions,
    table: TableOptions,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="{algorithms}, or a class in a file of your own, mine.py:Mine. Default: {algorithm}; votes where a "
            "family or the shape of a vote is chosen.",
            rich_help_panel=FEDERATION,
        ),
    ] = None,
    voting: options.Voting = None,
    *,
    run: RunOptions,
    seed: options.Seed = 0,
    diagnostic: options.Diagnostic = False,
    output: OutputOptions,
    file: FileOptions,
) -> None:
    """Run one algorithm with all parties on this machine.

    [bold]Examples[/bold]

      fedkt simulate digits

      fedkt simulate adult --parties 50 --partition balanced --seed 3 --jobs 2

      fedkt simulate heart --party-models forest,boosting,logistic --json

      fedkt simulate mnist --model mlp --epochs 10 --jobs 2

      fedkt simulate digits --algorithm mine.py:Mine

      fedkt simulate adult --voting expert --final logistic --cache students

      fedkt simulate adult --level L1 --noise laplace:0.04 --queries 81

      fedkt simulate patients.csv --label ill --party-column hospital --public-file public.csv

      fedkt simulate adult --level L2 --parties 20 --epsilon 1

      fedkt simulate adult --level L2 --parties 20 --voting consistent --subsets 25 --epsilon 2 --queries 40
    """
    from fedkt.cli.output import print_json, progress_bar, warn
    from fedkt.cli.runs import algorithm_with, check_used, chosen_among, settings_of, student_cache
    from fedkt.cli.tables import print_diagnostic, print_reports, write_report
    from fedkt.lab.runner import run as run_setting
    from fedkt.lab.setting import Setting

    values = settings_of(dataset, data, table, file, run)
    name = algorithm_with(algorithm, voting, level=run.privacy.level, chosen=chosen_among(values))
    values |= {"algorithm": name, "seed": seed}
    setting = Setting(**{"soft_final": True, **values}).with_defaults()
    check_used(values, setting)
    if diagnostic:
        check_diagnostic(setting)
    cache = student_cache(output, [setting], diagnostic=diagnostic)
    page = options.report_path(output.report, as_json=output.as_json)
    words = f"{setting.algorithm} on {setting.dataset}"
    with options.workers(output.jobs, output.backend) as jobs, progress_bar(words, quiet=output.as_json) as bar:
        result = run_setting(
            setting,
            jobs=jobs,
            data_dir=data.data_dir,
            measure_bytes=output.bytes_,
            command=options.this_command(),
            progress=bar,
            diagnostic=print_diagnostic if diagnostic else None,
            cache=cache,
            caution=warn,
        )
    if output.as_json:
        print_json(result.as_dict())
    else:
        print_reports([result])
    write_report(page, setting, [result], data_dir=data.data_dir, quiet=output.as_json)


def check_diagnostic(setting: Setting) -> None:
    """Refuse a data-dependent ε where there is none: it is of FedKT's plain votes, under a noise that is given."""
    from fedkt.privacy.mechanisms import known_noises

    able = [name for name, noise in known_noises().items() if noise.diagnosis is not None]
    # An unknown noise is refused in the words of those that know them.
    noise = setting.scale and (setting.mechanism in able or setting.mechanism not in known_noises())
    if setting.algorithm != "fedkt" or setting.level == "L0" or not noise:
        raise ConfigurationError(
            "--diagnostic is for the votes of fedkt, and needs --level L1 or L2 with a given noise, for instance "
            f"--noise gaussian:40. Noises that have one: {', '.join(able)}."
        )
