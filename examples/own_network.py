"""Your own torch.nn.Module in a federation: say how to build it, the rest is scikit-learn."""

import numpy as np
from sklearn.datasets import load_digits
from torch import nn

from fedkt import FedKTClassifier, NeuralClassifier


def my_network(shape, n_outputs):
    """A small network for pictures of `shape` (channels, height, width)."""
    inner = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 64), nn.GELU())
    return nn.Sequential(inner, nn.LayerNorm(64), nn.Linear(64, n_outputs))


X, y = load_digits(return_X_y=True)
pictures = X.reshape(-1, 8, 8)
rng = np.random.default_rng(0)
public, test, own = np.split(rng.permutation(len(y)), [500, 900])
school = rng.choice(["north", "south", "west"], len(own))
model = FedKTClassifier(NeuralClassifier(my_network, epochs=30), subsets=2, random_state=0)
model.fit(pictures[own], y[own], parties=school, public=pictures[public])
print(f"accuracy: {model.score(pictures[test], y[test]):.3f}", *model.report_.notes, sep="\n")
