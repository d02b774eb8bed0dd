"""FedKT on networks as a user of PyTorch would write it: one model after the other, each fed by a DataLoader.

This is the rival that `neural.py` measures. It follows Algorithm 1 on the very parties, cuts and subsets that fedkt
draws, with the same network, optimiser and numbers of epochs; only the initial weights and the order of rows differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fedkt.algorithms.lesson import CUT, TIES, cut
from fedkt.data import Dataset
from fedkt.federation import Party
from fedkt.models.neural.recipe import Recipe
from fedkt.votes import NO_VOTE, consistent_votes, count_votes, winners


def trained(X: np.ndarray, y: np.ndarray, recipe: Recipe) -> nn.Module:
    """The paper's network for MNIST, trained on these rows."""
    model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10))
    loader = DataLoader(
        TensorDataset(torch.from_numpy(X), torch.from_numpy(y)), batch_size=recipe.batch_size, shuffle=True
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    for _ in range(recipe.epochs_for(len(y))):
        for rows, labels in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(rows), labels).backward()
            optimiser.step()
    return model


def predicted(model: nn.Module, X: np.ndarray) -> np.ndarray:
    """The class of each row."""
    with torch.no_grad():
        return model(torch.from_numpy(X)).argmax(dim=1).numpy()


def fedkt_with_a_loader(
    data: Dataset, parties: list[Party], *, partitions: int, subsets: int, recipe: Recipe, seed: int
) -> dict[str, Any]:
    """Accuracy of the final model, and of the labels it was trained on."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    public, n_classes = data.X_public, len(data.classes)
    by_party = []
    for party in parties:
        students = []
        for partition in range(partitions):
            votes = np.zeros((len(public), n_classes), dtype=np.int64)
            for piece in cut(len(party.y), subsets, party.rng(partition, CUT)):
                teacher = trained(party.X[piece], party.y[piece], recipe)
                votes += count_votes(predicted(teacher, public), n_classes)
            students.append(trained(public, winners(votes, party.rng(partition, TIES)), recipe))
        by_party.append([predicted(student, public) for student in students])
    labels = winners(consistent_votes(by_party, n_classes), np.random.default_rng(seed))
    answered = labels != NO_VOTE
    final = trained(public[answered], labels[answered], recipe)
    return {
        "accuracy": float((predicted(final, data.X_test) == data.y_test).mean()),
        "label_accuracy": float((labels == data.y_public)[answered].mean()),
    }
