"""The paper's private settings and our curve of accuracy against ε as tables: no number is typed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from fedkt.errors import DataError
from fedkt.lab.grid import Grid
from fedkt.lab.words import points_with_spread
from fedkt.privacy.statement import rounded_up
from fedkt.report import mean_and_spread
from paper.private_curve import Point
from paper.private_study import MAIN_TABLE, MISPRINT, paper_rows, paper_settings, parts_of

EXACT = "ε exact"
SETTINGS_HEAD = (
    "data",
    "partition",
    "γ",
    "k",
    "ε paper",
    "its formula",
    "its data-dependent ε, our votes",
    EXACT,
    "accuracy paper",
    "ours, median of seeds",
    "ours, all draws",
    "balanced",
)


CurvesByGroup = Mapping[str, Sequence[Point]]
POINTS_HEAD = ("data", "level", "partition", "ε", "k", "learner", "accuracy, all draws", "balanced")
REACH_HEAD = ("data", "level", "partition", "the paper's", "accuracy", "at its ε", "our curve reaches it at ε", "with")


@dataclass(frozen=True)
class PaperBest:
    """The best accuracy that one of the paper's tables prints, and the ε beside it."""

    table: str
    accuracy: float
    epsilon: float
    misprint: bool


def setting_rows(path: Path) -> list[dict[str, Any]]:
    """One entry per group and setting, with the accuracies of all seeds and draws together."""
    entries: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        group = json.loads(line)
        for row in group["rows"]:
            key = (group["group"], row["queries"], tuple(row["scale"].items()))
            entry = entries.setdefault(
                key,
                {
                    **row,
                    "group": group["group"],
                    "first": [],
                    "all": [],
                    "balanced": [],
                    "dependent": [],
                    "epsilons": [],
                    "l0": [],
                },
            )
            entry["first"].append(row["accuracy"][0])
            entry["all"] += row["accuracy"]
            entry["balanced"] += row["balanced_accuracy"]
            entry["epsilons"].append(row["epsilon"])
            entry["l0"].append(group["l0_accuracy"])
            if row["epsilon_data_dependent"] is not None:
                entry["dependent"].append(row["epsilon_data_dependent"])
    if not entries:
        raise DataError(f"{path} holds no results. Run: python -m paper run private")
    return list(entries.values())


def over_draws(values: Sequence[float]) -> str:
    """Mean ± standard deviation in percent of all draws; a dash where there is one only."""
    return points_with_spread(mean_and_spread(values) if len(values) > 1 else None)


def printed_epsilon(epsilon: float, *, misprint: bool) -> str:
    """An ε as the paper prints it."""
    return f"{epsilon:g}{' (misprint)' if misprint else ''}"


def settings_table(rows: Sequence[dict[str, Any]], level: str) -> Grid:
    """Every setting of the paper at one level: its ε and accuracy, the formula, our exact ε and our accuracy."""
    lines = []
    for row in rows:
        dataset, of, partition = parts_of(row["group"])
        if of != level:
            continue
        lines.append(
            [
                dataset,
                partition,
                f"{row['scale']['gamma']:g}",
                str(row["queries"]),
                printed_epsilon(row["paper_epsilon"], misprint=row["paper_kind"] == MISPRINT),
                f"{row['epsilon_paper_formula']:.2f}",
                f"{np.median(row['dependent']):.2f}",
                rounded_up(max(row["epsilons"])),
                f"{row['paper_accuracy']:.1f}",
                f"{100 * np.median(row['first']):.1f}",
                over_draws(row["all"]),
                over_draws(row["balanced"]),
            ]
        )
    return Grid(SETTINGS_HEAD, lines)


def settings_in_words(rows: Sequence[dict[str, Any]]) -> str:
    """How much smaller the exact ε is, and where our accuracy stands."""
    sound = [row for row in rows if row["paper_kind"] != MISPRINT]
    ratios = [max(row["epsilons"]) / row["paper_epsilon"] for row in sound]
    below = sum(max(row["epsilons"]) < row["paper_epsilon"] for row in rows)
    better = sum(100 * np.median(row["first"]) >= row["paper_accuracy"] for row in rows)
    dependent = [row for row in rows if row["paper_kind"] == "DD" and row["dependent"]]
    near = sum(any(abs(value / row["paper_epsilon"] - 1) <= 0.05 for value in row["dependent"]) for row in dependent)
    apart = [100 * np.median(row["first"]) - row["paper_accuracy"] for row in rows]
    return (
        f"The exact ε is below the printed one in {below} of {len(rows)} settings; leaving misprints out, it is "
        f"{min(ratios):.2f} to {max(ratios):.2f} times the printed one. Our median accuracy is at or above the paper's "
        f"in {better} of {len(rows)} settings; the difference is {np.mean(apart):+.1f} points on average "
        f"({min(apart):+.1f} to {max(apart):+.1f}). Of the {len(dependent)} settings whose printed ε depends on the "
        f"votes, {near} are within 5 % of ours on at least one seed."
    )


def curve_table(curve: CurvesByGroup) -> Grid:
    """Every point of our curve."""
    return Grid(
        POINTS_HEAD,
        [
            [
                *parts_of(group),
                f"{point.epsilon:g}",
                str(point.choice.queries),
                point.choice.model or "own family",
                over_draws(point.accuracy),
                over_draws(point.balanced),
            ]
            for group, points in curve.items()
            for point in points
        ],
    )


def paper_bests(folder: Path) -> dict[str, list[PaperBest]]:
    """For every group what the paper reaches at best: in its privacy table (which names no partition) and appendix."""
    main: dict[tuple[str, str], PaperBest] = {}
    for row in paper_rows(folder):
        if row["table"] == MAIN_TABLE:
            key = row["dataset"].lower(), row["level"]
            accuracy, epsilon = float(row["paper_accuracy"]), float(row["paper_epsilon"])
            if key not in main or accuracy > main[key].accuracy:
                main[key] = PaperBest("privacy table", accuracy, epsilon, row["kind"] == MISPRINT)
    bests = {}
    for group, settings in paper_settings(folder).items():
        dataset, level, _ = parts_of(group)
        top = max(settings, key=lambda each: (each.paper_accuracy, -each.paper_epsilon))
        appendix = PaperBest("appendix", top.paper_accuracy, top.paper_epsilon, top.paper_kind == MISPRINT)
        bests[group] = [main[dataset, level], appendix]
    return bests


def reach_in_words(points: Sequence[Point], accuracy: float) -> tuple[str, str]:
    """The smallest ε of the curve whose mean accuracy is at least this, and that accuracy."""
    for point in points:
        if 100 * mean(point.accuracy) >= accuracy:
            return f"{point.epsilon:g}", over_draws(point.accuracy)
    top = max(points, key=lambda each: mean(each.accuracy))
    return "not reached", f"{over_draws(top.accuracy)} at {top.epsilon:g}"


def epsilon_table(curve: CurvesByGroup, bests: Mapping[str, Sequence[PaperBest]]) -> Grid:
    """What the paper reaches, and the ε at which our curve is there."""
    return Grid(
        REACH_HEAD,
        [
            [
                *parts_of(group),
                best.table,
                f"{best.accuracy:.1f}",
                printed_epsilon(best.epsilon, misprint=best.misprint),
                *reach_in_words(points, best.accuracy),
            ]
            for group, points in curve.items()
            for best in bests.get(group, ())
        ],
    )
