"""Markdown tables of the runs with neural networks, from their result files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from fedkt.lab.results import read_report, summarise
from fedkt.lab.tables import HEADER, effectiveness, row
from fedkt.report import Report

Choice = tuple[str, str]
"""Partition and epochs, "auto" where nobody chose."""


def by_choice(path: Path) -> dict[Choice, list[Report]]:
    """The runs in a results file, by partition and epochs."""
    found: dict[Choice, list[Report]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        epochs = entry["setting"]["epochs"]
        choice = (entry["setting"]["partition"], "auto" if epochs is None else str(epochs))
        found.setdefault(choice, []).append(read_report(entry["report"]))
    return found


def networks_table(results: Sequence[Path], expected: Path, choice: Choice) -> str:
    """One row per dataset and algorithm at one choice of partition and epochs, beside the paper."""
    printed = effectiveness(expected)
    lines = [HEADER]
    for path in results:
        reports = by_choice(path)[choice]
        lines += [row(reports[0].dataset, summary, printed) for summary in summarise(reports)]
    return "\n".join(lines)


def epochs_table(path: Path, expected: Path) -> str:
    """Every partition and number of epochs of a results file beside the paper: which of them the paper used."""
    printed = effectiveness(expected)
    lines = ["| partition | epochs " + HEADER.partition("| dataset ")[2].replace("|---", "|---|---", 1)]
    for (partition, epochs), reports in sorted(by_choice(path).items()):
        for summary in summarise(reports):
            cells = row(reports[0].dataset, summary, printed).partition(f"| {reports[0].dataset} ")[2]
            lines.append(f"| {partition} | {epochs} {cells}")
    return "\n".join(lines)


def teacher_epochs_table(path: Path) -> str:
    """Accuracy of single teachers by the number of epochs."""
    teachers = json.loads(path.read_text(encoding="utf-8"))["teachers"]
    lines = ["| dataset | party | rows | " + " | ".join(["10 epochs", "30 epochs", "100 epochs", "auto"]) + " |"]
    lines.append("|---|---|---|---|---|---|---|")
    groups: dict[tuple[str, str, int], list[str]] = {}
    for each in teachers:
        said = f"{100 * each['accuracy']:.1f}" + (f" ({each['epochs']} epochs)" if each["auto"] else "")
        groups.setdefault((each["dataset"], each["party"], each["rows"]), []).append(said)
    lines += ["| " + " | ".join([*map(str, key), *cells]) + " |" for key, cells in groups.items()]
    return "\n".join(lines)
