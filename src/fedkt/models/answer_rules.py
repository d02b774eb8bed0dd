"""What a model may answer, received or trained here: probabilities that are such, and labels that agree with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SUM_GAP = 1e-3
"""How far probabilities may be from such by rounding: below 0, or from 1 in their sum over the classes."""
LABEL_GAP = 1e-4
"""How much less probable than the likeliest class a model's label may be.

Both are float32 of the same sums, which round by about 1e-6; a row on which they differ by less than this has no
likeliest class worth the name. Whoever says one thing as label and another as probability is off by far more.
"""


def contradiction(labels: NDArray[np.int64], probabilities: NDArray[np.float32]) -> str:
    """What is wrong where a model names another class than the one it finds likeliest; empty if nothing is."""
    own = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
    rows = np.flatnonzero(own < probabilities.max(axis=1, initial=0) - LABEL_GAP)
    if not len(rows):
        return ""
    first = int(rows[0])
    likeliest = int(probabilities[first].argmax())
    return (
        f"it gives the label {labels[first]} to row {first} but finds {likeliest} likelier, and so on {len(rows)} "
        f"of {len(labels)} rows."
    )


def check_probabilities(numbers: NDArray[Any], *, first: int = 0) -> NDArray[np.float32] | str:
    """The probabilities of rows × classes, each row's sum made 1; or what is wrong with them, counting from `first`."""
    table = np.asarray(numbers, dtype=np.float64)
    # Written so that NaN is refused too.
    fine = (table >= -SUM_GAP).all(axis=1) & (np.abs(table.sum(axis=1) - 1) <= SUM_GAP)
    if not fine.all():
        return f"what it says about row {first + int(np.flatnonzero(~fine)[0])} are no probabilities."
    shares = np.maximum(table, 0)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float32)
