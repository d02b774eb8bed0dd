"""What came out of an experiment's runs, beside what the paper prints."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedkt.errors import DataError
from fedkt.lab.results import over_seeds, paired_points, stored
from fedkt.lab.setting import fingerprint
from fedkt.report import Report
from paper.experiment import Experiment

WITHIN, BETTER, WORSE = "within", "better", "worse"
SPREADS = 2.0
"""So many of our standard deviations may lie between ours and the paper's before the two differ."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table: our runs, and the paper's number."""

    row: str
    column: str
    reports: tuple[Report, ...]
    planned: int
    """Runs that belong here, made or not."""
    paper: float | None = None
    """Percent."""
    paper_spread: float | None = None

    @property
    def ours(self) -> tuple[float, float] | None:
        """Mean and standard deviation in percent, None before the first run."""
        accuracy = over_seeds([each.accuracy for each in self.reports])
        return None if accuracy is None else (100 * accuracy[0], 100 * accuracy[1])

    @property
    def distance(self) -> float | None:
        """How many of our standard deviations ours lies above the paper's; None with fewer than two seeds."""
        if self.ours is None or self.paper is None or len(self.reports) < 2 or self.ours[1] == 0:
            return None
        return (self.ours[0] - self.paper) / self.ours[1]

    @property
    def verdict(self) -> str:
        """Within two standard deviations of the paper, better, or worse; empty where that cannot be said."""
        if self.distance is None:
            return ""
        return WITHIN if abs(self.distance) <= SPREADS else BETTER if self.distance > 0 else WORSE


@dataclass(frozen=True)
class ResultTable:
    """The cells of one experiment."""

    experiment: Experiment
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]

    @property
    def reports(self) -> list[Report]:
        """All runs made so far."""
        return [report for cell in self.cells.values() for report in cell.reports]

    @property
    def planned(self) -> int:
        """All runs of the experiment."""
        return sum(cell.planned for cell in self.cells.values())

    @property
    def missing(self) -> int:
        """Runs that are still to be made."""
        return self.planned - len(self.reports)

    @property
    def hours(self) -> float:
        """Hours of work in the runs made so far."""
        return sum(each.cpu_seconds or each.seconds for each in self.reports) / 3600


def table_of(
    experiment: Experiment, stored_runs: dict[str, Report], expected: dict[str, Any], *, quick: bool = False
) -> ResultTable:
    """The experiment's table from the runs that are known."""
    by_place: dict[tuple[str, str], list[Report]] = {}
    planned: Counter[tuple[str, str]] = Counter()
    for run in experiment.runs(quick=quick):
        place = (run.row, run.column)
        planned[place] += 1
        by_place.setdefault(place, [])
        if (report := stored_runs.get(fingerprint(run.setting))) is not None:
            by_place[place].append(report)
    printed = expected.get(experiment.expected, {}) if experiment.expected else {}
    cells = {}
    for (row, column), reports in by_place.items():
        dataset, other = (column, row) if experiment.across == "dataset" else (row, column)
        paper = printed.get(dataset, {}).get(other, {})
        cells[row, column] = Cell(
            row, column, tuple(reports), planned[row, column], paper.get("accuracy"), paper.get("spread")
        )
    rows, columns = (tuple(dict.fromkeys(place[axis] for place in cells)) for axis in (0, 1))
    return ResultTable(experiment, rows, columns, cells)


def read_expected(folder: Path) -> dict[str, Any]:
    """The paper's numbers."""
    path = folder / "expected.toml"
    if not path.exists():
        raise DataError(f"{path} is missing: it holds the numbers that the paper prints.")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def finished_runs(folder: Path) -> dict[str, Report]:
    """Every finished run in a folder of result files, by its setting: a run that two tables need is made once."""
    reports: dict[str, Report] = {}
    for path in sorted(folder.glob("*.jsonl")):
        if holds_runs(path):
            reports |= stored(path)
    return reports


def holds_runs(path: Path) -> bool:
    """Whether the lines of a file are runs; other experiments keep theirs in other forms."""
    with path.open(encoding="utf-8") as file:
        try:
            first = json.loads(file.readline() or "{}")
        except ValueError:
            return True  # The reader says what is wrong with it.
    return isinstance(first, dict) and {"setting", "report"} <= first.keys()


def verdicts(tables: Iterable[ResultTable]) -> dict[str, list[tuple[ResultTable, Cell]]]:
    """The cells that can be compared with the paper, by verdict."""
    groups: dict[str, list[tuple[ResultTable, Cell]]] = {WITHIN: [], BETTER: [], WORSE: []}
    for table in tables:
        for cell in table.cells.values():
            if cell.verdict:
                groups[cell.verdict].append((table, cell))
    return groups


def differences(table: ResultTable, other: str) -> dict[str, dict[str, list[float]]]:
    """By row and column: accuracy less that of another algorithm on the same seed, in points, for every common seed."""
    place = table.experiment.down_fields.index("algorithm")
    points_by_row: dict[str, dict[str, list[float]]] = {}
    for (row, column), cell in table.cells.items():
        parts = row.split(",")
        if parts[place] == other:
            continue
        parts[place] = other
        rival = table.cells.get((",".join(parts), column))
        points = [] if rival is None else paired_points(cell.reports, rival.reports)
        points_by_row.setdefault(row, {})[column] = points
    return points_by_row


def bytes_in_words(cell: Cell | None) -> str:
    """Kilobytes that a party sends on the average; empty where nothing was measured."""
    sent = (
        [] if cell is None else [each.bytes_sent / each.parties for each in cell.reports if each.bytes_sent is not None]
    )
    return f"{sum(sent) / len(sent) / 1e3:.1f}" if sent else ""


def spread_in_words(mean: float, spread: float | None, seeds: int = 2) -> str:
    """A mean in percent, with its spread where there is one."""
    return f"{mean:.1f}" if spread is None or seeds < 2 else f"{mean:.1f} ± {spread:.1f}"


def ours_in_words(cell: Cell) -> str:
    """Our figure, and of how many seeds where runs are missing."""
    if cell.ours is None:
        return "–"
    short = "" if len(cell.reports) == cell.planned else f" [{len(cell.reports)} of {cell.planned}]"
    return spread_in_words(*cell.ours, seeds=len(cell.reports)) + short


def paper_in_words(cell: Cell) -> str:
    """The paper's figure."""
    return "" if cell.paper is None else spread_in_words(cell.paper, cell.paper_spread)


def beside_in_words(cell: Cell) -> str:
    """The paper's figure, and how far ours lies from it: in our standard deviations, in points where there is one seed.

    Empty where the paper has none.
    """
    paper = paper_in_words(cell)
    if not paper or cell.ours is None or cell.paper is None:
        return paper
    if cell.distance is not None:
        return f"{paper}; {cell.distance:+.1f} sd"
    return f"{paper}; {cell.ours[0] - cell.paper:+.1f} points"


def counts_in_words(groups: dict[str, list[Any]]) -> str:
    """How many cells agree with the paper."""
    within, better, worse = (len(groups[name]) for name in (WITHIN, BETTER, WORSE))
    total = within + better + worse
    if not total:
        return "No cell has enough seeds yet to be compared with the paper."
    return (
        f"Of {total} cells that the paper prints too, {within} lie within two of our standard deviations of its "
        f"number, {better} above and {worse} below."
    )
