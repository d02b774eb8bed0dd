"""The only door through which labels leave a vote.

At level L0 the bare winners leave and nothing is protected: epsilon is infinite. The levels with noise (L1 at the
server, L2 at the parties) come through the same door once each noise has a price; until then they are refused, because
a noise nobody accounts for protects nobody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.votes import Labels, winners

LEVELS = ("L0", "L1", "L2")


def check_level(level: str, noise: Any) -> None:
    """Refuse, in words, a privacy level that this version cannot keep."""
    if level not in LEVELS:
        raise ConfigurationError(f"There is no privacy level {level!r}. Choose one of: {', '.join(LEVELS)}.")
    if level != "L0":
        raise ConfigurationError(
            f"Privacy level {level} is not available in this version: no noise would be added and nothing would be "
            "protected. Use level L0, which promises no privacy."
        )
    if noise is not None:
        raise ConfigurationError(
            f"Level L0 adds no noise, but a noise was given ({noise!r}). Leave `noise` out at level L0."
        )


@dataclass
class Ledger:
    """What has been released so far, and what it costs."""

    queries: int = field(default=0, init=False)
    """Labels released."""

    def release(self, votes: ArrayLike, noise: Any = None, *, rng: np.random.Generator) -> Labels:
        """The winners of a vote, ties broken at random, NO_VOTE where nobody voted."""
        if noise is not None:
            raise PrivacyError(f"No price is known for the noise {noise!r}; nothing was released.")
        counts = np.asarray(votes)
        self.queries += len(counts)
        return winners(counts, rng)

    @property
    def epsilon(self) -> float:
        """The privacy loss so far: none before the first release, infinite after a release without noise."""
        return math.inf if self.queries else 0.0
