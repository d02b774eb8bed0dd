"""`fedkt privacy calibrate`: which noise to take for a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.cli import options
from fedkt.cli.groups import ScaleOptions
from fedkt.cli.panels import with_groups
from fedkt.cli.privacy import words
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.privacy import Noise, Price


@with_groups
def calibrate(
    epsilon: Annotated[float, typer.Option(help="The budget: the largest ε allowed.")],
    voters: words.Voters,
    queries: Annotated[
        int | None,
        typer.Option(min=1, help="Labels released that one unit can move: k at L1, partitions × k at L2 (s·k)."),
    ] = None,
    classes: words.Classes = 2,
    mechanism: Annotated[
        str | None, typer.Option(help="One noise, or several with commas. Default: laplace,gaussian,gumbel.")
    ] = None,
    most_queries: Annotated[
        bool, typer.Option("--most-queries", help="Instead: how many queries a noise buys for this budget.")
    ] = False,
    noise: Annotated[
        str | None, typer.Option(help="With --most-queries: {noise}, for instance gaussian:40.", metavar="NAME:SCALE")
    ] = None,
    *,
    scale: ScaleOptions,
    delta: options.Delta = 1e-5,
    unit: words.UnitOption = "record",
    abstentions: words.Abstentions = None,
    margin: words.Margin = None,
    as_json: options.Json = False,
) -> None:
    """Find the smallest noise for a budget, and which mechanism then labels best; or the most queries for a noise.

    [bold]Examples[/bold]

      fedkt privacy calibrate --epsilon 2 --queries 40 --voters 50

      fedkt privacy calibrate --epsilon 2 --queries 40 --voters 50 --classes 10 --mechanism gaussian --margin 15

      fedkt privacy calibrate --epsilon 2 --voters 50 --most-queries --noise gaussian:40
    """
    from fedkt.privacy.mechanisms import noise_of_fixed, parse_noise

    whom = words.unit_of(unit)
    public = {"delta": delta, "voters": voters, "classes": classes, "unit": whom}
    public["abstentions"] = words.abstain(abstentions, whom)
    lead = words.margin_of(margin, voters)
    if most_queries:
        if queries is not None:
            raise ConfigurationError("--most-queries finds the number of queries: leave --queries out.")
        scaled = words.noise_of(mechanism, scale.values()) if noise is None else parse_noise(noise)
        show_most(epsilon, scaled, public, lead, as_json)
        return
    if noise is not None:
        raise ConfigurationError(
            f"calibrate finds the scale: leave --noise {noise} out, or ask for --most-queries with it. Which noises "
            "are tried, --mechanism says."
        )
    if queries is None:
        raise ConfigurationError("How many queries? Pass --queries 40, or --most-queries with a noise scale.")
    fixed = scale.values()
    if set(fixed) - set(noise_of_fixed()):
        raise ConfigurationError(
            f"calibrate finds the scale: leave --{', --'.join(sorted(fixed))} out, or ask for --most-queries with it."
        )
    show_best(epsilon, queries, options.names(mechanism), fixed, public, lead, as_json)


def show_best(
    epsilon: float,
    queries: int,
    mechanisms: tuple[str, ...],
    fixed: dict[str, float],
    public: dict[str, Any],
    margin: int,
    as_json: bool,
) -> None:
    """The smallest noise of every mechanism, the one with the best chance of the right label first."""
    from fedkt.cli.output import print_json, progress_bar, stdout
    from fedkt.privacy.calibrate import chance_right
    from fedkt.privacy.mechanisms import calibrated_alone

    counts = words.counts_at(margin, public["voters"], public["classes"])
    names = mechanisms or calibrated_alone()
    candidates = []
    with progress_bar("looking for the smallest noise", quiet=as_json) as bar:
        for number, name in enumerate(names):
            price = least_price(name, epsilon, queries, fixed, public)
            candidates.append((chance_right(price.release.noise, counts), price))
            bar(number + 1, len(names))
    candidates.sort(key=lambda each: -each[0])
    if as_json:
        entries = [
            {
                "mechanism": each.release.noise.name,
                "scale": dict(each.release.noise.scale),
                "epsilon": each.epsilon,
                "accountant": each.accountant,
                "chance": chance,
            }
            for chance, each in candidates
        ]
        chance, best = candidates[0]
        print_json({"target": epsilon, **price_figures(best, margin, chance), "mechanisms": entries})
        return
    print_best(candidates, epsilon)
    say_margin(margin, public)
    stdout.say(words.meaning(candidates[0][1]))


def least_price(name: str, epsilon: float, queries: int, fixed: dict[str, float], public: dict[str, Any]) -> Price:
    """The price of a mechanism's smallest noise; in few digits, where these still keep the budget."""
    from fedkt.privacy.calibrate import smallest_noise
    from fedkt.privacy.mechanisms import noise_class

    parameters = fixed if noise_class(name).fixed_parameters() else {}
    least = smallest_noise(name, epsilon=epsilon, queries=queries, fixed=parameters, **public)
    # Both were made for the budget; the one that can be copied is taken where rounding did no harm.
    short, long = (price_at(each, queries, public) for each in (least.rounded(), least))
    return short if short.epsilon <= epsilon else long


def price_figures(price: Price, margin: int, chance: float) -> dict[str, Any]:
    """A price and the chance of the right label at it, as JSON."""
    return {
        **words.figures(price.release, price.delta),
        "epsilon": price.epsilon,
        "accountant": price.accountant,
        "margin": margin,
        "chance": chance,
    }


def print_best(candidates: list[tuple[float, Price]], epsilon: float) -> None:
    """All mechanisms as a table."""
    from fedkt.cli.grids import print_grid
    from fedkt.lab.grid import Grid, GridCell
    from fedkt.privacy.statement import rounded_up

    first = candidates[0][1]
    figures = first.release
    lines = []
    for number, (chance, each) in enumerate(candidates):
        best = "best" if number == 0 and len(candidates) > 1 else ""
        cells = (
            each.release.noise.name,
            words.scale_in_words(each.release.noise),
            rounded_up(each.epsilon),
            words.chance_in_percent(chance),
            each.accountant,
            best,
        )
        lines.append([GridCell(cell, mark=best) for cell in cells])
    title = (
        f"Smallest noise for epsilon {epsilon:g} at delta {first.delta:g}: {figures.queries} queries, "
        f"{figures.voters} voters, {figures.classes} classes, one {figures.unit}"
    )
    head = ["mechanism", "noise", "epsilon", "right label", "accountant", ""]
    print_grid(Grid(head, lines, title, words=("accountant", "")), colours={"best": "bold"})


def show_most(
    epsilon: float,
    noise: Noise,
    public: dict[str, Any],
    margin: int,
    as_json: bool,
) -> None:
    """How many queries a noise buys."""
    from fedkt.cli.output import print_json, stdout
    from fedkt.privacy.calibrate import chance_right, most_queries

    most = most_queries(noise, epsilon=epsilon, **public)
    price = price_at(noise, most, public)
    chance = chance_right(noise, words.counts_at(margin, public["voters"], public["classes"]))
    if as_json:
        print_json({"target": epsilon, **price_figures(price, margin, chance)})
        return
    stdout.say(
        f"{words.noise_in_words(noise)}: epsilon {epsilon:g} at delta {public['delta']:g} covers {most:,} queries of "
        f"{public['voters']} voters and {public['classes']} classes, each right with a chance of "
        f"{words.chance_in_percent(chance)}."
    )
    say_margin(margin, public)
    if most:
        stdout.say(words.meaning(price))


def price_at(noise: Noise, queries: int, public: dict[str, Any]) -> Price:
    """What so many queries with this noise cost."""
    from fedkt.privacy import Release
    from fedkt.privacy.accountant import price

    figures = {what: public[what] for what in ("voters", "classes", "unit", "abstentions")}
    return price(Release(noise, queries, **figures), public["delta"])


def say_margin(margin: int, public: dict[str, Any]) -> None:
    """What the chance of the right label is a chance of."""
    from fedkt.cli.output import stdout

    stdout.say(
        f"Right label: the chance that the winner is released when it leads every other class by {margin} of "
        f"{public['voters']} votes (--margin; nobody's votes were looked at). Closer votes fare worse, clearer ones "
        "better."
    )
