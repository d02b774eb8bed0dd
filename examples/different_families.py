"""Six schools with fifty digits each; some bring a classifier of their own, and the server trains yet another one."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from fedkt import FedKTClassifier, evenly

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
public, test, own = np.split(rng.permutation(len(y)), [800, 1497])
linear = make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=500))
school = np.array(["A", "B", "C", "D", "E", "F"])[evenly(len(own), 6, rng)]

model = FedKTClassifier(
    SVC(),
    subsets=1,
    party_estimators={"A": linear, "B": linear, "C": GaussianNB(), "D": ExtraTreesClassifier()},
    random_state=0,
)
model.fit(X[own], y[own], parties=school, public=X[public])
print(f"together: {model.score(X[test], y[test]):.3f}")
for name in np.unique(school):
    alone = SVC().fit(X[own][school == name], y[own][school == name])
    print(f"school {name} alone: {alone.score(X[test], y[test]):.3f}")
