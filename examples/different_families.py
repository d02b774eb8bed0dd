"""Every party brings a classifier of its own; the server trains yet another one."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from fedkt import FedKTClassifier, by_dirichlet

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
public, test, own = np.split(rng.permutation(len(y)), [400, 700])
party = np.array(["bank", "hospital", "school"])[by_dirichlet(y[own], 3, beta=1.0, rng=rng)]

model = FedKTClassifier(
    RandomForestClassifier(n_estimators=50),
    party_estimators={
        "bank": HistGradientBoostingClassifier(max_iter=20),
        "school": make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=500)),
    },
    random_state=0,
)
model.fit(X[own], y[own], parties=party, public=X[public])
print(f"together: {model.score(X[test], y[test]):.3f}")
for name in np.unique(party):
    alone = RandomForestClassifier(random_state=0).fit(X[own][party == name], y[own][party == name])
    print(f"{name} alone: {alone.score(X[test], y[test]):.3f}")
