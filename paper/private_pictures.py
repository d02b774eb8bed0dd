"""Accuracy against ε: the paper's points, the same settings with the exact ε, and our curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedkt.lab.svg import BLUE, GRID, QUIET, RED, Picture
from fedkt.report import mean_and_spread
from paper.panels import in_panels
from paper.private_curve import Point
from paper.private_study import MISPRINT, parts_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"het": "heterogeneous", "hom": "homogeneous"}


def accuracy_by_epsilon(rows: Sequence[dict[str, Any]], curve: Mapping[str, Sequence[Point]]) -> Picture:
    """A panel for each dataset, level and partition."""
    return Picture("Accuracy against epsilon", describe_curve(curve), lambda: draw_groups(rows, curve))


def draw_groups(rows: Sequence[dict[str, Any]], curve: Mapping[str, Sequence[Point]]) -> Figure:
    """All panels."""
    groups = list(dict.fromkeys(row["group"] for row in rows))

    def panel(axes: Axes, group: str) -> None:
        draw_group(axes, group, rows, curve.get(group, ()))

    return in_panels(groups, panel, height=2.5, legend=0.3, columns=3)


def draw_group(axes: Axes, group: str, everything: Sequence[dict[str, Any]], points: Sequence[Point]) -> None:
    """One panel."""
    rows = [row for row in everything if row["group"] == group]
    dataset, level, partition = parts_of(group)
    axes.set_title(f"{dataset} {level}, {NAMES[partition]}", fontsize=8.5)
    printed = [row for row in rows if row["paper_kind"] != MISPRINT]
    axes.plot(
        [row["paper_epsilon"] for row in printed],
        [row["paper_accuracy"] for row in printed],
        linestyle="",
        marker="o",
        markersize=4,
        markerfacecolor="white",
        color=QUIET,
        label="the paper, as printed",
    )
    axes.plot(
        [max(row["epsilons"]) for row in rows],
        [100 * np.mean(row["all"]) for row in rows],
        linestyle="",
        marker="o",
        markersize=4,
        color=BLUE,
        label="ours, same noise, exact ε",
    )
    if points:
        axes.errorbar(
            [point.epsilon for point in points],
            [100 * np.mean(point.accuracy) for point in points],
            yerr=[100 * mean_and_spread(point.accuracy)[1] for point in points],
            marker="s",
            markersize=3,
            linewidth=1.4,
            elinewidth=0.8,
            color=RED,
            label="ours, best choice, exact ε",
        )
    axes.set_xscale("log")
    axes.set_xticks([0.25, 0.5, 1, 2, 4, 8], ["¼", "½", "1", "2", "4", "8"])
    axes.minorticks_off()
    axes.set_xlabel("ε")
    axes.grid(color=GRID, linewidth=0.6)


def describe_curve(curve: Mapping[str, Sequence[Point]]) -> str:
    """The picture for those who cannot see it: our curve."""
    return "; ".join(
        f"{name}, ε {point.epsilon:g}: {100 * np.mean(point.accuracy):.1f} %"
        for name, points in curve.items()
        for point in points
    )
