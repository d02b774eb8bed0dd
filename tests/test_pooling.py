"""The arithmetic of expert voting, against answers worked out by hand or exactly."""

from __future__ import annotations

import numpy as np
import pytest

from fedkt.pooling import (
    TOLERANCE,
    distance,
    expected_shares,
    label_shares,
    limit_label_drift,
    misfits,
    pooled_posterior,
    shares_of,
    tolerance_for,
    with_shares,
)


def label_shift(seed: int, *, parties: int = 6, classes: int = 4, rows: int = 500):
    """Counts, each party's perfect posterior and that of the pooled rows; parties differ in class shares only."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 60, (parties, classes)) * (rng.random((parties, classes)) < 0.7)
    counts[:, 0] += 1
    counts[0] += 1
    densities = rng.gamma(0.3, 1.0, (rows, classes)) + 1e-3
    own = [density_rows(densities * each) for each in counts]
    return counts, own, density_rows(densities * counts.sum(axis=0))


def density_rows(values):
    return values / values.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_under_label_shift_the_fixed_point_is_the_pooled_posterior(seed, monkeypatch):
    counts, own, pooled = label_shift(seed)
    monkeypatch.setattr("fedkt.pooling.CONVERGED", 0.0)
    monkeypatch.setattr("fedkt.pooling.MOST_ROUNDS", 5_000)
    monkeypatch.setattr("fedkt.pooling.BLOCK_VALUES", 2_000)
    found = pooled_posterior(own, shares_of(counts))
    assert np.abs(found - pooled).max() < 1e-5
    assert np.abs(np.mean(own, axis=0) - pooled).max() > 0.1, "a plain mean is far from it"
    monkeypatch.undo()
    soon = pooled_posterior(own, shares_of(counts))
    assert np.mean(soon.argmax(axis=1) == pooled.argmax(axis=1)) > 0.99


def test_the_pooled_posterior_stays_where_it_is():
    counts, own, pooled = label_shift(9)
    weights = density_rows(pooled @ shares_of(counts).T)
    assert np.allclose(np.einsum("mi,imk->mk", weights, np.stack(own)), pooled)


def test_shares_are_a_partys_part_of_each_class():
    assert shares_of([[3, 0, 0], [1, 5, 0]]).tolist() == [[0.75, 0.0, 0.5], [0.25, 1.0, 0.5]]


@pytest.mark.parametrize("counts", [[[1, -1]], [[1.0, np.nan]], [], [1, 2]], ids=["negative", "NaN", "nobody", "flat"])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="Counts are"):
        shares_of(counts)


def test_a_perfect_student_fits_its_partys_counts_and_no_others():
    counts, own, pooled = label_shift(3)
    means = np.mean(own, axis=1)
    assert max(misfits(means, counts, pooled)) < 1e-9
    turned = [counts[0][::-1], *counts[1:]]
    assert misfits(means, np.array(turned), pooled)[0] > 0.1


def test_how_far_parties_are_off_is_the_same_the_slow_way(monkeypatch):
    counts, own, pooled = label_shift(7)
    # Nobody speaks for one row, and the last party has none of the only class that others speak for on another.
    counts[-1, 2], pooled[3], pooled[4] = 0, 0.0, [0.0, 0.0, 1.0, 0.0]
    means = np.mean(own, axis=1)[::-1]
    slow = []
    for said, mine in zip(means, counts, strict=True):
        expected = np.zeros(4)
        for row in pooled:
            weighed = row * mine / counts.sum(axis=0)
            expected += weighed / weighed.sum() if weighed.sum() > 0 else 0.25
        slow.append(np.abs(said - expected / len(pooled)).sum() / 2)
    assert misfits(means, counts, pooled) == pytest.approx(slow, abs=1e-12)
    monkeypatch.setattr("fedkt.pooling.BLOCK_VALUES", 100)
    assert misfits(means, counts, pooled) == pytest.approx(slow, abs=1e-12)


def test_of_two_who_disagree_the_one_who_knows_the_class_is_believed():
    first, second = np.array([[0.9, 0.1]]), np.array([[0.1, 0.9]])
    shares = shares_of([[90, 10], [10, 90]])
    assert pooled_posterior([first, second], shares).tolist() == [[0.5, 0.5]]
    shares = shares_of([[90, 10], [10, 20]])
    assert pooled_posterior([first, second], shares)[0, 0] > 0.5
    assert pooled_posterior([second, first], shares)[0, 0] < 0.5


def test_two_classes_are_matched_by_a_cut():
    scores = np.stack([np.linspace(0.9, 0.6, 100), np.linspace(0.1, 0.4, 100)], axis=1)
    matched = with_shares(scores, np.array([0.7, 0.3]))
    assert label_shares(matched).tolist() == pytest.approx([0.7, 0.3], abs=0.011)
    assert matched.argmax(axis=1)[-30:].all(), "the rows that were nearest to the second class"


def test_many_classes_are_matched_as_nearly_as_can_be():
    scores = density_rows(np.random.default_rng(0).random((2_000, 5)) ** 3)
    prior = np.array([0.5, 0.3, 0.1, 0.09, 0.01])
    assert distance(label_shares(scores), prior) > 0.3
    assert distance(label_shares(with_shares(scores, prior)), prior) < 0.01


def test_a_row_that_nobody_speaks_for_stays_so():
    scores = np.array([[0.9, 0.1], [0.0, 0.0], *[[0.8, 0.2], [0.8, 0.2], [0.65, 0.35]] * 200])
    moved, strayed, left = limit_label_drift(scores)
    assert moved[1].tolist() == [0.0, 0.0]
    # Of the others three in four are the first class's, by what is said of them.
    assert strayed == pytest.approx(0.25, abs=0.001)
    assert left < strayed
    silent = np.zeros((3, 2))
    assert limit_label_drift(silent)[0] is silent


def test_labels_should_have_the_shares_that_the_classes_are_probable_with():
    scores = density_rows(np.random.default_rng(2).random((4_000, 3)) * [1.0, 1.0, 0.6])
    mean = scores.mean(axis=0)
    assert np.allclose(expected_shares(scores), mean)
    assert np.allclose(expected_shares(7 * scores), mean), "what is said of a row counts once, however loud it is said"


def test_labels_are_pulled_back_only_as_far_as_needed():
    scores = density_rows(np.random.default_rng(2).random((4_000, 3)) * [1.0, 1.0, 0.6])
    given, expected = label_shares(scores), expected_shares(scores)
    moved, strayed, left = limit_label_drift(scores)
    assert strayed == distance(given, expected) > 2 * TOLERANCE
    assert left == distance(label_shares(moved), expected) == pytest.approx(TOLERANCE, abs=0.005)
    again, strayed, _ = limit_label_drift(np.where(scores == scores.max(axis=1, keepdims=True), 1.0, 0.001))
    assert strayed < TOLERANCE
    assert np.array_equal(label_shares(again), given), "who is sure is left alone"


def test_scores_that_no_cut_brings_nearer_stay_as_they_are():
    """All rows are equal: they would go over to the other class together."""
    alike = np.array([[0.6, 0.4]] * 200)
    moved, strayed, left = limit_label_drift(alike)
    assert moved is alike
    assert strayed == left == pytest.approx(0.4)


def test_where_no_cut_comes_nearer_to_the_shares_the_first_class_keeps_its_rows():
    """All rows are alike and go together: three in four for the first class is nearer to all of them than to none."""
    alike = np.array([[0.6, 0.4]] * 20)
    assert np.allclose(with_shares(alike, np.array([0.75, 0.25])), alike)


def test_rows_with_one_class_only_are_not_overruled_and_equal_ones_not_torn_apart():
    """Votes: many rows have the same scores, and a cut through them would toss a coin for each."""
    unanimous = np.array([[1.0, 0.0]] * 30 + [[0.0, 1.0]] * 60)
    doubtful = np.array([[0.4, 0.6]] * 10)
    scores = np.concatenate([unanimous, doubtful])
    moved = with_shares(scores, np.array([0.5, 0.5]))
    assert moved.argmax(axis=1).tolist() == [0] * 30 + [1] * 60 + [0] * 10
    assert (np.sort(moved, axis=1)[:, 0] < np.sort(moved, axis=1)[:, 1]).all(), "no ties"
    assert with_shares(unanimous, np.array([0.5, 0.5])).argmax(axis=1).tolist() == [0] * 30 + [1] * 60
    three = np.array([[1.0, 0.0, 0.0]] * 50 + [[0.0, 1.0, 0.0]] * 50)
    assert label_shares(with_shares(three, np.array([0.2, 0.2, 0.6]))).tolist() == [0.5, 0.5, 0.0]


def test_a_few_rows_may_stray_by_chance():
    prior = np.full(10, 0.1)
    rng = np.random.default_rng(3)
    for n_rows in (50, 200):
        drawn = [distance(rng.multinomial(n_rows, prior) / n_rows, prior) for _ in range(300)]
        allowed = tolerance_for(prior, n_rows)
        assert allowed > TOLERANCE
        assert np.mean(np.array(drawn) <= allowed) > 0.95
    assert tolerance_for(prior, 100_000) == TOLERANCE


def test_ties_and_silence_are_no_ones_labels():
    assert label_shares(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist() == [0.75, 0.25]
