"""Accuracy against rounds and against megabytes: what a method of many rounds gains, and what it pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedkt.algorithms import known_algorithm
from fedkt.errors import ConfigurationError
from fedkt.lab.names import colour_of, marker_of, name_of
from fedkt.lab.svg import GRID, WIDTH, Picture, drawing, picture_kind, shorten
from fedkt.lab.traffic import Curve, curves
from fedkt.lab.words import human_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from fedkt.lab.setting import Setting
    from fedkt.report import Report

LOGARITHMIC = 15.0
"""How many times the cheapest point the dearest must cost before megabytes are drawn by powers of ten."""
NO_ROUNDS = "A curve needs a method of several rounds: try fedavg or fedkt-prox with --rounds 10."
DASHES = (0, (5, 3))


def accuracy_curves(reports: Sequence[Report]) -> Picture:
    """Means over the seeds with a band of one standard deviation, or a refusal in words where no method has rounds."""
    series = curves(reports)
    if all(curve.one_shot for curve in series):
        raise ConfigurationError(NO_ROUNDS)
    return Picture("Accuracy against rounds and bytes", describe_curves(series), lambda: draw_curves(series))


def check_curve(path: Path, settings: Sequence[Setting]) -> None:
    """Refuse, before anything is run, a picture that could not be drawn afterwards."""
    picture_kind(path)
    if not any((each.rounds or known_algorithm(each.algorithm).default_rounds) > 1 for each in settings):
        raise ConfigurationError(NO_ROUNDS)
    with drawing():
        pass  # says so where matplotlib is missing


def draw_curves(series: Sequence[Curve]) -> Figure:
    """Rounds on the left and, where bytes were measured, megabytes on the right."""
    from matplotlib.figure import Figure

    has_bytes = any(curve.millions is not None for curve in series)
    figure = Figure(figsize=(WIDTH, 3.5), layout="constrained")
    panels = figure.subplots(1, 2 if has_bytes else 1, sharey=True, squeeze=False)[0]
    panels[0].set_ylabel("test accuracy")
    draw_against_rounds(panels[0], series)
    if has_bytes:
        draw_against_bytes(panels[1], series)
    for axes in panels:
        axes.yaxis.set_major_formatter("{x:g} %")
        axes.grid(color=GRID, linewidth=0.6)
    handles = legend_lines(series)
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(len(handles), 5),
        frameon=False,
        fontsize=8.5,
        handlelength=3.4,
    )
    return figure


def legend_lines(series: Sequence[Curve]) -> list[Line2D]:
    """What each line and point stands for, methods of several rounds first."""
    from matplotlib.lines import Line2D

    return [
        Line2D(
            [],
            [],
            color=colour_of(curve.algorithm, place),
            linestyle=DASHES if curve.one_shot else "-",
            linewidth=1.4 if curve.one_shot else 1.8,
            marker="" if curve.one_shot and curve.millions is None else marker_of(curve.algorithm),
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.7,
            label=shorten(name_of(curve.algorithm), 28),
        )
        for place, curve in sorted(enumerate(series), key=lambda each: each[1].one_shot)
    ]


def draw_against_rounds(axes: Axes, series: Sequence[Curve]) -> None:
    """A line for each method of several rounds, a dashed level for each of one."""
    longest = max(curve.accuracy.shape[1] for curve in series)
    for place, curve in enumerate(series):
        if curve.one_shot:
            level, colour = 100 * float(curve.mean[0]), colour_of(curve.algorithm, place)
            axes.axhline(level, color=colour, linestyle=DASHES, linewidth=1.4, zorder=2)
        else:
            draw_line(axes, range(1, curve.accuracy.shape[1] + 1), curve, place)
    axes.set_xlim(1 - 0.03 * (longest - 1), longest + 0.03 * (longest - 1))
    axes.locator_params(axis="x", integer=True, nbins=7)
    axes.set_xlabel("rounds")


def draw_against_bytes(axes: Axes, series: Sequence[Curve]) -> None:
    """A line for each method of several rounds, a single point for each of one."""
    costs: list[float] = []
    for place, curve in enumerate(series):
        if curve.millions is None:
            continue
        costs += curve.millions.tolist()
        if curve.one_shot:
            axes.errorbar(
                curve.millions,
                100 * curve.mean,
                yerr=100 * float(curve.spread[0]) if len(curve.accuracy) > 1 else None,
                color=colour_of(curve.algorithm, place),
                marker=marker_of(curve.algorithm),
                markersize=8,
                markeredgecolor="white",
                markeredgewidth=0.8,
                capsize=3,
                zorder=5,
            )
        else:
            draw_line(axes, curve.millions.tolist(), curve, place)
    if min(costs) > 0 and max(costs) / min(costs) > LOGARITHMIC:
        axes.set_xscale("log")
        label_powers(axes, min(costs), max(costs))
    else:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:,g}")
        axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel("megabytes sent and received, all parties")


def draw_line(axes: Axes, across: Sequence[float], curve: Curve, place: int) -> None:
    """A mean with its band, and marks that do not crowd."""
    colour, middle, spread = colour_of(curve.algorithm, place), 100 * curve.mean, 100 * curve.spread
    if len(curve.accuracy) > 1:
        low, high = (middle - spread).clip(0), (middle + spread).clip(None, 100)
        axes.fill_between(across, low, high, color=colour, alpha=0.15, linewidth=0, zorder=1)
    every = math.ceil(len(middle) / 6)
    axes.plot(
        across,
        middle,
        color=colour,
        linewidth=1.8,
        marker=marker_of(curve.algorithm),
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        # Lines that run together carry their marks in turn.
        markevery=(place % every, every),
        zorder=3,
    )


def label_powers(axes: Axes, low: float, high: float) -> None:
    """Megabytes as plain numbers at 1, 2, 5, 10, 20, … (at 1, 10, 100 over a wide range)."""
    from matplotlib.ticker import NullFormatter

    steps = (1, 2, 5) if high / low < 300 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    axes.set_xlim(low / 1.3, high * 1.3)
    axes.set_xticks([tick for tick in ticks if low / 1.3 <= tick <= high * 1.3])
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def describe_curves(series: Sequence[Curve]) -> str:
    """The curves in words."""
    lines = []
    for curve in series:
        rounds = curve.accuracy.shape[1]
        after = "in one round" if rounds == 1 else f"after {rounds} rounds"
        bytes_ = "" if curve.bytes_so_far is None else f" and {human_bytes(float(curve.bytes_so_far[-1]))}"
        seeds = f" ± {100 * curve.spread[-1]:.1f}" if len(curve.accuracy) > 1 else ""
        lines.append(f"{name_of(curve.algorithm)}: {100 * curve.mean[-1]:.1f}{seeds} % {after}{bytes_}")
    return "; ".join(lines) + "."
