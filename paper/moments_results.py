"""What the studies of moments found, as tables: no number is typed, and what nobody has run yet is said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Any

from fedkt.data import DATASETS
from fedkt.lab.grid import Grid
from fedkt.lab.results import over_seeds, read_lines, stored
from fedkt.lab.setting import Setting, fingerprint
from fedkt.lab.words import points_with_spread, seeds_in_words
from fedkt.report import Report, figure_of
from paper.moments_data import register
from paper.moments_study import (
    AUTO,
    BOOSTED,
    DISTILLED,
    EXPERT,
    FEDKT,
    MAIN,
    MOMENTS,
    SPREAD,
    changed_setting,
    setting_of,
)
from paper.quality_results import paired_gap

BySeed = dict[int, Report]
Entry = dict[str, Any]
NAMES = {
    MOMENTS: "moments",
    DISTILLED: "moments, distilled",
    AUTO: "auto",
    EXPERT: "expert voting",
    FEDKT: "FedKT",
    "pate": "PATE",
    "pate-soft": "soft PATE",
    "feddf": "FedDF",
    "centralised": "centralised, same family",
    BOOSTED: "centralised, boosting",
}
"""Of the methods, in the order of the tables."""
DATA = tuple(dict.fromkeys(dataset for batch in MAIN for dataset in batch.datasets))


class Runs:
    """The runs of one part, found by what was to be run."""

    def __init__(self, path: Path) -> None:
        register()
        self.reports = stored(path)
        self.seeds = sorted({each["setting"]["seed"] for each in read_lines(path)})

    def of(self, make: Callable[[int], Setting]) -> BySeed:
        """The reports of a setting, by seed; none where this version does not know the setting."""
        found = {}
        for seed in self.seeds:
            report = self.reports.get(fingerprint(make(seed).with_defaults()))
            if report is not None:
                found[seed] = report
        return found

    def method(self, dataset: str, method: str, **more: Any) -> BySeed:
        """The same of a method on a dataset."""
        from fedkt.algorithms import ALGORITHMS

        if method == BOOSTED and DATASETS[dataset].model == "boosting":
            return {}
        if method not in (DISTILLED, BOOSTED) and method not in ALGORITHMS:
            return {}
        return self.of(lambda seed: setting_of(dataset, method, seed, **more))


def runs_of(path: Path) -> Runs:
    """The runs of a file, which is read once for all tables unless somebody writes to it."""
    written = path.stat() if path.exists() else None
    return _read(path, None if written is None else (written.st_mtime_ns, written.st_size))


@lru_cache(maxsize=8)
def _read(path: Path, written: tuple[int, int] | None) -> Runs:
    return Runs(path)


def figure(runs: BySeed, name: str = "accuracy") -> str:
    """Mean ± standard deviation in percent, a dash for nothing."""
    values = [figure_of(each, name) for each in runs.values()]
    return points_with_spread(over_seeds(values), len(runs) > 1)


def both(runs: BySeed) -> str:
    """Accuracy, and balanced accuracy beside it."""
    return f"{figure(runs)} / {figure(runs, 'balanced_accuracy')}" if runs else "–"


def gap(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """Ours less theirs on the same seeds, in points, with its interval of 95 %; without one for a single seed."""
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        return "–"
    middle, reach = paired_gap([ours[seed] for seed in seeds], [theirs[seed] for seed in seeds])
    if reach is None:
        return f"{100 * middle:+.1f}"
    return f"{100 * middle:+.1f} ({100 * (middle - reach):+.1f} to {100 * (middle + reach):+.1f})"


def accuracy(runs: BySeed) -> dict[int, float]:
    """The accuracy of each seed."""
    return {seed: each.accuracy for seed, each in runs.items() if each.accuracy is not None}


# The main table.


def main_table(path: Path) -> Grid | None:
    """Accuracy of every method on every dataset; None where nothing was run."""
    runs = runs_of(path)
    cells = {(method, data): runs.method(data, method) for method in NAMES for data in DATA}
    shown = [data for data in DATA if any(cells[method, data] for method in NAMES)]
    lines = [
        [name, *(figure(cells[method, data]) for data in shown)]
        for method, name in NAMES.items()
        if any(cells[method, data] for data in shown)
    ]
    if not lines:
        return None
    seeds = [f"{data} {seeds_in_words(sorted(cells[MOMENTS, data]))}" for data in shown if cells[MOMENTS, data]]
    return Grid(["", *shown], lines, caption=f"Seeds of moments: {'; '.join(seeds)}.")


def dataset_table(path: Path, dataset: str) -> Grid | None:
    """Every figure of every method on one dataset; None where nothing was run."""
    runs = runs_of(path)
    expert = accuracy(runs.method(dataset, EXPERT))
    lines = []
    for method, name in NAMES.items():
        own = runs.method(dataset, method)
        if own:
            figures = [figure(own, each) for each in ("accuracy", "balanced_accuracy", "auc", "calibration_error")]
            against = "" if method == EXPERT else gap(accuracy(own), expert)
            lines.append([name, *figures, kilobytes(own.values()), seconds(own.values()), str(len(own)), against])
    head = (
        "",
        "accuracy",
        "balanced",
        "AUC",
        "calibration error",
        "kB a party",
        "CPU s",
        "seeds",
        "less expert voting",
    )
    return Grid(head, lines) if lines else None


def kilobytes(reports: Iterable[Report]) -> str:
    """What a party sends, mean over the parties and seeds."""
    sent = [each.bytes_sent / each.parties / 1_000 for each in reports if each.bytes_sent is not None]
    return f"{mean(sent):,.1f}" if sent else "–"


def seconds(reports: Iterable[Report]) -> str:
    """CPU seconds of a run."""
    used = [each.cpu_seconds for each in reports if each.cpu_seconds is not None]
    return f"{mean(used):,.1f}" if used else "–"


# Heterogeneity, parties and public rows.


def spread_table(results: Path, dataset: str) -> Grid | None:
    """Moments and expert voting where one thing differs from the main table; None where nothing was run."""
    main, runs = runs_of(results / "moments-main.jsonl"), runs_of(results / "moments-spread.jsonl")
    lines = []
    if runs.seeds:
        lines.append(["main table", *beside(main.method(dataset, MOMENTS), main.method(dataset, EXPERT))])
    for name, change in SPREAD:
        moments, expert = (
            runs.of(lambda seed, method=method, change=change: changed_setting(dataset, method, seed, change))  # type: ignore[misc]
            for method in (MOMENTS, EXPERT)
        )
        if moments or expert:
            lines.append([name, *beside(moments, expert)])
    return Grid(["", "moments", "expert voting", "moments less expert voting"], lines) if lines else None


def beside(moments: BySeed, expert: BySeed) -> list[str]:
    """Both, and their difference."""
    return [both(moments), both(expert), gap(accuracy(moments), accuracy(expert))]
