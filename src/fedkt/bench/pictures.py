"""How CPU seconds grow, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedkt.bench.tables import WAYS
from fedkt.lab.svg import BLUE, GREEN, GRID, ORANGE, WIDTH, Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"fedkt": BLUE, "plain": ORANGE, "bagging": GREEN}
MARKERS = {"fedkt": "D", "plain": "o", "bagging": "s"}
TITLE = "CPU seconds as one thing grows"
COLUMNS = 3


def growth_picture(axes: Sequence[Mapping[str, Any]]) -> Picture:
    """A panel for each axis, both of its scales logarithmic: a straight line is a power."""
    words = [
        f"{each['axis'].replace('_', ' ')}: "
        + ", ".join(f"{WAYS[way]} to the power {one['value']:.2f}" for way, one in each["exponents"].items())
        for each in axes
    ]
    return Picture(TITLE, f"{TITLE}. {'; '.join(words)}.", partial(draw_growth, axes))


def draw_growth(axes: Sequence[Mapping[str, Any]]) -> Figure:
    """Medians over the turns."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    lines = -(-len(axes) // COLUMNS)
    figure = Figure(figsize=(WIDTH, 2.3 * lines), layout="constrained")
    panels = figure.subplots(lines, COLUMNS, squeeze=False, sharey=True).ravel()
    for panel, each in zip(panels, axes, strict=False):
        values = sorted({point["value"] for point in each["points"]})
        for way in each["exponents"]:
            own = [np.median([point[way] for point in each["points"] if point["value"] == value]) for value in values]
            panel.plot(values, own, color=COLOURS[way], marker=MARKERS[way], markersize=4, label=WAYS[way])
        panel.set(xscale="log", yscale="log", title=each["axis"].replace("_", " "))
        panel.set_xticks(values, [f"{value:,}" for value in values])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} s"))
        panel.grid(color=GRID)
    for panel in panels[len(axes) :]:
        panel.set_visible(False)
    panels[0].legend(frameon=False, fontsize=8)
    return figure
