"""Pictures of an experiment's results: ours as a line over the columns, the paper's numbers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedkt.lab.curves import accuracy_curves
from fedkt.lab.svg import BLUE, GRID, QUIET, Picture
from paper.outcome import Cell, ResultTable, ours_in_words
from paper.panels import in_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def picture_of(table: ResultTable) -> Picture | None:
    """The experiment's picture; None where it wants none or nothing is there to be drawn."""
    if table.experiment.picture == "rounds" and any(report.history for report in table.reports):
        return accuracy_curves(table.reports)
    if table.experiment.picture == "lines" and table.reports:
        return Picture(table.experiment.title, describe_lines(table), lambda: draw_lines(table))
    return None


def draw_lines(table: ResultTable) -> Figure:
    """A panel for each row of the table."""
    rows = [row for row in table.rows if any(cell.ours for cell in cells_of(table, row))]
    return in_panels(rows, lambda axes, row: draw_row(axes, table, row), height=2.4, legend=0, columns=2)


def draw_row(axes: Axes, table: ResultTable, row: str) -> None:
    """Ours with one standard deviation, the paper's as hollow circles."""
    cells = cells_of(table, row)
    places = {column: place for place, column in enumerate(table.columns)}
    ours = [(places[cell.column], *cell.ours) for cell in cells if cell.ours is not None]
    axes.errorbar(
        [each[0] for each in ours],
        [each[1] for each in ours],
        yerr=[each[2] for each in ours],
        color=BLUE,
        marker="o",
        markersize=4,
        capsize=2,
        linewidth=1.6,
        label="ours, ± one standard deviation",
    )
    paper = [(places[cell.column], cell.paper) for cell in cells if cell.paper is not None]
    if paper:
        axes.plot(
            [each[0] for each in paper],
            [each[1] for each in paper],
            color=QUIET,
            linestyle=(0, (4, 3)),
            linewidth=1,
            marker="o",
            markerfacecolor="white",
            markersize=5,
            label="the paper",
        )
    axes.set_xticks(range(len(table.columns)), table.columns)
    axes.set_xlabel(table.experiment.across.replace("_", " "))
    axes.set_title(row)
    axes.grid(color=GRID, linewidth=0.6)


def cells_of(table: ResultTable, row: str) -> list[Cell]:
    """The cells of one row, from left to right."""
    return [table.cells[row, column] for column in table.columns if (row, column) in table.cells]


def describe_lines(table: ResultTable) -> str:
    """The picture for those who cannot see it."""
    return "; ".join(
        f"{row}: " + ", ".join(f"{cell.column} {ours_in_words(cell)}" for cell in cells_of(table, row))
        for row in table.rows
    )
