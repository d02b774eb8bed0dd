"""A plan's table in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as Grid

from fedkt.paper.markdown import MARKS, headed, named, tables_beside
from fedkt.paper.outcome import BETTER, WITHIN, WORSE, Cell, Table, beside_in_words, ours_in_words

COLOURS = {WITHIN: "green", BETTER: "cyan", WORSE: "red", "": "default"}


def print_table(console: Console, table: Table) -> None:
    """Ours in each cell, the paper's number and the distance under it."""
    grid = Grid(*headed(table), title=table.plan.title)
    for row in table.rows:
        grid.add_row(
            named(table.plan.down, row), *(cell_in_colour(table.cells.get((row, column))) for column in table.columns)
        )
    console.print(grid)
    if any(cell.paper is not None for cell in table.cells.values()):
        console.print(
            "[green]●[/green] within two of our standard deviations of the paper's number below it, [cyan]▲[/cyan] "
            "above, [red]▼[/red] below.",
            soft_wrap=True,
        )
    print_beside(console, table)


def print_beside(console: Console, table: Table) -> None:
    """How far each algorithm lies from those it is held against, seed by seed, and the bytes sent."""
    for title, rows in tables_beside(table):
        grid = Grid(*headed(table), title=title)
        for row, cells in rows:
            grid.add_row(row, *cells)
        console.print(grid)


def cell_in_colour(cell: Cell | None) -> str:
    """Ours with its mark, the paper's number on the next line."""
    if cell is None:
        return ""
    ours = (
        f"[{COLOURS[cell.verdict]}]{MARKS[cell.verdict]} {ours_in_words(cell).replace('[', '(').replace(']', ')')}[/]"
    )
    beside = beside_in_words(cell)
    return f"{ours}\n[dim]{beside}[/dim]" if beside else ours
