"""`fedkt simulate`: one algorithm, one dataset, all parties on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from fedkt.cli import options


def simulate(
    context: typer.Context,
    dataset: options.Dataset,
    extra: options.Extra = False,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="fedkt, fedkt-expert, fedkt-expert-no-counts, solo, pate, pate-soft, centralised, fedavg, fedprox, "
            "scaffold, feddf, pfnm or fedkt-prox. Default: fedkt-expert, and fedkt at a private level."
        ),
    ] = None,
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
    seed: Annotated[int, typer.Option(min=0, help="Decides split, parties and training.")] = 0,
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
    report: options.Report = None,
    diagnostic: Annotated[
        bool, typer.Option("--diagnostic", help="Also print the data-dependent ε. Confidential.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Run one algorithm with all parties on this machine.

    [bold]Examples[/bold]

      fedkt simulate digits

      fedkt simulate adult --parties 50 --partition balanced --seed 3 --jobs 2

      fedkt simulate heart --party-models forest,boosting,logistic --json

      fedkt simulate mnist --model mlp --epochs 10 --jobs 2

      fedkt simulate adult --level L1 --mechanism laplace --gamma 0.04 --queries 81

      fedkt simulate adult --level L2 --subsets 25 --parties 20 --epsilon 2 --queries 40
    """
    from fedkt.algorithms.voting import algorithm_name, make_voting, usual_voting
    from fedkt.cli.output import print_json, progress_bar, warn
    from fedkt.cli.tables import print_diagnostic, print_reports, write_report
    from fedkt.errors import ConfigurationError
    from fedkt.lab.runner import run
    from fedkt.privacy.mechanisms import NOISES

    if algorithm is None:
        algorithm = algorithm_name(make_voting(usual_voting(level)))
    setting = options.setting(context.params, algorithm=algorithm, seed=seed)
    options.check_used(context.params, setting)
    undiagnosed = setting.mechanism in NOISES and NOISES[setting.mechanism].diagnosis is None
    if diagnostic and (algorithm != "fedkt" or level == "L0" or not setting.scale or undiagnosed):
        raise ConfigurationError(
            "--diagnostic is for the votes of fedkt, and needs --level L1 or L2 with a given noise: --gamma (laplace), "
            "--sigma (gaussian), or all four of confident-gaussian."
        )
    with progress_bar(f"{algorithm} on {dataset}", quiet=as_json) as bar:
        result = run(
            setting,
            jobs=options.cores(jobs),
            data_dir=data_dir,
            measure_bytes=bytes_,
            command=options.this_command(),
            progress=bar,
            diagnostic=print_diagnostic if diagnostic else None,
            caution=warn,
        )
    if as_json:
        print_json(result.as_dict())
    else:
        print_reports([result])
    write_report(options.report_path(report, as_json=as_json), setting, [result], data_dir=data_dir, quiet=as_json)
