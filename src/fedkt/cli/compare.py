"""`fedkt compare`: several algorithms on the same splits, over several seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options
from fedkt.errors import ConfigurationError


def compare(
    context: typer.Context,
    dataset: options.Dataset,
    extra: options.Extra = False,
    algorithms: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: fedkt, fedkt-expert, fedkt-expert-no-counts, solo, pate, pate-soft, centralised, "
            "fedavg, fedprox, scaffold, feddf, pfnm, fedkt-prox. Default: fedkt,fedkt-expert,solo,pate,"
            "centralised; at L2 fedkt,fedkt-expert, at L1 fedkt."
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(help="How many seeds (5 means 0 to 4), or which: 3-7 or 0,2,9.")] = "5",
    model: options.Model = None,
    parties: options.Parties = None,
    partition: options.Partition = None,
    beta: options.Beta = 0.5,
    partitions: options.Partitions = None,
    subsets: options.Subsets = None,
    level: options.Level = "L0",
    mechanism: options.Mechanism = None,
    gamma: options.Gamma = None,
    sigma: options.Sigma = None,
    theta: options.Theta = None,
    threshold: options.Threshold = None,
    sigma_test: options.SigmaTest = None,
    answers: options.Answers = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = 1e-5,
    queries: options.Queries = "1.0",
    teacher: options.Teacher = None,
    student: options.Student = None,
    final: options.Final = None,
    party_models: options.PartyModels = None,
    epochs: options.Epochs = None,
    local_epochs: options.LocalEpochs = None,
    learning_rate: options.LearningRate = None,
    rounds: options.Rounds = None,
    participation: options.Participation = 1.0,
    mu: options.Mu = None,
    distil_epochs: options.DistilEpochs = None,
    public_share: options.PublicShare = 1.0,
    public_beta: options.PublicBeta = None,
    jobs: options.Jobs = 1,
    data_dir: options.DataDir = None,
    bytes_: options.Bytes = False,
    results: Annotated[
        Path | None,
        typer.Option(help="JSON-lines file: every finished run is kept there at once, and none is run again."),
    ] = None,
    report: options.Report = None,
    curve: Annotated[
        Path | None,
        typer.Option(help="Where to draw accuracy against rounds and megabytes: a .svg, .png or .pdf file."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compare algorithms on the same splits and parties.

    [bold]Examples[/bold]

      fedkt compare digits --algorithms fedkt,solo,centralised --seeds 5

      fedkt compare adult --partition balanced --seeds 10 --jobs 2 --results adult.jsonl

      fedkt compare mnist --algorithms fedkt,solo,fedavg,fedprox,scaffold,feddf,pfnm,pate --seeds 5

      fedkt compare svhn --algorithms fedkt-prox,fedavg,fedprox --rounds 50 --results svhn-rounds.jsonl

      fedkt compare digits --model mlp --algorithms fedkt,fedavg --rounds 10 --bytes --curve curve.svg
    """
    from dataclasses import asdict

    from fedkt.algorithms import ALGORITHMS
    from fedkt.cli.output import print_json, progress_bar
    from fedkt.cli.tables import print_summaries, write_curve, write_report
    from fedkt.lab.curves import check_curve
    from fedkt.lab.results import less_first, summarise
    from fedkt.lab.series import run_all

    # Most options are read from the context, so that both verbs build a setting in one place.
    settings = [
        # Methods of one round stand beside those of many.
        options.setting(
            context.params | ({"rounds": None} if algorithm in ALGORITHMS and ALGORITHMS[algorithm].one_shot else {}),
            algorithm=algorithm,
            seed=seed,
        )
        for seed in dict.fromkeys(chosen_seeds(seeds))
        for algorithm in dict.fromkeys(options.names(usual_algorithms(level) if algorithms is None else algorithms))
    ]
    unsuited: dict[str, str] = {}
    if not settings:
        raise ConfigurationError("There is nothing to compare: name at least one algorithm and one seed.")
    if curve is not None:
        check_curve(curve, settings)
    with progress_bar("compare", quiet=as_json) as bar:
        reports = run_all(
            settings,
            results=results,
            on_start=lambda number, each: bar.rename(
                f"run {number + 1} of {len(settings)}: {each.algorithm}, seed {each.seed}"
            ),
            on_wait=lambda runs: bar.rename(f"waiting for runs of another process: {runs}"),
            jobs=options.cores(jobs),
            data_dir=data_dir,
            measure_bytes=bytes_,
            command=options.this_command(),
            progress=bar,
            on_unsuited=lambda each, reason: unsuited.update({each.algorithm: str(reason)}),
        )
    if not reports:
        raise ConfigurationError(" ".join(unsuited.values()))
    if as_json:
        first, apart = less_first(reports)
        print_json(
            {
                "dataset": dataset,
                "algorithms": [asdict(summary) for summary in summarise(reports)],
                "differences": {"less": first, "points": apart},
                "unsuited": unsuited,
                "runs": [each.as_dict() for each in reports],
            }
        )
    else:
        print_summaries(reports, unsuited)
    write_report(options.report_path(report, as_json=as_json), settings[0], reports, data_dir=data_dir, quiet=as_json)
    write_curve(curve, reports, quiet=as_json)


def chosen_seeds(text: str) -> list[int]:
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


def usual_algorithms(level: str) -> str:
    """What is compared where nobody chose it: FedKT with both votings and its bounds, which have no private level."""
    from fedkt.algorithms import ALGORITHMS

    return ",".join(card.name for card in ALGORITHMS.values() if level in card.compared_at)
