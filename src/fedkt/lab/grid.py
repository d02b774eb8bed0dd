"""A table in words: what a terminal, a page and a document show, each in its own way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


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
