"""The paper's networks in a loop of PyTorch: rows in memory as one tensor, Adam with its fused step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedkt.bench.work import Array, Work

LEAST_EPOCHS, LEAST_STEPS = 10, 1_000
"""How long a network is trained where nobody says."""
BATCHES = {"mlp": 32, "cnn": 64}
RATE, DECAY = 1e-3, 1e-6
BLOCK = 1_024


def build(family: str, image: tuple[int, int, int] | None, columns: int, n_outputs: int) -> Any:
    """The untrained network."""
    from torch import nn

    if family == "mlp":
        layers = [nn.Linear(columns, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, n_outputs)]
        return nn.Sequential(*layers)
    assert image is not None
    height, width, channels = image
    area = ((height - 4) // 2 - 4) // 2 * (((width - 4) // 2 - 4) // 2)
    return nn.Sequential(
        *(nn.Conv2d(channels, 6, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * area, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, n_outputs)),
    )


@dataclass(frozen=True)
class Network:
    """A trained network."""

    module: Any
    family: str
    image: tuple[int, int, int] | None

    def predict(self, X: Array) -> Array:
        """The class of each row."""
        return np.asarray(self.logits(X).argmax(dim=1).numpy())

    def predict_proba(self, X: Array, n_classes: int) -> Array:
        """How probable each class of each row is."""
        return np.asarray(self.logits(X).softmax(dim=1).numpy())

    def logits(self, X: Array) -> Any:
        """What the network says, in blocks."""
        import torch

        with torch.no_grad():
            rows = as_tensor(X, self.family, self.image)
            return torch.cat([self.module(block) for block in rows.split(BLOCK)])


def as_tensor(X: Array, family: str, image: tuple[int, int, int] | None) -> Any:
    """The rows as the network reads them."""
    import torch

    rows = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
    if family == "mlp" or image is None:
        return rows
    height, width, channels = image
    return rows.reshape(-1, height, width, channels).permute(0, 3, 1, 2).contiguous()


def learn_network(family: str, X: Array, y: Array, work: Work, rng: np.random.Generator) -> Network:
    """A network trained on these rows, of labels or of distributions over the classes."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(int(rng.integers(2**31 - 1)))
    # Of labels it is the agreed classes; a distribution may have one more, for rows that are not the party's.
    background = int(y.max(initial=0)) + 1 if y.ndim == 1 else y.shape[1]
    module = build(family, work.image, X.shape[1], max(work.n_classes, background))
    rows = as_tensor(X, family, work.image)
    targets = torch.from_numpy(y.astype(np.float32 if y.ndim == 2 else np.int64))
    size = BATCHES[family]
    epochs = work.epochs or max(LEAST_EPOCHS, -(-LEAST_STEPS // -(-len(rows) // size)))
    optimiser = torch.optim.Adam(module.parameters(), lr=RATE, weight_decay=DECAY, fused=True)
    for _ in range(epochs):
        for batch in torch.randperm(len(rows)).split(size):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(module(rows[batch]), targets[batch]).backward()
            optimiser.step()
    return Network(module, family, work.image)
