"""How a final model's scores are read as probabilities and labels, here and after travelling."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from fedkt.models.base import fit_model
from fedkt.models.catalogue import MODELS
from fedkt.models.exchange import run_with_probabilities
from fedkt.models.final_exchange import to_final_onnx
from fedkt.models.reading import (
    Calibration,
    Reading,
    by_decision,
    class_scores,
    fit_calibration,
    scores_fit_labels,
)

FAMILIES = ("forest", "extra-trees", "tree", "hist-boosting", "logistic", "naive-bayes", "svm", "boosting", "lightgbm")
SCORERS = (SVC(), LinearSVC(), RidgeClassifier(), SGDClassifier(random_state=0), Perceptron(random_state=0))
SURE = (SGDClassifier(loss="log_loss", random_state=0), LinearDiscriminantAnalysis())
"""Those that have probabilities too, which tell less."""
BEHIND_A_SCALER = tuple(make_pipeline(StandardScaler(), each) for each in (SVC(), LinearSVC(), *SURE))


def rows_of(classes, seed=0):
    X, y = make_classification(400, 6, n_informative=5, n_redundant=0, n_classes=classes, random_state=seed)
    return X.astype(np.float32), y


def calibrated(model, X, y):
    scores = class_scores(model.estimator, X)
    shares = 0.8 * np.eye(len(model.labels))[np.searchsorted(model.labels, y)] + 0.2 / len(model.labels)
    return fit_calibration(scores, shares, logarithms=not by_decision(model.estimator))


def test_a_calibration_finds_the_slope_and_offsets_that_made_the_shares():
    rng = np.random.default_rng(0)
    scores = 20 * rng.normal(size=(2_000, 3))
    logits = 0.1 * scores + np.array([0.5, -0.2, -0.3])
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = fit_calibration(scores, shares, logarithms=False)
    assert found.slope == pytest.approx(0.1, rel=1e-3)
    assert found.offsets == pytest.approx([0.5, -0.2, -0.3], abs=1e-2)


def test_two_classes_are_calibrated_as_an_unregularised_logistic_regression_of_the_score_would():
    rng = np.random.default_rng(1)
    score = rng.normal(size=3_000)
    y = (rng.random(3_000) < 1 / (1 + np.exp(-(2 * score - 1)))).astype(int)
    found = fit_calibration(np.column_stack([np.zeros(3_000), score]), np.eye(2)[y], logarithms=False)
    other = LogisticRegression(C=1e9).fit(score[:, None], y)
    assert found.slope == pytest.approx(other.coef_[0, 0], rel=1e-3)
    assert found.offsets[1] - found.offsets[0] == pytest.approx(other.intercept_[0], rel=1e-2)


def test_scores_that_run_against_the_shares_are_not_turned_around():
    scores = np.column_stack([np.zeros(100), np.linspace(-1, 1, 100)])
    found = fit_calibration(scores, np.eye(2)[(scores[:, 1] < 0).astype(int)], logarithms=False)
    says = found.probabilities(scores)[:, 1]
    assert (np.diff(says) > 0).all()
    assert says == pytest.approx(np.full(100, 0.5), abs=0.05)


def test_a_probability_of_nothing_does_not_flatten_all_others():
    """Few trees say 0 where they have not seen a class; as a logarithm that is as far as one can get."""
    rng = np.random.default_rng(2)
    p = np.clip(rng.random(1_000), 0.05, 0.95)
    says = np.where(rng.random(1_000) < 0.02, 0.0, p)
    scores = np.log(np.maximum(np.column_stack([1 - says, says]), 1e-30))
    found = fit_calibration(scores, np.column_stack([1 - p, p]), logarithms=True)
    assert found.knee == pytest.approx(np.log(1_000))
    assert 0.5 < found.slope < 1.2


def test_a_factor_moves_the_label_and_leaves_the_probability():
    X, y = rows_of(2)
    plain = fit_model(LogisticRegression(), X, y, rng=np.random.default_rng(0))
    moved = replace(plain, reading=Reading(factors=np.array([1.0, 3.0])))
    expected = plain.predict_proba(X, 2)
    assert np.array_equal(moved.predict_proba(X, 2), expected)
    # Three times as much: from a probability of a quarter on it is class 1.
    assert np.array_equal(moved.predict(X), (expected[:, 1] > 0.25).astype(int))


def test_without_factors_the_label_is_the_estimators_own():
    X, y = rows_of(3)
    plain = fit_model(SVC(), X, y, rng=np.random.default_rng(0))
    read = replace(plain, reading=Reading(Calibration(1.0, np.array([5.0, 0.0, 0.0]))))
    assert np.array_equal(read.predict(X), plain.predict(X))
    assert read.has_probabilities
    assert not plain.has_probabilities


def test_columns_that_compare_two_classes_each_are_not_taken_for_scores_of_classes():
    """With three classes there are as many pairs as classes, and nothing else tells them apart."""
    X, y = rows_of(3)
    pairs = SVC(decision_function_shape="ovo").fit(X, y)
    assert pairs.decision_function(X).shape == (400, 3)
    assert not scores_fit_labels(class_scores(pairs, X), pairs.predict(X), 3)
    assert scores_fit_labels(class_scores(SVC().fit(X, y), X), SVC().fit(X, y).predict(X), 3)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_reading_travels(name, factors, classes):
    X, y = rows_of(classes)
    # One agreed class is not among the model's.
    y = np.where(y == classes - 1, classes, y)
    model = fit_model(MODELS[name].estimator(), X, y, rng=np.random.default_rng(0))
    reading = Reading(calibrated(model, X, y), 1.0 + np.arange(classes) if factors else None)
    check_travels(replace(model, reading=reading), X, classes + 1)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("estimator", [*SCORERS, *SURE, *BEHIND_A_SCALER], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("factors", [False, True])
def test_a_decision_function_becomes_probabilities_that_travel(estimator, classes, factors):
    X, y = rows_of(classes)
    model = fit_model(estimator, X, y, rng=np.random.default_rng(0))
    reading = Reading(calibrated(model, X, y), 1.0 + np.arange(classes) if factors else None)
    check_travels(replace(model, reading=reading), X, classes)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("scaled", [False, True])
def test_neighbours_travel_with_their_shares(classes, scaled):
    X, y = rows_of(classes)
    estimator = KNeighborsClassifier(7)
    estimator = make_pipeline(StandardScaler(), estimator) if scaled else estimator
    model = fit_model(estimator, X, y, rng=np.random.default_rng(0))
    check_travels(model, X, classes)
    check_travels(replace(model, reading=Reading(calibrated(model, X, y))), X, classes)


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(20, random_state=0), GaussianNB()], ids=["forest", "bayes"]
)
def test_factors_alone_travel(estimator):
    X, y = rows_of(3)
    model = fit_model(estimator, X, y, rng=np.random.default_rng(0))
    check_travels(replace(model, reading=Reading(factors=np.array([1.0, 2.0, 0.5]))), X, 3)


@pytest.mark.parametrize("knee", [np.inf, 3.0])
def test_scores_of_any_size_keep_their_order_in_32_bits(knee):
    scores = 10.0 ** np.arange(-3, 31, 2)
    found = Calibration(2.0, np.array([0.1, -0.1]), knee)
    for values in (scores, -scores):
        says = found.probabilities(np.column_stack([np.zeros(len(scores)), values])).astype(np.float32)
        assert (np.diff(says[:, 1]) * np.sign(values[0]) > 0).all()
        assert (np.diff(says[:, 0]) * np.sign(values[0]) < 0).all()


def test_probabilities_that_32_bits_hold_are_those_of_the_softmax():
    logits = np.clip(np.random.default_rng(0).normal(scale=3, size=(500, 4)), -5, 5)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert expected.min() < 1e-4
    assert Calibration(1.0, np.zeros(4)).probabilities(logits) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [1e4, 1e15, 1e30])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("knee", [np.inf, 2.0])
def test_huge_scores_travel_with_their_order(size, classes, knee):
    X, y = rows_of(classes)
    model = fit_model(LinearSVC(), X, y, rng=np.random.default_rng(0))
    model.estimator.coef_ *= size
    model.estimator.intercept_ *= size
    read = replace(model, reading=Reading(Calibration(1.0, np.zeros(classes), knee)))
    sent = to_final_onnx(read, n_features=6, n_classes=classes, check_rows=X)
    _, says = run_with_probabilities(sent.data, X, classes)
    assert says == pytest.approx(read.predict_proba(X, classes), abs=1e-4)
    if classes == 2:
        raw = model.estimator.decision_function(X)
        order = np.argsort(raw)
        assert (np.diff(says[order, 1]) >= 0).all()
        assert (np.diff(says[order, 0]) <= 0).all()
        # 32 bits next to 1 tell scores of 1e30 apart that differ by a fifth.
        assert roc_auc_score(y, says[:, 1]) == pytest.approx(roc_auc_score(y, raw), abs=5e-3)
        assert roc_auc_score(1 - y, says[:, 0]) == pytest.approx(roc_auc_score(y, raw), abs=5e-3)


def check_travels(model, X, n_classes):
    sent = to_final_onnx(model, n_features=X.shape[1], n_classes=n_classes, check_rows=X)
    assert sent.soft
    labels, probabilities = run_with_probabilities(sent.data, X, n_classes)
    assert probabilities == pytest.approx(model.predict_proba(X, n_classes), abs=1e-3)
    assert np.mean(labels == model.predict(X)) > 0.98


def test_what_cannot_say_probabilities_after_travelling_travels_with_its_own_labels():
    X, y = rows_of(3)
    model = fit_model(SVC(decision_function_shape="ovo"), X, y, rng=np.random.default_rng(0))
    sent = to_final_onnx(model, n_features=6, n_classes=3, check_rows=X)
    assert not sent.soft
    assert np.array_equal(sent.predict(X), model.predict(X))
