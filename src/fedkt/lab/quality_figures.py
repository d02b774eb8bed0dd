"""Pictures of a model's quality: intervals beside their baselines, the calibration curve, the confusion matrix.

Each is narrow enough to be read on a phone; a page sets them side by side where there is room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedkt.lab.svg import BLUE, GRID, INK, NARROW, ORANGE, QUIET, RED, Picture, shorten
from fedkt.quality import Interval, Quality

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHADED = 30
"""Classes of which a confusion matrix is drawn."""
MOST_NUMBERS = 10
"""Classes with which its cells still have room for a number."""


def quality_pictures(quality: Quality) -> list[Picture]:
    """The pictures that these figures allow."""
    pictures = [interval_picture(quality)]
    if quality.calibration_curve:
        pictures.append(calibration_picture(quality))
    if quality.confusion and len(quality.classes) <= MOST_SHADED:
        pictures.append(confusion_picture(quality))
    return pictures


def interval_picture(quality: Quality) -> Picture:
    """Accuracy, balanced accuracy and AUC with their intervals, each beside what needs no model."""
    classes = sum(rows > 0 for rows in quality.support)
    named = shorten(str(quality.majority_class), 14)
    lines: list[tuple[str, Interval, float, str]] = [
        ("Accuracy", quality.accuracy, quality.majority, f"always “{named}”"),
        ("Balanced accuracy", quality.balanced_accuracy, 1 / classes, "guessing"),
    ]
    if quality.auc is not None:
        lines.append(("AUC", quality.auc, 0.5, "guessing"))
    words = "; ".join(f"{name} {interval}, {without} {100 * base:.1f} %" for name, interval, base, without in lines)
    return Picture("Better than no model?", words + ".", lambda: draw_intervals(lines))


def draw_intervals(lines: list[tuple[str, Interval, float, str]]) -> Figure:
    """One line a figure: a diamond with its interval, and a bar across where the baseline lies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(NARROW, 0.8 + 0.68 * len(lines)), layout="constrained")
    axes = figure.subplots()
    for row, (name, interval, base, without) in enumerate(lines):
        axes.plot([100 * interval.low, 100 * interval.high], [row, row], color=BLUE, linewidth=2.2, zorder=3)
        axes.plot(
            100 * interval.value, row, "D", color=BLUE, markersize=7, markeredgecolor="white", zorder=4, clip_on=False
        )
        axes.plot([100 * base] * 2, [row - 0.2, row + 0.2], color=ORANGE, linewidth=2.6, zorder=2)
        axes.text(0, row - 0.34, f"{name} {100 * interval.value:.1f} %", fontsize=9, va="center", weight="bold")
        axes.text(100, row - 0.34, f"{without} {100 * base:.1f} %", fontsize=8, va="center", ha="right", color=QUIET)
    axes.set_ylim(len(lines) - 0.6, -0.6)
    axes.set_xlim(0, 100)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter("{x:g} %")
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_title("Better than no model?")
    return figure


def calibration_picture(quality: Quality) -> Picture:
    """How often the model is right by how sure it is."""
    words = "; ".join(
        f"{each.rows:,} rows at {100 * each.probability:.0f} % are right in {100 * each.right:.0f} %"
        for each in quality.calibration_curve
    )
    return Picture("Can its probabilities be believed?", words + ".", lambda: draw_calibration(quality))


def draw_calibration(quality: Quality) -> Figure:
    """The curve over the diagonal; a dot grows with the rows it stands for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(NARROW, 3.1), layout="constrained")
    axes = figure.subplots()
    said = [100 * each.probability for each in quality.calibration_curve]
    right = [100 * each.right for each in quality.calibration_curve]
    sizes = [20 + 180 * each.rows / quality.rows for each in quality.calibration_curve]
    axes.plot([0, 100], [0, 100], color=QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.text(0.03, 0.96, "could be surer", fontsize=8, color=QUIET, transform=axes.transAxes, va="top")
    axes.text(0.97, 0.04, "too sure", fontsize=8, color=QUIET, transform=axes.transAxes, ha="right")
    axes.plot(said, right, color=RED, linewidth=1.4, zorder=2)
    axes.scatter(said, right, s=sizes, color=RED, edgecolor="white", linewidths=0.8, zorder=3, clip_on=False)
    low = min(0.0 if len(quality.classes) > 2 else 45.0, *right, *said)
    axes.set_xlim(low if low >= 40 else 0, 100)
    axes.set_ylim(low if low >= 40 else 0, 100)
    axes.set_xlabel("probability of the likeliest class")
    axes.set_ylabel("how often it is right")
    axes.xaxis.set_major_formatter("{x:g} %")
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_title("Can its probabilities be believed?")
    return figure


def confusion_picture(quality: Quality) -> Picture:
    """The confusion matrix, shaded by the share of each class."""
    names = [shorten(str(name), 14) for name in quality.classes]
    found = [
        f"{name}: {line[place]:,} of {sum(line):,} found"
        for place, (name, line) in enumerate(zip(names, quality.confusion, strict=True))
    ]
    words = "; ".join(found) + "."
    return Picture("What is called what", words, lambda: draw_confusion(quality))


def draw_confusion(quality: Quality) -> Figure:
    """Lines are the true classes, each shaded by its own rows: a rare class is seen as well as a frequent one."""
    from matplotlib.figure import Figure

    counts = np.array(quality.confusion)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [shorten(str(name), 12) for name in quality.classes]
    figure = Figure(figsize=(NARROW, min(1.3 + 0.5 * len(names), NARROW)), layout="constrained")
    axes = figure.subplots()
    axes.pcolormesh(shares, cmap="Blues", vmin=0, vmax=1.15, edgecolors="white", linewidth=1)
    axes.set_ylim(len(names), 0)
    if len(names) <= MOST_NUMBERS:
        size = 9 if len(names) <= 5 else 6.5
        for (line, column), count in np.ndenumerate(counts):
            ink = "white" if shares[line, column] > 0.55 else INK
            axes.text(column + 0.5, line + 0.5, f"{count:,}", ha="center", va="center", fontsize=size, color=ink)
    places, size = np.arange(len(names)) + 0.5, 8.5 if len(names) <= MOST_NUMBERS else 5.5
    axes.set_xticks(places, names, fontsize=size, rotation=90 if max(map(len, names)) * len(names) > 40 else 0)
    axes.set_yticks(places, names, fontsize=size)
    axes.tick_params(length=0)
    axes.set_xlabel("what the model calls it")
    axes.set_ylabel("what it is")
    axes.set_title("What is called what")
    return figure
