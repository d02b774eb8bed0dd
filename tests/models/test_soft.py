"""Classifiers that learn distributions over the classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fedkt.models.soft import drawn, fit_soft, weight_parameter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2)).astype(np.float32)
SHARES = np.column_stack([0.2 + 0.5 * (X[:, 0] > 0), 0.1 + 0 * X[:, 0], 0.7 - 0.5 * (X[:, 0] > 0)])


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(max_depth=3),
        make_pipeline(StandardScaler(), RandomForestClassifier(max_depth=3)),
        KNeighborsClassifier(100),
        make_pipeline(StandardScaler(), KNeighborsClassifier(100)),
    ],
    ids=["weights", "pipeline", "draws", "pipeline of draws"],
)
def test_the_shares_are_learned(estimator):
    model = fit_soft(estimator, X, SHARES, rng=np.random.default_rng(1))
    found = model.predict_proba(X, 3)
    inside = np.abs(X[:, 0]) > 0.5
    assert np.abs(found - SHARES)[inside].mean() < 0.05
    assert not hasattr(estimator, "classes_")


def test_how_weights_are_called():
    assert weight_parameter(LogisticRegression()) == "sample_weight"
    assert weight_parameter(make_pipeline(StandardScaler(), GaussianNB())) == "gaussiannb__sample_weight"
    assert weight_parameter(KNeighborsClassifier()) is None


def test_draws_follow_the_shares():
    rows, labels = drawn(np.array([[0.25, 0.5, 0.25], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), np.random.default_rng(0))
    assert (np.bincount(rows) == 10).all()
    counts = np.array([np.bincount(labels[rows == row], minlength=3) for row in range(3)])
    assert np.abs(counts[0] - [2.5, 5, 2.5]).max() < 1
    assert counts[1:].tolist() == [[0, 0, 10], [10, 0, 0]]


def test_a_class_that_no_row_has_stays_out():
    shares = np.column_stack([SHARES[:, 0], np.zeros(400), 1 - SHARES[:, 0]])
    model = fit_soft(RandomForestClassifier(max_depth=3), X, shares, rng=np.random.default_rng(1))
    assert (model.predict_proba(X, 3)[:, 1] == 0).all()
    assert model.labels.tolist() == [0, 2]
