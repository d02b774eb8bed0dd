"""What a reader must be told about a model's quality, in sentences that need no statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fedkt.quality.figures import Name, Quality

LOW_RECALL = 0.5
"""A class that is missed more often than found is named."""
FEW_ROWS = 30
LARGE_ERROR = 0.1
"""Probabilities that are off by so much on the average are called wrong, where chance alone does not explain it."""
MOST_NAMES = 3
"""Classes that a sentence names."""
LONGEST_NAME = 40


def verdicts(quality: Quality) -> tuple[str, ...]:
    """What is wrong with a model, worst first; empty where nothing is."""
    return (*label_verdicts(quality), *probability_verdicts(quality))


def label_verdicts(quality: Quality) -> tuple[str, ...]:
    """What is wrong with a model's labels, worst first."""
    if sum(rows > 0 for rows in quality.support) == 1:
        only = quote(quality.majority_class)
        first = [
            f"All {quality.rows:,} rows are of class {only}: they cannot show whether the model tells classes apart."
            if quality.rows > 1
            else f"This is a single row, of class {only}: it cannot show how good the model is."
        ]
    else:
        first = [*against_majority(quality), *few_rows(quality)]
    return (*first, *lost_classes(quality), *missed_classes(quality))


def against_majority(quality: Quality) -> Iterable[str]:
    """Whether always naming the most frequent class would do as well."""
    named, right = quote(quality.majority_class), f"{100 * quality.majority:.1f} %"
    classes = sum(rows > 0 for rows in quality.support)
    balanced = quality.balanced_accuracy
    apart = (
        f" It does tell the classes apart to some degree: the share found, mean over the classes, is "
        f"{100 * balanced.value:.1f} %, where guessing finds {100 / classes:.1f} %."
        if balanced.low > 1 / classes
        else ""
    )
    if quality.accuracy.value <= quality.majority:
        yield (
            f"The model is no better than always naming {named}: it is right on {100 * quality.accuracy.value:.1f} % "
            f"of the rows, always naming {named} on {right}.{apart}"
        )
    elif quality.accuracy.low <= quality.majority:
        yield (
            f"The model cannot be told apart from always naming {named}: it is right on "
            f"{accuracy_in_words(quality)} of the rows, always naming {named} on {right}.{apart}"
        )


def accuracy_in_words(quality: Quality) -> str:
    """The accuracy with its interval."""
    accuracy = quality.accuracy
    return f"{100 * accuracy.value:.1f} % ({100 * accuracy.low:.1f} to {100 * accuracy.high:.1f} %)"


def few_rows(quality: Quality) -> Iterable[str]:
    """Whether there are too few rows to say much."""
    if quality.rows < FEW_ROWS:
        yield f"These are only {quality.rows} rows: another {quality.rows} may give quite other figures."


def lost_classes(quality: Quality) -> Iterable[str]:
    """Classes that the rows have and the model never names."""
    lost = [place for place, rows in enumerate(quality.support) if rows and not quality.predicted[place]]
    rows = sum(quality.support[place] for place in lost)
    if len(lost) == 1:
        yield (
            f"Class {quote(quality.classes[lost[0]])} is never predicted, though {rows:,} of the {quality.rows:,} rows "
            "are of it."
        )
    elif lost:
        names = name_list(quality.classes[place] for place in most_rows_first(quality, lost))
        yield (
            f"{len(lost):,} classes are never predicted, though {rows:,} of the {quality.rows:,} rows are of them: "
            f"{names}."
        )


def overlooked_classes(quality: Quality) -> list[int]:
    """The classes that are missed more often than found, those that are never named among them."""
    return [place for place, recall in enumerate(quality.recall) if recall is not None and recall < LOW_RECALL]


def missed_classes(quality: Quality) -> Iterable[str]:
    """Classes that the model names, and misses more often than not."""
    missed = [place for place in overlooked_classes(quality) if quality.predicted[place]]
    if len(missed) > MOST_NAMES:
        names = name_list(quality.classes[place] for place in most_rows_first(quality, missed))
        yield f"Of {len(missed):,} classes the model finds fewer than half of the rows: {names}."
        return
    for place in missed:
        found, rows = round((quality.recall[place] or 0) * quality.support[place]), quality.support[place]
        yield (
            f"Class {quote(quality.classes[place])} is missed more often than found: of {rows:,} rows the model finds "
            f"{found:,}."
        )


def probability_verdicts(quality: Quality) -> tuple[str, ...]:
    """What is wrong with a model's probabilities: why a reader would be misled by them."""
    return tuple(probabilities_far_off(quality))


def probabilities_far_off(quality: Quality) -> Iterable[str]:
    """Probabilities that lie too far from how often they are right, or that are worse than none."""
    error, curve = quality.calibration_error, quality.calibration_curve
    if error is None or quality.log_loss is None or quality.share_log_loss is None:
        return
    # What a model whose probabilities are all right would show on so few rows, on the average.
    chance = sum(math.sqrt(2 / math.pi * each.rows * each.probability * (1 - each.probability)) for each in curve)
    if error > LARGE_ERROR and error > 2 * chance / quality.rows:
        sure = sum(each.rows * each.probability for each in curve) / quality.rows
        right = sum(each.rows * each.right for each in curve) / quality.rows
        which = "too sure of itself" if sure > right else "less sure than it could be"
        yield (
            f"The probabilities are far off, by {100 * error:.0f} points on the average: the model is {which}. It "
            f"gives the class it finds likeliest {100 * sure:.0f} % on the average, and that class is right on "
            f"{100 * right:.0f} % of the rows."
        )
    if quality.log_loss > quality.share_log_loss > 0:
        yield (
            "The probabilities are worse than none: whoever gave every row the shares of the classes would be closer "
            "to the truth."
        )


def most_rows_first(quality: Quality, places: list[int]) -> list[int]:
    """Classes by their rows."""
    return sorted(places, key=lambda place: -quality.support[place])


def name_list(names: Iterable[Name]) -> str:
    """Some names, and how many more there are."""
    first, more = [quote(name) for name in names], 0
    if len(first) > MOST_NAMES + 1:
        first, more = first[:MOST_NAMES], len(first) - MOST_NAMES
    return ", ".join(first) + (f" and {more:,} more" if more else "")


def quote(name: Name) -> str:
    """The name of a class in quotation marks, not longer than a line can bear."""
    text = str(name)
    return repr(text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…")
