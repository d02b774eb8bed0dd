"""Train one network. The plain way, which training a stack (see `stack`) must equal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedkt.errors import ConfigurationError, ModelError
from fedkt.models.neural.recipe import Correction, Optimiser, Recipe, batches
from fedkt.models.neural.rows import SHIFTS, shifted


@dataclass(frozen=True)
class Training:
    """One network to be trained in place."""

    module: nn.Module
    rows: Tensor
    """All rows it may look at, in the shape the network reads; several trainings may share them."""
    targets: Tensor
    """A class for each of its own rows (int64), or a probability for each class (float)."""
    rng: np.random.Generator
    """Decides the order of the rows, and what dropout drops."""
    own: NDArray[np.int64] | None = None
    """Which of `rows` are its own; None for all."""
    correction: Correction | None = None
    copies: bool = False
    """Whether it also learns every image shifted by one pixel, up, down, left and right, under the same target.

    Copies are made batch by batch, so that they need no memory; an epoch sees every one of them.
    """

    @property
    def n_rows(self) -> int:
        """How many rows it is trained on, copies included."""
        return len(self.targets) * (len(SHIFTS) if self.copies else 1)

    def batch(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """The rows at these places as the network reads them, and their targets."""
        own = places % len(self.targets) if self.copies else places
        # Row numbers are made beside the generators, on the processor, and go to the rows.
        device = self.rows.device
        rows = self.rows[(own if self.own is None else torch.from_numpy(self.own)[own]).to(device)]
        numbers = (places // len(self.targets)).to(device)
        return (shifted(rows, numbers) if self.copies else rows), self.targets[own.to(device)]


@dataclass
class Watch:
    """Held-out rows that say when to stop: after `patience` epochs without a lower loss, at the best weights."""

    rows: Tensor
    targets: Tensor
    patience: int
    best: float = float("inf")
    idle_epochs: int = 0
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    def over(self, module: nn.Module) -> bool:
        """Whether it is time to stop."""
        module.eval()
        with torch.no_grad():
            loss = float(nn.functional.cross_entropy(module(self.rows), self.targets))
        module.train()
        if loss < self.best:
            self.best, self.idle_epochs = loss, 0
            self.best_weights = {name: value.clone() for name, value in module.state_dict().items()}
        else:
            self.idle_epochs += 1
        return self.idle_epochs >= self.patience


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """One thread inside the block: networks are spread over processes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """What torch draws inside the block, there and on the processor; its global generators go on as if it had not."""
    cards = range(torch.cuda.device_count()) if device.type == "cuda" else ()
    with torch.random.fork_rng(devices=cards):
        torch.default_generator.manual_seed(seed)
        if cards:
            torch.cuda.manual_seed_all(seed)
        yield


def train(training: Training, recipe: Recipe, *, watch: Watch | None = None) -> int:
    """Train one network in place, batch after batch; the number of steps it took."""
    module = training.module
    module.train()
    weights = [each for each in module.parameters() if each.requires_grad]
    optimiser = Optimiser(weights, recipe)
    correction = GradientCorrection(training.correction, weights)
    has_batch_norm = any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in module.modules())
    if has_batch_norm and training.n_rows == 1:
        raise ModelError("a network with batch normalisation cannot be trained on a single row.")
    dropout_seed = int(training.rng.integers(2**63 - 1))
    order = batches(training.n_rows, recipe.batch_size, training.rng)
    steps = 0
    with seeded(dropout_seed, training.rows.device):
        for _ in range(recipe.epochs_for(training.n_rows)):
            plan = [torch.from_numpy(batch[batch >= 0]) for batch in next(order)]
            if has_batch_norm and len(plan) > 1 and len(plan[-1]) == 1:
                # Batch normalisation has no use for a batch of one row: it joins the batch before.
                plan[-2:] = [torch.cat(plan[-2:])]
            for batch in plan:
                optimiser.zero_grad()
                rows, targets = training.batch(batch)
                nn.functional.cross_entropy(module(rows), targets).backward()
                correction.apply()
                optimiser.step()
            steps += len(plan)
            if watch is not None and watch.over(module):
                break
    if watch is not None and watch.best_weights:
        module.load_state_dict(watch.best_weights)
    module.eval()
    return steps


def hold_out(training: Training, fraction: float, patience: int) -> tuple[Training, Watch]:
    """The training without the rows that say when to stop, and these."""
    if patience < 1:
        raise ConfigurationError(f"patience must be at least 1, got {patience!r}.")
    n_rows = len(training.targets)
    count = round(fraction * n_rows)
    if not 0 < count < n_rows:
        raise ConfigurationError(
            f"early_stopping would hold out {count} of {n_rows} rows (validation_fraction {fraction}). Switch "
            "it off, or change the fraction."
        )
    order = training.rng.permutation(n_rows)
    own, device = np.sort(order[count:]), training.rows.device
    test, rest = (torch.from_numpy(each).to(device) for each in (order[:count], own))
    watch = Watch(training.rows[test], training.targets[test], patience)
    return replace(training, own=own, targets=training.targets[rest]), watch


def trainable_part(correction: Correction, network: nn.Module) -> Correction:
    """A correction of all that a network stores, cut down to the weights that are trained."""
    trainable = {name for name, each in network.named_parameters() if each.requires_grad}
    names = list(network.state_dict())

    def part(values: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        if len(values) not in (0, len(names)):
            raise ConfigurationError(f"A correction has {len(values)} arrays, the network {len(names)}.")
        return tuple(each for name, each in zip(names, values, strict=False) if name in trainable)

    return replace(correction, towards=part(correction.towards), push=part(correction.push))


class GradientCorrection:
    """The correction of one network's gradients, or nothing."""

    def __init__(self, correction: Correction | None, weights: list[nn.Parameter]) -> None:
        own = correction or Correction()
        self.weights = weights
        self.pull = own.pull
        self.towards, self.push = (
            [tensor_like(each, weight) for each, weight in zip(part, weights, strict=True)] if part else []
            for part in (own.towards, own.push)
        )

    def apply(self) -> None:
        """Add the correction to the gradients."""
        with torch.no_grad():
            for place, weight in enumerate(self.weights):
                if weight.grad is None:
                    continue
                if self.towards:
                    weight.grad.add_(weight.detach() - self.towards[place], alpha=self.pull)
                if self.push:
                    weight.grad.add_(self.push[place])


def tensor_like(values: NDArray[np.float32], weight: Tensor) -> Tensor:
    """Values as a tensor beside a weight."""
    if tuple(values.shape) != tuple(weight.shape):
        raise ModelError(f"a correction of shape {values.shape} does not fit weights of shape {tuple(weight.shape)}.")
    return torch.as_tensor(values, dtype=weight.dtype, device=weight.device)


def check_finite(module: nn.Module) -> None:
    """Refuse a network whose training ran away."""
    if not all(bool(torch.isfinite(each).all()) for each in module.parameters()):
        raise ModelError("training ran away (weights are not finite). Lower learning_rate, or normalise the rows.")
