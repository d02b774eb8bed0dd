"""Markdown tables made from result files, with the paper's value beside ours: no number is typed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.errors import DataError
from fedkt.lab.results import Summary, stored, summarise
from fedkt.lab.traffic import TRAFFIC_HEAD, curves, reach_cells, targets, traffic, traffic_cells
from fedkt.report import Report, mean_and_spread

HEADER = (
    "| dataset | algorithm | paper | ours | ours, balanced accuracy | difference | seeds |\n"
    "|---|---|---|---|---|---|---|"
)


def effectiveness_table(results: Sequence[Path], expected: Path, *, seeds: Collection[int] | None = None) -> str:
    """One row per dataset and algorithm: the paper's accuracy, ours, and how far apart they are.

    `seeds` keeps to some of the seeds in the result files.
    """
    printed = effectiveness(expected)
    lines = [HEADER]
    for path in results:
        reports = [each for each in stored(path).values() if seeds is None or each.seed in seeds]
        if not reports:
            raise DataError(f"{path} holds no results. Run the command in paper/README.md that writes it.")
        lines += [row(reports[0].dataset, summary, printed) for summary in summarise(reports)]
    return "\n".join(lines)


def effectiveness(expected: Path) -> dict[str, Any]:
    """What the paper's first table prints, by dataset and algorithm."""
    printed: dict[str, Any] = tomllib.loads(expected.read_text(encoding="utf-8"))["effectiveness"]
    return printed


def row(dataset: str, summary: Summary, printed: dict[str, Any]) -> str:
    """One line of the table."""
    paper = printed.get(dataset, {}).get(summary.algorithm)
    said, apart = "–", "–"
    if paper is not None:
        said = f"{paper['accuracy']:.1f}" + (f" ± {paper['spread']:.1f}" if "spread" in paper else "")
        apart = f"{100 * summary.mean_accuracy - paper['accuracy']:+.1f}"
    return (
        f"| {dataset} | {summary.algorithm} | {said} | {with_spread(summary.accuracy, len(summary.seeds))} | "
        f"{with_spread(summary.balanced_accuracy, len(summary.seeds))} | {apart} | {len(summary.seeds)} |"
    )


def with_spread(pair: tuple[float, float] | None, seeds: int = 2) -> str:
    """Mean ± standard deviation in percent with one digit; one seed has no spread."""
    if pair is None:
        return "–"
    return f"{100 * pair[0]:.1f} ± {100 * pair[1]:.1f}" if seeds > 1 else f"{100 * pair[0]:.1f}"


def seed_table(path: Path, algorithm: str) -> str:
    """Accuracy and balanced accuracy of every seed, so that a spread can be looked into."""
    reports = sorted(
        (each for each in stored(path).values() if each.algorithm == algorithm), key=lambda each: each.seed or 0
    )
    if not reports:
        raise DataError(f"{path} holds no run of {algorithm!r}.")
    return "\n".join(
        [
            "| " + " | ".join(["seed", *(str(each.seed) for each in reports)]) + " |",
            "|" + "---|" * (len(reports) + 1),
            "| " + " | ".join(["accuracy", *(percent(each.accuracy) for each in reports)]) + " |",
            "| " + " | ".join(["balanced", *(percent(each.balanced_accuracy) for each in reports)]) + " |",
        ]
    )


def median_party_table(path: Path) -> str:
    """Per seed: parties that hardly know the rarer class, the median party's share of it, and what FedKT reached."""
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = sorted(found["seeds"], key=lambda row: (row["blind_parties"], -row["median_share"]))
    lines = ["| seed | blind parties of 50 | median party's share | accuracy | balanced |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['seed']} | {row['blind_parties']} | {percent(row['median_share'])} | {percent(row['accuracy'])} | "
        f"{percent(row['balanced_accuracy'])} |"
        for row in rows
    ]
    correlation = found["spearman_median_share_balanced_accuracy"]
    return "\n".join([*lines, "", f"Rank correlation of the last column with the median share: {correlation:.2f}."])


def expert_labels_table(path: Path) -> str:
    """The part of the public rows that expert voting labels right, by choice and problem."""
    columns = by_problem(path)
    choices = [name for name in next(iter(columns.values()))[0] if name not in ("problem", "seed")]
    lines = [
        [choice, *(with_spread(mean_and_spread([each[choice] for each in column])) for column in columns.values())]
        for choice in choices
    ]
    seeds = len({each["seed"] for column in columns.values() for each in column})
    return f"{markdown(['labels right, %', *columns], lines)}\n\nMean ± standard deviation over {seeds} seeds."


def by_problem(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The entries of a study on several problems and seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in json.loads(path.read_text(encoding="utf-8")):
        found.setdefault(each["problem"], []).append(each)
    return found


def expert_counts_table(path: Path) -> str:
    """By problem: how far honest counts are from what students say, and how often false ones are noticed."""
    parts = ("honest parties suspected", "liars suspected", "liars suspected most")
    lines = []
    for problem, entries in by_problem(path).items():
        largest = max(each["largest misfit of an honest party"] for each in entries)
        means = [f"{100 * float(np.mean([each[name] for each in entries])):.0f} %" for name in parts]
        lines.append([problem, str(entries[0]["parties"]), f"{largest:.2f}", *means])
    return markdown(["problem", "parties", "largest misfit of an honest party", *parts], lines)


def hospitals_table(path: Path) -> str:
    """Per seed: the final model beside the hospitals alone."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    hospitals = list(entries[0]["families"])
    head = ["seed", "final", "balanced", "mean alone", *(f"{name} alone" for name in hospitals), "kB sent"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    table = []
    for entry in entries:
        alone = [entry["alone"][name] for name in hospitals]
        table.append([entry["accuracy"], entry["balanced_accuracy"], float(np.mean(alone)), *alone])
        cells = [percent(value) for value in table[-1]]
        lines.append("| " + " | ".join([str(entry["seed"]), *cells, f"{entry['bytes_sent'] / 1e3:.0f}"]) + " |")
    means = [with_spread(mean_and_spread(list(column))) for column in zip(*table, strict=True)]
    return "\n".join([*lines, "| " + " | ".join(["mean ± sd", *means, ""]) + " |"])


def traffic_table(path: Path) -> str:
    """The bytes measured in a results file beside the paper's formulas."""
    return markdown(TRAFFIC_HEAD, traffic_cells(traffic(runs_in(path))))


def reach_table(path: Path) -> str:
    """Rounds · megabytes until each method of a results file reaches the same accuracies, a dash for never."""
    found = curves(runs_in(path))
    wanted = targets(found)
    head = ["algorithm", "best", *(f"{100 * each.accuracy:.1f} % ({each.why()})" for each in wanted)]
    return markdown(head, reach_cells(found, wanted))


def runs_in(path: Path) -> list[Report]:
    """The reports of a results file, or a refusal where it holds none."""
    reports = list(stored(path).values())
    if not reports:
        raise DataError(f"{path} holds no results.")
    return reports


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of words."""
    return "\n".join(["| " + " | ".join(each) + " |" for each in (head, ["---"] * len(head), *lines)])


def hours_table(entries: Sequence[dict[str, Any]]) -> str:
    """What `fedkt paper list` shows: runs, and the hours of work in them."""
    lines = [
        [
            f"`fedkt paper run {each['name']}`",
            each["title"],
            each["where"] or "beyond the paper",
            f"{each['made']} of {each['runs']}",
            f"{each['hours']:.1f}",
        ]
        for each in entries
    ]
    return markdown(["command", "what", "in the paper", "runs made", "hours of work so far"], lines)


def percent(value: float | None) -> str:
    """A share in percent with one digit."""
    return "–" if value is None else f"{100 * value:.1f}"


def provenance(path: Path) -> str:
    """The command and versions behind a results file, in a sentence."""
    reports: list[Report] = list(stored(path).values())
    commands = sorted({each.command for each in reports})
    kept = sorted({f"{name} {number}" for each in reports for name, number in each.versions.items()})
    hours = sum(each.seconds for each in reports) / 3600
    return f"`{'`, `'.join(commands)}`; {hours:.2f} hours of work in all; {', '.join(kept)}."


def replace_between(text: str, marker: str, new: str) -> str:
    """The text with everything between `<!-- marker -->` and `<!-- end marker -->` replaced."""
    start, end = f"<!-- {marker} -->", f"<!-- end {marker} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise DataError(f"The text needs exactly one '{start}' and one '{end}'.")
    head, rest = text.split(start)
    return f"{head}{start}\n{new}\n{end}{rest.split(end)[1]}"
