"""Pictures of an experiment: who is how accurate, and how the parties voted.

A picture is described for readers who cannot see it, has no scripts, dates or fonts of its own, and is byte for byte
the same for the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.lab.names import colour_of, name_of
from fedkt.lab.svg import BLUE, GRID, NARROW, ORANGE, Picture, shorten
from fedkt.report import figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedkt.lab.results import Summary
    from fedkt.report import Report


MEASURES = {"accuracy": "Test accuracy", "balanced_accuracy": "Balanced accuracy (mean over classes)", "auc": "AUC"}
"""The figures that algorithms are drawn side by side by, and the titles of their pictures."""


def figure_bars(summaries: Sequence[Summary], reports: Sequence[Report] = ()) -> list[Picture]:
    """A picture for each figure that was measured: a mean per algorithm, the spread over seeds, each seed as a dot."""
    pictures = []
    for measure, title in MEASURES.items():
        known = [each for each in summaries if getattr(each, measure) is not None]
        words = [
            f"{name_of(each.algorithm)} {share_in_words(getattr(each, measure), len(each.seeds))}" for each in known
        ]
        if known:
            drawn = partial(draw_bars, known, reports, measure, title)
            pictures.append(Picture(title, f"{title}: {'; '.join(words)}.", drawn))
    return pictures


def vote_histograms(votes: dict[str, Any]) -> list[Picture]:
    """How the parties voted on the public rows: how many agreed with the winner, and how many abstained."""
    pictures = []
    for what, colour, title in (
        ("agreement", BLUE, "Share of the parties that voted for the winner"),
        ("abstention", ORANGE, "Share of the parties that abstained"),
    ):
        heights = np.asarray(votes[f"{what}_histogram"])
        words = f"Mean {what} about {middle_of(heights):.0%} on {int(heights.sum()):,} public rows."
        pictures.append(Picture(title, words, partial(draw_votes, heights, colour, title)))
    return pictures


def votes_in_words(votes: dict[str, Any]) -> str:
    """What the histograms do not show of a vote."""
    rows, unlabelled, ties = int(sum(votes["agreement_histogram"])), votes.get("unlabelled", 0), votes.get("ties", 0)
    return f"Of {rows:,} public rows, {unlabelled:,} got no vote and no label; {ties:,} had a tie, broken at random."


def draw_bars(summaries: Sequence[Summary], reports: Sequence[Report], measure: str, title: str) -> Figure:
    """One line an algorithm, its name above it; the axis does not begin at 0, or differences would vanish on it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(NARROW, 0.8 + 0.46 * len(summaries)), layout="constrained")
    axes = figure.subplots()
    draw_accuracies(axes, summaries, reports, measure)
    axes.set_title(title)
    axes.set_yticks([])
    beside = axes.get_yaxis_transform()
    for row, each in enumerate(summaries):
        axes.text(0, row - 0.36, shorten(name_of(each.algorithm), 28), transform=beside, va="center")
        mean = f"{100 * getattr(each, measure)[0]:.1f} %"
        axes.text(1, row - 0.36, mean, transform=beside, va="center", ha="right", weight="bold")
    axes.set_ylim(len(summaries) - 0.5, -0.65)
    return figure


def draw_votes(heights: NDArray[np.int64], colour: str, title: str) -> Figure:
    """A histogram over public rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(NARROW, 2.5), layout="constrained")
    axes = figure.subplots()
    draw_histogram(axes, heights, colour, title)
    axes.set_ylabel("public rows")
    return figure


def draw_accuracies(axes: Axes, summaries: Sequence[Summary], reports: Sequence[Report], measure: str) -> None:
    """One line per algorithm: seeds as dots, and the mean with its spread."""
    values: list[float] = []
    for row, each in enumerate(summaries):
        mean, spread = getattr(each, measure)
        colour = colour_of(each.algorithm, row)
        seeds = [figure_of(report, measure) for report in reports if report.algorithm == each.algorithm]
        dots = [100 * value for value in seeds if value is not None]
        values += [*dots, 100 * (mean - spread), 100 * (mean + spread)]
        if len(dots) > 1:
            axes.scatter(dots, np.full(len(dots), row + 0.24), s=16, color=colour, alpha=0.45, linewidths=0, zorder=2)
        axes.errorbar(
            100 * mean,
            row,
            xerr=100 * spread if len(each.seeds) > 1 else None,
            color=colour,
            marker="D",
            markersize=6.5,
            markeredgecolor="white",
            markeredgewidth=0.8,
            capsize=3.5,
            elinewidth=1.6,
            zorder=3,
        )
    low, high = (min(values), max(values)) if values else (0.0, 100.0)
    margin = max(0.08 * (high - low), 1.0)
    axes.set_xlim(low - margin, high + margin)
    axes.xaxis.set_major_formatter("{x:g} %")
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def draw_histogram(axes: Axes, heights: NDArray[np.int64], colour: str, title: str) -> None:
    """Counts of public rows over equal bins of 0 … 100 %."""
    width = 100 / len(heights)
    axes.bar(np.arange(len(heights)) * width, heights, width=0.9 * width, align="edge", color=colour)
    axes.set_title(title, fontsize=9.5)
    axes.set_xlim(-1, 101)
    axes.xaxis.set_major_formatter("{x:g} %")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y", color=GRID, linewidth=0.6)


def share_in_words(mean_spread: tuple[float, float], seeds: int) -> str:
    """A mean with its spread, where several seeds give one."""
    mean, spread = mean_spread
    return f"{mean:.1%} ± {100 * spread:.1f}" if seeds > 1 else f"{mean:.1%}"


def middle_of(heights: NDArray[np.int64]) -> float:
    """The mean of a histogram over 0 … 1, taking every bin at its middle."""
    centres = (np.arange(len(heights)) + 0.5) / len(heights)
    return float((centres * heights).sum() / max(heights.sum(), 1))
