"""A forest that was grown on bins, to whoever has it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

pytest.importorskip("numba")

from fedkt.models.base import FittedModel, fit_model
from fedkt.models.exchange import run_graph, to_onnx, to_soft_onnx
from fedkt.models.forests.forest import BinnedForest
from fedkt.models.forests.training import bins_of, fit_forest

GOLDEN = Path(__file__).parents[2] / "golden" / "forest.json"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6))
X[:, 1] = np.rint(X[:, 1])
X[:, 2] = X[:, 1] > 0
X[::9, 3] = np.nan
Y = (X[:, 0] > 0).astype(np.int64) + (X[:, 2] + RNG.normal(size=400) > 0.5)


def fit(X, y, **parameters):
    estimator = RandomForestClassifier(random_state=3, **{"n_estimators": 12, "max_depth": 5, **parameters})
    return fit_forest(estimator, X, y, bins=bins_of(X))


@pytest.fixture(scope="module")
def forest():
    # Not when the file is loaded: every process of a parallel run loads it, and would wait for the compiler.
    return fit(X, Y)


@pytest.fixture(scope="module")
def near(forest):
    """Rows, some of them at a threshold or right beside it."""
    rows = np.concatenate(
        [X, *(np.where(np.isfinite(X), X, 0) + 0 * X + step for step in (1e-9, -1e-9)), np.full((1, 6), np.nan)]
    )
    rows[400:800, 0] = np.resize(forest.nodes_.threshold[forest.nodes_.feature == 0][:50].clip(-9, 9), 400)
    rows[600:800, 0] = np.nextafter(rows[600:800, 0], 9)
    return rows


def walk(nodes, root, row):
    """Down one tree, in plain Python."""
    node = root
    while nodes.left[node] != node:
        value = np.float32(row[nodes.feature[node]])
        left = nodes.missing_left[node] if np.isnan(value) else value <= nodes.threshold[node]
        node = nodes.left[node] + (not left)
    return nodes.value[node]


def test_it_answers_by_walking_down_its_trees(forest, near):
    rows = near[::7]
    by_hand = [np.sum([walk(forest.nodes_, root, row) for root in forest.nodes_.roots], axis=0) for row in rows]
    assert np.allclose(forest.predict_proba(rows), np.array(by_hand) / 12, atol=1e-15)


def test_its_trees_as_those_of_scikit_learn_say_the_same(forest, near):
    assert np.array_equal(sum(tree.predict_proba(near) for tree in forest.estimators_), forest.shares(near))
    assert forest.feature_importances_.argmax() == 0
    assert forest.estimators_[0].tree_.impurity[0] == pytest.approx(1 - (forest.nodes_.value[0] ** 2).sum())


def test_it_travels_without_a_change_of_label(forest, near):
    model = FittedModel(forest, np.arange(3), 6)
    sent = to_onnx(model, n_features=6, n_classes=3, check_rows=near)
    labels, _ = run_graph(model, sent.data, near.astype(np.float32), 3, soft=False)
    assert np.array_equal(labels, forest.predict(near))
    assert to_soft_onnx(model, n_features=6, n_classes=3, check_rows=near).soft


def test_sparse_rows_and_data_frames_give_the_forest_of_the_array():
    full = np.nan_to_num(X)
    plain = fit(full, Y)
    names = list("abcdef")
    frame = fit(pandas.DataFrame(full, columns=names), Y)
    for other, rows in ((fit(sparse.csr_matrix(full), Y), sparse.csr_matrix(full)), (frame, frame_of(full, names))):
        assert np.array_equal(other.nodes_.threshold, plain.nodes_.threshold)
        assert np.array_equal(other.predict_proba(rows), plain.predict_proba(full))
    with pytest.raises(ValueError, match="feature names"):
        frame.predict(frame_of(full, names[::-1]))


def frame_of(table, names):
    return pandas.DataFrame(table, columns=names)


def test_what_a_forest_of_scikit_learn_refuses_is_refused(forest):
    with pytest.raises(ValueError, match="infinity"):
        forest.predict(np.full((1, 6), np.inf))
    with pytest.raises(ValueError, match="6 features"):
        forest.predict(X[:, :5])


def test_a_copy_of_it_and_it_trained_again_are_plain_forests(forest):
    assert type(clone(forest)) is RandomForestClassifier
    again = fit(X, Y).fit(X, Y)
    assert type(again) is RandomForestClassifier
    assert again.predict(X).tolist() == clone(forest).fit(X, Y).predict(X).tolist()


def test_columns_that_say_nothing_give_leaves():
    forest = fit(np.ones((50, 3)), np.arange(50) % 2)
    assert len(forest.nodes_.left) == 12
    assert forest.nodes_.weight.tolist() == [50] * 12


def test_the_trees_of_a_seed_stay_what_they_were():
    table = (np.arange(600).reshape(60, 10) * 7919 % 101).astype(float)
    table[::11, 3] = np.nan
    labels = (table[:, 0] > 50).astype(np.int64) + (table[:, 1] > 60)
    forest = fit(table, labels, n_estimators=3, max_depth=3)
    found = {name: np.asarray(getattr(forest.nodes_, name)).tolist() for name in ("roots", "feature", "left", "weight")}
    found["threshold"] = [float(each) if np.isfinite(each) else None for each in forest.nodes_.threshold]
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_one_class_is_a_constant():
    assert fit_model(RandomForestClassifier(), X, np.zeros(400, int), rng=np.random.default_rng(0)).estimator is None


def test_large_work_goes_to_bins_and_small_work_stays_as_it_was():
    rows, labels = np.tile(X, (2, 1)), np.tile(Y, 2)
    for count, kind in ((10, RandomForestClassifier), (130, BinnedForest)):
        plain = RandomForestClassifier(count, max_depth=3, random_state=0)
        model = fit_model(plain, rows, labels, rng=np.random.default_rng(0)).estimator
        assert type(model) is kind
        if kind is RandomForestClassifier:
            assert np.array_equal(model.predict_proba(X), plain.fit(rows, labels).predict_proba(X))
