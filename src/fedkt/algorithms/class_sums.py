"""What a party sends of its rows: M = Σ φ(x)·onehot(y), and where no noise is added G = Σ φ(x)φ(x)ᵀ; and its checks.

Nobody outside the party can say whether sums are true, but sums of `n` rows keep bounds, since ‖φ‖² ≤ 2: row 0 of M has
whole numbers, the rows of each class; a class's column is no longer than √2 times that; the first row of G is the sum
of M over the classes; G is positive semidefinite, also after what the classes' means take of it (Σ M_k M_kᵀ / n_k), and
its trace lies between n and 2n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ModelError
from fedkt.models.base import take_rows
from fedkt.models.features.feature_map import LARGEST_ROW, Features
from fedkt.pooling import Matrix
from fedkt.system.threads import one_thread
from fedkt.votes import Labels

MOMENTS = "moments"
GRAM = "gram"
BLOCK = 8_192
"""Rows summed up at a time."""
MOST_VALUES = 2**23
"""Features that are in memory at a time."""
MOST_ROWS = 2.0**53
"""More rows of a class nobody has; larger whole numbers are not all doubles."""
SLACK = 1e-3
"""What rounding to float32 may cost, as a share of what a bound allows."""
LEAST_EIGENVALUE = -1e-6
"""As a share of the rows: float32 makes it of 0 at worst 2e-8, and a ridge leans on what is smaller than this."""
FAR = 10.0
"""Standard deviations that noise never has."""


@dataclass(frozen=True)
class ClassSums:
    """The sums of one party's rows, or of several parties'."""

    moments: Matrix
    gram: Matrix | None = None
    """None where it is not sent."""

    @property
    def counts(self) -> Matrix:
        """The rows of each class."""
        return np.asarray(self.moments[0])

    def __add__(self, other: ClassSums) -> ClassSums:
        gram = None if self.gram is None or other.gram is None else self.gram + other.gram
        return ClassSums(self.moments + other.moments, gram)

    def __sub__(self, other: ClassSums) -> ClassSums:
        gram = None if self.gram is None or other.gram is None else self.gram - other.gram
        return ClassSums(self.moments - other.moments, gram)


def sums_of(features: Features, X: Any, y: Labels, n_classes: int, *, gram: bool) -> ClassSums:
    """The sums of these rows; of none, zeros."""
    moments = np.zeros((features.width, n_classes))
    square = np.zeros((features.width, features.width)) if gram else None
    # A received map has a child process for all rows it is asked about at once, so that a few blocks share one; the
    # sums are made block by block all the same, since the order of additions is seen in their last bits.
    rows = BLOCK * max(1, MOST_VALUES // (BLOCK * features.width))
    for start in range(0, len(y), rows):
        found = features(take_rows(X, np.arange(start, min(start + rows, len(y)))))
        for place in range(0, len(found), BLOCK):
            block = found[place : place + BLOCK]
            with one_thread():
                moments += block.T @ np.eye(n_classes)[y[start + place : start + place + len(block)]]
                if square is not None:
                    square += block.T @ block
    return ClassSums(moments, square)


def packed(sums: ClassSums) -> dict[str, NDArray[Any]]:
    """The sums as arrays of a bundle: of G its upper half, in float32."""
    assert sums.gram is not None
    half = sums.gram[np.triu_indices(len(sums.gram))].astype(np.float32)
    return {MOMENTS: sums.moments, GRAM: half}


def unpacked(arrays: Mapping[str, NDArray[Any]], features: Features, n_classes: int) -> ClassSums:
    """The sums in a bundle's arrays, or a ModelError that says which bound they break."""
    width = features.width
    shapes = {MOMENTS: (width, n_classes), GRAM: (width * (width + 1) // 2,)}
    found = {name: np.shape(values) for name, values in arrays.items()}
    if found != shapes:
        raise ModelError(
            f"it sent arrays of the shapes {found}, not {shapes}. Everybody needs the same features, of the same "
            "public rows."
        )
    gram = np.zeros((width, width))
    gram[np.triu_indices(width)] = arrays[GRAM]
    gram += np.triu(gram, 1).T
    sums = ClassSums(np.asarray(arrays[MOMENTS], dtype=np.float64), gram)
    reason = broken_bound(sums)
    if reason:
        raise ModelError(f"{reason}: no rows have such sums.")
    return sums


def broken_moments(moments: Matrix) -> str:
    """What these sums by class are that no rows' can be; empty where they might be some rows'."""
    counts = moments[0]
    if not np.isfinite(moments).all():
        return "its sums are not all numbers"
    if (counts < 0).any() or (counts > MOST_ROWS).any() or (counts != np.rint(counts)).any():
        return "its class counts are not whole numbers of at least 0"
    # By their largest number first: the square of what is far too large is no number.
    long = np.abs(moments).max(axis=0) > LARGEST_ROW * counts * (1 + SLACK)
    if long.any() or (np.sqrt((moments**2).sum(axis=0)) > LARGEST_ROW * counts * (1 + SLACK)).any():
        return f"a class has a longer sum than {LARGEST_ROW:.3g} for each of its rows"
    return ""


def broken_bound(sums: ClassSums) -> str:
    """What these sums are that no rows' can be; empty where they might be some rows'."""
    moments, gram = sums.moments, sums.gram
    assert gram is not None
    if not np.isfinite(gram).all():
        return "its sums are not all numbers"
    reason = broken_moments(moments)
    if reason:
        return reason
    n = float(sums.counts.sum())
    room = SLACK * max(n, 1.0)
    if np.abs(gram[0] - moments.sum(axis=1)).max() > room:
        return "the first row of its Gram matrix is not its sum over the classes"
    if not n * (1 - SLACK) <= np.trace(gram) <= 2 * n * (1 + SLACK):
        return "the trace of its Gram matrix does not lie between its rows and twice as many"
    held = sums.counts > 0
    means = moments[:, held] / np.sqrt(sums.counts[held])
    # Where there is room for the means, G is positive semidefinite: it is the rest and they together.
    if not n or float(np.linalg.eigvalsh(gram - means @ means.T)[0]) >= LEAST_EIGENVALUE * n:
        return ""
    if float(np.linalg.eigvalsh(gram)[0]) < LEAST_EIGENVALUE * n:
        return "its Gram matrix is not positive semidefinite"
    return "its Gram matrix has no room for the means of its classes"


def noisy_fault(sums: ClassSums, sigma: float) -> str:
    """What these noisy sums are that no rows' with this noise can be, but by a chance of one in 10²⁰; else empty."""
    width = len(sums.moments)
    if (sums.counts < -FAR * sigma).any():
        return "it has fewer rows of a class than none, by more than the noise can take away."
    rows = np.maximum(sums.counts, 0.0) + FAR * sigma
    lengths = np.sqrt((sums.moments**2).sum(axis=0))
    if (lengths > LARGEST_ROW * rows + sigma * (np.sqrt(width) + FAR)).any():
        return "its sums are longer than its rows and the noise together can make them."
    return ""
