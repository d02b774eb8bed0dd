"""A study on the paper's private settings: its groups train a federation once and then draw much noise.

It has no runs like an experiment, but what it needs is listed, made once and kept in the same way.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedkt.lab.results import append_line, read_lines
from fedkt.privacy import Laplace
from paper.experiment import out_of_reach
from paper.workplace import Workplace

QUICK = ("cod-rna-L1-hom", "cod-rna-L2-hom")
"""The groups of a rehearsal."""
MISPRINT = "MISPRINT"
MAIN_TABLE = "tbl:dp"
"""The paper's privacy table, whose rows name no partition; all others are in its appendix."""


@dataclass(frozen=True)
class PaperSetting:
    """One setting of a group, and what the paper prints for it."""

    noise: Laplace
    queries: int
    paper_epsilon: float
    paper_accuracy: float
    paper_kind: str


@dataclass(frozen=True)
class GroupRun:
    """One group on one seed; while developing it is scored on rows that the parties lay aside."""

    group: str
    seed: int
    developing: bool = False


@dataclass(frozen=True)
class Study:
    """What is asked of every group."""

    name: str
    title: str
    where: str
    """Which part of the paper it is; empty for what goes beyond it."""
    file: str
    run: Callable[[GroupRun, Workplace], dict[str, Any]]
    development: tuple[int, ...] = ()
    """Seeds on which something is chosen before anything is measured."""
    seeds: int = 3


def paper_rows(folder: Path) -> list[dict[str, str]]:
    """What the paper prints about private settings, row by row."""
    with (folder / "epsilon_rows.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def paper_settings(folder: Path) -> dict[str, list[PaperSetting]]:
    """The paper's settings by dataset, level and partition."""
    groups: dict[str, list[PaperSetting]] = {}
    for row in paper_rows(folder):
        if row["table"] == MAIN_TABLE:
            continue
        partition = "het" if row["partition"] == "het" else "hom"
        name = f"{row['dataset'].lower()}-{row['level']}-{partition}"
        groups.setdefault(name, []).append(
            PaperSetting(
                Laplace(float(row["gamma"])),
                int(row["queries"]),
                float(row["paper_epsilon"]),
                float(row["paper_accuracy"]),
                row["kind"],
            )
        )
    return groups


def parts_of(group: str) -> tuple[str, str, str]:
    """Dataset, level and partition of a group."""
    dataset, level, partition = group.rsplit("-", 2)
    return dataset, level, partition


def group_runs(study: Study, place: Workplace, *, seeds: int | None = None) -> list[GroupRun]:
    """Everything a study needs: development first, then the seeds of the tables."""
    names = [name for name in paper_settings(place.folder) if not place.quick or name in QUICK]
    development = study.development[: 1 if place.quick else None]
    return [GroupRun(name, seed, developing=True) for seed in development for name in names] + [
        GroupRun(name, seed) for seed in range(1 if place.quick else seeds or study.seeds) for name in names
    ]


def finished_groups(study: Study, results: Path) -> dict[GroupRun, dict[str, Any]]:
    """What is in the results."""
    return {
        GroupRun(each["group"], each["seed"], each.get("developing", False)): each
        for each in read_lines(results / study.file)
    }


def make_missing_groups(
    study: Study, place: Workplace, *, seeds: int | None = None, on_start: Callable[[str], None] | None = None
) -> dict[str, str]:
    """Run what is not in the results yet; datasets that cannot be had are left out and given back with the reason."""
    finished = finished_groups(study, place.results)
    missing = [each for each in group_runs(study, place, seeds=seeds) if each not in finished]
    left_out = out_of_reach({parts_of(each.group)[0] for each in missing}, place.data_dir)
    for number, each in enumerate(missing):
        if parts_of(each.group)[0] in left_out:
            continue
        if on_start is not None:
            on_start(f"{study.name}, group {number + 1} of {len(missing)}: {each.group}, seed {each.seed}")
        append_line(place.results / study.file, study.run(each, place))
    return left_out
