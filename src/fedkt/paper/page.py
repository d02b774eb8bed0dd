"""All tables and pictures as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedkt.lab.page import page_environment
from fedkt.lab.private_tables import PAPER_HEAD, paper_cells, summary
from fedkt.lab.svg import made_unique
from fedkt.paper import private_levels
from fedkt.paper.markdown import MARKS, headed, named, tables_beside
from fedkt.paper.outcome import (
    Cell,
    Table,
    beside_in_words,
    counts_in_words,
    missing,
    ours_in_words,
    verdicts,
)
from fedkt.paper.pictures import picture_of
from fedkt.paper.private_curve import curve_of
from fedkt.paper.private_curve_tables import POINT_HEAD, REACH_HEAD, point_cells, reach_cells, targets
from fedkt.paper.private_pictures import accuracy_by_epsilon
from fedkt.system.files import write_atomically


@dataclass(frozen=True)
class Shown:
    """A cell in words."""

    ours: str
    paper: str
    verdict: str
    mark: str


@dataclass(frozen=True)
class Section:
    """One plan on the page."""

    title: str
    where: str
    text: list[str]
    head: list[str]
    lines: list[tuple[str, list[Shown]]]
    beside: list[tuple[str, list[tuple[str, list[str]]]]]
    """Paired differences and bytes: a title, and a line for each row."""
    picture: str
    missing: int
    hours: float


@dataclass(frozen=True)
class Private:
    """The private settings on the page."""

    title: str
    where: str
    summary: str
    picture: str
    grids: list[tuple[str, Sequence[str], list[list[str]]]]


def write_paper_page(path: Path, tables: Sequence[Table], private: Private | None = None) -> None:
    """Write the page: no script, nothing loaded from anywhere."""
    made = [table for table in tables if table.reports]
    versions = dict.fromkeys(tuple(report.versions.items()) for table in made for report in table.reports)
    page = (
        page_environment()
        .get_template("paper.html")
        .render(
            private=private,
            sections=[section(table, number) for number, table in enumerate(made)],
            counts=counts_in_words(verdicts(made)),
            empty=[table.plan.title for table in tables if not table.reports],
            versions=list(versions),
        )
    )
    write_atomically(path, page.encode())


def section(table: Table, number: int) -> Section:
    """A plan's part of the page."""
    picture = picture_of(table)
    return Section(
        title=table.plan.title,
        where=table.plan.where,
        text=[part.replace("\n", " ") for part in table.plan.text.split("\n\n") if part],
        head=headed(table),
        lines=[
            (named(table.plan.down, row), [shown(table.cells.get((row, column))) for column in table.columns])
            for row in table.rows
        ],
        beside=tables_beside(table),
        picture=made_unique(picture, f"p{number}") if picture else "",
        missing=missing(table),
        hours=table.hours,
    )


def private_part(folder: Path, results: Path) -> Private | None:
    """The private settings: their tables, and accuracy against ε; None before the first is made."""
    rows, curve = private_levels.rows_of(results), curve_of(results)
    if not rows:
        return None
    return Private(
        private_levels.TITLE,
        private_levels.WHERE,
        summary(rows),
        made_unique(accuracy_by_epsilon(rows, curve), "private"),
        [
            ("At which ε our curve reaches what the paper reaches", REACH_HEAD, reach_cells(curve, targets(folder))),
            ("Our curve", POINT_HEAD, point_cells(curve)),
            ("FedKT-L1: a party is protected", PAPER_HEAD, paper_cells(rows, "L1")),
            ("FedKT-L2: a record is protected", PAPER_HEAD, paper_cells(rows, "L2")),
        ],
    )


def shown(cell: Cell | None) -> Shown:
    """A cell in words, empty where the plan has none."""
    if cell is None:
        return Shown("", "", "", "")
    return Shown(ours_in_words(cell), beside_in_words(cell), cell.verdict, MARKS[cell.verdict])
