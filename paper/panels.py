"""A figure of small panels, one for each of many things, with a common legend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Thing = TypeVar("Thing")
BESIDE = 4
"""Panels in a row of the figure."""
WIDTH = 2.6


def in_panels(
    things: Sequence[Thing], draw: Callable[[Axes, Thing], None], *, height: float, legend: float, columns: int
) -> Figure:
    """Each thing drawn into a panel of its own; `legend` is the height and `columns` the width of what is above."""
    from matplotlib.figure import Figure

    beside = min(len(things), BESIDE)
    down = -(-len(things) // beside)
    figure = Figure(figsize=(WIDTH * beside, height * down + legend), layout="constrained")
    panels = figure.subplots(down, beside, squeeze=False).flatten()
    for axes, thing in zip(panels, things, strict=False):
        draw(axes, thing)
    for axes in panels[len(things) :]:
        axes.set_visible(False)
    for axes in panels[::beside]:
        axes.set_ylabel("test accuracy, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize=8)
    return figure
