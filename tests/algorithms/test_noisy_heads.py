"""Heads of noisy sums: shrunk as the noise asks for, and public rows of other class shares are weighed."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fedkt.algorithms.heads import CalibratedHead, Sums
from fedkt.algorithms.noisy_heads import RAREST, class_weights, distance, posterior_head, solve_noisy

CENTRES = np.array([[1.0, 0, 0, 0], [-1.0, 0.5, 0, 0]])
SCALES = np.array([1.0, 0.7, 0.3, 0.1])


def draw(count, shares, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(2, size=count, p=shares)
    return np.column_stack([np.ones(count), CENTRES[y] + SCALES * rng.normal(size=(count, 4))]) / [1, 4, 4, 4, 4], y


def noisy(F, y, public, deviation, seed=0):
    moments = F.T @ np.eye(2)[y]
    moments = moments + np.random.default_rng(seed).normal(size=moments.shape) * deviation
    gram = public.T @ public * moments[0].sum() / len(public)
    return Sums(moments, gram, deviation**2)


def test_with_little_noise_the_head_is_that_of_least_squares():
    F, y = draw(50_000, [0.6, 0.4], 1)
    head = posterior_head(noisy(F, y, F, 1.0), len(F))
    expected, *_ = np.linalg.lstsq(F, np.eye(2)[y], rcond=None)
    expected -= expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(F @ head.weights, F @ expected, atol=0.02)


def test_directions_that_drown_in_noise_are_left_out():
    F, y = draw(5_000, [0.6, 0.4], 1)
    weak = [np.abs(posterior_head(noisy(F, y, F, 300.0, seed), 5_000).weights[4]).max() for seed in range(20)]
    plain = [np.abs(np.linalg.solve(F.T @ F, noisy(F, y, F, 300.0, seed).moments)[4]).max() for seed in range(20)]
    assert np.median(weak) < np.median(plain) / 5


def test_the_agreement_is_that_with_new_noise_taken_off():
    F, y = draw(5_000, [0.6, 0.4], 1)
    found, true = [], []
    for seed in range(200):
        head = posterior_head(noisy(F, y, F, 60.0, seed), 5_000)
        found.append(head.agreement)
        true.append((F @ head.weights)[np.arange(len(y)), y].mean())
    assert np.mean(found) == pytest.approx(np.mean(true), abs=0.03)


def test_public_rows_of_other_class_shares_are_seen_through_the_noise_and_equal_ones_are_not():
    F, y = draw(5_000, [0.6, 0.4], 1)
    same, _ = draw(2_000, [0.6, 0.4], 2)
    other, _ = draw(2_000, [0.95, 0.05], 3)
    assert [distance(noisy(F, y, same, 20.0, seed), same) for seed in range(5)] == [0.0] * 5
    # The means of the classes are 1.25² + … apart; 0.35 of that way, against what rows vary around their mean.
    gap = 0.35**2 * ((CENTRES[0] - CENTRES[1]) ** 2).sum()
    assert distance(noisy(F, y, other, 1.0), other) == pytest.approx(
        gap / (16 * other[:, 1:].var(axis=0).sum()), rel=0.2
    )


def test_rows_weigh_as_the_parties_classes_are_more_frequent_up_to_a_limit():
    public, truth = draw(20_000, [0.8, 0.2], 4)
    densities = np.column_stack(
        [multivariate_normal(centre, np.diag(SCALES**2)).logpdf(public[:, 1:] * 4) for centre in CENTRES]
    )
    # The probabilities of the true densities where both classes are as frequent, as a head over these densities.
    head = CalibratedHead("true", np.eye(2), np.zeros(2), 0.0)
    weights = class_weights(head, np.array([0.5, 0.5]), densities)
    assert weights.sum() == pytest.approx(1)
    parties, _ = draw(20_000, [0.5, 0.5], 7)
    np.testing.assert_allclose(weights @ public, parties.mean(axis=0), atol=0.01)
    strange = class_weights(head, np.array([0.5, 0.5]), densities[truth == 0])
    assert strange.max() / strange.min() <= 2 * RAREST


def test_weighing_mends_a_head_of_public_rows_with_other_class_shares():
    F, y = draw(20_000, [0.5, 0.5], 1)
    test, _ = draw(5_000, [0.5, 0.5], 5)
    same, _ = draw(3_000, [0.5, 0.5], 6)
    other, _ = draw(3_000, [0.8, 0.2], 3)
    wanted = solve_noisy(noisy(F, y, same, 5.0), same).probabilities(test).argmax(axis=1)
    weighed = solve_noisy(noisy(F, y, other, 5.0), other).probabilities(test).argmax(axis=1)
    plain = (test @ posterior_head(noisy(F, y, other, 5.0), 3_000).weights).argmax(axis=1)
    assert np.mean(plain != wanted) > 0.02
    assert np.mean(weighed != wanted) < 0.02
