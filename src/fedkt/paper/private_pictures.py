"""Accuracy against ε: the paper's points, the same settings with the exact ε, and our own choice of noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedkt.experiments.private_tables import MISPRINT, OWN
from fedkt.experiments.svg import BLUE, GREEN, GRID, ORANGE, PURPLE, QUIET, RED, as_svg, drawing
from fedkt.paper.panels import in_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Accuracy against epsilon"
COLOURS = (GREEN, PURPLE, ORANGE, RED)
NAMES = {"het": "heterogeneous", "hom": "homogeneous"}


def accuracy_by_epsilon(rows: Sequence[dict[str, Any]]) -> str:
    """A panel for each dataset, level and partition, as one `<svg>` element; empty without rows."""
    if not rows:
        return ""
    with drawing():
        return as_svg(draw(rows), TITLE, in_words(rows))


def draw(rows: Sequence[dict[str, Any]]) -> Figure:
    """All panels."""
    groups = list(dict.fromkeys(row["group"] for row in rows))
    return in_panels(groups, lambda axes, group: draw_group(axes, group, rows), height=2.5, legend=0.4, columns=3)


def draw_group(axes: Axes, group: str, everything: Sequence[dict[str, Any]]) -> None:
    """One panel."""
    rows = [row for row in everything if row["group"] == group]
    dataset, level, partition = group.rsplit("-", 2)
    axes.set_title(f"{dataset} {level}, {NAMES[partition]}", fontsize=8.5)
    paper = [row for row in rows if row["kind"] == "paper"]
    printed = [row for row in paper if row["paper_kind"] != MISPRINT]
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
        [max(row["epsilons"]) for row in paper],
        [percent(row) for row in paper],
        linestyle="",
        marker="o",
        markersize=4,
        color=BLUE,
        label="ours, same noise, exact ε",
    )
    choices = dict.fromkeys((row["queries"], row["model"]) for row in rows if row["kind"] != "paper")
    for colour, (queries, model) in zip(COLOURS, choices, strict=False):
        own = [row for row in rows if row["kind"] != "paper" and (row["queries"], row["model"]) == (queries, model)]
        axes.plot(
            [float(row["kind"].removeprefix(OWN)) for row in own],
            [percent(row) for row in own],
            marker="s",
            markersize=3,
            linewidth=1.3,
            color=colour,
            label=f"gaussian, {queries} labels, {model or 'own family'}",
        )
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes.minorticks_off()
    axes.set_xlabel("ε")
    axes.grid(color=GRID, linewidth=0.6)


def percent(row: dict[str, Any]) -> float:
    """Mean accuracy of all seeds and draws."""
    return float(100 * np.mean(row["all"]))


def in_words(rows: Sequence[dict[str, Any]]) -> str:
    """The picture for those who cannot see it: our own choices."""
    return "; ".join(
        f"{row['group']}, ε {row['kind'].removeprefix(OWN)}, {row['queries']} labels, {row['model'] or 'own family'}: "
        f"{percent(row):.1f} %"
        for row in rows
        if row["kind"] != "paper"
    )
