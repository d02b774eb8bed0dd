"""From true classes, labels and probabilities to the figures of a model, as scikit-learn defines them.

Counted with numpy: for a million rows or ten thousand classes scikit-learn's functions make matrices of both, and ask
each class anew what kind of table they were given. The tests hold every figure to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import DataError
from fedkt.quality.figures import CalibrationBin, Name, Quality
from fedkt.quality.intervals import (
    Interval,
    auc_interval,
    delong_error,
    mean_of_dependent,
    mean_of_independent,
    widen,
    wilson,
)

MOST_CONFUSED = 100
"""Classes of which a confusion matrix is kept: 10,000 classes would be a hundred million numbers."""
BINS = 10
"""Of a calibration curve, of equal width."""
LEAST_PROBABILITY = float(np.finfo(np.float32).eps)
"""What a log loss takes for a probability of 0: models that travel give 32 bits."""
SUM_ERROR = 1e-3
"""How far the probabilities of a row may be from 1 together."""

Indices = NDArray[np.int64]


def measure_quality(
    truth: ArrayLike, labels: ArrayLike, classes: Sequence[Any], probabilities: ArrayLike | None = None
) -> Quality:
    """The quality of a model that gives these rows these labels and, where it can, these probabilities.

    Truth and labels are indices of `classes`; probabilities have a line per row and a column per class. Labels need not
    be the likeliest classes: they are judged by recall and the like, probabilities by what they say themselves.
    """
    names = tuple(plain_name(each) for each in classes)
    y = class_indices(truth, len(names), "true class")
    said = class_indices(labels, len(names), "label")
    if not len(y):
        raise DataError("There are no rows to measure a model on. Give labelled rows.")
    if len(said) != len(y):
        raise DataError(f"There are {len(said):,} labels for {len(y):,} rows. Give one label per row.")
    support, predicted = np.bincount(y, minlength=len(names)), np.bincount(said, minlength=len(names))
    hits = np.bincount(y[y == said], minlength=len(names))
    recalls = [wilson(int(found), int(rows)) for found, rows in zip(hits, support, strict=True) if rows]
    common = int(np.argmax(support))
    given = None if probabilities is None else as_probabilities(probabilities, len(y), len(names))
    return Quality(
        rows=len(y),
        classes=names,
        support=tuple(support.tolist()),
        predicted=tuple(predicted.tolist()),
        confusion=confusion_lines(y, said, len(names)),
        accuracy=wilson(int(hits.sum()), len(y)),
        balanced_accuracy=mean_of_independent(recalls),
        majority=float(support[common] / len(y)),
        majority_class=names[common],
        recall=ratios(hits, support),
        precision=ratios(hits, predicted),
        **({} if given is None else probability_figures(y, given)),
    )


def plain_name(name: Any) -> Name:
    """The name of a class as JSON keeps it."""
    value = name.item() if isinstance(name, np.generic) else name
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def class_indices(values: ArrayLike, classes: int, what: str) -> Indices:
    """The values as indices of classes, or a refusal in words."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"Give one {what} per row, got an array of shape {array.shape}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise DataError(f"Row {row} has no {what} ({array[row]}). Leave out rows whose class is not known.")
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and bool((array == np.floor(array)).all()))
    if array.size and not whole:
        raise DataError(f"A {what} must be the index of a class, 0 to {classes - 1}, got {array[0]!r}.")
    if array.size and not (array.min() >= 0 and array.max() < classes):
        row = int(np.argmax((array < 0) | (array >= classes)))
        raise DataError(f"The {what} of row {row} is {array[row]}, but there are {classes} classes, from 0.")
    return array.astype(np.int64, copy=False)


def as_probabilities(probabilities: ArrayLike, rows: int, classes: int) -> NDArray[Any]:
    """The probabilities, or a refusal in words where they are none. No copy is made of an array of numbers."""
    array = np.asarray(probabilities)
    if array.shape != (rows, classes):
        raise DataError(
            f"Probabilities of {rows:,} rows and {classes} classes have shape ({rows}, {classes}), got {array.shape}."
        )
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    lowest, sums = array.min(axis=1), array.sum(axis=1, dtype=np.float64)
    # A comparison with NaN is False, so that this also finds rows without numbers.
    good = (lowest >= -LEAST_PROBABILITY) & (np.abs(sums - 1) <= SUM_ERROR)
    if not good.all():
        row = int(np.argmin(good))
        found = "a value that is not a number" if not np.isfinite(sums[row]) else f"{lowest[row]:g} as its smallest"
        raise DataError(
            f"The probabilities of row {row} add up to {sums[row]:g}, with {found}; they must be at least 0 and add up "
            "to 1."
        )
    return array


def confusion_lines(truth: Indices, labels: Indices, classes: int) -> tuple[tuple[int, ...], ...]:
    """The confusion matrix; empty where it has too many classes to be looked at."""
    if classes > MOST_CONFUSED:
        return ()
    counts = np.bincount(truth * classes + labels, minlength=classes * classes).reshape(classes, classes)
    return tuple(map(tuple, counts.tolist()))


def ratios(hits: Indices, rows: Indices) -> tuple[float | None, ...]:
    """Hits by rows, None where there are no rows."""
    return tuple(int(found) / int(of) if of else None for found, of in zip(hits, rows, strict=True))


def probability_figures(truth: Indices, probabilities: NDArray[Any]) -> dict[str, Any]:
    """The fields of a `Quality` that need probabilities."""
    areas = class_areas(truth, probabilities)
    known = [each for each in areas if each is not None]
    right = np.maximum(probabilities[np.arange(len(truth)), truth].astype(np.float64), LEAST_PROBABILITY)
    shares = np.bincount(truth) / len(truth)
    shares = shares[shares > 0]
    return {
        "auc": mean_of_dependent(known) if known else None,
        "auc_by_class": tuple(None if each is None else each.value for each in areas),
        "log_loss": abs(float(np.mean(np.log(np.minimum(right, 1.0))))),
        "share_log_loss": abs(float(np.sum(shares * np.log(shares)))),
        **calibration(truth, probabilities),
    }


def class_areas(truth: Indices, probabilities: NDArray[Any]) -> list[Interval | None]:
    """The area under the ROC curve of each class against the rest; None where all rows or none are of it."""
    areas: list[Interval | None] = []
    support = np.bincount(truth, minlength=probabilities.shape[1])
    # The rows of each class, found by one sort: a mask per class would look at every row for every class.
    by_class = np.split(np.argsort(truth, kind="stable"), np.cumsum(support)[:-1])
    for place, rows in enumerate(support.tolist()):
        if not 0 < rows < len(truth):
            areas.append(None)
            continue
        mine, others = placements(probabilities[:, place], by_class[place])
        # Of whole numbers, so that a half is a half.
        area = float(mine.sum()) / (2 * len(mine) * len(others))
        error = delong_error(mine / (2 * len(others)), others / (2 * len(mine)))
        areas.append(widen(auc_interval(area, len(mine), len(others)), error))
    return areas


def placements(scores: NDArray[Any], positives: Indices) -> tuple[Indices, Indices]:
    """For each positive row how many others score lower, for each other how many positives score higher, twice.

    Twice, because equal scores count half.
    """
    mine, others = np.sort(scores[positives]), np.sort(np.delete(scores, positives))

    def below(one: NDArray[Any], other: NDArray[Any]) -> Indices:
        return np.asarray(np.searchsorted(other, one, "left") + np.searchsorted(other, one, "right"))

    return below(mine, others), 2 * len(mine) - below(others, mine)


def calibration(truth: Indices, probabilities: NDArray[Any]) -> dict[str, Any]:
    """The calibration curve of the likeliest class, and its mean distance from the diagonal."""
    likeliest = np.argmax(probabilities, axis=1)
    sure = np.minimum(probabilities[np.arange(len(truth)), likeliest].astype(np.float64), 1.0)
    places = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    rows = np.bincount(places, minlength=BINS)
    said = np.bincount(places, weights=sure, minlength=BINS)
    right = np.bincount(places, weights=likeliest == truth, minlength=BINS)
    curve = tuple(
        CalibrationBin(float(said[place] / rows[place]), float(right[place] / rows[place]), int(rows[place]))
        for place in np.flatnonzero(rows)
    )
    return {"calibration_error": float(np.abs(said - right).sum() / len(truth)), "calibration_curve": curve}
