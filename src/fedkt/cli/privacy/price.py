"""`fedkt privacy price`: what a noise costs."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from fedkt.cli import options
from fedkt.cli.privacy import words


def price(
    queries: words.Asked,
    voters: words.Voters,
    classes: words.Classes = 2,
    mechanism: options.Mechanism = None,
    gamma: options.Gamma = None,
    sigma: options.Sigma = None,
    theta: options.Theta = None,
    threshold: options.Threshold = None,
    sigma_test: options.SigmaTest = None,
    answers: options.Answers = None,
    delta: options.Delta = 1e-5,
    unit: words.UnitOption = "record",
    abstentions: words.Abstentions = None,
    accountant: Annotated[
        str, typer.Option(help="all, or some of pure, paper, paper-8, rdp, pld, gdp, exact, arg-max, with commas.")
    ] = "all",
    count_sigma: Annotated[
        float | None,
        typer.Option(help="Expert voting at L2: the noise on the class counts that leave beside the labels."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Tell what a noise costs: epsilon by every accountant, from public figures only.

    [bold]Examples[/bold]

      fedkt privacy price --mechanism laplace --gamma 0.04 --queries 81 --voters 25

      fedkt privacy price --sigma 40 --queries 40 --voters 50 --classes 10 --unit party

      fedkt privacy price --gamma 0.04 --queries 81 --voters 25 --accountant exact,paper --json

      fedkt privacy price --sigma 8 --queries 30 --voters 15 --count-sigma 6.5
    """
    from rich.table import Table

    from fedkt.cli.output import print_json, stdout
    from fedkt.errors import ConfigurationError
    from fedkt.privacy import Release, price_together
    from fedkt.privacy.accountant import price as price_of
    from fedkt.privacy.gaussian import GaussianCounts
    from fedkt.privacy.ledger import counts_release
    from fedkt.privacy.statement import rounded_up

    scale = options.scale(
        gamma=gamma, sigma=sigma, theta=theta, threshold=threshold, sigma_test=sigma_test, answers=answers
    )
    whom = words.unit_of(unit)
    release = Release(
        words.noise_of(mechanism, scale), queries, voters, classes, whom, abstentions=words.abstain(abstentions, whom)
    )
    asked = None if accountant == "all" else options.names(accountant)
    if count_sigma is None:
        found = price_of(release, delta, accountants=asked)
    elif asked is not None:
        raise ConfigurationError("Labels and counts are priced together as a ledger does it: leave --accountant out.")
    else:
        # As a ledger prices it, to the last digit.
        both = [release, counts_release(GaussianCounts(count_sigma), classes)]
        found = price_together(both, delta, adaptive=True, first=len(both))
    if as_json:
        print_json(
            {
                "epsilon": found.epsilon,
                "accountant": found.accountant if math.isfinite(found.epsilon) else None,
                **words.figures(release, delta),
                **({} if count_sigma is None else {"count_sigma": count_sigma}),
                "accountants": dict(found.accountants),
            }
        )
        return
    table = Table(
        title=f"{words.in_words(release.noise)}: {queries} queries, {voters} voters, {classes} classes, delta {delta:g}"
    )
    smallest = found.accountant.split(" ")[0]
    table.add_column("accountant")
    table.add_column("epsilon", justify="right")
    table.add_column("")
    table.add_column("how")
    for name, epsilon in found.accountants.items():
        known = math.isfinite(epsilon)
        table.add_row(
            name,
            rounded_up(epsilon) if known else "–",
            "smallest" if known and name == smallest else "",
            words.ABOUT.get(name, ""),
            style="bold" if known and name == smallest else None,
        )
    stdout.print(table)
    stdout.print(words.meaning(found), markup=False, highlight=False, soft_wrap=True)
    stdout.print(
        f"Unit: one {release.unit}, {release.adjacency}. Every figure is an upper bound from public figures; – means "
        "that the accountant does not apply.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
