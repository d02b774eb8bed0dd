"""XGBoost that learns shares of two classes: the trees of rows given under both labels, from each row once."""

from __future__ import annotations

import numpy as np
import pytest

from fedkt.errors import DataError
from fedkt.models import soft
from fedkt.models.exchange import to_onnx
from fedkt.models.families import xgboost_shares
from fedkt.models.sandbox import run_models

xgboost = pytest.importorskip("xgboost")
RNG = np.random.default_rng(4)
X = RNG.normal(size=(600, 3)).astype(np.float32)
GAPS = np.where(RNG.random(X.shape) < 0.1, np.float32(np.nan), X)
SHARE = np.round(1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1] ** 2)), 2)
SHARES = np.column_stack([1 - SHARE, SHARE])


def boosted(**settings):
    return xgboost.XGBClassifier(**{"n_estimators": 12, "random_state": 1, "n_jobs": 1, **settings})


def learned(estimator, rows=X, shares=SHARES):
    return soft.fit_soft(estimator, rows, shares, rng=np.random.default_rng(0))


def of_copies(estimator, rows=X):
    """Every row under both labels, each with its share of 100 as its weight; XGBoost's own training."""
    weights = 100 * np.concatenate([1 - SHARE, SHARE])
    some = weights > 1e-4
    labels = np.repeat([0, 1], len(rows))
    return estimator.fit(np.concatenate([rows, rows])[some], labels[some], sample_weight=weights[some])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 3, "gamma": 1, "reg_alpha": 2},
        {"monotone_constraints": (1, 0, -1), "base_score": 0.3},
        {"max_bin": 1024, "colsample_bytree": 0.7, "min_child_weight": 40, "grow_policy": "lossguide", "max_leaves": 5},
        {"missing": 0.5},
    ],
    ids=lambda each: "-".join(each) or "usual",
)
@pytest.mark.parametrize("rows", [X, GAPS], ids=["full", "gaps"])
def test_a_share_teaches_what_copies_of_the_row_do(settings, rows):
    model = learned(boosted(**settings), rows)
    probabilities, expected = model.predict_proba(rows, 2), of_copies(boosted(**settings), rows).predict_proba(rows)
    assert np.abs(probabilities - expected).max() < 1e-6
    assert (model.predict(rows) == expected.argmax(axis=1)).all()
    assert model.estimator.get_params() == boosted(**settings).get_params()
    assert model.estimator.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    "settings",
    [{"subsample": 0.5}, {"tree_method": "exact"}, {"booster": "dart"}, {"objective": "binary:hinge"}],
    ids=lambda each: next(iter(each)),
)
def test_what_copies_of_rows_mean_something_else_to_is_given_copies(settings, monkeypatch):
    monkeypatch.setattr(xgboost_shares, "_binned", None)
    rows, labels = np.nonzero(SHARES > 1e-6)
    usual = boosted(**settings).fit(X[rows], labels, sample_weight=100 * SHARES[rows, labels])
    found = learned(boosted(**settings)).estimator
    assert found.get_booster().save_raw() == usual.get_booster().save_raw()


def test_a_student_is_the_same_beside_any_other_on_the_same_rows():
    alone = learned(boosted()).estimator.get_booster().save_raw()
    xgboost_shares._held.key = None
    learned(boosted(), shares=SHARES[:, ::-1])
    kept = xgboost_shares._held.rows
    again = learned(boosted()).estimator.get_booster().save_raw()
    assert xgboost_shares._held.rows is kept
    assert again == alone


def test_rows_that_were_changed_are_binned_anew():
    rows = X.copy()
    learned(boosted(), rows)
    rows[:, 0] = -rows[:, 0]
    fresh = learned(boosted(), -X * [1, -1, -1])
    assert np.allclose(learned(boosted(), rows).predict_proba(rows, 2), fresh.predict_proba(rows, 2), atol=1e-6)


def test_classes_keep_their_places_and_one_class_is_a_constant():
    model = learned(boosted(), shares=np.insert(SHARES, 1, 0.0, axis=1))
    assert model.labels.tolist() == [0, 2]
    assert np.abs(model.predict_proba(X, 3)[:, 2] - SHARE).mean() < 0.1
    assert learned(boosted(), shares=np.tile([0.0, 1.0], (len(X), 1))).estimator is None


@pytest.mark.parametrize("settings", [{}, {"interaction_constraints": [["a"]]}], ids=["infinite", "unknown columns"])
def test_what_xgboost_refuses_is_refused_in_the_usual_words(settings):
    rows = X.copy()
    rows[3, 1] = X[3, 1] if settings else np.inf
    with pytest.raises(DataError, match="XGBClassifier could not be trained on"):
        learned(boosted(**settings), rows)


def test_it_travels_with_its_answers():
    model = learned(boosted(), GAPS)
    exported = to_onnx(model, n_features=3, n_classes=2, check_rows=GAPS)
    (answer,) = run_models([exported.data], GAPS, n_classes=2)
    assert (np.asarray(answer) == model.predict(GAPS)).all()
