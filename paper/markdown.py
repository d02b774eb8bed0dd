"""Tables as Markdown, and their places in README and docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedkt.errors import DataError
from fedkt.lab.grid import Grid


def markdown(grid: Grid, *, spaced: bool = False) -> str:
    """A table, with its caption under it; `spaced` says how the rule below its head is written."""
    head, *lines = ("| " + " | ".join(map(str, line)) + " |" for line in (grid.head, *grid.lines))
    rule = "|" + (" --- |" if spaced else "---|") * len(grid.head)
    table = "\n".join([head, rule, *lines])
    return f"{table}\n\n{grid.caption}" if grid.caption else table


def in_bold(grid: Grid, column: str) -> Grid:
    """The table with one column in bold."""
    bold = grid.head.index(column)

    def line_of(cells: Sequence[object]) -> list[str]:
        return [f"**{cell}**" if place == bold else str(cell) for place, cell in enumerate(cells)]

    return replace(grid, head=line_of(grid.head), lines=[line_of(line) for line in grid.lines])


def replace_between(text: str, marker: str, new: str) -> str:
    """The text with everything between `<!-- marker -->` and `<!-- end marker -->` replaced."""
    start, end = f"<!-- {marker} -->", f"<!-- end {marker} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise DataError(f"The text needs exactly one '{start}' and one '{end}'.")
    head, rest = text.split(start)
    return f"{head}{start}\n{new}\n{end}{rest.split(end)[1]}"
