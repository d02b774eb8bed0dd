"""`fedkt privacy calibrate`: which noise to take for a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.cli import options
from fedkt.cli.privacy import words
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.privacy import Noise, Price, Release


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
        bool, typer.Option("--most-queries", help="Instead: how many queries a noise scale buys for this budget.")
    ] = False,
    gamma: options.Gamma = None,
    sigma: options.Sigma = None,
    theta: options.Theta = None,
    threshold: options.Threshold = None,
    sigma_test: options.SigmaTest = None,
    answers: options.Answers = None,
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

      fedkt privacy calibrate --epsilon 2 --voters 50 --most-queries --sigma 40
    """
    scale = options.scale(
        gamma=gamma, sigma=sigma, theta=theta, threshold=threshold, sigma_test=sigma_test, answers=answers
    )
    whom = words.unit_of(unit)
    public: dict[str, Any] = {
        "delta": delta,
        "voters": voters,
        "classes": classes,
        "unit": whom,
        "abstentions": words.abstain(abstentions, whom),
    }
    lead = words.margin_of(margin, voters)
    if most_queries:
        if queries is not None:
            raise ConfigurationError("--most-queries finds the number of queries: leave --queries out.")
        show_most(epsilon, mechanism, scale, public, lead, as_json)
        return
    if queries is None:
        raise ConfigurationError("How many queries? Pass --queries 40, or --most-queries with a noise scale.")
    fixed = dict(scale)
    if set(fixed) - {"threshold", "answers"}:
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
    from rich.table import Table

    from fedkt.cli.output import print_json, progress_bar, stdout
    from fedkt.privacy.calibrate import chance_right, smallest_noise
    from fedkt.privacy.statement import rounded_up

    counts = words.counts_at(margin, public["voters"], public["classes"])
    names = mechanisms or ("laplace", "gaussian", "gumbel")
    found = []
    with progress_bar("looking for the smallest noise", quiet=as_json) as bar:
        for number, name in enumerate(names):
            own = fixed if name == "confident-gaussian" else {}
            least = smallest_noise(name, epsilon=epsilon, queries=queries, fixed=own, **public)
            offered = [priced(each, queries, public) for each in (words.in_five_digits(least), least)]
            # Both were made for the budget; the one that can be copied is taken where rounding did no harm.
            paid = offered[0] if offered[0].epsilon <= epsilon else offered[1]
            found.append((chance_right(paid.release.noise, counts), paid))
            bar(number + 1, len(names))
    found.sort(key=lambda each: -each[0])
    first = found[0][1].release
    if as_json:
        shared = words.figures(first, public["delta"])
        print_json(
            {
                "target": epsilon,
                **shared,
                "epsilon": found[0][1].epsilon,
                "accountant": found[0][1].accountant,
                "margin": margin,
                "chance": found[0][0],
                "mechanisms": [
                    {
                        "mechanism": each.release.noise.name,
                        "scale": dict(each.release.noise.scale),
                        "epsilon": each.epsilon,
                        "accountant": each.accountant,
                        "chance": chance,
                    }
                    for chance, each in found
                ],
            }
        )
        return
    table = Table(title=f"Smallest noise for epsilon {epsilon:g} at delta {public['delta']:g}: {asked(first)}")
    table.add_column("mechanism")
    table.add_column("noise")
    table.add_column("epsilon", justify="right")
    table.add_column("accountant")
    table.add_column("right label", justify="right")
    table.add_column("")
    for number, (chance, each) in enumerate(found):
        table.add_row(
            each.release.noise.name,
            words.scale_in_words(each.release.noise),
            rounded_up(each.epsilon),
            each.accountant,
            words.percent(chance),
            "best" if number == 0 and len(found) > 1 else "",
            style="bold" if number == 0 and len(found) > 1 else None,
        )
    stdout.print(table)
    say_margin(margin, public)
    stdout.print(words.meaning(found[0][1]), markup=False, highlight=False, soft_wrap=True)


def show_most(
    epsilon: float,
    mechanism: str | None,
    scale: tuple[tuple[str, float], ...],
    public: dict[str, Any],
    margin: int,
    as_json: bool,
) -> None:
    """How many queries a noise buys."""
    from fedkt.cli.output import print_json, stdout
    from fedkt.privacy.calibrate import chance_right, most_queries

    noise = words.noise_of(mechanism, scale)
    most = most_queries(noise, epsilon=epsilon, **public)
    paid = priced(noise, most, public)
    chance = chance_right(noise, words.counts_at(margin, public["voters"], public["classes"]))
    if as_json:
        print_json(
            {
                "target": epsilon,
                **words.figures(paid.release, public["delta"]),
                "epsilon": paid.epsilon,
                "accountant": paid.accountant,
                "margin": margin,
                "chance": chance,
            }
        )
        return
    stdout.print(
        f"{words.in_words(noise)}: epsilon {epsilon:g} at delta {public['delta']:g} covers {most:,} queries of "
        f"{public['voters']} voters and {public['classes']} classes, each right with a chance of "
        f"{words.percent(chance)}.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    say_margin(margin, public)
    if most:
        stdout.print(words.meaning(paid), markup=False, highlight=False, soft_wrap=True)


def priced(noise: Noise, queries: int, public: dict[str, Any]) -> Price:
    """What so many queries with this noise cost."""
    from fedkt.privacy import Release
    from fedkt.privacy.accountant import price

    figures = {what: public[what] for what in ("voters", "classes", "unit", "abstentions")}
    return price(Release(noise, queries, **figures), public["delta"])


def asked(release: Release) -> str:
    """How much is asked of whom."""
    return f"{release.queries} queries, {release.voters} voters, {release.classes} classes, one {release.unit}"


def say_margin(margin: int, public: dict[str, Any]) -> None:
    """What the chance of the right label is a chance of."""
    from fedkt.cli.output import stdout

    stdout.print(
        f"Right label: the chance that the winner is released when it leads every other class by {margin} of "
        f"{public['voters']} votes (--margin; nobody's votes were looked at). Closer votes fare worse, clearer ones "
        "better.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
