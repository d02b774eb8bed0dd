"""A table in words: what a terminal, a page and a document show, each in its own way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class GridCell:
    """A cell with more to it than a word."""

    text: str
    below: str = ""
    """What stands under it, smaller and in brackets."""
    mark: str = ""
    """What kind of cell it is: a class of the page's style, a colour of the terminal."""

    def __str__(self) -> str:
        """The cell on one line."""
        return f"{self.text} ({self.below})" if self.below else self.text


@dataclass(frozen=True)
class Grid:
    """Lines of cells under a head; the first cell of a line is its name."""

    head: Sequence[str]
    lines: Sequence[Sequence[str | GridCell]]
    title: str = ""
    caption: str = ""
    words: Collection[str] = ()
    """Columns besides the first that hold words and not numbers."""


def with_capitals(table: Grid) -> Grid:
    """The same table as a page heads it."""
    return replace(table, head=[word[:1].upper() + word[1:] for word in table.head])


def without_empty(table: Grid) -> Grid:
    """The same table without the columns in which nothing was measured."""
    kept = [
        place
        for place in range(len(table.head))
        if place == 0 or any(str(line[place]) not in ("", "–") for line in table.lines)
    ]
    lines = [[line[place] for place in kept] for line in table.lines]
    return replace(table, head=[table.head[place] for place in kept], lines=lines)


def phone_width(table: Grid) -> int:
    """The letters that a phone needs beside each other for this table, names and heads wrapped between words."""
    columns = [[table.head[place], *(line[place] for line in table.lines)] for place in range(len(table.head))]
    needs = [
        max(longest_piece(entry, whole=place > 0 and row > 0) for row, entry in enumerate(column))
        for place, column in enumerate(columns)
    ]
    return sum(needs) + 2 * len(needs)


def longest_piece(entry: str | GridCell, *, whole: bool) -> int:
    """The letters of a cell that cannot be set below each other: of a number all, of words the longest."""
    cell = GridCell(entry) if isinstance(entry, str) else entry
    below = f"({cell.below})" if cell.below and whole else ""
    pieces = [cell.text, below] if whole else cell.text.split()
    return max(map(len, pieces), default=0)
