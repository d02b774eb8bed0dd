"""The gradients of a stack of perceptrons, written out.

Small products are over so quickly that autograd's bookkeeping, and fresh memory for every gradient, cost a quarter of
the time. Where a network is linear layers with plain functions between them, its gradients are a handful of products
into memory that is kept from one step to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Function:
    """What follows a linear layer."""

    apply: Callable[[Tensor], Tensor]
    """In place."""
    slope: Callable[[Tensor, Tensor], Tensor]
    """The slope of the loss before it, from the slope behind it and its result."""


FUNCTIONS = {
    nn.ReLU: Function(torch.relu_, lambda slope, result: torch.ops.aten.threshold_backward(slope, result, 0)),
    nn.Tanh: Function(torch.tanh_, torch.ops.aten.tanh_backward),
    nn.Sigmoid: Function(torch.sigmoid_, torch.ops.aten.sigmoid_backward),
}


@dataclass(frozen=True)
class Layer:
    """A linear layer: where its weights are found, and what follows it."""

    name: str
    bias: bool
    function: Function | None = None


def layers_of(module: nn.Module, flat: bool) -> list[Layer] | None:
    """The layers, None where the network is more than that. `flat` says that its rows are a table's."""
    if type(module) is not nn.Sequential or _has_hooks(module):
        return None
    layers: list[Layer] = []
    for name, part in module._modules.items():
        if part is None or _has_hooks(part):
            return None
        if type(part) is nn.Linear:
            layers.append(Layer(name, part.bias is not None))
        elif type(part) in FUNCTIONS and layers and layers[-1].function is None:
            layers[-1] = replace(layers[-1], function=FUNCTIONS[type(part)])
        elif type(part) is nn.Flatten and (part.start_dim, part.end_dim) == (1, -1) and not layers:
            flat = True
        else:
            return None
    return layers if flat and layers else None


def _has_hooks(part: nn.Module) -> bool:
    return bool(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks)


class Dense:
    """Gradients of stacked perceptrons."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers

    def lay_out(self, weights: dict[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
        """The weights as they are to be stored."""
        return {name: value.detach().clone() for name, value in weights.items()}

    def natural(self, name: str, stored: Tensor) -> Tensor:
        """A stored weight, or its gradient, with the axes in the network's order."""
        return stored

    @torch.no_grad()
    def fill(self, weights: dict[str, Tensor], rows: Tensor, targets: Tensor, share: Tensor) -> None:
        """Write every weight's gradient into its `grad`: of cross entropy, where each row has a share of the loss."""
        # A batch is the columns of a matrix here, which is the faster order of all three products.
        values = rows.flatten(2).transpose(1, 2)
        inputs: list[Tensor] = []
        for layer in self.layers:
            inputs.append(values)
            weight = weights[f"{layer.name}.weight"]
            bias = weights[f"{layer.name}.bias"].unsqueeze(2) if layer.bias else None
            values = weight.bmm(values) if bias is None else torch.baddbmm(bias, weight, values)
            if layer.function is not None:
                values = layer.function.apply(values)
        results = [*inputs[1:], values]
        slope = loss_slope(values, targets, share)
        for place in reversed(range(len(self.layers))):
            layer = self.layers[place]
            if layer.function is not None:
                slope = layer.function.slope(slope, results[place])
            weight = weights[f"{layer.name}.weight"]
            torch.bmm(slope, inputs[place].transpose(1, 2), out=gradient_memory(weight))
            if layer.bias:
                torch.sum(slope, 2, out=gradient_memory(weights[f"{layer.name}.bias"]))
            if place:
                slope = weight.transpose(1, 2).bmm(slope)


def loss_slope(logits: Tensor, targets: Tensor, share: Tensor) -> Tensor:
    """The slope of the loss in every logit (networks, classes, batch); targets are classes, or their probabilities."""
    slope = logits.softmax(1)
    if targets.is_floating_point():
        slope = slope * targets.sum(2).unsqueeze(1) - targets.transpose(1, 2)
    else:
        slope.scatter_(1, targets.unsqueeze(1), -1.0, reduce="add")
    return slope.mul_(share.unsqueeze(1))


def gradient_memory(weight: Tensor) -> Tensor:
    """The memory of a weight's gradient, the same in every step."""
    if weight.grad is None:
        weight.grad = torch.empty_like(weight)
    return weight.grad
