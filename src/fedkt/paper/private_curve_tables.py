"""The curve of accuracy against ε as tables: its points, and where it reaches what the paper prints."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from fedkt.lab.private_tables import MISPRINT, spread
from fedkt.lab.tables import markdown
from fedkt.paper import private_levels
from fedkt.paper.private_curve import Point
from fedkt.paper.private_federations import parts_of

Curve = Mapping[str, Sequence[Point]]
POINT_HEAD = ("data", "level", "partition", "ε", "k", "learner", "accuracy, all draws", "balanced")
REACH_HEAD = ("data", "level", "partition", "the paper's", "accuracy", "at its ε", "our curve reaches it at ε", "with")
MAIN = "privacy table"
APPENDIX = "appendix"


@dataclass(frozen=True)
class Target:
    """The best accuracy that one of the paper's tables prints, and the ε beside it."""

    table: str
    accuracy: float
    epsilon: float
    misprint: bool


def point_cells(curve: Curve) -> list[list[str]]:
    """Every point."""
    return [
        [
            *parts_of(name),
            f"{point.epsilon:g}",
            str(point.choice.queries),
            point.choice.model or "own family",
            spread(point.accuracy),
            spread(point.balanced),
        ]
        for name, points in curve.items()
        for point in points
    ]


def targets(folder: Path) -> dict[str, list[Target]]:
    """For every group what the paper reaches at best: in its privacy table (which names no partition) and appendix."""
    main: dict[tuple[str, str], Target] = {}
    with (folder / "epsilon_rows.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["table"] == "tbl:dp":
                key = row["dataset"].lower(), row["level"]
                main[key] = best(main.get(key), row["paper_accuracy"], row["paper_epsilon"], row["kind"])
    found = {}
    for name, asked in private_levels.groups(folder).items():
        dataset, level, _ = parts_of(name)
        top = max(asked, key=lambda each: (each.paper_accuracy, -each.paper_epsilon))
        printed = Target(APPENDIX, top.paper_accuracy, top.paper_epsilon, top.paper_kind == MISPRINT)
        found[name] = [main[dataset, level], printed]
    return found


def best(known: Target | None, accuracy: str, epsilon: str, kind: str) -> Target:
    """The better of two."""
    new = Target(MAIN, float(accuracy), float(epsilon), kind == MISPRINT)
    return new if known is None or new.accuracy > known.accuracy else known


def reached(points: Sequence[Point], accuracy: float) -> tuple[str, str]:
    """The smallest ε of the curve whose mean accuracy is at least this, and that accuracy, in words."""
    for point in points:
        if 100 * mean(point.accuracy) >= accuracy:
            return f"{point.epsilon:g}", spread(point.accuracy)
    top = max(points, key=lambda each: mean(each.accuracy))
    return "not reached", f"{spread(top.accuracy)} at {top.epsilon:g}"


def reach_cells(curve: Curve, wanted: Mapping[str, Sequence[Target]]) -> list[list[str]]:
    """Every target, and the ε at which ours is there."""
    lines = []
    for name, points in curve.items():
        for target in wanted.get(name, ()):
            misprint = " (misprint)" if target.misprint else ""
            printed = [target.table, f"{target.accuracy:.1f}", f"{target.epsilon:g}{misprint}"]
            lines.append([*parts_of(name), *printed, *reached(points, target.accuracy)])
    return lines


def point_table(curve: Curve) -> str:
    """The points as Markdown."""
    return markdown(list(POINT_HEAD), point_cells(curve))


def reach_table(curve: Curve, wanted: Mapping[str, Sequence[Target]]) -> str:
    """The targets as Markdown."""
    return markdown(list(REACH_HEAD), reach_cells(curve, wanted))
