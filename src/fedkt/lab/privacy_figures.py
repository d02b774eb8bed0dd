"""The price of scenario, as a picture: ε against the number of labels released, for noises that label equally well.

The picture is for whoever has to say yes or no: one line a noise, what an ε means beside the axis, and where it stops
meaning anything. It is computed from public figures only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedkt.algorithms.calibration import USELESS_EPSILON
from fedkt.errors import ConfigurationError
from fedkt.lab.grid import Grid
from fedkt.lab.html import page_template
from fedkt.lab.svg import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, QUIET, RED, WIDTH, Picture
from fedkt.privacy import Noise, Release
from fedkt.privacy.accountant import price
from fedkt.privacy.calibrate import noise_for_chance
from fedkt.privacy.mechanisms import calibrated_alone
from fedkt.privacy.price import Unit
from fedkt.privacy.statement import rounded_up
from fedkt.system.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (BLUE, GREEN, ORANGE, INK, QUIET)
"""The noises' colours, by the order of their names."""
POINTS = 10
"""Numbers of labels that are priced; the lines are nearly straight between them."""
LEAST, MOST = 0.2, 100.0
"""The ε the picture shows."""


@dataclass(frozen=True)
class CostScenario:
    """What all lines of the picture have in common."""

    voters: int = 50
    classes: int = 2
    margin: int = 20
    chance: float = 0.95
    delta: float = 1e-5
    queries_up_to: int = 500
    unit: Unit = "record"
    abstentions: bool = False


@dataclass(frozen=True)
class Line:
    """One noise: what it costs at each number of labels."""

    name: str
    label: str
    noise: Noise
    queries: tuple[int, ...]
    epsilons: tuple[float, ...]
    colour: str


def price_lines(scenario: CostScenario, progress: Callable[[int, int], None] | None = None) -> list[Line]:
    """The lines, cheapest at the end first; the noise of each gives a winner with that lead the same chance."""
    if scenario.queries_up_to < 2:
        raise ConfigurationError(f"A line needs at least two queries, got {scenario.queries_up_to}.")
    if not 0 < scenario.margin <= scenario.voters:
        raise ConfigurationError(f"The margin is a lead of 1 to {scenario.voters} votes, got {scenario.margin}.")
    queries = tuple(dict.fromkeys(round(k) for k in np.geomspace(1, scenario.queries_up_to, POINTS)))
    votes = [scenario.margin] + [0] * (scenario.classes - 1)
    lines = []
    mechanisms = sorted(calibrated_alone())
    for number, mechanism in enumerate(mechanisms):
        noise = noise_for_chance(mechanism, votes, scenario.chance)
        best, papers = [], []
        for done, k in enumerate(queries):
            release = Release(
                noise, k, scenario.voters, scenario.classes, scenario.unit, abstentions=scenario.abstentions
            )
            answer = price(release, scenario.delta)
            best.append(answer.epsilon)
            papers.append(answer.accountants["paper"])
            if progress is not None:
                progress(number * len(queries) + done + 1, len(mechanisms) * len(queries))
        lines.append(Line(mechanism, mechanism, noise, queries, tuple(best), COLOURS[number % len(COLOURS)]))
        if noise.in_paper:
            lines.append(Line("paper", f"{mechanism}, the paper's formula", noise, queries, tuple(papers), PURPLE))
    return sorted(lines, key=lambda line: line.epsilons[-1])


def check_cost_file(path: Path) -> None:
    """Refuse, before anything is priced, a kind of file that could not be written afterwards."""
    if path.suffix.lower() not in (".svg", ".png", ".html"):
        raise ConfigurationError(f"The picture can be .svg, .png or .html, got {path.name!r}. Choose one of these.")


def save_cost(path: Path, lines: Sequence[Line], scenario: CostScenario) -> None:
    """Write the picture as the kind of file the name ends in: .svg, .png, or .html with the figures as a table."""
    check_cost_file(path)
    if path.suffix.lower() == ".html":
        write_atomically(path, cost_page(lines, scenario).encode())
    else:
        cost_picture(lines, scenario).save(path)


def cost_picture(lines: Sequence[Line], scenario: CostScenario) -> Picture:
    """ε against the number of labels, a line for each noise."""
    labels = [f"{line.label}: epsilon {', '.join(some_points(line))}" for line in lines]
    words = subtitle(scenario) + " " + "; ".join(labels) + "."
    return Picture(title(scenario), words, lambda: draw_cost(lines, scenario))


def title(scenario: CostScenario) -> str:
    """What the picture says."""
    whom = "record" if scenario.unit == "record" else "party"
    return f"Every label released costs privacy: what one {whom} pays, by noise"


def subtitle(scenario: CostScenario) -> str:
    """Under which conditions."""
    return (
        f"{scenario.voters} voters, {scenario.classes} classes. Every noise is as large as it may be to release a "
        f"winner that leads by {scenario.margin} votes\nwith a chance of {100 * scenario.chance:g} %, so all lines "
        f"label equally well: lower is better. δ = {scenario.delta:g}, replace-one."
    )


def draw_cost(lines: Sequence[Line], scenario: CostScenario) -> Figure:
    """ε against k on logarithmic axes, with what an ε means at the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 5.2))
    axes = figure.add_axes((0.085, 0.115, 0.60, 0.715))
    figure.text(0.015, 0.955, title(scenario), fontsize=12.5, fontweight="bold", color=INK)
    figure.text(0.015, 0.872, subtitle(scenario), fontsize=8.6, color=QUIET, linespacing=1.4)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, scenario.queries_up_to)
    axes.set_ylim(LEAST, MOST)
    axes.axhspan(USELESS_EPSILON, MOST, color=RED, alpha=0.10, linewidth=0)
    axes.axhspan(LEAST, 1, color=GREEN, alpha=0.10, linewidth=0)
    edge = scenario.queries_up_to**0.97
    for height, words, colour, side in (
        (62.0, "hardly any protection", RED, "left"),
        (1.25, "some protection: the lower, the better", QUIET, "right"),
        (0.26, "strong protection", "#00664b", "right"),
    ):
        axes.text(1.15 if side == "left" else edge, height, words, color=colour, fontsize=8.5, va="center", ha=side)
    axes.grid(color=GRID, linewidth=0.7, which="major")
    ticks = [
        k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000) if k < 0.8 * scenario.queries_up_to
    ]
    ticks.append(scenario.queries_up_to)
    axes.set_xticks(ticks, [f"{k:,}" for k in ticks])
    axes.set_xticks([], minor=True)
    levels = [0.2, 0.5, 1, 2, 4, 10, 20, 50, 100]
    axes.set_yticks(levels, [f"{level:g}" for level in levels])
    axes.set_yticks([], minor=True)
    axes.set_xlabel("labels released (k)")
    axes.set_ylabel("privacy lost (ε)")
    for line in lines:
        style = (0, (4, 2)) if line.name == "paper" else "solid"
        axes.plot(line.queries, line.epsilons, color=line.colour, linewidth=2.0, linestyle=style, zorder=3)
    label_lines(axes, lines, scenario)
    return figure


def label_lines(axes: Axes, lines: Sequence[Line], scenario: CostScenario) -> None:
    """The name of each line at its right end, moved apart where they would overlap, and what the levels mean."""
    gap = 0.082 * math.log(MOST / LEAST)
    heights: list[float] = []
    for line in lines:
        height = math.log(min(max(line.epsilons[-1], LEAST), MOST))
        heights.append(max(height, heights[-1] + gap) if heights else height)
    over = max(0.0, heights[-1] - math.log(MOST)) if heights else 0.0
    for line, height in zip(lines, heights, strict=True):
        end = min(max(line.epsilons[-1], LEAST), MOST)
        axes.annotate(
            f"{line.label}\nε = {epsilon_label(line.epsilons[-1])} at k = {line.queries[-1]:,}",
            (scenario.queries_up_to, end),
            (1.05, height_of(math.exp(height - over))),
            textcoords="axes fraction",
            color=INK,
            fontsize=8.3,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": line.colour,
                "linewidth": 1.4,
                "shrinkA": 2,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )
    lowest = math.exp(heights[0] - over) if heights else MOST
    style = {"transform": axes.transAxes, "fontsize": 8.3, "va": "center", "color": QUIET}
    levels = [level for level in (0.5, 1.0, 2.0, 4.0, 10.0) if level < lowest / 3]
    for level in levels:
        # e^ε, rounded up to two digits.
        factor = math.exp(level)
        digits = 1 - math.floor(math.log10(factor))
        odds = f"{math.ceil(factor * 10**digits) / 10**digits:,.{max(0, digits)}f}"
        axes.text(1.05, height_of(level), f"ε = {level:g}: at most × {odds}", **style)  # type: ignore[arg-type]
    if levels:
        words = "How much the odds of a guess\nabout somebody may change:"
        axes.text(1.05, height_of(levels[-1]) + 0.085, words, **{**style, "color": INK})  # type: ignore[arg-type]


def height_of(epsilon: float) -> float:
    """How high on the axis an ε stands, from 0 to 1."""
    return math.log(epsilon / LEAST) / math.log(MOST / LEAST)


def epsilon_label(epsilon: float) -> str:
    """ε for a label: two digits after the point at most, rounded up."""
    return f"{math.ceil(epsilon * 10 - 1e-9) / 10:.1f}" if epsilon < 100 else f"{math.ceil(epsilon)}"


def some_points(line: Line) -> list[str]:
    """Some points of a line, for readers who cannot see it."""
    some = list(zip(line.queries, line.epsilons, strict=True))[:: max(1, len(line.queries) // 4)]
    return [f"{rounded_up(epsilon)} at {k} labels" for k, epsilon in some]


def cost_page(lines: Sequence[Line], scenario: CostScenario) -> str:
    """One HTML file with the picture and its figures: no script, nothing loaded from anywhere."""
    return page_template("cost.html").render(
        title=title(scenario),
        picture=cost_picture(lines, scenario).svg(),
        epsilons=Grid(
            ["labels", *(line.label for line in lines)],
            [
                [f"{k:,}", *(rounded_up(line.epsilons[place]) for line in lines)]
                for place, k in enumerate(lines[0].queries)
            ],
        ),
        noises=[
            (line.label, ", ".join(f"{name} {value:.4g}" for name, value in line.noise.scale.items())) for line in lines
        ],
    )
