"""Finished runs: kept one a line, read back, and summed up over seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.errors import DataError
from fedkt.lab.setting import setting_key
from fedkt.report import FIGURES, Report, figure_of, mean_and_spread
from fedkt.system.files import name_in_errors
from fedkt.system.locks import once_free


def stored(results: Path | None) -> dict[str, Report]:
    """The reports in a results file, by setting; a last line cut off by a kill is not counted."""
    if results is None or not results.exists():
        return {}
    reports: dict[str, Report] = {}
    lines = results.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            report = read_report(entry["report"])
            reports[setting_key(entry["setting"])] = report
        except (ValueError, KeyError, TypeError) as reason:
            if number < len(lines):
                raise DataError(
                    f"Line {number} of {results} is not a stored result ({reason}). Move the file away and run again."
                ) from reason
    return reports


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The entries of a file of other experiments; a last line without an end was cut off by a kill."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def read_report(values: dict[str, Any]) -> Report:
    """A report from its JSON values."""
    lists = {name: tuple(values.get(name, ())) for name in ("notes", "alarms", "history")}
    return Report(**{**values, **lists})


def append_line(results: Path, entry: dict[str, Any]) -> None:
    """Add one line; a cut-off last line of an earlier run is ended first so that it cannot spoil this one."""
    # What another process is writing right now would look cut off.
    with once_free(lock_of(results)), name_in_errors(results):
        existing = results.read_bytes() if results.exists() else b""
        if existing and not existing.endswith(b"\n"):
            results.write_bytes(existing[: existing.rfind(b"\n") + 1])
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()


def lock_of(results: Path, part: str = "") -> Path:
    """The lock on a results file, or on the making of one part of it."""
    return results.with_name(f".{results.name}{part and '.'}{part}.lock")


@dataclass(frozen=True)
class Summary:
    """One algorithm over several seeds."""

    algorithm: str
    seeds: tuple[int, ...]
    accuracy: tuple[float, float] | None
    """Mean and standard deviation; None where no run was measured."""
    balanced_accuracy: tuple[float, float] | None
    label_accuracy: tuple[float, float] | None
    seconds: float
    bytes_sent: float | None
    epsilon: float | None = None
    """The largest ε of the runs; None without a promise."""
    majority: float | None = None
    """The accuracy of always naming the most frequent class of the test rows, mean over the seeds."""
    auc: tuple[float, float] | None = None
    log_loss: tuple[float, float] | None = None
    calibration_error: tuple[float, float] | None = None
    by_rows: dict[str, tuple[float, float] | None] | None = None
    """Where every party has a model of its own: the same figures weighted by the parties' rows."""

    @property
    def mean_accuracy(self) -> float:
        """The mean accuracy, NaN where no run was measured."""
        return float("nan") if self.accuracy is None else self.accuracy[0]


def summarise(reports: Sequence[Report]) -> list[Summary]:
    """Mean and spread per algorithm, in the order the algorithms first appear."""
    summaries = []
    for algorithm, group in by_algorithm(reports).items():
        sent = [report.bytes_sent for report in group if report.bytes_sent is not None]
        summaries.append(
            Summary(
                algorithm,
                tuple(report.seed or 0 for report in group),
                over_seeds([report.accuracy for report in group]),
                over_seeds([report.balanced_accuracy for report in group]),
                over_seeds([report.label_accuracy for report in group]),
                float(np.mean([report.seconds for report in group])),
                float(np.mean(sent)) if sent else None,
                max((report.epsilon for report in group if report.epsilon is not None), default=None),
                **quality_of_group(group),
            )
        )
    return summaries


def quality_of_group(group: Sequence[Report]) -> dict[str, Any]:
    """The fields of a summary that say more about quality than accuracy does."""
    majority = over_seeds([figure_of(report, "majority") for report in group])
    alone = any(report.alone is not None for report in group)
    weighted = {name: over_seeds([figure_of(report, name, by_rows=True) for report in group]) for name in FIGURES}
    return {
        "majority": None if majority is None else majority[0],
        **{name: over_seeds([figure_of(report, name) for report in group]) for name in FIGURES[2:]},
        "by_rows": weighted if alone else None,
    }


def by_algorithm(reports: Sequence[Report]) -> dict[str, list[Report]]:
    """The reports of each algorithm, in the order the algorithms first appear."""
    groups: dict[str, list[Report]] = {}
    for report in reports:
        groups.setdefault(report.algorithm, []).append(report)
    return groups


def paired_points(ours: Sequence[Report], theirs: Sequence[Report], figure: str = "accuracy") -> list[float]:
    """Our accuracy, or another figure, less theirs on the same seed, in points, for every seed that both measured."""
    by_seed = {each.seed: figure_of(each, figure) for each in theirs}
    pairs = [(figure_of(each, figure), by_seed.get(each.seed)) for each in ours]
    return [100 * (mine - other) for mine, other in pairs if mine is not None and other is not None]


def less_first(reports: Sequence[Report], figure: str = "accuracy") -> tuple[str, dict[str, list[float]]]:
    """The algorithm that comes first, and how far the others lie from it, seed by seed and in points."""
    (first, rivals), *others = by_algorithm(reports).items()
    return first, {name: paired_points(group, rivals, figure) for name, group in others}


def over_seeds(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Mean and standard deviation of the values that were measured."""
    measured = [value for value in values if value is not None]
    return mean_and_spread(measured) if measured else None
