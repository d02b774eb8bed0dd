"""Forests grown on bins beside scikit-learn's, and when they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("numba")

from fedkt.models.ensemble import TrainingTask, fit_group, group_tasks
from fedkt.models.forests.training import bins_of, fit_forest, grows, is_supported
from fedkt.models.soft import fit_soft
from fedkt.system.versions import versions

RNG = np.random.default_rng(5)
X = RNG.normal(size=(500, 8))
X[:, 4:] = X[:, 4:] > 0
TRUTH = 1 / (1 + np.exp(-(2 * X[:, 0] + X[:, 4] - X[:, 1] * X[:, 5])))
Y = (RNG.random(500) < TRUTH).astype(np.int64)
NEW = RNG.normal(size=(2_000, 8))
NEW[:, 4:] = NEW[:, 4:] > 0
WEIGHTS = RNG.random(500) + (Y == 1)
ROWS, LABELS = np.nonzero(np.column_stack([1 - TRUTH, TRUTH]) > 0.02)
PAIRS = np.column_stack([1 - TRUTH, TRUTH])[ROWS, LABELS]
SEEDS = range(4)


def agreement(a, b):
    """How alike two lots of forests are: the same labels, and the distance of their mean probabilities."""
    same = np.mean([np.mean((p > 0.5) == (q > 0.5)) for p in a for q in b if p is not q])
    return same, np.abs(np.mean(a, axis=0) - np.mean(b, axis=0)).mean()


@pytest.mark.parametrize(
    ("rows", "labels", "weights", "parameters"),
    [
        (np.arange(500), Y, None, {"max_depth": 6}),
        (np.arange(500), Y, WEIGHTS, {"min_samples_leaf": 4, "max_features": 0.5}),
        (np.arange(500), Y, None, {"class_weight": {0: 1.0, 1: 3.0}, "max_features": None, "min_samples_split": 20}),
        (ROWS, LABELS, PAIRS, {"max_depth": 6, "min_samples_leaf": 3}),
    ],
    ids=["labels", "weights", "class weights", "distributions"],
)
def test_forests_are_as_like_those_of_scikit_learn_as_these_are_like_each_other(rows, labels, weights, parameters):
    plain, ours, bins = [], [], bins_of(X)
    params = {} if weights is None else {"sample_weight": weights}
    for seed in SEEDS:
        estimator = RandomForestClassifier(40, random_state=seed, **parameters)
        grown = fit_forest(estimator, X, labels, rows=rows, params=params, bins=bins)
        ours.append(grown.predict_proba(NEW)[:, 1])
        plain.append(estimator.fit(X[rows], labels, **params).predict_proba(NEW)[:, 1])
    among_them, _ = agreement(plain, plain)
    across, distance = agreement(ours, plain)
    _, usual = agreement(plain[:2], plain[2:])
    assert across > among_them - 0.015
    assert distance < 1.3 * usual + 0.002


def test_weights_are_chances_to_be_drawn():
    estimator = RandomForestClassifier(200, max_depth=1, random_state=0)
    forest = fit_forest(estimator, X, Y, params={"sample_weight": 9.0 * Y + 1}, bins=bins_of(X))
    share = forest.nodes_.value[forest.nodes_.roots, 1].mean()
    assert share == pytest.approx(10 * Y.sum() / (10 * Y.sum() + (1 - Y).sum()), abs=0.005)


@pytest.mark.parametrize(
    "parameters",
    [
        {"criterion": "entropy"},
        {"bootstrap": False},
        {"max_samples": 0.5},
        {"max_leaf_nodes": 5},
        {"ccp_alpha": 0.1},
        {"min_impurity_decrease": 0.1},
        {"min_weight_fraction_leaf": 0.1},
        {"min_samples_leaf": 0.1},
        {"class_weight": "balanced_subsample"},
        {"random_state": np.random.RandomState(0)},
        {"n_estimators": 0},
        {"max_depth": 2.5},
        {"a parameter of tomorrow": 1},
    ],
    ids=lambda each: next(iter(each)),
)
def test_what_is_not_grown_here_is_left_to_scikit_learn(parameters):
    assert is_supported(RandomForestClassifier().get_params(deep=False))
    assert not is_supported({**RandomForestClassifier().get_params(deep=False), **parameters})


def test_other_estimators_are_left_to_themselves():
    class Own(RandomForestClassifier):
        pass

    assert grows(RandomForestClassifier(), 10_000)
    for other in (Own(), ExtraTreesClassifier(), make_pipeline(StandardScaler(), RandomForestClassifier())):
        assert not grows(other, 10_000)


def test_without_numba_or_by_a_wish_the_forest_is_that_of_scikit_learn(monkeypatch):
    shares = np.column_stack([1 - TRUTH, TRUTH])
    assert "numba" in versions()
    with monkeypatch.context() as patch:
        patch.setattr("fedkt.system.fast.find_spec", lambda name: None)
        absent = fit_soft(RandomForestClassifier(210, max_depth=2), X, shares, rng=np.random.default_rng(2)).estimator
    monkeypatch.setenv("FEDKT_FAST", "0")
    assert "numba" not in versions()
    model = fit_soft(RandomForestClassifier(210, max_depth=2), X, shares, rng=np.random.default_rng(2)).estimator
    rows, labels = np.nonzero(shares > 1e-6)
    plain = RandomForestClassifier(210, max_depth=2, random_state=model.random_state)
    plain.fit(X[rows], labels, sample_weight=100 * shares[rows, labels])
    for each in (absent, model):
        assert type(each) is RandomForestClassifier
        assert np.array_equal(each.predict_proba(NEW), plain.predict_proba(NEW))


def tasks(count):
    forest = RandomForestClassifier(210, max_depth=3)
    return [TrainingTask(forest, X, np.roll(Y, each), np.random.default_rng(each)) for each in range(count)]


def test_forests_of_the_same_rows_stand_together_and_leave_work_for_several_processes():
    sizes = [len(group.places) for group in group_tasks(tasks(3), 2)]
    assert sizes == [1, 1, 1]
    sizes = [len(group.places) for group in group_tasks(tasks(40), 2)]
    assert len(sizes) == 8
    assert set(sizes) == {5}
    apart = [replace(each, X=X.copy()) for each in tasks(2)]
    assert len(group_tasks(apart, 2)) == 2


def test_a_forest_is_the_same_in_any_company():
    together = fit_group(tasks(3), 2)
    for task, model in zip(tasks(3), together, strict=True):
        (alone,) = fit_group([task], 2)
        assert np.array_equal(alone.estimator.shares(NEW), model.estimator.shares(NEW))


def test_a_small_teacher_is_grown_on_bins_where_its_student_is():
    few = TrainingTask(RandomForestClassifier(), X, Y[:50], np.random.default_rng(0), np.arange(50), beside=1_000)
    (teacher,), (alone,) = fit_group([few], 2), fit_group([replace(few, beside=0)], 2)
    assert [type(each.estimator).__name__ for each in (teacher, alone)] == ["BinnedForest", "RandomForestClassifier"]
