"""FedKT on your own table: three hospitals, a public set without labels, five lines."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from fedkt import FedKTClassifier

X, y = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(0)
hospital = rng.choice(["north", "south", "west"], len(y))
public, test, own = np.split(rng.permutation(len(y)), [100, 200])

model = FedKTClassifier(RandomForestClassifier(max_depth=6), random_state=0)
model.fit(X[own], y[own], parties=hospital[own], public=X[public])
print(f"accuracy on rows nobody trained on: {model.score(X[test], y[test]):.3f}")
print(model.report_)
