"""An experiment's results in words: ours in each cell, the paper's number beside it, and how far apart they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedkt.lab.grid import Grid, GridCell
from fedkt.lab.names import name_of
from fedkt.lab.tables import difference
from fedkt.lab.words import with_noun
from paper.outcome import (
    BETTER,
    WITHIN,
    WORSE,
    Cell,
    ResultTable,
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


def comparison_table(table: ResultTable) -> Grid:
    """Rows and columns of the experiment."""
    columns = "" if table.experiment.across == "dataset" else f"Columns: {table.experiment.across.replace('_', ' ')}. "
    legend = f"{columns}Test accuracy in percent, mean ± standard deviation over {seed_count_in_words(table)}."
    compared = any(cell.paper is not None for cell in table.cells.values())
    return Grid(
        head_of(table),
        [
            [
                axis_label(table.experiment.down, row),
                *(entry(table.cells.get((row, column))) for column in table.columns),
            ]
            for row in table.rows
        ],
        table.experiment.title,
        f"{legend} {LEGEND}" if compared else legend,
    )


def tables_beside(table: ResultTable) -> list[Grid]:
    """How far algorithms lie from each that they are held against, and what they send, where the experiment asks."""
    found = [
        Grid(
            head_of(table),
            [
                [axis_label(table.experiment.down, row), *(difference(cells.get(column)) for column in table.columns)]
                for row, cells in differences(table, name).items()
            ],
            f"Less {name_of(name)} on the same seeds, in points",
        )
        for name in table.experiment.against
    ]
    if table.experiment.bytes:
        cells = {
            row: [bytes_in_words(table.cells.get((row, column))) for column in table.columns] for row in table.rows
        }
        lines = [[axis_label(table.experiment.down, row), *words] for row, words in cells.items() if any(words)]
        found += [Grid(head_of(table), lines, "Kilobytes that a party sends")] if lines else []
    return found


def axis_label(field: str, value: str) -> str:
    """A row's or a column's name; one of several fields has a part for each."""
    if "," not in field:
        return name_of(value) if field == "algorithm" else value
    parts = zip(field.split(","), value.split(","), strict=True)
    return ", ".join(name_of(part) if each == "algorithm" else part for each, part in parts)


def head_of(table: ResultTable) -> list[str]:
    """The heads of a table's columns."""
    across = [axis_label(table.experiment.across, column) for column in table.columns]
    return [table.experiment.down.replace(",", ", "), *across]


def entry(cell: Cell | None) -> GridCell:
    """Ours with the mark of its verdict, and the paper's; empty where the experiment has no such cell."""
    if cell is None:
        return GridCell("")
    return GridCell(f"{MARKS[cell.verdict]} {ours_in_words(cell)}".strip(), beside_in_words(cell), cell.verdict)


def seed_count_in_words(table: ResultTable) -> str:
    """How many seeds the cells have."""
    numbers = sorted({cell.planned for cell in table.cells.values()})
    return with_noun(numbers[0], "seed", "seeds") if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} seeds"


def result_in_words(votes: ResultTable, baselines: ResultTable) -> str:
    """In one sentence: what one message from each party gives, beside the paper's vote, a party alone and a bound.

    `votes` compares ways of voting by algorithm and dataset; only `baselines` has parties that stay alone.
    """
    paper, bound = (enumerate_words(percentages(votes, name)) for name in ("fedkt", "pate"))
    expert = zip(percentages(votes, "fedkt-expert"), votes.columns, strict=True)
    datasets = enumerate_words([f"{value} % of {name}" for value, name in expert])
    alone = enumerate_words(percentages(baselines, "solo", votes.columns))
    seeds = [baselines.cells["solo", column].planned for column in votes.columns]
    return (
        f"With one message from each party the final model is right on {datasets}, where FedKT as in its paper gives "
        f"{paper} %, a party alone {alone} %, and PATE, which needs everybody's rows in one place, {bound} % (mean "
        f"test accuracy over {seed_count_in_words(votes)}; a party alone over {min(seeds)} to {max(seeds)} others)."
    )


def percentages(table: ResultTable, row: str, columns: Sequence[str] = ()) -> list[str]:
    """Our mean accuracy in every column of a row."""
    figures = [table.cells[row, column].ours for column in columns or table.columns]
    return ["–" if figure is None else f"{figure[0]:.1f}" for figure in figures]


def enumerate_words(words: Sequence[str]) -> str:
    """Several words as a sentence lists them."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def verdicts_in_words(tables: Iterable[ResultTable]) -> str:
    """How many cells agree with the paper, and every cell that does not."""
    found = verdicts(tables)
    lines = [counts_in_words(found)]
    for name in (WORSE, BETTER):
        if found[name]:
            lines += ["", f"{name.capitalize()} than printed:", ""]
            lines += [f"- {verdict_in_words(table, cell)}" for table, cell in found[name]]
    return "\n".join(lines)


def verdict_in_words(table: ResultTable, cell: Cell) -> str:
    """A cell, both figures, and where ours is worse the reason that was found."""
    experiment = table.experiment
    place = f"{axis_label(experiment.down, cell.row)}, {axis_label(experiment.across, cell.column)}"
    reason = experiment.reason(cell.row, cell.column) if cell.verdict == WORSE else ""
    figures = f"{experiment.title}: {place}: {ours_in_words(cell)} ({beside_in_words(cell)})"
    return f"{figures}. {reason}" if reason else figures
