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

LEAST_EPOCHS, LEAST_STEPS = 10, 1_000
"""How long a network is trained that nobody gave a number of epochs.

Ten epochs are plenty for a student on thousands of public rows and far too few for a teacher on a fraction of a
party's: a thousand rows are then seen in a few hundred steps, and the network has hardly moved.
"""


@dataclass(frozen=True)
class Recipe:
    """Epochs, batches and optimiser."""

    epochs: int | None
    """None is LEAST_EPOCHS, and more where these would be fewer than LEAST_STEPS."""
    batch_size: int
    learning_rate: float
    weight_decay: float
    optimiser: str
    momentum: float

    def check(self) -> None:
        """Refuse what cannot work."""
        epochs = LEAST_EPOCHS if self.epochs is None else self.epochs
        for what, value, least in (("epochs", epochs, 0), ("batch_size", self.batch_size, 1)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ConfigurationError(f"{what} must be a whole number of at least {least}, got {value!r}.")
        for what, number in (
            ("learning_rate", self.learning_rate),
            ("weight_decay", self.weight_decay),
            ("momentum", self.momentum),
        ):
            if isinstance(number, bool) or not isinstance(number, (int, float, np.integer, np.floating)):
                raise ConfigurationError(f"{what} must be a number, got {number!r}.")
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

    def epochs_for(self, n_rows: int) -> int:
        """How often this many rows are seen."""
        return max(LEAST_EPOCHS, -(-LEAST_STEPS // self.batches(n_rows))) if self.epochs is None else self.epochs

    def batches(self, n_rows: int) -> int:
        """Optimiser steps of an epoch on this many rows."""
        return -(-n_rows // self.batch_size)

    def steps(self, n_rows: int) -> int:
        """Optimiser steps of a whole training on this many rows."""
        return self.epochs_for(n_rows) * self.batches(n_rows)


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


class Optimiser:
    """torch's own fused steps without torch.optim.Optimizer.

    The first use of that class in a process imports a compiler (1.5 s, 70 MB) and keeps its callers' frames alive, with
    all the rows in them.
    """

    def __init__(self, weights: Sequence[Tensor], recipe: Recipe) -> None:
        self.weights = list(weights)
        self.recipe = recipe
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for each in self.weights:
            each.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every weight that has a gradient."""
        weights = [each for each in self.weights if each.grad is not None]
        gradients = [each.grad for each in weights if each.grad is not None]
        for each in weights:
            if each not in self.state:
                self.state[each] = self.new_state(each)
        states = [self.state[each] for each in weights]
        update = self.sgd if self.recipe.optimiser == "sgd" else self.adam
        update(weights, gradients, states)

    def new_state(self, weight: Tensor) -> dict[str, Tensor]:
        """What the optimiser remembers of a weight before its first step."""
        if self.recipe.optimiser == "sgd":
            return {"momentum": torch.zeros_like(weight)} if self.recipe.momentum else {}
        return {
            "step": torch.zeros((), device=weight.device),
            "mean": torch.zeros_like(weight),
            "square": torch.zeros_like(weight),
        }

    def adam(self, weights: list[Tensor], gradients: list[Tensor], states: list[dict[str, Tensor]]) -> None:
        """Adam, or AdamW."""
        from torch.optim.adam import adam

        adam(
            weights,
            gradients,
            [each["mean"] for each in states],
            [each["square"] for each in states],
            [],
            [each["step"] for each in states],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.recipe.learning_rate,
            weight_decay=self.recipe.weight_decay,
            eps=1e-8,
            maximize=False,
            decoupled_weight_decay=self.recipe.optimiser == "adamw",
        )

    def sgd(self, weights: list[Tensor], gradients: list[Tensor], states: list[dict[str, Tensor]]) -> None:
        """SGD with L2 decay and (heavy-ball) momentum, which starts from 0."""
        for weight, gradient, state in zip(weights, gradients, states, strict=True):
            gradient.add_(weight, alpha=self.recipe.weight_decay)
            if "momentum" in state:
                gradient = state["momentum"].mul_(self.recipe.momentum).add_(gradient)
            weight.sub_(gradient, alpha=self.recipe.learning_rate)
