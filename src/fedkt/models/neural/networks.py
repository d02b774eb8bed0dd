"""The networks of the paper, and how a user's own is asked for.

A network is a function of the shape of one row (columns,) or one image (channels, height, width), and of the number of
classes; it gives an untrained torch.nn.Module that maps a batch to one logit per class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch
from torch import nn

from fedkt.errors import ConfigurationError

Shape = tuple[int, ...]
"""Of what one batch entry looks like to a network: (columns,) or (channels, height, width)."""
Network = Callable[[Shape, int], nn.Module]


@dataclass(frozen=True)
class Perceptron:
    """A multilayer perceptron with hidden layers of these widths, any input."""

    hidden: tuple[int, ...]

    def __call__(self, shape: Shape, n_outputs: int) -> nn.Module:
        layers: list[nn.Module] = [nn.Flatten()]
        width = prod(shape)
        for units in self.hidden:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        return nn.Sequential(*layers, nn.Linear(width, n_outputs))


mlp = Perceptron((100, 100))
"""The paper's network for MNIST: two hidden layers of 100, any input."""


def cnn(shape: Shape, n_outputs: int) -> nn.Module:
    """The paper's network for SVHN: 5 × 5 convolutions of 6 and 16 channels with 2 × 2 max pooling, then 120, 84."""
    if len(shape) != 3:
        raise ConfigurationError(
            f"The network 'cnn' reads images, but these rows are tables of {shape[0]} columns. Choose 'mlp', or say "
            "image=(height, width, channels) where a row holds the pixels of an image."
        )
    channels, height, width = shape
    sides = [((side - 4) // 2 - 4) // 2 for side in (height, width)]
    if min(sides) < 1:
        raise ConfigurationError(f"The network 'cnn' needs images of at least 16 × 16, got {height} × {width}.")
    return nn.Sequential(
        # Pooling before ReLU is the same function as after it, on a quarter of the numbers.
        nn.Conv2d(channels, 6, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(6, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * prod(sides), 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, n_outputs),
    )


NETWORKS: dict[str, Network] = {"mlp": mlp, "cnn": cnn}


def network(module: str | Network) -> Network:
    """The function behind a name in NETWORKS; a function is passed through."""
    if isinstance(module, str):
        if module not in NETWORKS:
            raise ConfigurationError(f"There is no network {module!r}. Choose one of: {', '.join(NETWORKS)}.")
        return NETWORKS[module]
    if isinstance(module, nn.Module) or not callable(module):
        raise ConfigurationError(
            "module is a name or a function (shape, n_outputs) -> torch.nn.Module that builds a new network, got "
            f"{type(module).__name__}. Every teacher needs a network of its own."
        )
    return module


def build_network(module: str | Network, shape: Shape, n_outputs: int, seed: int) -> nn.Module:
    """An untrained network whose initial weights depend on the seed only; torch's global generator is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the processor's alone, where networks begin
        factory = network(module)
        try:
            instance = factory(shape, n_outputs)
        except TypeError as reason:
            raise ConfigurationError(
                f"module is a function (shape, n_outputs) that builds a network: {reason}"
            ) from reason
        if not isinstance(instance, nn.Module):
            raise ConfigurationError(
                f"The function given as module returned {type(instance).__name__}, not a torch.nn.Module."
            )
        check_outputs(instance, shape, n_outputs)
    return instance


def check_outputs(instance: nn.Module, shape: Shape, n_outputs: int) -> None:
    """Refuse a network that does not give one logit per class, before anything is trained."""
    first = next(instance.parameters(), None)
    if first is None:
        raise ConfigurationError(f"The network {type(instance).__name__} has no weights, so there is nothing to train.")
    before = {name: value.clone() for name, value in instance.state_dict().items()}
    try:
        with torch.no_grad():
            logits = instance.eval()(torch.zeros((2, *shape), dtype=first.dtype))
    except Exception as reason:
        # Whatever a stranger's network raises, its user needs to know what it was given.
        raise ConfigurationError(
            f"The network {type(instance).__name__} cannot read a batch of shape {(2, *shape)}: "
            f"{type(reason).__name__}: {str(reason)[:300]}"
        ) from reason
    instance.load_state_dict(before)
    instance.train()
    form = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if form != (2, n_outputs):
        raise ConfigurationError(
            f"The network {type(instance).__name__} must give one logit for each of {n_outputs} classes, that is "
            f"{(2, n_outputs)} for a batch of 2; it gives {form}."
        )
