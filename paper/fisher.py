"""FedFisher with diagonal Fisher information, from the description in its paper; see `moments_rivals.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

EPOCHS, BATCH, STEP, MOMENTUM = 30, 64, 0.01, 0.9
"""Of a party's training, as the paper has them."""
SERVER_STEPS, SERVER_STEP, LOOK = 2_000, 0.01, 100
"""Of the server's descent; every LOOK steps the labelled rows are asked."""
BLOCK = 2_048


def fisher_probabilities(
    parties: Sequence[tuple[Any, Any]],
    *,
    labelled: tuple[Any, Any],
    test: Any,
    image: tuple[int, int, int],
    n_classes: int,
    seed: int,
) -> tuple[Any, int]:
    """The probabilities of the test rows by the server's network, and the bytes that all parties send."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    network = lenet(image, n_classes)
    start = torch.nn.utils.parameters_to_vector(network.parameters()).detach().clone()
    n = sum(len(y) for _, y in parties)
    average, stiffness, pull, sent = torch.zeros_like(start), torch.zeros_like(start), torch.zeros_like(start), 0
    for X, y in parties:
        images, labels = as_images(X, image), torch.as_tensor(y)
        torch.nn.utils.vector_to_parameters(start, network.parameters())
        train(network, images, labels)
        weights = torch.nn.utils.parameters_to_vector(network.parameters()).detach().clone()
        information = diagonal(network, images) * (len(y) / n)
        average += weights * (len(y) / n)
        stiffness += information
        pull += information * weights
        sent += 2 * 4 * len(weights)
    best = descend(network, average, stiffness, pull, as_images(labelled[0], image), torch.as_tensor(labelled[1]))
    torch.nn.utils.vector_to_parameters(best, network.parameters())
    return torch.softmax(scores(network, as_images(test, image)), dim=1).double().numpy(), sent


def lenet(image: tuple[int, int, int], n_classes: int) -> Any:
    """LeNet without biases, as FedFisher's experiments have it."""
    from torch import nn

    height, width, channels = image
    left = (((height - 4) // 2 - 4) // 2) * (((width - 4) // 2 - 4) // 2)
    return nn.Sequential(
        *(nn.Conv2d(channels, 6, 5, bias=False), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(16 * left, 120, bias=False), nn.ReLU(), nn.Linear(120, 84, bias=False), nn.ReLU()),
        nn.Linear(84, n_classes, bias=False),
    )


def as_images(rows: Any, image: tuple[int, int, int]) -> Any:
    """Rows of pixels as a tensor: rows, channels, height, width."""
    import torch

    pixels = torch.as_tensor(rows, dtype=torch.float32).reshape(-1, *image)
    return pixels.permute(0, 3, 1, 2).contiguous()


def train(network: Any, images: Any, labels: Any) -> None:
    """A party's own training."""
    import torch

    optimizer = torch.optim.SGD(network.parameters(), lr=STEP, momentum=MOMENTUM)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimizer.step()


def diagonal(network: Any, images: Any) -> Any:
    """The mean square of the gradient of each weight, at labels drawn from what the network says."""
    import torch
    from torch.func import functional_call, grad, vmap

    weights = {name: value.detach() for name, value in network.named_parameters()}

    def loss(own: Any, row: Any, label: Any) -> Any:
        return torch.nn.functional.cross_entropy(functional_call(network, own, (row[None],)), label[None])

    each_row = vmap(grad(loss), in_dims=(None, 0, 0))
    total = {name: torch.zeros_like(value) for name, value in weights.items()}
    for block in images.split(256):
        with torch.no_grad():
            drawn = torch.multinomial(torch.softmax(network(block), dim=1), 1)[:, 0]
        for name, values in each_row(weights, block, drawn).items():
            total[name] += (values**2).sum(dim=0)
    return torch.cat([(total[name] / len(images)).flatten() for name in weights])


def descend(network: Any, start: Any, stiffness: Any, pull: Any, images: Any, labels: Any) -> Any:
    """The weights on the way to the least of the quadratic that are right on most labelled rows."""
    import torch

    weights, momentum, square = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    best, most = start, -1.0
    for step in range(SERVER_STEPS):
        if step % LOOK == 0:
            torch.nn.utils.vector_to_parameters(weights, network.parameters())
            right = float((scores(network, images).argmax(dim=1) == labels).float().mean())
            if right > most:
                best, most = weights.clone(), right
        gradient = stiffness * weights - pull
        momentum = gradient + 0.9 * momentum
        square = gradient**2 + 0.99 * square
        weights = weights - SERVER_STEP * momentum / (square.sqrt() + 0.01)
    return best


def scores(network: Any, images: Any) -> Any:
    """What the network says of each class."""
    import torch

    with torch.no_grad():
        return torch.cat([network(block) for block in images.split(BLOCK)])
