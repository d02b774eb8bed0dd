"""What `final_quality.py` found, as tables: labels against distributions, seed by seed, beside parties alone.

A cell is a family on a table under one voting. It is better or worse where the paired difference of its seeds lies
beyond chance (95 %, Student's t).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from fedkt.lab.grid import Grid
from fedkt.lab.results import read_lines
from fedkt.report import FIGURES

SMALLER_IS_BETTER = ("log_loss", "calibration_error")
WORDS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
}
SOLO, SOLO_BY_ROWS, POOLED = "solo", "solo by rows", "pooled"
RIVALS = (SOLO, SOLO_BY_ROWS, POOLED)


@dataclass(frozen=True)
class Cell:
    """A family on a table under a voting: what each seed found of each figure."""

    table: str
    family: str
    voting: str
    before: dict[str, list[float]]
    """With a final model of labels."""
    after: dict[str, list[float]]
    """With one of distributions."""
    rivals: dict[str, dict[str, list[float]]]
    """Parties alone and pooled rows, where there are such."""

    def verdict(self, figure: str) -> int:
        """1 where distributions are better beyond chance, -1 where worse, else 0."""
        sign = -1 if figure in SMALLER_IS_BETTER else 1
        return sign * beyond_chance(self.after[figure], self.before[figure])


def beyond_chance(ours: Sequence[float], theirs: Sequence[float]) -> int:
    """The sign of the mean difference of pairs, 0 where its interval of 95 % holds 0."""
    middle, reach = paired_gap(ours, theirs)
    return 0 if reach is None or abs(middle) <= reach else int(math.copysign(1, middle))


def paired_gap(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float | None]:
    """The mean difference of pairs, and how far its interval of 95 % reaches (Student's t); None of a single pair."""
    gaps = np.subtract(ours, theirs)
    if len(gaps) < 2:
        return float(gaps.mean()), None
    return float(gaps.mean()), float(t.ppf(0.975, len(gaps) - 1)) * float(gaps.std(ddof=1)) / math.sqrt(len(gaps))


def cells_of(path: Path, epsilon: float | None) -> list[Cell]:
    """The cells in a results file at one ε, each with the seeds that it has."""
    entries = [each for each in read_lines(path) if each["epsilon"] == epsilon] if path.exists() else []
    runs: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for each in entries:
        runs.setdefault((each["table"], each["family"]), {})[each["seed"]] = each
    cells = []
    for (table, family), by_seed in runs.items():
        seeds = [by_seed[seed] for seed in sorted(by_seed)]
        votings = [name for name, value in seeds[0].items() if isinstance(value, dict) and "distributions" in value]
        for voting in votings:
            before, after = (series(each[voting][kind] for each in seeds) for kind in ("labels", "distributions"))
            rivals = {name: series(each[name] for each in seeds) for name in RIVALS if name in seeds[0]}
            cells.append(Cell(table, family, voting, before, after, rivals))
    return cells


def series(figures: Iterable[dict[str, float | None]]) -> dict[str, list[float]]:
    """What each seed found, by figure; nan where a model has no such figure."""
    lines = list(figures)
    return {name: [math.nan if each[name] is None else float(each[name] or 0.0) for each in lines] for name in FIGURES}


def summary_table(cells: Sequence[Cell]) -> Grid:
    """Means over cells for each voting, before and after, and how many cells are better and worse."""
    votings = list(dict.fromkeys(each.voting for each in cells))
    lines = []
    for figure in FIGURES:
        line = [WORDS[figure]]
        for voting in votings:
            own = [each for each in cells if each.voting == voting and has(each, figure)]
            found = [each.verdict(figure) for each in own]
            line.append(
                f"{mean_of(own, figure, before):.3f} → {mean_of(own, figure, after):.3f} "
                f"({found.count(1)} / {found.count(-1)} of {len(found)})"
            )
        lines.append(line)
    caption = f"Means over cells, {seeds_in_words(cells)}; in brackets cells that are better / worse beyond chance."
    return Grid(["", *votings], lines, caption=caption)


def table_of_cells(cells: Sequence[Cell], table: str) -> Grid:
    """Every family and voting on one table: each figure before and after, and the AUC of the rivals."""
    own = [each for each in cells if each.table == table]
    rivals = [name for name in RIVALS if own and name in own[0].rivals]
    head = ["model", "voting", *(WORDS[figure] for figure in FIGURES), *(f"AUC, {name}" for name in rivals)]
    lines = []
    for cell in own:
        line = [cell.family, cell.voting]
        for figure in FIGURES:
            line.append(f"{number(mean(cell.before[figure]))} → {number(mean(cell.after[figure]))}")
        line += [number(mean(cell.rivals[name]["auc"])) for name in rivals]
        lines.append(line)
    return Grid(head, lines)


def behind_table(cells: Sequence[Cell]) -> Grid:
    """The cells whose final model ranks rows worse than parties alone, weighted by their rows."""
    lines = []
    for cell in behind(cells):
        ours, theirs, pooled = cell.after["auc"], cell.rivals[SOLO_BY_ROWS]["auc"], cell.rivals[POOLED]["auc"]
        sure = "beyond chance" if beyond_chance(ours, theirs) else "within chance"
        lines.append(
            [cell.table, cell.family, cell.voting, *(number(mean(each)) for each in (ours, theirs, pooled)), sure]
        )
    head = ["table", "model", "voting", "AUC", f"AUC, {SOLO_BY_ROWS}", f"AUC, {POOLED}", "difference"]
    return Grid(head, lines, caption=f"{len(lines)} of {len(cells)} cells.")


def behind(cells: Iterable[Cell]) -> list[Cell]:
    """The cells with a smaller mean AUC than parties alone, weighted by their rows."""
    return [
        each for each in cells if has(each, "auc") and mean(each.after["auc"]) < mean(each.rivals[SOLO_BY_ROWS]["auc"])
    ]


def before(cell: Cell) -> dict[str, list[float]]:
    """Its figures with a final model of labels."""
    return cell.before


def after(cell: Cell) -> dict[str, list[float]]:
    """Its figures with a final model of distributions."""
    return cell.after


def mean_of(cells: Iterable[Cell], figure: str, which: Callable[[Cell], dict[str, list[float]]]) -> float:
    """The mean of a figure over cells."""
    return mean([mean(which(each)[figure]) for each in cells])


def has(cell: Cell, figure: str) -> bool:
    """Whether both final models of every seed have the figure."""
    return not np.isnan([*cell.before[figure], *cell.after[figure]]).any()


def mean(values: Sequence[float]) -> float:
    """The mean; nan where a value is missing."""
    return float(np.mean(values))


def number(value: float) -> str:
    """Three decimals, a dash for nothing."""
    return "–" if math.isnan(value) else f"{value:.3f}"


def seeds_in_words(cells: Sequence[Cell]) -> str:
    """How many seeds the cells have."""
    counts = {len(each.after["accuracy"]) for each in cells}
    return f"{min(counts)} seeds" if len(counts) == 1 else f"{min(counts)} to {max(counts)} seeds"


def rules_table(path: Path) -> Grid:
    """What final models of each rule of `hesitant_students.py` reach, mean over tables, families and seeds."""
    entries = read_lines(path)
    rules = [name for name, value in entries[0].items() if isinstance(value, dict)]
    lines = [[rule, *(number(mean(column(entries, rule, figure))) for figure in FIGURES)] for rule in rules]
    seeds = sorted({each["seed"] for each in entries})
    tables = len({each["table"] for each in entries})
    caption = f"Means over {len(entries)} runs: {tables} tables, both families, seeds {seeds[0]} to {seeds[-1]}."
    return Grid(["a final model learns", *(WORDS[figure] for figure in FIGURES)], lines, caption=caption)


def column(entries: Sequence[dict[str, Any]], rule: str, figure: str) -> list[float]:
    """A figure of one rule in every run that has it."""
    return [each[rule][figure] for each in entries if each[rule][figure] is not None]


def copying_table(path: Path) -> Grid:
    """What `copying.py` found, mean over seeds: what the votes know, and what the families copy."""
    entries = read_lines(path)
    names = list(dict.fromkeys(key for each in entries for key, value in each.items() if is_area(key, value)))
    by_cell: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in entries:
        by_cell.setdefault((each["table"], each["family"]), []).append(each)
    lines = []
    for (table, family), runs in sorted(by_cell.items()):
        areas = [[run[name] for run in runs if run.get(name) is not None] for name in names]
        lines.append([table, family, *(number(mean(each) if each else math.nan) for each in areas)])
    seeds = ", ".join(map(str, sorted({each["seed"] for each in entries})))
    return Grid(["table", "model", *names], lines, caption=f"AUC, mean over seeds: {seeds}.")


def is_area(key: str, value: Any) -> bool:
    """Whether a key of an entry names an AUC and not the run."""
    return key not in ("table", "family", "seed") and (value is None or isinstance(value, float))
