"""Pictures of an experiment: who is how accurate, and how the parties voted.

A picture is described for readers who cannot see it, has no scripts, dates or fonts of its own, and is byte for byte
the same for the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.lab.names import colour_of, name_of
from fedkt.lab.svg import BLUE, GRID, ORANGE, QUIET, WIDTH, Picture, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedkt.lab.results import Summary
    from fedkt.report import Report


def accuracy_bars(summaries: Sequence[Summary], reports: Sequence[Report] = ()) -> Picture:
    """Mean accuracy and balanced accuracy per algorithm, the spread over seeds as error bars, each seed as a dot."""
    words = [
        f"{name_of(each.algorithm)}: accuracy {accuracy_in_words(each.accuracy, len(each.seeds))}, "
        f"balanced accuracy {accuracy_in_words(each.balanced_accuracy, len(each.seeds))}"
        for each in summaries
    ]
    return Picture("Accuracy of each algorithm", "; ".join(words) + ".", lambda: draw_bars(summaries, reports))


def vote_histograms(votes: dict[str, Any]) -> Picture:
    """How the parties voted on the public rows: how many agreed with the winner, and how many abstained."""
    agreement, abstention = (np.asarray(votes[f"{what}_histogram"]) for what in ("agreement", "abstention"))
    unlabelled, ties = int(votes.get("unlabelled", 0)), int(votes.get("ties", 0))
    rows = int(agreement.sum())
    words = f"Of {rows:,} public rows, {unlabelled:,} got no vote and no label; {ties:,} had a tie, broken at random."
    means = f"Mean agreement about {middle_of(agreement):.0%}, mean abstention about {middle_of(abstention):.0%}."
    return Picture(
        "How the parties voted on the public rows",
        f"{means} {words}",
        lambda: draw_votes(agreement, abstention, words),
    )


def draw_bars(summaries: Sequence[Summary], reports: Sequence[Report]) -> Figure:
    """Both accuracies; the axes do not begin at 0, or the differences between algorithms would vanish on them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 1.15 + 0.42 * max(len(summaries), 1)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
    for axes, measure, title in (
        (left, "accuracy", "Test accuracy"),
        (right, "balanced_accuracy", "Balanced accuracy (mean over classes)"),
    ):
        draw_accuracies(axes, summaries, reports, measure)
        axes.set_title(title)
    left.set_yticks(range(len(summaries)), [shorten(name_of(each.algorithm), 28) for each in summaries])
    left.set_ylim(max(len(summaries), 1) - 0.45, -0.65)
    return figure


def draw_votes(agreement: NDArray[np.int64], abstention: NDArray[np.int64], words: str) -> Figure:
    """Both histograms, and the rest of the vote in words below them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
    draw_histogram(left, agreement, BLUE, "Share of the parties that voted for the winner")
    draw_histogram(right, abstention, ORANGE, "Share of the parties that abstained")
    left.set_ylabel("public rows")
    figure.supxlabel(words, fontsize=9, color=QUIET)
    return figure


def draw_accuracies(axes: Axes, summaries: Sequence[Summary], reports: Sequence[Report], measure: str) -> None:
    """One line per algorithm: seeds as dots, mean with spread, and the number itself."""
    values: list[float] = []
    for row, each in enumerate(summaries):
        mean, spread = getattr(each, measure)
        colour = colour_of(each.algorithm, row)
        seeds = [getattr(report, measure) for report in reports if report.algorithm == each.algorithm]
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
        axes.annotate(
            f"{100 * mean:.1f}", (100 * mean, row), (0, 6), textcoords="offset points", ha="center", fontsize=8.5
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


def accuracy_in_words(mean_spread: tuple[float, float] | None, seeds: int) -> str:
    """A mean with its spread, where several seeds give one."""
    if mean_spread is None:
        return "not measured"
    mean, spread = mean_spread
    return f"{mean:.1%} ± {100 * spread:.1f}" if seeds > 1 else f"{mean:.1%}"


def middle_of(heights: NDArray[np.int64]) -> float:
    """The mean of a histogram over 0 … 1, taking every bin at its middle."""
    centres = (np.arange(len(heights)) + 0.5) / len(heights)
    return float((centres * heights).sum() / max(heights.sum(), 1))
