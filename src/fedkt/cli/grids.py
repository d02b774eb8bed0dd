"""Tables on a terminal of any width: names wrap and columns fold, a number is never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rich import box
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

from fedkt.cli.output import Screen, stdout
from fedkt.lab.grid import Grid, GridCell
from fedkt.system.files import printable_text

GAP = 2
"""Between two columns."""
LEAST_NAME = 12
"""What a column of words is wrapped to before columns of numbers have to go below."""


def print_grid(grid: Grid, *, colours: Mapping[str, str] | None = None, screen: Screen | None = None) -> None:
    """A table, as several below each other where the terminal has no room for all columns; then its caption."""
    screen = screen or stdout
    for number, (part, widths) in enumerate(parts_that_fit(grid, screen.width)):
        if number:
            screen.print()
        screen.print(as_rich(part, widths, colours=colours))
    if grid.caption:
        screen.print(grid.caption, highlight=False, markup=False)


def print_below(grid: Grid) -> None:
    """A further table and its caption; nothing where it has no lines."""
    if grid.lines:
        stdout.print()
        print_grid(grid)


def as_rich(grid: Grid, widths: Sequence[int], *, colours: Mapping[str, str] | None = None) -> Table:
    """A table whose first column is words and the others numbers; it has no edges, to fit a narrow terminal.

    `colours` are those of marked cells.
    """
    table = Table(
        title=escape(grid.title) or None, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for place, column in enumerate(grid.head):
        # Rich would cut what it finds too long, and squeeze numbers as gladly as names.
        table.add_column(
            escape(column),
            justify="left" if holds_words(grid, place) else "right",
            width=widths[place],
            overflow="fold",
        )
    for line in grid.lines:
        cells = [wrapped(as_cell(entry), widths[place]) for place, entry in enumerate(line)]
        table.add_row(*(marked_up(each, colours or {}) for each in cells))
    return table


def parts_that_fit(grid: Grid, width: int) -> Iterator[tuple[Grid, list[int]]]:
    """The table with the widths of its columns, cut after so many columns as there is room for, names repeated."""
    least = [least_width(grid, place) for place in range(len(grid.head))]
    natural = [natural_width(grid, place) for place in range(len(grid.head))]
    parts: list[list[int]] = [[]]
    for place in range(1, len(grid.head)):
        taken = [0, *parts[-1], place]
        if parts[-1] and sum(least[each] for each in taken) + GAP * (len(taken) - 1) > width:
            parts.append([])
        parts[-1].append(place)
    for number, part in enumerate(parts):
        places = [0, *part]
        widths = shared_out([least[each] for each in places], [natural[each] for each in places], width)
        yield columns_of(grid, places, title=grid.title if number == 0 else ""), widths


def shared_out(least: Sequence[int], natural: Sequence[int], width: int) -> list[int]:
    """The widths of columns that need at least so much and would like more: names first, then the others in order."""
    widths = list(least)
    room = width - sum(widths) - GAP * (len(widths) - 1)
    if room < 0:
        # One number beside a name is too much: the name gives way, down to a letter a line.
        widths[0] = max(1, widths[0] + room)
        return widths
    for place, wanted in enumerate(natural):
        more = min(room, wanted - widths[place])
        widths[place] += more
        room -= more
    return widths


def columns_of(grid: Grid, places: Sequence[int], *, title: str) -> Grid:
    """The table with these columns only."""
    lines = [[line[each] for each in places] for line in grid.lines]
    return replace(grid, head=[grid.head[each] for each in places], lines=lines, title=title)


def holds_words(grid: Grid, place: int) -> bool:
    """Whether a column may be wrapped between words: numbers may not."""
    return place == 0 or grid.head[place] in grid.words


def least_width(grid: Grid, place: int) -> int:
    """What a column needs so that none of its numbers, and no word of its head, is cut."""
    natural = natural_width(grid, place)
    if holds_words(grid, place):
        return min(natural, LEAST_NAME)
    return max(cells_width(grid, place), *(text_width(word) for word in grid.head[place].split()), 0)


def natural_width(grid: Grid, place: int) -> int:
    """What a column takes where there is room for everything."""
    return max(text_width(grid.head[place]), cells_width(grid, place))


def cells_width(grid: Grid, place: int) -> int:
    """The longest line in the cells of a column."""
    entries = (as_cell(line[place]) for line in grid.lines)
    return max((max(text_width(each.text), text_width(below(each))) for each in entries), default=0)


def text_width(text: str) -> int:
    """The places that a text takes on a terminal."""
    return max(map(cell_len, printable_text(text).splitlines()), default=0)


def wrapped(entry: GridCell, width: int) -> GridCell:
    """The cell with its text on as many lines as it takes, broken between words and behind hyphens where that helps."""
    if text_width(entry.text) <= width:
        return entry
    return replace(entry, text="\n".join(textwrap.wrap(entry.text, width)))


def marked_up(entry: GridCell, colours: Mapping[str, str]) -> str:
    """A cell in the colour of its mark, with what stands under it."""
    colour = colours.get(entry.mark)
    text = escape(entry.text) if colour is None else f"[{colour}]{escape(entry.text)}[/]"
    return f"{text}\n[dim]{escape(below(entry))}[/dim]" if entry.below else text


def below(entry: GridCell) -> str:
    """What stands under a cell, in brackets."""
    return f"({entry.below})" if entry.below else ""


def as_cell(entry: str | GridCell) -> GridCell:
    """A word as a cell that has nothing more to it."""
    return GridCell(entry) if isinstance(entry, str) else entry
