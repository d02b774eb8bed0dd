"""All tables and pictures as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedkt.lab.grid import Grid
from fedkt.lab.html import page_template
from fedkt.system.files import write_atomically
from paper.comparison import comparison_table, tables_beside
from paper.outcome import ResultTable, counts_in_words, verdicts
from paper.pictures import picture_of
from paper.private_curve import curve_of
from paper.private_levels import LEVELS
from paper.private_pictures import accuracy_by_epsilon
from paper.private_tables import (
    curve_table,
    epsilon_table,
    paper_bests,
    setting_rows,
    settings_in_words,
    settings_table,
)

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Section:
    """One experiment on the page."""

    title: str
    where: str
    text: list[str]
    table: Grid
    beside: list[Grid]
    """Paired differences and bytes."""
    picture: str
    missing: int
    hours: float


@dataclass(frozen=True)
class PrivateSection:
    """The private settings on the page."""

    title: str
    where: str
    summary: str
    picture: str
    tables: list[tuple[str, Grid]]


def write_paper_page(path: Path, tables: Sequence[ResultTable], private: PrivateSection | None = None) -> None:
    """Write the page."""
    with_runs = [table for table in tables if table.reports]
    versions = dict.fromkeys(tuple(report.versions.items()) for table in with_runs for report in table.reports)
    page = page_template("paper.html", TEMPLATES).render(
        private=private,
        sections=[section(table, number) for number, table in enumerate(with_runs)],
        counts=counts_in_words(verdicts(with_runs)),
        empty=[table.experiment.title for table in tables if not table.reports],
        versions=list(versions),
    )
    write_atomically(path, page.encode())


def section(table: ResultTable, number: int) -> Section:
    """An experiment's part of the page."""
    picture = picture_of(table)
    return Section(
        title=table.experiment.title,
        where=table.experiment.where,
        text=[part.replace("\n", " ") for part in table.experiment.text.split("\n\n") if part],
        table=comparison_table(table),
        beside=tables_beside(table),
        picture="" if picture is None else picture.svg(f"p{number}"),
        missing=table.missing,
        hours=table.hours,
    )


def private_section(folder: Path, results: Path) -> PrivateSection | None:
    """The private settings: their tables, and accuracy against ε; None before the first is made."""
    path = results / LEVELS.file
    if not path.exists():
        return None
    rows, curve = setting_rows(path), curve_of(results)
    return PrivateSection(
        LEVELS.title,
        LEVELS.where,
        settings_in_words(rows),
        accuracy_by_epsilon(rows, curve).svg("private"),
        [
            ("At which ε our curve reaches what the paper reaches", epsilon_table(curve, paper_bests(folder))),
            ("Our curve", curve_table(curve)),
            ("FedKT-L1: a party is protected", settings_table(rows, "L1")),
            ("FedKT-L2: a record is protected", settings_table(rows, "L2")),
        ],
    )
