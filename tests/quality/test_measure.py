"""The figures of a model, beside those of scikit-learn and by hand."""

import json
import math

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

from fedkt.errors import DataError
from fedkt.quality import Quality, measure_quality
from fedkt.quality.intervals import auc_interval


def random_answers(rows=500, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    scores = rng.normal(size=(rows, classes)) + 1.5 * np.eye(classes)[truth]
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return truth, probabilities.argmax(axis=1), probabilities


def test_the_figures_are_those_of_scikit_learn():
    truth, labels, probabilities = random_answers()
    quality = measure_quality(truth, labels, list("abcd"), probabilities)
    assert quality.accuracy.value == pytest.approx(np.mean(truth == labels))
    assert quality.balanced_accuracy.value == pytest.approx(balanced_accuracy_score(truth, labels))
    assert quality.confusion == tuple(map(tuple, confusion_matrix(truth, labels)))
    assert quality.recall == pytest.approx(recall_score(truth, labels, average=None))
    assert quality.precision == pytest.approx(precision_score(truth, labels, average=None))
    assert quality.auc.value == pytest.approx(roc_auc_score(truth, probabilities, multi_class="ovr"))
    assert quality.log_loss == pytest.approx(log_loss(truth, probabilities))
    shares = np.bincount(truth) / len(truth)
    assert quality.share_log_loss == pytest.approx(log_loss(truth, np.tile(shares, (len(truth), 1))))
    assert quality.majority == pytest.approx(shares.max())


def test_equal_probabilities_count_half_in_an_area():
    rng = np.random.default_rng(2)
    truth, upper = rng.integers(0, 2, 300), rng.integers(0, 5, 300) / 4
    quality = measure_quality(truth, upper > 0.5, ["a", "b"], np.column_stack([1 - upper, upper]))
    assert quality.auc_by_class == pytest.approx((roc_auc_score(truth, upper),) * 2)


def test_accuracy_has_wilsons_interval():
    """8 of 10: by Wilson's formula .4902 to .9433, as textbooks print it."""
    quality = measure_quality([0] * 5 + [1] * 5, [0] * 4 + [1] * 5 + [0], ["a", "b"])
    assert (quality.accuracy.value, quality.accuracy.low, quality.accuracy.high) == pytest.approx(
        (0.8, 0.4902, 0.9433), abs=1e-4
    )


def test_a_model_that_is_always_right_is_not_taken_for_certain():
    """Wilson's lower bound for n of n is n / (n + z²)."""
    quality = measure_quality([0] * 5 + [1] * 5, [0] * 5 + [1] * 5, ["a", "b"], [[1, 0]] * 5 + [[0, 1]] * 5)
    assert quality.accuracy.low == pytest.approx(10 / (10 + 1.959964**2))
    assert quality.accuracy.high == 1
    # Both recalls are 5 of 5; two independent halves give 1 / sqrt(2) of the distance of one.
    assert quality.balanced_accuracy.low == pytest.approx(1 - (1 - 5 / (5 + 1.959964**2)) / math.sqrt(2))
    assert quality.auc.value == 1
    assert 0.5 < quality.auc.low < 0.95


def test_the_bounds_of_an_area_lie_its_own_standard_errors_away():
    positives, negatives = 50, 70
    auc = auc_interval(0.9, positives, negatives)
    more = 120 / 2 - 1
    for bound in (auc.low, auc.high):
        error = math.sqrt(
            bound
            * (1 - bound)
            * (1 + more * (1 - bound) / (2 - bound) + more * bound / (1 + bound))
            / (positives * negatives)
        )
        assert abs(auc.value - bound) == pytest.approx(1.959964 * error, rel=1e-5)


def test_intervals_hold_the_true_value_about_as_often_as_they_say():
    """Scores of two normal distributions one apart have an area of Φ(1 / √2) = .7602."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        truth = np.repeat([0, 1], 30)
        score = rng.normal(size=60) + truth
        upper = 1 / (1 + np.exp(-score))
        auc = measure_quality(truth, score > 0.5, [0, 1], np.column_stack([1 - upper, upper])).auc
        held += auc.low <= 0.7602 <= auc.high
    assert 180 <= held <= 199


def test_calibration_is_judged_on_the_likeliest_class_in_ten_bins():
    """Four rows at .95, three right: off by .2; six at .65, all right: off by .35. In all (4 · .2 + 6 · .35) / 10."""
    probabilities = [[0.95, 0.05]] * 4 + [[0.35, 0.65]] * 6
    quality = measure_quality([0, 0, 0, 1] + [1] * 6, [0] * 4 + [1] * 6, ["no", "yes"], probabilities)
    assert quality.calibration_error == pytest.approx(0.29)
    assert [each.rows for each in quality.calibration_curve] == [6, 4]
    assert [each.probability for each in quality.calibration_curve] == pytest.approx([0.65, 0.95])
    assert [each.right for each in quality.calibration_curve] == pytest.approx([1.0, 0.75])


def test_labels_that_are_not_the_likeliest_class_do_not_change_what_probabilities_say():
    probabilities = [[0.7, 0.3]] * 10
    moved = measure_quality([0] * 7 + [1] * 3, [1] * 10, ["no", "yes"], probabilities)
    assert moved.accuracy.value == pytest.approx(0.3)
    assert moved.calibration_error == pytest.approx(0)


def test_a_class_that_the_rows_do_not_have_has_no_recall_and_no_area():
    quality = measure_quality([0, 0, 1, 1], [0, 2, 1, 1], ["a", "b", "c"], np.full((4, 3), 1 / 3))
    assert quality.recall == (0.5, 1.0, None)
    assert quality.precision == (1.0, 1.0, 0.0)
    assert quality.balanced_accuracy.value == pytest.approx(0.75)
    assert quality.auc_by_class == (0.5, 0.5, None)
    assert quality.auc.value == 0.5


def test_a_class_that_is_never_said_has_no_precision():
    assert measure_quality([0, 1], [0, 0], ["a", "b"]).precision == (0.5, None)


def test_rows_of_one_class_have_no_area_and_still_a_log_loss():
    quality = measure_quality([1, 1], [1, 0], ["a", "b"], [[0.5, 0.5], [0.75, 0.25]])
    assert quality.auc is None
    assert quality.log_loss == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert quality.majority == 1
    assert quality.majority_class == "b"


def test_one_row_can_be_measured():
    quality = measure_quality([1], [1], ["a", "b"], [[0.25, 0.75]])
    assert (quality.rows, quality.accuracy.value, quality.auc) == (1, 1.0, None)
    assert quality.accuracy.low == pytest.approx(1 / (1 + 1.959964**2))


def test_without_probabilities_nothing_is_said_about_them():
    quality = measure_quality([0, 1], [0, 1], ["a", "b"])
    assert (quality.auc, quality.log_loss, quality.share_log_loss, quality.calibration_error) == (None,) * 4
    assert quality.calibration_curve == ()


def test_a_probability_of_zero_for_the_truth_costs_much_and_not_everything():
    zeros = np.array([[1, 0], [1, 0]], dtype=np.float32)
    quality = measure_quality([1, 0], [0, 0], ["a", "b"], zeros)
    assert quality.log_loss == pytest.approx(log_loss([1, 0], zeros), rel=1e-6)
    assert math.isfinite(quality.log_loss)


@pytest.mark.parametrize(
    ("truth", "labels", "probabilities", "words"),
    [
        ([0, float("nan")], [0, 1], None, "Row 1 has no true class"),
        ([0, 1], [0, float("nan")], None, "Row 1 has no label"),
        ([0, 2], [0, 1], None, "true class of row 1 is 2, but there are 2 classes"),
        ([0, 1], [0, -1], None, "label of row 1 is -1"),
        (["no", "yes"], [0, 1], None, "must be the index of a class"),
        ([0, 1], [0], None, "1 labels for 2 rows"),
        ([], [], None, "no rows"),
        ([0, 1], [0, 1], [[1, 0], [float("nan"), 1]], "row 1 add up to nan"),
        ([0, 1], [0, 1], [[0.5, 0.2], [0, 1]], "row 0 add up to 0.7"),
        ([0, 1], [0, 1], [[1.5, -0.5], [0, 1]], "-0.5 as its smallest"),
        ([0, 1], [0, 1], [[1, 0]], "shape"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_words(truth, labels, probabilities, words):
    with pytest.raises(DataError, match=words):
        measure_quality(truth, labels, ["no", "yes"], probabilities)


def test_figures_go_through_json_and_back():
    truth, labels, probabilities = random_answers(rows=50)
    for given in (None, probabilities):
        quality = measure_quality(truth, labels, ["a", np.str_("b"), np.int64(3), 4], given)
        assert quality.classes == ("a", "b", 3, 4)
        assert Quality.from_dict(json.loads(json.dumps(quality.as_dict()))) == quality


def test_what_is_no_quality_is_refused_in_words():
    for values in ({}, {"rows": 3}, [], None, {**measure_quality([0], [0], ["a"]).as_dict(), "accuracy": 0.5}):
        with pytest.raises(DataError, match="not the figures of a model's quality"):
            Quality.from_dict(values)


def test_ten_thousand_classes_have_figures_and_no_matrix():
    truth = np.arange(10_000).repeat(2)
    quality = measure_quality(truth, np.roll(truth, 1), range(10_000))
    assert quality.confusion == ()
    assert quality.accuracy.value == 0.5
    assert quality.recall == (0.5,) * 10_000


def test_an_area_of_classes_that_scatter_differently_lies_within_its_limits():
    """40 rows whose scores scatter a lot among 400 others: the area alone does not tell how far it may be off."""
    rng = np.random.default_rng(0)
    truth = np.repeat([1, 0], [40, 400])
    area = scipy.stats.norm.cdf(1.5 / np.hypot(3, 0.3))
    held = 0
    for _ in range(300):
        score = scipy.stats.norm.cdf(np.concatenate([rng.normal(1.5, 3, 40), rng.normal(0, 0.3, 400)]))
        auc = measure_quality(truth, score > 0.5, [0, 1], np.column_stack([1 - score, score])).auc
        held += auc.low <= area <= auc.high
    assert held / 300 > 0.91


def test_a_single_row_of_a_class_has_limits():
    scores = np.array([0.9, 0.1, 0.2, 0.95])
    auc = measure_quality(np.array([1, 0, 0, 0]), scores > 0.5, [0, 1], np.column_stack([1 - scores, scores])).auc
    assert auc.value == pytest.approx(2 / 3)
    assert auc.low < 0.3
