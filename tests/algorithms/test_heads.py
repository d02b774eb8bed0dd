"""Heads from sums: those of another library on the rows themselves, and honest about rows they have not seen."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from fedkt.algorithms.heads import Sums, calibrate, lda_head, moved, ridge_head, solve, system, tilted
from fedkt.models.reading import fit_slope, softmax

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(3, 6))


def rows_of(count, *, spread=1.0, seed=1):
    """Features with a constant, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=count, p=[0.5, 0.3, 0.2])
    X = CENTRES[y] + spread * rng.normal(size=(count, 6))
    return np.column_stack([np.ones(count), X / 10]), y


def sums_of(F, y):
    return Sums(F.T @ np.eye(3)[y], F.T @ F)


def test_the_ridge_is_scikit_learns_of_the_rows():
    F, y = rows_of(400)
    sums = sums_of(F, y)
    head, _ = ridge_head(sums, 0.01)
    alpha = 0.01 * np.mean((F[:, 1:] ** 2).mean(axis=0)) * len(F)
    expected = Ridge(alpha=alpha).fit(F[:, 1:], np.eye(3)[y]).predict(F[:, 1:])
    np.testing.assert_allclose(F @ head.weights, expected - expected.mean(axis=1, keepdims=True), atol=1e-6)


def test_the_discriminants_are_scikit_learns_of_the_rows():
    F, y = rows_of(400)
    head = lda_head(sums_of(F, y), 1e-12)
    expected = LinearDiscriminantAnalysis(solver="lsqr").fit(F[:, 1:], y).predict_proba(F[:, 1:])
    np.testing.assert_allclose(softmax(F @ head.weights), expected, atol=1e-6)


def test_the_brier_score_is_that_of_leaving_each_row_out():
    F, y = rows_of(60)
    sums, errors = sums_of(F, y), []
    _, found = ridge_head(sums, 0.1)
    left, Y = system(sums, 0.1) * len(F), np.eye(3)[y]
    for place in range(len(F)):
        others = np.arange(len(F)) != place
        # The ridge stays what it is for all rows: only the row's own part goes.
        weights = np.linalg.solve(left - np.outer(F[place], F[place]), F[others].T @ Y[others])
        errors.append(((F[place] @ weights - Y[place]) ** 2).sum())
    assert found == pytest.approx(np.mean(errors), rel=0.03)


def test_moved_scores_have_the_mean_and_the_covariance_that_were_asked_for():
    scores = RNG.normal(size=(500, 3)) @ RNG.normal(size=(3, 3))
    scores -= scores.mean(axis=1, keepdims=True)
    other = RNG.normal(size=(400, 3)) @ RNG.normal(size=(3, 3)) + 1
    other -= other.mean(axis=1, keepdims=True)
    found = moved(scores, other.mean(axis=0), np.cov(other.T, ddof=0))
    np.testing.assert_allclose(found.mean(axis=0), other.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(np.cov(found.T, ddof=0), np.cov(other.T, ddof=0), atol=1e-9)


def test_tilted_rows_have_the_mean_that_was_asked_for():
    scores = RNG.normal(size=(500, 2))
    even = np.full(500, 1 / 500)
    weights = tilted(scores, np.array([0.3, -0.2]), even)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ scores, [0.3, -0.2], atol=1e-4)
    np.testing.assert_allclose(tilted(scores, scores.mean(axis=0), even), 1 / 500, rtol=1e-3)


@pytest.mark.parametrize("kind", ["ridge", "lda"])
def test_the_calibration_without_labels_is_the_one_with_labels(kind):
    F, y = rows_of(20_000)
    public, _ = rows_of(20_000, seed=2)
    sums = sums_of(F, y)
    head = ridge_head(sums, 0.01)[0] if kind == "ridge" else lda_head(sums, 0.01)
    found = calibrate(head, sums, public)
    loss, slope, _ = fit_slope(F @ head.weights, np.eye(3)[y])
    np.testing.assert_allclose(found.weights, slope * head.weights, atol=0.05 * np.abs(slope * head.weights).max())
    assert found.log_loss == pytest.approx(loss, abs=0.01)
    test, truth = rows_of(20_000, seed=3)
    real = -np.log(found.probabilities(test)[np.arange(len(test)), truth]).mean()
    assert found.log_loss == pytest.approx(real, abs=0.02)


@pytest.mark.parametrize("spread", [1.0, 2.0])
def test_what_a_head_should_cost_is_near_what_it_costs_on_new_rows_also_where_rows_are_few(spread):
    losses, real = [], []
    for seed in range(20):
        F, y = rows_of(60, spread=spread, seed=seed)
        public, _ = rows_of(500, spread=spread, seed=100 + seed)
        head = solve(sums_of(F, y), public, [7])
        test, truth = rows_of(2000, spread=spread, seed=200 + seed)
        losses.append(head.log_loss)
        real.append(-np.log(head.probabilities(test)[np.arange(len(test)), truth]).mean())
    assert np.mean(losses) == pytest.approx(np.mean(real), abs=0.15)
