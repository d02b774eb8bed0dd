"""The gradients of a stack of any networks: torch.func runs their forward pass together, autograd goes back."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call


class Traced:
    """Gradients of stacked networks of one kind."""

    def __init__(self, module: nn.Module) -> None:
        shell = copy.deepcopy(module).to("meta").train()
        self.forward = torch.func.vmap(lambda weights, rows: functional_call(shell, weights, (rows,)))
        """Stacked weights and (networks, batch, …) rows to logits."""
        self.back: dict[str, tuple[int, ...]] = {}

    def lay_out(self, weights: dict[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
        """Each weight in the memory order in which its gradient arrives.

        Otherwise torch copies every gradient into the order of its weight, which takes a third of the time.
        """
        leaves = {name: value.detach().requires_grad_() for name, value in weights.items()}
        loss = self.forward(leaves, rows).sum()
        gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        stored = {}
        for (name, value), gradient in zip(weights.items(), gradients, strict=True):
            axes = memory_order(value if gradient is None else gradient)
            stored[name] = value.detach().permute(axes).contiguous()
            self.back[name] = tuple(np.argsort(axes).tolist())
        return stored

    def natural(self, name: str, stored: Tensor) -> Tensor:
        """A view of a stored weight, or of its gradient, with the axes in the network's order."""
        return stored.permute(self.back[name])

    def fill(self, weights: dict[str, Tensor], rows: Tensor, targets: Tensor, share: Tensor) -> None:
        """Write every stored weight's gradient into its `grad`: of cross entropy, each row with a share of the loss."""
        for each in weights.values():
            each.grad = None
        logits = self.forward({name: self.natural(name, each) for name, each in weights.items()}, rows)
        losses = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(0, 1), reduction="none")
        torch.autograd.backward((losses * share.flatten()).sum(), inputs=list(weights.values()))


def memory_order(value: Tensor) -> tuple[int, ...]:
    """The axes of a tensor from the outermost to the innermost in memory, with the networks outermost."""
    return (0, *sorted(range(1, value.dim()), key=lambda axis: value.stride(axis), reverse=True))
