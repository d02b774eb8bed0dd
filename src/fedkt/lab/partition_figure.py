"""A picture of who holds what: parties across, classes down, a bubble for the rows of a class at a party."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError
from fedkt.lab.svg import BLUE, GRID, QUIET, READABLE, WIDTH, Picture, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW_PARTIES = 6
"""So many have room beside each other on a phone."""
BAND_PARTIES = 50
"""Parties beside each other before a new band begins below."""
BAND_ROWS = 40
"""Rows of bubbles in all bands together before bands grow wider instead."""
DIAMETERS = 48
"""Distinct bubble sizes drawn: one shape is stored per size, so this bounds the size of the file."""


def partition_bubbles(owners: ArrayLike, y: ArrayLike, classes: Sequence[Any]) -> Picture:
    """Parties across, classes down, a bubble whose area grows with the rows a party has of a class.

    `owners` has the party of each row, `y` the index of its class in `classes`.
    """
    names, counts = rows_by_party(owners, y, len(classes))
    return Picture(
        "Rows of each class at each party",
        describe_partition(names, counts, classes),
        lambda: draw_partition(names, counts, classes),
    )


def rows_by_party(owners: ArrayLike, y: ArrayLike, n_classes: int) -> tuple[list[str], NDArray[np.int64]]:
    """The parties' names in order, and how many rows each has of each class."""
    party, codes = np.asarray(owners), np.asarray(y, dtype=np.int64)
    if len(party) != len(codes) or len(codes) == 0:
        raise ConfigurationError(
            f"A partition has one party and one class per row; got {len(party)} parties and {len(codes)} classes."
        )
    if codes.min() < 0 or codes.max() >= n_classes:
        raise ConfigurationError(
            f"y holds {codes.min()} … {codes.max()}; with {n_classes} classes it must be an index."
        )
    names, index = np.unique(party, return_inverse=True)
    counts = np.bincount(index * n_classes + codes, minlength=len(names) * n_classes)
    return [str(name) for name in names.tolist()], counts.reshape(len(names), n_classes)


def draw_partition(names: Sequence[str], counts: NDArray[np.int64], classes: Sequence[Any]) -> Figure:
    """The bubble plot, in bands of parties where they are many."""
    from matplotlib.figure import Figure

    n_parties, n_classes = counts.shape
    bands = min(math.ceil(n_parties / BAND_PARTIES), max(1, BAND_ROWS // n_classes))
    across = math.ceil(n_parties / bands)
    bands = math.ceil(n_parties / across)
    width = READABLE if across <= FEW_PARTIES else WIDTH
    room = (width - 1.3) * 72 / max(across, 4)
    tall = min(max(min(room, 42.0), 16.0), 640.0 / n_classes)
    # Where parties stand close, large bubbles may overlap: they are few, and the small ones stay visible.
    widest = min(1.7 * room, tall, 38.0) * 0.96
    shared, labels = without_shared_word([shorten(name) for name in names])
    longest = max(len(label) for label in labels)
    plain = longest * 5.6 < room
    foot = 20.0 if plain else 10 + longest * 5.2
    figure = Figure(figsize=(width, (bands * (n_classes * tall + foot + 8) + 46) / 72), layout="constrained")
    most = max(int(counts.max()), 1)
    every = max(1, math.ceil(11.0 / room)) if not plain else 1
    for band, axes in enumerate(figure.subplots(bands, 1, squeeze=False)[:, 0]):
        first = band * across
        part = counts[first : first + across]
        draw_bubbles(axes, part, most, widest)
        axes.set_xlim(-0.6, max(across, 4) - 0.4)
        axes.set_ylim(n_classes - 0.4, -0.6)
        ticks = np.arange(0, len(part), every)
        axes.set_xticks(ticks, [labels[first + tick] for tick in ticks], rotation=0 if plain else 90)
        rows = np.arange(0, n_classes, max(1, math.ceil(10.0 / tall)))
        axes.set_yticks(rows, [shorten(str(classes[row]), 14) for row in rows])
        axes.grid(color=GRID, linewidth=0.6)
        axes.tick_params(length=0, labelsize=9 if room > 20 else 7.5)
        axes.spines[:].set_visible(False)
        if room >= 40 and tall >= 20:
            write_counts(axes, part, most, widest)
    axes.set_xlabel(shared or "party")
    figure.supylabel("class", fontsize=9)
    add_size_legend(figure, most, widest)
    return figure


def draw_bubbles(axes: Axes, counts: NDArray[np.int64], most: int, widest: float) -> None:
    """A bubble of area proportional to its rows, `widest` points across for the largest."""
    column, row = np.nonzero(counts)
    steps = np.maximum(np.rint(DIAMETERS * np.sqrt(counts[column, row] / most)), 1)
    for step in np.unique(steps):
        same = steps == step
        size = max(widest * step / DIAMETERS, 1.0) ** 2
        axes.scatter(column[same], row[same], s=size, color="#a6cee9", edgecolors=BLUE, linewidths=0.7, clip_on=False)


def write_counts(axes: Axes, counts: NDArray[np.int64], most: int, widest: float) -> None:
    """The number of rows inside its bubble, or beside it where the bubble is too small."""
    for column, row in np.argwhere(counts > 0):
        label = f"{counts[column, row]:,}"
        across = widest * math.sqrt(counts[column, row] / most)
        if across > 4.6 * len(label) + 5:
            axes.text(column, row, label, ha="center", va="center", fontsize=7.5)
        else:
            axes.annotate(
                label,
                (column, row),
                (across / 2 + 2.5, 0),
                textcoords="offset points",
                va="center_baseline",
                fontsize=7.5,
                color=QUIET,
            )


def add_size_legend(figure: Figure, most: int, widest: float) -> None:
    """What some sizes of bubble mean, above the plot."""
    from matplotlib.lines import Line2D

    # A line of text has no room for a larger bubble.
    largest = most * min(1.0, (18.0 / widest) ** 2)
    sizes = dict.fromkeys(round_down(largest / part) for part in (20, 4, 1))
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker="o",
            markersize=max(widest * math.sqrt(size / most), 1.0),
            markerfacecolor="#a6cee9",
            markeredgecolor=BLUE,
            markeredgewidth=0.7,
            label=f"{size:,} row{'s' if size > 1 else ''}",
        )
        for size in sizes
    ]
    figure.legend(
        handles=handles, loc="outside upper right", ncols=len(handles), frameon=False, fontsize=8.5, handletextpad=0.8
    )


def describe_partition(names: Sequence[str], counts: NDArray[np.int64], classes: Sequence[Any]) -> str:
    """The bubble plot in words."""
    per_party = counts.sum(axis=1)
    missing = int((counts == 0).any(axis=1).sum())
    few, many = int(per_party.argmin()), int(per_party.argmax())
    return (
        f"{len(names)} parties, {len(classes)} classes, {int(per_party.sum()):,} rows. "
        f"Fewest rows: {shorten(names[few])} with {per_party[few]:,}; "
        f"most: {shorten(names[many])} with {per_party[many]:,}. "
        f"Parties without any row of some class: {missing}."
    )


def round_down(value: float) -> int:
    """The largest of 1, 2, 5, 10, 20, 50, … that is not above `value`, at least 1."""
    if value < 1:
        return 1
    power: int = 10 ** int(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value)


def without_shared_word(labels: Sequence[str]) -> tuple[str, list[str]]:
    """The first word that all labels share, for the axis, and the labels without it."""
    word = labels[0].partition(" ")[0] + " "
    if len(labels) > 1 and all(label.startswith(word) and len(label) > len(word) for label in labels):
        return word.strip(), [label[len(word) :] for label in labels]
    return "", list(labels)
