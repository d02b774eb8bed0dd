"""What every noisy vote shares: checked scales and counts, and the arg max of noisy counts in blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.privacy.price import Floats

BLOCK = 1 << 18
"""Noisy counts held at a time, so that memory does not grow with the number of queries."""


LARGEST = 1e12
"""No parameter of a noise is larger, nor smaller than one in so many: beyond it doubles no longer tell votes apart."""


def positive(mechanism: str, parameter: str, value: object) -> float:
    """The parameter as a float, refused in words unless it is above zero and of a size that noise can have."""
    number = finite(mechanism, parameter, value)
    if number <= 0:
        raise ConfigurationError(f"The {parameter} of {mechanism} noise must be above zero, got {value!r}.")
    if number < 1 / LARGEST:
        raise ConfigurationError(
            f"The {parameter} of {mechanism} noise must lie between {1 / LARGEST:g} and {LARGEST:g}, got {value!r}."
        )
    return number


def finite(mechanism: str, parameter: str, value: object) -> float:
    """The parameter as a float, refused in words unless it is a number of a size that noise can have."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ConfigurationError(f"The {parameter} of {mechanism} noise is a number, got {value!r}.")
    number = float(value)
    if not math.isfinite(number):
        raise ConfigurationError(f"The {parameter} of {mechanism} noise must be finite, got {value!r}.")
    if abs(number) > LARGEST:
        raise ConfigurationError(f"The {parameter} of {mechanism} noise is at most {LARGEST:g}, got {value!r}.")
    return number


def counts(votes: ArrayLike) -> Floats:
    """Votes as an array of shape (queries, classes), refused unless every count is finite and not negative."""
    array = np.asarray(votes, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 2:
        raise PrivacyError(
            f"Votes are counts of shape (queries, classes) with at least two classes, got shape {array.shape}."
        )
    # The message says nothing about the counts themselves: they are confidential.
    if not np.isfinite(array).all() or (array < 0).any():
        raise PrivacyError("Votes are counts: finite numbers, none below zero. Nothing was released.")
    return array


def orders_above_one(orders: ArrayLike) -> Floats:
    """Rényi orders as floats, refused unless every one is above 1."""
    array = np.asarray(orders, dtype=np.float64)
    if not (array > 1).all() or not np.isfinite(array).all():
        raise PrivacyError(f"Rényi orders are finite numbers above 1, got {orders!r}.")
    return array


def noisy_winners(votes: ArrayLike, draw: Callable[[tuple[int, int]], Floats]) -> NDArray[np.int64]:
    """The class with the largest noisy count of every row, also of rows nobody voted on.

    Every row gets its noise whatever its votes: a row left out because nobody voted would tell that nobody voted.
    """
    known = counts(votes)
    rows, classes = known.shape
    step = max(1, BLOCK // classes)
    labels = np.empty(rows, dtype=np.int64)
    for start in range(0, rows, step):
        block = known[start : start + step]
        # Noise is continuous: two noisy counts are equal with probability below 2⁻⁴⁰, so no tie needs breaking.
        labels[start : start + step] = np.argmax(block + draw((len(block), classes)), axis=1)
    return labels


def one_row(votes: ArrayLike) -> Floats:
    """The counts of one query, refused unless they are a plain list of at least two."""
    return np.asarray(counts(np.asarray(votes, dtype=np.float64)[None])[0])
