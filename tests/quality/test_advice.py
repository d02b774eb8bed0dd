"""Whoever is told that a class is missed is told how its labels can be moved."""

import re

import numpy as np
import pytest

from fedkt.live.predictions import labels_by_thresholds
from fedkt.quality import measure_quality, verdicts
from fedkt.quality.words import threshold_advice


def rare_class(rows=4_000):
    """Rows, labels and honest probabilities: one in five is of class 1, and hardly any is likelier than not."""
    drawn = np.random.default_rng(3)
    sure = drawn.beta(1.2, 4.8, rows)
    truth = (drawn.random(rows) < sure).astype(int)
    return truth, (sure >= 0.5).astype(int), np.column_stack([1 - sure, sure])


def test_a_missed_class_is_found_with_the_limit_that_is_advised():
    truth, labels, probabilities = rare_class()
    quality = measure_quality(truth, labels, ["no", "yes"], probabilities)
    assert any("Class 'yes' is missed more often than found" in each for each in verdicts(quality))
    words = threshold_advice(quality, "result/final.onnx")
    least = float(
        re.search(r"fedkt predict result/final\.onnx new\.csv --threshold yes=(0\.\d+) names 'yes'", words)[1]
    )
    # Of honest probabilities no limit has a better balanced accuracy than the share of the class.
    assert least == pytest.approx(truth.mean(), abs=0.01)
    moved = labels_by_thresholds(labels, probabilities, {1: least})
    better = measure_quality(truth, moved, ["no", "yes"], probabilities)
    assert better.recall[1] > 0.5 > quality.recall[1]
    assert better.balanced_accuracy.value > quality.balanced_accuracy.value
    assert threshold_advice(better) is None


@pytest.mark.parametrize("right", [60, 71, 95])
def test_the_advice_does_not_hang_on_how_the_model_stands_beside_the_majority(right):
    """Of 100 rows 70 are "no"; the model finds 5 of 30 "yes" and gets more or fewer of the others right."""
    truth = [0] * 70 + [1] * 30
    labels = [0] * min(right, 70) + [1] * (70 - min(right, 70)) + [1] * 5 + [0] * 25
    probabilities = np.full((100, 2), 0.5)
    words = threshold_advice(measure_quality(truth, labels, ["no", "yes"], probabilities))
    assert "--threshold yes=0.3 names 'yes' where it is at least 30 % probable" in words


def test_a_class_that_is_never_predicted_is_advised_on_too():
    truth, _, probabilities = rare_class()
    quality = measure_quality(truth, np.zeros(len(truth), int), ["no", "yes"], probabilities)
    assert "--threshold yes=" in threshold_advice(quality)


def test_without_probabilities_or_with_nothing_missed_there_is_no_advice():
    truth, labels, probabilities = rare_class()
    assert threshold_advice(measure_quality(truth, labels, ["no", "yes"])) is None
    assert threshold_advice(measure_quality(truth, truth, ["no", "yes"], probabilities)) is None
    only = measure_quality([1, 1], [0, 0], ["no", "yes"], [[0.9, 0.1]] * 2)
    assert threshold_advice(only) is None


def test_several_classes_have_a_limit_each_the_most_frequent_first_and_names_are_quoted_for_a_shell():
    truth = np.repeat([0, 1, 2, 3, 4], [40, 30, 15, 10, 5])
    quality = measure_quality(truth, np.zeros(100, int), ["a", "b's", "c d", "e", "f"], np.full((100, 5), 0.2))
    words = threshold_advice(quality, "my result/final.onnx")
    assert "fedkt predict 'my result/final.onnx' new.csv" in words
    assert """--threshold 'b'"'"'s=0.3' --threshold 'c d=0.15' --threshold e=0.1 names""" in words
    assert "f=" not in words


def test_a_limit_is_a_probability_that_can_be_reached():
    truth = np.repeat([0, 1], [999, 1])
    sure = np.column_stack([np.full(1000, 0.9), np.full(1000, 0.1)])
    assert "yes=0.01 " in threshold_advice(measure_quality(truth, np.zeros(1000, int), ["no", "yes"], sure))
    most = measure_quality(1 - truth, np.zeros(1000, int), ["no", "yes"], sure)
    assert "yes=0.5 " in threshold_advice(most)


def test_where_the_probabilities_do_not_tell_the_classes_apart_the_advice_says_so():
    truth, labels, probabilities = rare_class()
    never = np.zeros(len(truth), int)
    assert "no limit may help" not in threshold_advice(measure_quality(truth, labels, ["no", "yes"], probabilities))
    blind = measure_quality(truth, never, ["no", "yes"], np.full((len(truth), 2), 0.5))
    assert "not shown to tell the classes apart (AUC 50.0 % (" in threshold_advice(blind)
    turned = measure_quality(truth, never, ["no", "yes"], probabilities[:, ::-1])
    assert threshold_advice(turned).endswith("no limit may help.")
