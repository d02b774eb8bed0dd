"""How a network is trained: everything that decides the steps, apart from rows and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedkt.errors import ConfigurationError

OPTIMISERS = ("adam", "adamw", "sgd")
"""Optimisers that treat every weight by itself: only these mean the same to a stack as to one network."""

# The first optimiser of a process makes torch import much more of itself and keeps its callers' frames alive, with all
# the rows in them. So the first one is made here, where there are no rows.
torch.optim.SGD([torch.zeros(1)], lr=1.0)


@dataclass(frozen=True)
class Recipe:
    """Epochs, batches and optimiser."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    optimiser: str
    momentum: float

    def check(self) -> None:
        """Refuse what cannot work."""
        for what, value, least in (("epochs", self.epochs, 0), ("batch_size", self.batch_size, 1)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ConfigurationError(f"{what} must be a whole number of at least {least}, got {value!r}.")
        if not self.learning_rate > 0:
            raise ConfigurationError(f"learning_rate must be above 0, got {self.learning_rate!r}.")
        if not self.weight_decay >= 0 or not 0 <= self.momentum < 1:
            raise ConfigurationError(
                f"weight_decay must be at least 0 and momentum between 0 and 1, got {self.weight_decay!r} and "
                f"{self.momentum!r}."
            )
        if self.optimiser not in OPTIMISERS:
            raise ConfigurationError(
                f"There is no optimiser {self.optimiser!r}. Choose one of: {', '.join(OPTIMISERS)}."
            )

    def optimise(self, weights: Sequence[Tensor]) -> torch.optim.Optimizer:
        """The optimiser over these weights."""
        if self.optimiser == "sgd":
            return torch.optim.SGD(
                weights, lr=self.learning_rate, weight_decay=self.weight_decay, momentum=self.momentum, fused=True
            )
        kind = torch.optim.Adam if self.optimiser == "adam" else torch.optim.AdamW
        return kind(weights, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True)

    def steps(self, n_rows: int) -> int:
        """Optimiser steps of a whole training on this many rows."""
        return self.epochs * -(-n_rows // self.batch_size)


@dataclass(frozen=True)
class Correction:
    """What is added to every gradient: pull · (weights − towards) + push.

    FedProx pulls towards the model that was broadcast, SCAFFOLD pushes by the difference of two control variates.
    """

    pull: float = 0.0
    towards: tuple[NDArray[Any], ...] = ()
    push: tuple[NDArray[Any], ...] = ()


def batches(n_rows: int, batch_size: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Row numbers of one epoch after another, shuffled anew each time: (steps, batch_size), −1 where no row is left."""
    steps = -(-n_rows // batch_size)
    while True:
        epoch = np.full(steps * batch_size, -1, dtype=np.int64)
        epoch[:n_rows] = rng.permutation(n_rows)
        yield epoch.reshape(steps, batch_size)
