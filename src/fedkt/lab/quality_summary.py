"""The quality of several algorithms over several seeds: a table, and what must be said about each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from fedkt.lab.grid import Grid, GridCell
from fedkt.lab.results import Summary, by_algorithm, less_first, over_seeds
from fedkt.lab.words import points, points_with_spread
from fedkt.quality import Interval, Quality, verdicts
from fedkt.report import Report, figure_of, mean_and_spread

COLUMNS = {
    "accuracy": "accuracy %",
    "balanced_accuracy": "balanced %",
    "auc": "AUC %",
    "calibration_error": "off %",
    "log_loss": "log loss",
}
"""The figures that stand side by side, and what their columns are called."""
IN_POINTS = tuple(figure for figure in COLUMNS if figure != "log_loss")
"""Those that are shares, so that their differences are points."""
WORSE = 0.0005
"""A smaller distance is not called a difference."""


def quality_summary(reports: Sequence[Report], name: Callable[[str], str] = str, title: str = "") -> Grid:
    """The figures of algorithms side by side: labels, ranking, probabilities; without lines where none was measured.

    Several seeds have a mean and a spread, a single one the intervals of its test rows. Where every party has a model
    of its own there are two lines: the mean over the parties, and weighted by rows.
    """
    lines: list[list[str | GridCell]] = []
    for algorithm, runs in by_algorithm(reports).items():
        if all(figure_of(run, "accuracy") is None for run in runs):
            continue
        lines.append([name(algorithm), *figure_cells(runs, by_rows=False)])
        if any(run.alone is not None for run in runs):
            lines.append([f"{name(algorithm)}, by rows", *figure_cells(runs, by_rows=True)])
    caption = " ".join(caption_sentences(reports)) if lines else ""
    return Grid(["algorithm", *COLUMNS.values()], lines, title, caption)


def caption_sentences(reports: Sequence[Report]) -> Iterator[str]:
    """What the reader of figures side by side has to know: what stands beside them, and the baseline."""
    seeds = max(map(len, by_algorithm(reports).values()))
    if seeds > 1:
        yield f"±: the standard deviation over {seeds} seeds, which is no interval of 95 %."
    elif any(run.quality is not None for run in reports):
        rows = next(run.quality["rows"] for run in reports if run.quality is not None)
        yield f"In brackets: within what a figure lies with 95 %, as far as {rows:,} test rows tell."
    majority = over_seeds([figure_of(run, "majority") for run in reports])
    if majority is not None:
        yield f"Always naming the most frequent class is right on {points(majority[0])} %."
    if any(figure_of(run, "calibration_error") is not None for run in reports):
        yield "Off: how far probabilities lie from how often they are right (calibration error)."
    if any(run.alone is not None for run in reports):
        yield "By rows: parties weighted by their rows."


def figure_cells(runs: Sequence[Report], *, by_rows: bool) -> list[str | GridCell]:
    """The figures of one algorithm over its seeds."""
    cells: list[str | GridCell] = []
    quality = None if len(runs) > 1 or runs[0].quality is None else Quality.from_dict(runs[0].quality)
    for figure in COLUMNS:
        pair = over_seeds([figure_of(run, figure, by_rows) for run in runs])
        value = getattr(quality, figure, None)
        if figure == "log_loss":
            cells.append("–" if pair is None else f"{pair[0]:.3f}")
        elif isinstance(value, Interval):
            cells.append(GridCell(points(value.value), f"{points(value.low)} to {points(value.high)}"))
        else:
            cells.append(points_with_spread(pair, len(runs) > 1))
    return cells


def difference_summary(reports: Sequence[Report], name: Callable[[str], str] = str) -> Grid:
    """How far algorithms lie from the first one seed by seed, where there are several: their spreads do not tell."""
    found = {figure: less_first(reports, figure) for figure in IN_POINTS}
    shown = [figure for figure, (_, apart) in found.items() if any(len(each) > 1 for each in apart.values())]
    first, apart = found["accuracy"]
    lines: list[list[str | GridCell]] = [
        [name(rival), *(difference_cell(found[figure][1][rival], figure) for figure in shown)]
        for rival in apart
        if any(len(found[figure][1][rival]) > 1 for figure in shown)
    ]
    return Grid(
        ["algorithm", *(COLUMNS[figure].removesuffix(" %") for figure in shown)],
        lines,
        f"Less {name(first)} on the same seeds, in points",
        f"In brackets: on how many seeds it does better than {name(first)}"
        + ("; of off, less is better." if "calibration_error" in shown else "."),
    )


def difference_cell(apart: Sequence[float], figure: str) -> GridCell:
    """Mean and spread of the differences of two algorithms, and on how many seeds ours is better."""
    if len(apart) < 2:
        return GridCell("–")
    mean, spread = mean_and_spread(apart)
    better = sum(each < 0 if figure == "calibration_error" else each > 0 for each in apart)
    return GridCell(f"{mean:+.1f} ± {spread:.1f}", f"{better} of {len(apart)}")


def run_alarms(reports: Sequence[Report], name: Callable[[str], str] = str) -> list[str]:
    """Why the noise of some algorithms leaves little of their final models, each reason once an algorithm."""
    return list(dict.fromkeys(f"{name(report.algorithm)}: {alarm}" for report in reports for alarm in report.alarms))


def run_verdicts(reports: Sequence[Report], name: Callable[[str], str] = str) -> list[str]:
    """What is wrong with the final models: each kind of verdict once an algorithm, with the runs that it holds for."""
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
                example = ", for instance" if len(sentences) > 1 else ""
                said.append(f"{name(algorithm)} in {len(sentences)} of {len(measured)} runs{example}: {sentences[0]}")
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
