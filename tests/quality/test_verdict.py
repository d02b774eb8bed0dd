"""What a reader is told: every useless model is called so."""

import numpy as np

from fedkt.quality import measure_quality, verdicts


def words_about(truth, labels, classes=("no", "yes"), probabilities=None):
    return verdicts(measure_quality(truth, labels, classes, probabilities))


def test_a_model_that_always_names_one_class_is_said_to_be_no_better_and_to_lose_the_other():
    majority, lost = words_about([0] * 78 + [1] * 22, [0] * 100)
    assert majority == (
        "The model is no better than always naming 'no': it is right on 78.0 % of the rows, always naming 'no' on "
        "78.0 %."
    )
    assert lost == "Class 'yes' is never predicted, though 22 of the 100 rows are of it."


def test_a_good_model_has_nothing_to_be_said_against_it():
    truth = np.repeat([0, 1], 100)
    labels = truth.copy()
    labels[:5] = 1
    certain = np.where(labels[:, None] == [0, 1], 0.95, 0.05)
    assert words_about(truth, labels, probabilities=certain) == ()


def test_a_model_whose_interval_holds_the_majority_cannot_be_told_apart_from_it():
    """71 of 100 right, 70 by always naming "no"."""
    truth = [0] * 70 + [1] * 30
    labels = [0] * 55 + [1] * 15 + [1] * 16 + [0] * 14
    (words,) = words_about(truth, labels)
    assert words.startswith("The model cannot be told apart from always naming 'no': it is right on 71.0 % (61.")
    assert "always naming 'no' on 70.0 %" in words


def test_a_model_that_is_less_often_right_and_tells_the_classes_apart_is_given_that():
    """900 of one class, 100 of the other; recall .8 and .9."""
    truth = [0] * 900 + [1] * 100
    labels = [0] * 720 + [1] * 180 + [1] * 90 + [0] * 10
    (words,) = words_about(truth, labels)
    assert "no better than always naming 'no'" in words
    assert words.endswith("mean over the classes, is 85.0 %, where guessing finds 50.0 %.")


def test_rows_of_one_class_show_nothing():
    (words,) = words_about([0] * 50, [0] * 50)
    assert words == "All 50 rows are of class 'no': they cannot show whether the model tells classes apart."
    (single,) = words_about([1], [1])
    assert single.startswith("This is a single row")


def test_few_rows_are_said_to_be_few():
    assert any("only 12 rows" in words for words in words_about([0, 1] * 6, [0, 1] * 6))


def test_a_class_that_is_missed_more_often_than_found_is_named():
    truth = [0] * 60 + [1] * 40
    labels = [0] * 60 + [1] * 19 + [0] * 21
    assert words_about(truth, labels) == (
        "Class 'yes' is missed more often than found: of 40 rows the model finds 19.",
    )


def test_of_many_classes_only_some_are_named():
    truth = np.arange(10_000).repeat(2)
    words = words_about(truth, np.zeros(20_000, dtype=int), range(10_000))
    assert "9999 classes" in words[1].replace(",", "")
    assert max(map(len, words)) < 300


def test_long_names_of_strangers_are_cut():
    words = words_about([0, 1] * 20, [0] * 40, ("n" * 1000, "y" * 1000))
    assert max(map(len, words)) < 400


def test_probabilities_that_are_too_sure_are_said_to_be():
    """Always 99 %, right on 70 %."""
    truth = np.array([0, 1] * 100)
    likeliest = truth.copy()
    likeliest[:60] = 1 - likeliest[:60]
    sure = np.where(likeliest[:, None] == [0, 1], 0.99, 0.01)
    words = words_about(truth, likeliest, probabilities=sure)
    assert any("too sure of itself" in each and "99 %" in each and "70 % of the rows" in each for each in words)
    assert any("worse than none" in each for each in words)


def test_a_calibration_error_that_chance_explains_is_not_held_against_a_model():
    """Ten rows at 60 %, eight right, are off by 20 points; so may a coin of 60 % be."""
    words = words_about(
        [0, 1] * 5, [0, 1] * 4 + [1, 0], probabilities=[[0.6, 0.4], [0.4, 0.6]] * 4 + [[0.4, 0.6], [0.6, 0.4]]
    )
    assert not any("far off" in each for each in words)
