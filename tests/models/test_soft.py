"""Classifiers that learn distributions over the classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fedkt.errors import ModelError
from fedkt.models.base import fit_model
from fedkt.models.ensemble import learns_distributions
from fedkt.models.soft import fit_soft, row_weight

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2)).astype(np.float32)
SHARES = np.column_stack([0.2 + 0.5 * (X[:, 0] > 0), 0.1 + 0 * X[:, 0], 0.7 - 0.5 * (X[:, 0] > 0)])


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(max_depth=3),
        make_pipeline(StandardScaler(), RandomForestClassifier(max_depth=3)),
    ],
    ids=["forest", "pipeline"],
)
def test_the_shares_are_learned(estimator):
    model = fit_soft(estimator, X, SHARES, rng=np.random.default_rng(1))
    probabilities = model.predict_proba(X, 3)
    inside = np.abs(X[:, 0]) > 0.5
    assert np.abs(probabilities - SHARES)[inside].mean() < 0.05
    assert not hasattr(estimator, "classes_")


def test_how_weights_are_called():
    assert row_weight(LogisticRegression()) == ("sample_weight", 1.0)
    assert row_weight(make_pipeline(StandardScaler(), GaussianNB())) == ("gaussiannb__sample_weight", 1.0)
    assert row_weight(RandomForestClassifier()) == ("sample_weight", 100.0)


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(),
        SVC(probability=True),
        SGDClassifier(loss="log_loss"),
        CalibratedClassifierCV(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_families_that_cannot_learn_a_row_under_several_labels_are_told_apart(estimator):
    assert not learns_distributions(estimator)
    assert not learns_distributions(make_pipeline(StandardScaler(), estimator))
    with pytest.raises(ModelError, match="only labels"):
        fit_soft(estimator, X, SHARES, rng=np.random.default_rng(1))


def test_a_row_weighs_as_much_as_one_with_a_label():
    """A user's regularisation means the same, whether labels or distributions are learned."""
    labels = (X[:, 0] > 0).astype(int)
    rng = np.random.default_rng
    hard = fit_model(LogisticRegression(C=1e-3), X, labels, rng=rng(0)).predict_proba(X, 2)
    soft = fit_soft(LogisticRegression(C=1e-3), X, np.eye(2)[labels], rng=rng(0)).predict_proba(X, 2)
    assert np.allclose(hard, soft, atol=1e-3)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(class_weight="balanced"),
        make_pipeline(StandardScaler(), LogisticRegression(class_weight={0: 1, 1: 9})),
        RandomForestClassifier(20, max_depth=4, class_weight="balanced"),
        GaussianNB(priors=np.array([0.5, 0.5])),
    ],
    ids=["logistic", "pipeline", "forest", "bayes"],
)
def test_weights_of_classes_do_not_count_again(estimator):
    """What a teacher says carries its weights already."""
    rare = 0.02 + 0.2 * (X[:, 0] > 0)
    model = fit_soft(estimator, X, np.column_stack([1 - rare, rare]), rng=np.random.default_rng(1))
    assert model.predict_proba(X, 2)[:, 1].mean() == pytest.approx(rare.mean(), abs=0.01)


def test_boosting_learns_distributions_without_weights_of_classes():
    boosted = pytest.importorskip("xgboost").XGBClassifier(n_estimators=50, max_depth=2, scale_pos_weight=8.0)
    rare = 0.02 + 0.2 * (X[:, 0] > 0)
    model = fit_soft(boosted, X, np.column_stack([1 - rare, rare]), rng=np.random.default_rng(1))
    assert model.predict_proba(X, 2)[:, 1].mean() == pytest.approx(rare.mean(), abs=0.02)
    assert boosted.scale_pos_weight == 8.0


def test_a_class_that_no_row_has_stays_out():
    shares = np.column_stack([SHARES[:, 0], np.zeros(400), 1 - SHARES[:, 0]])
    model = fit_soft(RandomForestClassifier(max_depth=3), X, shares, rng=np.random.default_rng(1))
    assert (model.predict_proba(X, 3)[:, 1] == 0).all()
    assert model.labels.tolist() == [0, 2]
