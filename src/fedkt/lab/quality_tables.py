"""The figures of a model as tables, for a terminal of 80 columns and for a page on a phone."""

from __future__ import annotations

from collections.abc import Sequence

from fedkt.lab.grid import Grid, GridCell
from fedkt.lab.svg import shorten
from fedkt.lab.words import points
from fedkt.quality import Difference, Interval, Quality

MOST_LINES = 12
"""Classes that a table shows; of more, those that are found least."""
MOST_COLUMNS = 6
"""Classes of which a whole confusion matrix is shown; of more, the most frequent mistakes."""
MOST_MISTAKES = 10
LONGEST_CELL = 24

EXPLANATIONS = {
    "Accuracy": "how often the model is right",
    "Always naming": "how often whoever always names this class is right",
    "Balanced accuracy": "the share found of each class, mean over the classes",
    "AUC": "how often a row of a class gets more probability of it than a row of another class; guessing: 50 %",
    "Log loss": "the price of false certainty, and that of giving every row the shares of the classes",
    "Calibration error": "how far probabilities lie from how often they are right",
}
"""What each figure says to a reader who does not know it."""
NO_PROBABILITIES = "The model names a class and gives no probabilities."


def figures_grid(quality: Quality) -> Grid:
    """The main figures with their intervals, the majority beside accuracy."""
    caption = "" if quality.log_loss is not None else NO_PROBABILITIES
    lines = [[words, value, between] for _, words, value, between in main_figures(quality)]
    return Grid(["Figure", "value", "95 % between"], lines, f"{quality.rows:,} rows", caption)


def explained_grid(quality: Quality) -> Grid:
    """The same with what each figure says, in two columns: a phone has room for no more."""
    caption = "" if quality.log_loss is not None else NO_PROBABILITIES
    lines = [
        [GridCell(words, EXPLANATIONS[figure]), GridCell(value, between)]
        for figure, words, value, between in main_figures(quality)
    ]
    return Grid(["Figure", "Value\n(95 % between)"], lines, f"{quality.rows:,} rows", caption)


def main_figures(quality: Quality) -> list[tuple[str, str, str, str]]:
    """Figure, its name, its value and its range, as words."""
    always = f"Always naming {cell_name(quality.majority_class)}"
    lines = [
        ("Accuracy", "Accuracy", *interval_cells(quality.accuracy)),
        ("Always naming", always, f"{points(quality.majority)} %", ""),
        ("Balanced accuracy", "Balanced accuracy", *interval_cells(quality.balanced_accuracy)),
    ]
    if quality.auc is not None:
        lines.append(("AUC", "AUC", *interval_cells(quality.auc)))
    if quality.log_loss is not None:
        without = "" if quality.share_log_loss is None else f"shares alone {quality.share_log_loss:.3f}"
        lines.append(("Log loss", "Log loss", f"{quality.log_loss:.3f}", without))
    if quality.calibration_error is not None:
        lines.append(("Calibration error", "Calibration error", f"{points(quality.calibration_error)} %", ""))
    return lines


def interval_cells(interval: Interval) -> tuple[str, str]:
    """A figure, and the range of it."""
    return f"{points(interval.value)} %", f"{points(interval.low)} to {points(interval.high)}"


def class_grid(quality: Quality) -> Grid:
    """What is found of each class, and how far its name can be believed; of many classes, those found least."""
    places = sorted(range(len(quality.classes)), key=lambda place: least_found(quality, place))
    shown = sorted(places[:MOST_LINES])
    has_areas = any(each is not None for each in quality.auc_by_class)
    lines: list[list[str | GridCell]] = [
        [
            GridCell(cell_name(quality.classes[place])),
            f"{quality.support[place]:,}",
            f"{quality.predicted[place]:,}",
            points(quality.recall[place]),
            points(quality.precision[place]),
            *([points(quality.auc_by_class[place])] if has_areas else []),
        ]
        for place in shown
    ]
    more = len(places) - len(shown)
    which = f"The {len(shown)} of {len(places):,} classes that are found least. " if more else ""
    return Grid(
        ["Class", "rows", "said", "found %", "right %", *(["AUC %"] if has_areas else [])],
        lines,
        "Class by class",
        f"{which}Said: rows that the model calls so. Found (recall): of the rows of a class, those that the model "
        "calls so. Right (precision): of the rows that the model calls so, those that are.",
    )


def least_found(quality: Quality, place: int) -> tuple[bool, float, int]:
    """Classes in the order in which a reader should hear of them: those that the rows have, the least found first."""
    recall = quality.recall[place]
    return recall is None, recall or 0.0, -quality.support[place]


def confusion_grid(quality: Quality) -> Grid:
    """What the model calls the rows of each class: the whole matrix, or of many classes the most frequent mistakes."""
    if not quality.confusion:
        return Grid([], [])
    if len(quality.classes) > MOST_COLUMNS:
        return mistake_grid(quality)
    width = max(5, 48 // len(quality.classes))
    return Grid(
        ["Is ↓ called →", *(shorten(str(name), width) for name in quality.classes)],
        [
            [
                GridCell(cell_name(name)),
                *(
                    GridCell(f"{count:,}", mark="right" if place == column else "")
                    for column, count in enumerate(quality.confusion[place])
                ),
            ]
            for place, name in enumerate(quality.classes)
        ],
        "What is called what",
    )


def mistake_grid(quality: Quality) -> Grid:
    """The pairs of classes that are taken for each other most often."""
    mistakes = sorted(
        (-count, place, column)
        for place, line in enumerate(quality.confusion)
        for column, count in enumerate(line)
        if count and place != column
    )
    return Grid(
        ["Is", "called", "rows", "of its class %"],
        [
            [
                GridCell(cell_name(quality.classes[place])),
                GridCell(cell_name(quality.classes[column])),
                f"{-less:,}",
                points(-less / quality.support[place]),
            ]
            for less, place, column in mistakes[:MOST_MISTAKES]
        ],
        "The most frequent mistakes",
        words=("called",),
    )


def calibration_grid(quality: Quality) -> Grid:
    """What the model gives the class that it finds likeliest, and how often that class is right."""
    return Grid(
        ["The model gives %", "is right %", "rows"],
        [[points(each.probability), points(each.right), f"{each.rows:,}"] for each in quality.calibration_curve],
        "Can its probabilities be believed?",
    )


def comparison_grid(comparisons: Sequence[tuple[str, Difference]]) -> Grid:
    """The model beside others on the same rows, in points of accuracy."""
    return Grid(
        ["Less", "points", "95 % between", "only this right", "only the other"],
        [
            [
                # Whole: several students of a party differ in the end of their names.
                GridCell(name),
                f"{100 * each.value:+.1f}",
                f"{100 * each.low:+.1f} to {100 * each.high:+.1f}",
                f"{each.wins:,}",
                f"{each.losses:,}",
            ]
            for name, each in comparisons
        ],
        "Beside other models, on the same rows",
    )


def narrow_comparison_grid(comparisons: Sequence[tuple[str, Difference]]) -> Grid:
    """The same in four columns: a phone has room for no more."""
    grid = comparison_grid(comparisons)
    lines = [[name, GridCell(str(value), str(between)), *counts] for name, value, between, *counts in grid.lines]
    head = ["Other model", "Points\n(95 % between)", "Only this\nright", "Only the\nother"]
    return Grid(head, lines, grid.title)


def comparison_words(name: str, difference: Difference) -> str:
    """Whether the model is better than another one, in a sentence."""
    low, high = f"{100 * difference.low:+.1f}", f"{100 * difference.high:+.1f}"
    figures = f"{100 * difference.value:+.1f} points of accuracy, {low} to {high} with 95 %"
    if difference.better:
        return f"Better than {name} on these rows: {figures}."
    if difference.worse:
        return f"WORSE than {name} on these rows: {figures}."
    return f"Cannot be told apart from {name} on these rows: {figures}."


def cell_name(name: str | int) -> str:
    """The name of a class as short as a table needs it."""
    return shorten(str(name), LONGEST_CELL)
