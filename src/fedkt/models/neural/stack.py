"""Train many networks of one kind as one stack: a step of the stack is one step of each of them.

Their weights are stacked, so that one batched product takes the place of many small ones: written out for perceptrons
(`dense`), by torch.func for all others (`traced`). Networks take as many steps as they have batches. They stand in the
order of their steps, the longest first; the ones still training are then always the first few of the stack, and a
finished network's weights and optimiser state are not touched any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import stack_module_state

from fedkt.errors import ModelError
from fedkt.models.neural.dense import Dense, layers_of
from fedkt.models.neural.networks import Shape
from fedkt.models.neural.recipe import Optimiser, Recipe, batches
from fedkt.models.neural.traced import Traced
from fedkt.models.neural.training import Training, tensor_like

STACK_BYTES = 8 * 2**20
"""Most memory of a stack's weights, gradients and optimiser state: about what stays in a processor's cache."""
CHUNK_STEPS = 64
"""Steps whose row numbers are laid out at once."""

SLOW_IN_STACKS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.RNNBase)
"""Layers that gain nothing in a stack (benchmarks/stacks.py): a stack of convolutions is a slower, grouped one."""
ONE_BY_ONE = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd, nn.AlphaDropout)
"""Layers whose result depends on more than the network's own weights and rows."""


def reason_against_stack(module: nn.Module, other: nn.Module, shape: Shape) -> str | None:
    """Why networks like these two are trained one by one, None where a stack does the same faster."""
    name = type(module).__name__
    for part in module.modules():
        if isinstance(part, ONE_BY_ONE):
            return f"{type(part).__name__} does not mean the same in a stack"
        if isinstance(part, SLOW_IN_STACKS):
            return f"{type(part).__name__} is not faster in a stack"
    if any(True for _ in module.buffers()):
        return f"{name} keeps a state besides its weights"
    if not all(each.requires_grad for each in module.parameters()):
        return f"{name} has frozen weights"
    if len(list(module.parameters())) != len(list(module.named_parameters(remove_duplicate=False))):
        return f"{name} uses a weight in two places"
    try:
        return fault_of_a_stack(module, other, shape)
    except Exception as reason:
        # A stranger's module may do anything in its forward; what a stack cannot follow is trained alone.
        return f"{name} cannot be stacked ({type(reason).__name__}: {str(reason).splitlines()[0][:120]})"


def fault_of_a_stack(module: nn.Module, other: nn.Module, shape: Shape) -> str | None:
    """What is wrong with a small stack of the two: it must say what they say, and of each row by itself."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn((2, 3, *shape), generator=generator, dtype=next(module.parameters()).dtype)
    weights, _ = stack_module_state([module, other])
    together = Traced(module).forward(weights, rows)
    together.sum().backward()
    for place, each in enumerate((module.train(), other.train())):
        if not torch.allclose(each(rows[place]), together[place], rtol=1e-4, atol=1e-5):
            return f"{type(module).__name__} says something else in a stack"
        if not torch.allclose(each(rows[place, :1]), together[place, :1], rtol=1e-4, atol=1e-5):
            return f"{type(module).__name__} looks at the other rows of a batch"
    return None


def most_in_a_stack(module: nn.Module) -> int:
    """How many networks of this kind one stack holds."""
    # Weights, gradients and Adam's two moments.
    bytes_each = 4 * sum(each.numel() * each.element_size() for each in module.parameters())
    return max(1, STACK_BYTES // max(bytes_each, 1))


def train_stack(trainings: Sequence[Training], recipe: Recipe) -> None:
    """Train all networks in place; each ends as if it had been trained alone, up to floating-point round-off."""
    longest_first = sorted(trainings, key=lambda each: -recipe.steps(each.n_rows))
    stack = Stack(longest_first, recipe)
    lengths = [recipe.steps(each.n_rows) for each in longest_first]
    done = 0
    for length in sorted(set(lengths)):
        active = sum(each >= length for each in lengths)
        stack.narrow(active)
        while done < length:
            count = min(CHUNK_STEPS, length - done)
            stack.advance(count)
            done += count
    stack.hand_back()


class Stack:
    """The stacked weights of the networks still in training, and the stream of batches of each."""

    def __init__(self, trainings: Sequence[Training], recipe: Recipe) -> None:
        self.trainings = trainings
        self.recipe = recipe
        for each in trainings:
            # As `train` does, so that both shuffle the rows alike: the first draw is the seed of dropout.
            each.rng.integers(2**63 - 1)
        self.streams = [BatchStream(each, recipe.batch_size) for each in trainings]
        self.rows, self.offsets = join_rows(trainings)
        stacked, _ = stack_module_state([each.module for each in trainings])
        layers = layers_of(trainings[0].module, self.rows.dim() == 2)
        self.gradients = Traced(trainings[0].module) if layers is None else Dense(layers)
        self.weights = self.gradients.lay_out(stacked, self.rows[torch.zeros((len(trainings), 2), dtype=torch.int64)])
        self.pull, self.towards, self.push = stack_corrections(trainings, list(stacked))
        self.leaves: dict[str, Tensor] = {}
        self.optimiser: Optimiser | None = None

    def narrow(self, active: int) -> None:
        """Go on with the first `active` networks; the optimiser's state of these goes on with them."""
        leaves = {name: value[:active].detach().requires_grad_() for name, value in self.weights.items()}
        optimiser = Optimiser(list(leaves.values()), self.recipe)
        if self.optimiser is not None:
            for name, leaf in leaves.items():
                before = self.optimiser.state.get(self.leaves[name], {})
                # Moments have the shape of the weights; the number of steps is one number for all.
                optimiser.state[leaf] = {
                    key: value[:active] if isinstance(value, Tensor) and value.dim() else value
                    for key, value in before.items()
                }
        self.leaves, self.optimiser = leaves, optimiser
        self.active = active
        self.batch = self.rows.new_empty((active * self.recipe.batch_size, *self.rows.shape[1:]))

    def advance(self, count: int) -> None:
        """Take `count` steps."""
        assert self.optimiser is not None
        places, targets, share = self.next_batches(count)
        for step in range(count):
            torch.index_select(self.rows, 0, places[step].view(-1), out=self.batch)
            rows = self.batch.view(self.active, self.recipe.batch_size, *self.rows.shape[1:])
            self.gradients.fill(self.leaves, rows, targets[step], share[step])
            self.correct()
            self.optimiser.step()

    def next_batches(self, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """For the next steps of every network: which rows, their targets, and the share of each in its batch's loss.

        A short batch is filled up with rows whose share is 0.
        """
        active = self.trainings[: self.active]
        batch = np.stack([stream.take(count) for stream in self.streams[: self.active]], axis=1)
        share = torch.from_numpy(batch >= 0).to(self.rows)
        share /= share.sum(dim=2, keepdim=True)
        rows = np.maximum(batch, 0)
        places = np.empty_like(rows)
        targets = []
        for number, each in enumerate(active):
            own = rows[:, number]
            places[:, number] = self.offsets[number] + (own if each.own is None else each.own[own])
            targets.append(each.targets[torch.from_numpy(own)])
        return torch.from_numpy(places), torch.stack(targets, dim=1), share

    def correct(self) -> None:
        """Add every network's correction to its gradients."""
        if self.pull is None and not self.push:
            return
        with torch.no_grad():
            for name, leaf in self.leaves.items():
                if leaf.grad is None:
                    continue
                if self.pull is not None:
                    pull = self.pull[: self.active].view(-1, *[1] * (leaf.dim() - 1))
                    gradient, weight = (self.gradients.natural(name, each) for each in (leaf.grad, leaf.detach()))
                    gradient.add_(pull * (weight - self.towards[name][: self.active]))
                if self.push:
                    self.gradients.natural(name, leaf.grad).add_(self.push[name][: self.active])

    def hand_back(self) -> None:
        """Write the trained weights into the networks they came from."""
        for place, each in enumerate(self.trainings):
            with torch.no_grad():
                for name, parameter in each.module.named_parameters():
                    parameter.copy_(self.gradients.natural(name, self.weights[name])[place])
            each.module.eval()


class BatchStream:
    """The batches of one network, as many at a time as are asked for."""

    def __init__(self, training: Training, batch_size: int) -> None:
        self.epochs = batches(training.n_rows, batch_size, training.rng)
        self.rest: NDArray[np.int64] = np.empty((0, batch_size), dtype=np.int64)

    def take(self, count: int) -> NDArray[np.int64]:
        """The next `count` batches: (count, batch size), −1 where no row is left."""
        parts = [self.rest]
        while sum(map(len, parts)) < count:
            parts.append(next(self.epochs))
        queue = np.concatenate(parts)
        self.rest = queue[count:]
        return queue[:count]


def join_rows(trainings: Sequence[Training]) -> tuple[Tensor, list[int]]:
    """All rows of the networks in one tensor, shared ones once, and where each network's rows begin."""
    starts: dict[int, int] = {}
    parts: list[Tensor] = []
    end = 0
    for each in trainings:
        if id(each.rows) not in starts:
            starts[id(each.rows)] = end
            parts.append(each.rows)
            end += len(each.rows)
    return (parts[0] if len(parts) == 1 else torch.cat(parts)), [starts[id(each.rows)] for each in trainings]


def stack_corrections(
    trainings: Sequence[Training], names: Sequence[str]
) -> tuple[Tensor | None, dict[str, Tensor], dict[str, Tensor]]:
    """The corrections of all networks, weight by weight; None and empty where there are none."""
    corrections = [each.correction for each in trainings]
    weights = [list(each.module.parameters()) for each in trainings]
    pulls = [each is not None and bool(each.towards) for each in corrections]
    pushes = [each is not None and bool(each.push) for each in corrections]
    if (any(pulls) and not all(pulls)) or (any(pushes) and not all(pushes)):
        raise ModelError("in a stack either every network's gradients are corrected, or none.")

    def stacked(parts: list[tuple[NDArray[Any], ...]]) -> dict[str, Tensor]:
        return {
            name: torch.stack([tensor_like(part[place], own[place]) for part, own in zip(parts, weights, strict=True)])
            for place, name in enumerate(names)
        }

    kind = weights[0][0].dtype
    pull = torch.tensor([each.pull for each in corrections if each is not None], dtype=kind) if any(pulls) else None
    towards = stacked([each.towards for each in corrections if each is not None]) if any(pulls) else {}
    push = stacked([each.push for each in corrections if each is not None]) if any(pushes) else {}
    return pull, towards, push
