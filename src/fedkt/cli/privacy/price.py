"""`fedkt privacy price`: what a noise costs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import options
from fedkt.cli.groups import NoiseOptions
from fedkt.cli.panels import with_groups
from fedkt.cli.privacy import words
from fedkt.cli.runs import noise_choice
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.privacy import Price, Release


@with_groups
def show_price(
    queries: words.Queries,
    voters: words.Voters,
    classes: words.Classes = 2,
    *,
    noise: NoiseOptions,
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

      fedkt privacy price --noise laplace:0.04 --queries 81 --voters 25

      fedkt privacy price --noise gaussian:40 --queries 40 --voters 50 --classes 10 --unit party

      fedkt privacy price --noise laplace:0.04 --queries 81 --voters 25 --accountant exact,paper --json

      fedkt privacy price --noise gaussian:8 --queries 30 --voters 15 --count-sigma 6.5

      fedkt privacy price --noise gaussian-sums:7.46 --queries 1 --voters 1
    """
    from fedkt.cli.output import print_json
    from fedkt.privacy import Release

    whom = words.unit_of(unit)
    mechanism, scale = noise_choice(noise, calibrated=False, counts=True)
    release = Release(
        words.noise_of(mechanism, dict(scale)),
        queries,
        voters,
        classes,
        whom,
        abstentions=words.abstain(abstentions, whom),
    )
    price = price_with_counts(release, delta, None if accountant == "all" else options.names(accountant), count_sigma)
    if as_json:
        print_json(
            {
                "epsilon": price.epsilon,
                "accountant": price.accountant if math.isfinite(price.epsilon) else None,
                **words.figures(release, delta),
                **({} if count_sigma is None else {"count_sigma": count_sigma}),
                "accountants": dict(price.accountants),
            }
        )
        return
    print_price(release, price)


def price_with_counts(
    release: Release, delta: float, accountants: tuple[str, ...] | None, count_sigma: float | None
) -> Price:
    """The price of a release, alone or with noisy class counts beside."""
    from fedkt.privacy import price_together
    from fedkt.privacy.accountant import price
    from fedkt.privacy.gaussian import GaussianCounts
    from fedkt.privacy.price import counts_release

    if count_sigma is None:
        return price(release, delta, accountants=accountants)
    if accountants is not None:
        raise ConfigurationError("Labels and counts are priced together as a ledger does it: leave --accountant out.")
    # As a ledger prices it, to the last digit.
    both = [release, counts_release(GaussianCounts(count_sigma), release.classes)]
    return price_together(both, delta, adaptive=True, first=len(both))


def print_price(release: Release, price: Price) -> None:
    """What every accountant says, and what the smallest answer means."""
    from fedkt.cli.grids import print_grid
    from fedkt.cli.output import stdout
    from fedkt.lab.grid import Grid, GridCell
    from fedkt.privacy.statement import rounded_up

    smallest = price.accountant.split(" ")[0]
    lines = []
    for name, epsilon in price.accountants.items():
        applies = math.isfinite(epsilon)
        best = "smallest" if applies and name == smallest else ""
        cells = (name, rounded_up(epsilon) if applies else "–", best, words.ABOUT.get(name, ""))
        lines.append([GridCell(cell, mark=best) for cell in cells])
    title = (
        f"{words.noise_in_words(release.noise)}: {release.queries} queries, {release.voters} voters, "
        f"{release.classes} classes, delta {price.delta:g}"
    )
    grid = Grid(["accountant", "epsilon", "", "how"], lines, title, words=("", "how"))
    print_grid(grid, colours={"smallest": "bold"})
    stdout.say(words.meaning(price))
    stdout.say(
        f"Unit: one {release.unit}, {release.adjacency}. Every figure is an upper bound from public figures; – means "
        "that the accountant does not apply."
    )
