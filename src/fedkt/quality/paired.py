"""Two models on the same rows: how much more often one is right."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedkt.errors import DataError
from fedkt.quality.intervals import Z


@dataclass(frozen=True)
class Difference:
    """Our accuracy less theirs on the same rows, with an interval of 95 %."""

    value: float
    low: float
    high: float
    wins: int
    """Rows that only our model gets right."""
    losses: int
    """Rows that only theirs gets right."""
    rows: int

    @property
    def better(self) -> bool:
        """Whether ours is better beyond chance."""
        return self.low > 0

    @property
    def worse(self) -> bool:
        """Whether ours is worse beyond chance."""
        return self.high < 0

    def as_dict(self) -> dict[str, Any]:
        """The difference as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        """In points, as a person would write it."""
        low, high = f"{100 * self.low:+.1f}", f"{100 * self.high:+.1f}"
        return f"{100 * self.value:+.1f} points ({low} to {high})"


def compare_accuracy(truth: ArrayLike, ours: ArrayLike, theirs: ArrayLike) -> Difference:
    """How much more often our labels are right than theirs, row by row.

    Rows that both get right, or both wrong, tell nothing about who is better, which makes this sharper than two
    intervals side by side. The interval is that of Agresti and Min (2005): half a row added to each of the four cells,
    so that it holds with few rows and is no point where the models agree.
    """
    y, mine, others = (np.asarray(each) for each in (truth, ours, theirs))
    if not y.ndim == 1 or not len(y) or y.shape != mine.shape or y.shape != others.shape:
        raise DataError(
            f"Two models are compared on the same rows, at least one; got {y.shape} true classes and "
            f"{mine.shape} and {others.shape} labels."
        )
    right, rival = mine == y, others == y
    wins, losses, rows = int(np.sum(right & ~rival)), int(np.sum(rival & ~right)), len(y)
    more, apart = rows + 2, wins + losses + 1
    middle = (wins - losses) / more
    spread = Z * math.sqrt(apart - (wins - losses) ** 2 / more) / more
    value = (wins - losses) / rows
    low, high = max(-1.0, min(middle - spread, value)), min(1.0, max(middle + spread, value))
    return Difference(value, low, high, wins, losses, rows)
