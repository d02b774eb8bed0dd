"""The quality of several algorithms over several seeds: a table, and what must be said about each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fedkt.lab.grid import Grid
from fedkt.lab.results import Summary, by_algorithm, over_seeds
from fedkt.lab.words import points_with_spread
from fedkt.quality import Quality, verdicts
from fedkt.report import Report, figure_of

WORSE = 0.0005
"""A smaller distance is not called a difference."""


def quality_summary(reports: Sequence[Report], name: Callable[[str], str] = str) -> Grid:
    """What accuracy does not tell: the majority beside it, ranking, probabilities; without lines where not measured.

    Where every party has a model of its own there are two lines: the mean over the parties, and weighted by rows.
    """
    lines = []
    for algorithm, runs in by_algorithm(reports).items():
        if all(figure_of(run, "majority") is None for run in runs):
            continue
        lines.append([name(algorithm), *figure_cells(runs, by_rows=False)])
        if any(run.alone is not None for run in runs):
            lines.append([f"{name(algorithm)}, by rows", *figure_cells(runs, by_rows=True)])
    caption = (
        "Always: the accuracy of always naming the most frequent class. Off: how far probabilities lie from how often "
        "they are right (calibration error). By rows: parties weighted by their rows."
    )
    head = ["algorithm", "accuracy %", "always %", "AUC %", "log loss", "off %"]
    return Grid(head, lines, "Is it good enough?", caption if lines else "")


def figure_cells(runs: Sequence[Report], *, by_rows: bool) -> list[str]:
    """The figures of one algorithm over its seeds."""

    def over(name: str) -> tuple[float, float] | None:
        return over_seeds([figure_of(run, name, by_rows) for run in runs])

    several, loss = len(runs) > 1, over("log_loss")
    return [
        points_with_spread(over("accuracy"), several),
        points_with_spread(over("majority"), False),
        points_with_spread(over("auc"), several),
        "–" if loss is None else f"{loss[0]:.3f}",
        points_with_spread(over("calibration_error"), several),
    ]


def run_alarms(reports: Sequence[Report], name: Callable[[str], str] = str) -> list[str]:
    """Why the noise of some algorithms leaves little of their final models, each reason once an algorithm."""
    return list(dict.fromkeys(f"{name(report.algorithm)}: {alarm}" for report in reports for alarm in report.alarms))


def run_verdicts(reports: Sequence[Report], name: Callable[[str], str] = str) -> list[str]:
    """What is wrong with the final models: each kind of verdict once an algorithm, with the seeds that it holds for."""
    said = []
    for algorithm, runs in by_algorithm(reports).items():
        kinds: dict[str, list[str]] = {}
        measured = [run for run in runs if run.quality is not None]
        for run in measured:
            for sentence in verdicts(Quality.from_dict(run.quality)):
                kinds.setdefault(re.split(r"[:,]", sentence, maxsplit=1)[0], []).append(sentence)
        for sentences in kinds.values():
            if len(measured) == 1:
                said.append(f"{name(algorithm)}: {sentences[0]}")
            else:
                said.append(f"{name(algorithm)}, {len(sentences)} of {len(measured)} seeds, the first: {sentences[0]}")
    return said


def member_verdicts(summaries: Sequence[Summary], name: Callable[[str], str] = str) -> list[str]:
    """Which federations make their members worse than they are alone, weighted by the members' rows."""
    solo = next((each for each in summaries if each.by_rows), None)
    if solo is None or not solo.by_rows:
        return []
    said = []
    for each in summaries:
        for figure, ours in (("accuracy", each.accuracy), ("auc", each.auc)):
            alone = solo.by_rows.get(figure)
            if each is solo or ours is None or alone is None or ours[0] >= alone[0] - WORSE:
                continue
            words = "accuracy" if figure == "accuracy" else "AUC"
            said.append(
                f"{name(each.algorithm)} makes its members worse: the parties' own models have a mean {words} of "
                f"{100 * alone[0]:.1f} %, weighted by their rows, and its model {100 * ours[0]:.1f} %."
            )
    return said
