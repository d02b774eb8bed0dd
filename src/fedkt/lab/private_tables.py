"""The paper's private settings beside ours, as Markdown made from the result file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.errors import DataError
from fedkt.lab.tables import markdown, with_spread
from fedkt.privacy.statement import rounded_up
from fedkt.report import mean_and_spread

MISPRINT = "MISPRINT"


def load_rows(path: Path) -> list[dict[str, Any]]:
    """One entry per group and setting, with the accuracies of all seeds and draws together."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        group = json.loads(line)
        for row in group["rows"]:
            key = (group["group"], row["queries"], tuple(row["scale"].items()))
            entry = found.setdefault(
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
    if not found:
        raise DataError(f"{path} holds no results. Run: fedkt paper run private")
    return list(found.values())


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation in percent."""
    return with_spread(mean_and_spread(values) if len(values) > 1 else None)


PAPER_HEAD = (
    "data",
    "partition",
    "γ",
    "k",
    "ε paper",
    "its formula",
    "its data-dependent ε, our votes",
    "ε exact",
    "accuracy paper",
    "ours, median of seeds",
    "ours, all draws",
    "balanced",
)


def paper_cells(rows: Sequence[dict[str, Any]], level: str) -> list[list[str]]:
    """Every setting of the paper at one level: its ε and accuracy, the formula, our exact ε and our accuracy."""
    lines = []
    for row in rows:
        dataset, of, partition = row["group"].rsplit("-", 2)
        if of != level:
            continue
        misprint = " (misprint)" if row["paper_kind"] == MISPRINT else ""
        lines.append(
            [
                dataset,
                partition,
                f"{row['scale']['gamma']:g}",
                str(row["queries"]),
                f"{row['paper_epsilon']:g}{misprint}",
                f"{row['epsilon_paper_formula']:.2f}",
                f"{np.median(row['dependent']):.2f}",
                rounded_up(max(row["epsilons"])),
                f"{row['paper_accuracy']:.1f}",
                f"{100 * np.median(row['first']):.1f}",
                spread(row["all"]),
                spread(row["balanced"]),
            ]
        )
    return lines


def paper_table(rows: Sequence[dict[str, Any]], level: str) -> str:
    """The same as Markdown."""
    exact = PAPER_HEAD.index("ε exact")
    lines = [
        [f"**{cell}**" if place == exact else cell for place, cell in enumerate(line)]
        for line in paper_cells(rows, level)
    ]
    head = [f"**{word}**" if place == exact else word for place, word in enumerate(PAPER_HEAD)]
    return markdown(head, lines)


def summary(rows: Sequence[dict[str, Any]]) -> str:
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
