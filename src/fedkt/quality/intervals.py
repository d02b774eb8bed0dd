"""Intervals of 95 % for the figures of a model, chosen to hold with few rows and at 0 and 1 too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
"""Of a normal distribution, 95 % lie within so many standard deviations."""


@dataclass(frozen=True)
class Interval:
    """A figure measured on some rows, and the range in which its value for all such rows lies with 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As a person would write it."""
        return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


def wilson(hits: int, rows: int) -> Interval:
    """A share with Wilson's interval (1927): never outside 0 … 1, and not a point where all or none are hits."""
    share = hits / rows
    spread = Z * math.sqrt(share * (1 - share) / rows + Z * Z / (4 * rows * rows))
    middle, scale = share + Z * Z / (2 * rows), 1 + Z * Z / rows
    return clip_interval(share, (middle - spread) / scale, (middle + spread) / scale)


def mean_of_independent(parts: Sequence[Interval]) -> Interval:
    """The mean of figures that were measured on different rows: distances to the bounds add up as squares do.

    Zou and Donner (2008), for figures whose intervals are not symmetric.
    """
    value = sum(part.value for part in parts) / len(parts)
    below = math.sqrt(sum((part.value - part.low) ** 2 for part in parts)) / len(parts)
    above = math.sqrt(sum((part.high - part.value) ** 2 for part in parts)) / len(parts)
    return clip_interval(value, value - below, value + above)


def mean_of_dependent(parts: Sequence[Interval]) -> Interval:
    """The mean of figures of the same rows: the means of their bounds, which holds however they depend."""
    values, lows, highs = zip(*((part.value, part.low, part.high) for part in parts), strict=True)
    return clip_interval(*(sum(each) / len(parts) for each in (values, lows, highs)))


def auc_interval(auc: float, positives: int, negatives: int) -> Interval:
    """The area under a ROC curve with Newcombe's interval (2006, method 5).

    All values whose distance from `auc` is within 1.96 of the standard errors that Hanley and McNeil (1982) give *at
    that value*. It is to their interval what Wilson's is to the plain one, so that an area of 1 on ten rows is not
    taken for certain.
    """
    return clip_interval(auc, auc_bound(auc, 0.0, positives, negatives), auc_bound(auc, 1.0, positives, negatives))


def auc_bound(auc: float, end: float, positives: int, negatives: int) -> float:
    """The value between `auc` and `end` that is just as far from `auc` as its standard errors allow."""
    inside, outside = auc, end
    for _ in range(60):
        middle = (inside + outside) / 2
        if abs(auc - middle) <= Z * auc_error(middle, positives, negatives):
            inside = middle
        else:
            outside = middle
    return (inside + outside) / 2


def auc_error(auc: float, positives: int, negatives: int) -> float:
    """The standard error of an area under a ROC curve (Hanley and McNeil 1982), groups taken as equally large."""
    more = (positives + negatives) / 2 - 1
    variance = auc * (1 - auc) * (1 + more * (1 - auc) / (2 - auc) + more * auc / (1 + auc))
    return math.sqrt(max(variance, 0.0) / (positives * negatives))


def delong_error(positives: NDArray[np.float64], negatives: NDArray[np.float64]) -> float:
    """The standard error of an area by how far its rows' placements scatter (DeLong, DeLong and Clarke-Pearson 1988).

    Newcombe's knows only the area: where the scores of one class scatter more than those of the other it is too small.
    """
    return math.sqrt(sum(variance_of_mean(each) for each in (positives, negatives)))


def variance_of_mean(values: NDArray[np.float64]) -> float:
    """Of as many values; 0 of a single one, which does not scatter."""
    return float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else 0.0


def widen(interval: Interval, error: float) -> Interval:
    """The interval, with all that lies within 95 % for this standard error too."""
    value = interval.value
    return clip_interval(value, min(interval.low, value - Z * error), max(interval.high, value + Z * error))


def clip_interval(value: float, low: float, high: float) -> Interval:
    """The interval within 0 … 1; rounding must not put a bound on the wrong side of the value."""
    return Interval(value, max(0.0, min(low, value)), min(1.0, max(high, value)))
