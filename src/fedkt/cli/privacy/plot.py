"""`fedkt privacy plot`: what scenario costs, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import options
from fedkt.cli.privacy import words

if TYPE_CHECKING:
    from fedkt.lab.privacy_figures import Line


def plot(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write it: .svg, .png or .html.", metavar="FILE")
    ] = Path("privacy.svg"),
    voters: words.Voters = 50,
    classes: words.Classes = 2,
    margin: words.Margin = None,
    chance: Annotated[float, typer.Option(help="The chance of the right label that every noise gives.")] = 0.95,
    delta: options.Delta = 1e-5,
    queries_up_to: Annotated[int, typer.Option(min=2, help="The largest number of labels drawn.")] = 500,
    unit: words.UnitOption = "record",
    abstentions: words.Abstentions = None,
    as_json: options.Json = False,
) -> None:
    """Draw epsilon against the number of labels, for all noises at the same chance of the right label.

    [bold]Examples[/bold]

      fedkt privacy plot

      fedkt privacy plot -o privacy.png --voters 25 --margin 10 --queries-up-to 200
    """
    from fedkt.cli.output import print_json, progress_bar, stdout
    from fedkt.lab.privacy_figures import CostScenario, check_cost_file, price_lines, save_cost

    check_cost_file(output)
    options.check_pictures()
    whom = words.unit_of(unit)
    scenario = CostScenario(
        voters=voters,
        classes=classes,
        margin=words.margin_of(margin, voters),
        chance=chance,
        delta=delta,
        queries_up_to=queries_up_to,
        unit=whom,
        abstentions=words.abstain(abstentions, whom),
    )
    with progress_bar("pricing", quiet=as_json) as bar:
        lines = price_lines(scenario, bar)
    save_cost(output, lines, scenario)
    if as_json:
        print_json({"file": str(output), **vars(scenario), "lines": [line_figures(line) for line in lines]})
        return
    stdout.say(f"Picture: {output}")


def line_figures(line: Line) -> dict[str, object]:
    """One line of the picture as JSON."""
    return {
        "name": line.name,
        "mechanism": line.noise.name,
        "scale": dict(line.noise.scale),
        "queries": line.queries,
        "epsilons": line.epsilons,
    }
