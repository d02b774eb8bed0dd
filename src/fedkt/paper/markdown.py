"""A plan's table as Markdown, for docs and README."""

from __future__ import annotations

from collections.abc import Iterable

from fedkt.lab.names import name_of
from fedkt.lab.words import difference_in_words
from fedkt.paper.outcome import (
    BETTER,
    WITHIN,
    WORSE,
    Cell,
    Table,
    beside_in_words,
    bytes_in_words,
    counts_in_words,
    differences,
    ours_in_words,
    verdicts,
)

MARKS = {WITHIN: "●", BETTER: "▲", WORSE: "▼", "": ""}
"""Shapes, so that a cell is understood without colour."""
LEGEND = "● within two of our standard deviations of the paper's number (in brackets), ▲ above, ▼ below."


def table_in_markdown(table: Table) -> str:
    """Rows and columns of the plan; in each cell ours, the paper's in brackets, and how far apart they are."""
    head = headed(table)
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in table.rows:
        cells = [table.cells.get((row, column)) for column in table.columns]
        lines.append(
            f"| {named(table.plan.down, row)} | " + " | ".join(cell_in_markdown(cell) for cell in cells) + " |"
        )
    columns = "" if table.plan.across == "dataset" else f"Columns: {table.plan.across.replace('_', ' ')}. "
    legend = f"{columns}Test accuracy in percent, mean ± standard deviation over {seeds_in_words(table)}."
    compared = any(cell.paper is not None for cell in table.cells.values())
    return "\n".join([*lines, "", f"{legend} {LEGEND}" if compared else legend])


def named(field: str, value: str) -> str:
    """A row's or a column's name; one of several fields has a part for each."""
    if "," not in field:
        return name_of(value) if field == "algorithm" else value
    parts = zip(field.split(","), value.split(","), strict=True)
    return ", ".join(name_of(part) if each == "algorithm" else part for each, part in parts)


def headed(table: Table) -> list[str]:
    """The heads of a table's columns."""
    return [table.plan.down.replace(",", ", "), *(named(table.plan.across, column) for column in table.columns)]


def tables_beside(table: Table) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """A title and lines of words: how far algorithms lie from each that they are held against, and what they send."""
    found = [
        (
            f"Less {name_of(name)} on the same seeds, in points",
            [
                (named(table.plan.down, row), [difference_in_words(cells.get(column)) for column in table.columns])
                for row, cells in differences(table, name).items()
            ],
        )
        for name in table.plan.against
    ]
    if table.plan.bytes:
        cells = {
            row: [bytes_in_words(table.cells.get((row, column))) for column in table.columns] for row in table.rows
        }
        lines = [(named(table.plan.down, row), words) for row, words in cells.items() if any(words)]
        found += [("Kilobytes that a party sends", lines)] if lines else []
    return found


def beside_in_markdown(table: Table) -> str:
    """Paired differences and bytes; empty where a plan asks for neither."""
    parts = []
    for title, rows in tables_beside(table):
        lines = [f"| {' | '.join(headed(table))} |", "|" + "---|" * len(headed(table))]
        lines += [f"| {row} | {' | '.join(cells)} |" for row, cells in rows]
        parts.append("\n".join([f"{title}:", "", *lines]))
    return "\n\n".join(parts)


def cell_in_markdown(cell: Cell | None) -> str:
    """Ours, the paper's, and the verdict."""
    if cell is None:
        return ""
    beside = beside_in_words(cell)
    said = f"{ours_in_words(cell)} ({beside})" if beside else ours_in_words(cell)
    return f"{MARKS[cell.verdict]} {said}".strip()


def seeds_in_words(table: Table) -> str:
    """How many seeds the cells have."""
    numbers = sorted({cell.planned for cell in table.cells.values()})
    return f"{numbers[0]} seeds" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} seeds"


def verdicts_in_markdown(tables: Iterable[Table]) -> str:
    """How many cells agree with the paper, and every cell that is worse."""
    found = verdicts(tables)
    lines = [counts_in_words(found)]
    for name in (WORSE, BETTER):
        if found[name]:
            lines += ["", f"{name.capitalize()} than printed:", ""]
            lines += [f"- {verdict_in_words(table, cell)}" for table, cell in found[name]]
    return "\n".join(lines)


def verdict_in_words(table: Table, cell: Cell) -> str:
    """A cell, both figures, and where ours is worse the reason that was found."""
    place = f"{named(table.plan.down, cell.row)}, {named(table.plan.across, cell.column)}"
    reason = table.plan.reason(cell.row, cell.column) if cell.verdict == WORSE else ""
    said = f"{table.plan.title}: {place}: {ours_in_words(cell)} ({beside_in_words(cell)})"
    return f"{said}. {reason}" if reason else said
