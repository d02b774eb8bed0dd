"""The main figures of a model in one line, and what can be done about its labels, for reports, tables and pages."""

from __future__ import annotations

import math
import shlex

from fedkt.quality.figures import Quality
from fedkt.quality.verdict import MOST_NAMES, accuracy_in_words, most_rows_first, overlooked_classes, quote

GUESSING = 0.5
"""The area under a ROC curve of probabilities that know nothing."""


def main_line(quality: Quality) -> str:
    """How often the model is right, with its interval and the majority beside it."""
    rows = f"{quality.rows:,} {'row' if quality.rows == 1 else 'rows'}"
    named = quote(quality.majority_class)
    return (
        f"Right on {accuracy_in_words(quality)} of {rows}; always naming {named} is right on "
        f"{100 * quality.majority:.1f} %."
    )


def opening_line(quality: Quality) -> str:
    """The first sentence of a page about a model with which nothing is wrong."""
    named = quote(quality.majority_class)
    return (
        f"The model is better than always naming {named}: it is right on {accuracy_in_words(quality)} of the rows, "
        f"always naming {named} on {100 * quality.majority:.1f} %."
    )


def threshold_advice(quality: Quality, final: str = "final.onnx") -> str | None:
    """How the labels of a final file can be moved towards the classes that they overlook; None where none is.

    The limit for a class is its share of these rows: of two classes, and where probabilities can be believed, no limit
    has a better balanced accuracy.
    """
    overlooked = overlooked_classes(quality)
    if quality.log_loss is None or not overlooked or sum(rows > 0 for rows in quality.support) == 1:
        return None
    places = most_rows_first(quality, overlooked)[:MOST_NAMES]
    limits = [(quality.classes[each], least_percent(quality.support[each], quality.rows)) for each in places]
    options = " ".join(f"--threshold {shlex.quote(f'{name}={percent / 100:g}')}" for name, percent in limits)
    named = " and ".join(f"{quote(name)} where it is at least {percent} % probable" for name, percent in limits)
    blind = (
        f" But its probabilities are not shown to tell the classes apart (AUC {quality.auc}): no limit may help."
        if quality.auc is not None and quality.auc.low <= GUESSING
        else ""
    )
    return (
        f"Labels can be moved, since the model gives probabilities: fedkt predict {shlex.quote(final)} new.csv "
        f"{options} names {named}. More rows are then named so wrongly: try limits on labelled rows first.{blind}"
    )


def least_percent(rows: int, of: int) -> int:
    """A share in whole percent, at least 1 and at most 50."""
    return max(1, min(50, math.floor(100 * rows / of)))
