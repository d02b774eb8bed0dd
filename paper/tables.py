"""Tables of result files, with the paper's value beside ours: no number is typed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.errors import DataError
from fedkt.lab.grid import Grid
from fedkt.lab.results import Summary, read_report, stored, summarise
from fedkt.lab.tables import traffic_table
from fedkt.lab.traffic import curves, reach_cells, targets
from fedkt.lab.words import points, points_with_spread
from fedkt.report import Report, mean_and_spread

HEAD = ("dataset", "algorithm", "paper", "ours", "ours, balanced accuracy", "difference", "seeds")
Training = tuple[str, str]
"""Partition and epochs, "auto" where nobody chose."""


def effectiveness_table(results: Sequence[Path], expected: Path, *, seeds: Collection[int] | None = None) -> Grid:
    """One row per dataset and algorithm: the paper's accuracy, ours, and how far apart they are.

    `seeds` keeps to some of the seeds in the result files.
    """
    printed = printed_effectiveness(expected)
    lines = []
    for path in results:
        reports = [each for each in stored(path).values() if seeds is None or each.seed in seeds]
        if not reports:
            raise DataError(f"{path} holds no results. Run the command in paper/README.md that writes it.")
        lines += [effectiveness_line(reports[0].dataset, summary, printed) for summary in summarise(reports)]
    return Grid(HEAD, lines)


def printed_effectiveness(expected: Path) -> dict[str, Any]:
    """What the paper's first table prints, by dataset and algorithm."""
    printed: dict[str, Any] = tomllib.loads(expected.read_text(encoding="utf-8"))["effectiveness"]
    return printed


def effectiveness_line(dataset: str, summary: Summary, printed: dict[str, Any]) -> list[str]:
    """One line of the table."""
    paper = printed.get(dataset, {}).get(summary.algorithm)
    theirs, apart = "–", "–"
    if paper is not None:
        theirs = f"{paper['accuracy']:.1f}" + (f" ± {paper['spread']:.1f}" if "spread" in paper else "")
        apart = f"{100 * summary.mean_accuracy - paper['accuracy']:+.1f}"
    several = len(summary.seeds) > 1
    return [
        dataset,
        summary.algorithm,
        theirs,
        points_with_spread(summary.accuracy, several),
        points_with_spread(summary.balanced_accuracy, several),
        apart,
        str(len(summary.seeds)),
    ]


def runs_by_training(path: Path) -> dict[Training, list[Report]]:
    """The runs in a results file, by partition and epochs."""
    runs: dict[Training, list[Report]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        epochs = entry["setting"]["epochs"]
        training = (entry["setting"]["partition"], "auto" if epochs is None else str(epochs))
        runs.setdefault(training, []).append(read_report(entry["report"]))
    return runs


def networks_table(results: Sequence[Path], expected: Path, training: Training) -> Grid:
    """One row per dataset and algorithm at one choice of partition and epochs, beside the paper."""
    printed = printed_effectiveness(expected)
    lines = []
    for path in results:
        reports = runs_by_training(path)[training]
        lines += [effectiveness_line(reports[0].dataset, summary, printed) for summary in summarise(reports)]
    return Grid(HEAD, lines)


def epochs_table(path: Path, expected: Path) -> Grid:
    """Every partition and number of epochs of a results file beside the paper: which of them the paper used."""
    printed = printed_effectiveness(expected)
    lines = [
        [partition, epochs, *effectiveness_line(reports[0].dataset, summary, printed)[1:]]
        for (partition, epochs), reports in sorted(runs_by_training(path).items())
        for summary in summarise(reports)
    ]
    return Grid(["partition", "epochs", *HEAD[1:]], lines)


def teacher_epochs_table(path: Path) -> Grid:
    """Accuracy of single teachers by the number of epochs."""
    groups: dict[tuple[str, str, int], list[str]] = {}
    for each in json.loads(path.read_text(encoding="utf-8"))["teachers"]:
        accuracy = points(each["accuracy"]) + (f" ({each['epochs']} epochs)" if each["auto"] else "")
        groups.setdefault((each["dataset"], each["party"], each["rows"]), []).append(accuracy)
    head = ["dataset", "party", "rows", "10 epochs", "30 epochs", "100 epochs", "auto"]
    return Grid(head, [[*map(str, key), *cells] for key, cells in groups.items()])


def seed_table(path: Path, algorithm: str) -> Grid:
    """Accuracy and balanced accuracy of every seed, so that a spread can be looked into."""
    reports = sorted(
        (each for each in stored(path).values() if each.algorithm == algorithm), key=lambda each: each.seed or 0
    )
    if not reports:
        raise DataError(f"{path} holds no run of {algorithm!r}.")
    return Grid(
        ["seed", *(str(each.seed) for each in reports)],
        [
            ["accuracy", *(points(each.accuracy) for each in reports)],
            ["balanced", *(points(each.balanced_accuracy) for each in reports)],
        ],
    )


def median_party_table(path: Path) -> Grid:
    """Per seed: parties that hardly know the rarer class, the median party's share of it, and what FedKT reached."""
    study = json.loads(path.read_text(encoding="utf-8"))
    correlation = study["spearman_median_share_balanced_accuracy"]
    return Grid(
        ["seed", "blind parties of 50", "median party's share", "accuracy", "balanced"],
        [
            [
                str(row["seed"]),
                str(row["blind_parties"]),
                *(points(row[name]) for name in ("median_share", "accuracy", "balanced_accuracy")),
            ]
            for row in sorted(study["seeds"], key=lambda row: (row["blind_parties"], -row["median_share"]))
        ],
        caption=f"Rank correlation of the last column with the median share: {correlation:.2f}.",
    )


def expert_labels_table(path: Path) -> Grid:
    """The part of the public rows that expert voting labels right, by choice and problem."""
    columns = by_problem(path)
    choices = [name for name in next(iter(columns.values()))[0] if name not in ("problem", "seed")]
    lines = [
        [
            choice,
            *(points_with_spread(mean_and_spread([each[choice] for each in column])) for column in columns.values()),
        ]
        for choice in choices
    ]
    seeds = len({each["seed"] for column in columns.values() for each in column})
    return Grid(["labels right, %", *columns], lines, caption=f"Mean ± standard deviation over {seeds} seeds.")


def by_problem(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The entries of a study on several problems and seeds."""
    problems: dict[str, list[dict[str, Any]]] = {}
    for each in json.loads(path.read_text(encoding="utf-8")):
        problems.setdefault(each["problem"], []).append(each)
    return problems


def expert_counts_table(path: Path) -> Grid:
    """By problem: how far honest counts are from what students say, and how often false ones are noticed."""
    parts = ("honest parties suspected", "liars suspected", "liars suspected most")
    lines = []
    for problem, entries in by_problem(path).items():
        largest = max(each["largest misfit of an honest party"] for each in entries)
        means = [f"{100 * float(np.mean([each[name] for each in entries])):.0f} %" for name in parts]
        lines.append([problem, str(entries[0]["parties"]), f"{largest:.2f}", *means])
    return Grid(["problem", "parties", "largest misfit of an honest party", *parts], lines)


def hospitals_table(path: Path) -> Grid:
    """Per seed: the final model beside the hospitals alone."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    hospitals = list(entries[0]["families"])
    lines, figures = [], []
    for entry in entries:
        alone = [entry["alone"][name] for name in hospitals]
        figures.append([entry["accuracy"], entry["balanced_accuracy"], float(np.mean(alone)), *alone])
        lines.append([str(entry["seed"]), *map(points, figures[-1]), f"{entry['bytes_sent'] / 1e3:.0f}"])
    means = [points_with_spread(mean_and_spread(list(column))) for column in zip(*figures, strict=True)]
    head = ["seed", "final", "balanced", "mean alone", *(f"{name} alone" for name in hospitals), "kB sent"]
    return Grid(head, [*lines, ["mean ± sd", *means, ""]])


def bytes_table(path: Path) -> Grid:
    """The bytes measured in a results file beside the paper's formulas."""
    return traffic_table(runs_in(path))


def rounds_table(path: Path) -> Grid:
    """Rounds · megabytes until each method of a results file reaches the same accuracies, a dash for never."""
    series = curves(runs_in(path))
    columns = targets(series)
    head = ["algorithm", "best", *(f"{100 * each.accuracy:.1f} % ({each.why()})" for each in columns)]
    return Grid(head, reach_cells(series, columns))


def runs_in(path: Path) -> list[Report]:
    """The reports of a results file, or a refusal where it holds none."""
    reports = list(stored(path).values())
    if not reports:
        raise DataError(f"{path} holds no results.")
    return reports


def hours_table(entries: Sequence[dict[str, Any]]) -> Grid:
    """What `python -m paper list` shows: runs, and the hours of work in them."""
    return Grid(
        ["command", "what", "in the paper", "runs made", "hours of work so far"],
        [
            [
                f"`python -m paper run {each['name']}`",
                each["title"],
                each["where"] or "beyond the paper",
                f"{each['made']} of {each['runs']}",
                f"{each['hours']:.1f}",
            ]
            for each in entries
        ],
    )


def provenance(path: Path) -> str:
    """The command and versions behind a results file, in a sentence."""
    reports: list[Report] = list(stored(path).values())
    commands = sorted({each.command for each in reports})
    versions = sorted({f"{name} {number}" for each in reports for name, number in each.versions.items()})
    hours = sum(each.seconds for each in reports) / 3600
    return f"`{'`, `'.join(commands)}`; {hours:.2f} hours of work in all; {', '.join(versions)}."
