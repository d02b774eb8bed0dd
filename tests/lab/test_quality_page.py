"""The tables, pictures and page of one model's quality."""

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from fedkt.lab.quality_figures import quality_pictures
from fedkt.lab.quality_page import quality_opening, render_quality_page
from fedkt.lab.quality_tables import (
    calibration_grid,
    class_grid,
    comparison_grid,
    comparison_words,
    confusion_grid,
    figures_grid,
    narrow_comparison_grid,
)
from fedkt.quality import compare_accuracy, measure_quality

ALWAYS_NO = measure_quality([0] * 78 + [1] * 22, [0] * 100, ["no", "yes"], [[0.78, 0.22]] * 100)
TRUTH = np.repeat([0, 1], 100)
LABELS = np.where(np.arange(200) % 10 == 0, 1 - TRUTH, TRUTH)
GOOD = measure_quality(TRUTH, LABELS, ["no", "yes"], np.where(LABELS[:, None] == [0, 1], 0.9, 0.1))


def words_of(html):
    text = re.sub(r"<svg.*?</svg>|<style.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)
    return " ".join(text.replace("&#39;", "'").split())


def cells(grid):
    return [[str(cell) for cell in line] for line in grid.lines]


def test_the_majority_stands_beside_the_accuracy():
    """78 of 100: by Wilson's formula 68.9 to 85.0."""
    lines = cells(figures_grid(ALWAYS_NO))
    assert lines[0] == ["Accuracy", "78.0 %", "68.9 to 85.0"]
    assert lines[1] == ["Always naming no", "78.0 %", ""]
    assert lines[2][:2] == ["Balanced accuracy", "50.0 %"]
    assert lines[3][:2] == ["AUC", "50.0 %"]
    # The entropy of .78 and .22, which constant shares reach exactly.
    assert lines[4] == ["Log loss", "0.527", "shares alone 0.527"]
    assert lines[5] == ["Calibration error", "0.0 %", ""]


def test_a_model_without_probabilities_says_so():
    grid = figures_grid(measure_quality([0, 1], [0, 1], ["a", "b"]))
    assert len(grid.lines) == 3
    assert "no probabilities" in grid.caption


def test_each_class_has_its_recall_and_precision_and_a_dash_where_there_is_none():
    assert cells(class_grid(ALWAYS_NO)) == [
        ["no", "78", "100", "100.0", "78.0", "50.0"],
        ["yes", "22", "0", "0.0", "–", "50.0"],
    ]


def test_the_matrix_has_a_line_for_each_class_and_a_column_for_what_it_is_called():
    assert confusion_grid(ALWAYS_NO).head == ["Is ↓ called →", "no", "yes"]
    assert cells(confusion_grid(ALWAYS_NO)) == [["no", "78", "0"], ["yes", "22", "0"]]


def test_of_many_classes_the_worst_and_the_most_frequent_mistakes_are_shown():
    truth = np.arange(50).repeat(4)
    labels = truth.copy()
    labels[4:8], labels[8] = 7, 9
    quality = measure_quality(truth, labels, [f"class {number}" for number in range(50)])
    shown = class_grid(quality)
    assert len(shown.lines) == 12
    assert shown.caption.startswith("The 12 of 50 classes that are found least.")
    assert cells(shown)[1][:4] == ["class 1", "4", "0", "0.0"]
    assert cells(confusion_grid(quality)) == [["class 1", "class 7", "4", "100.0"], ["class 2", "class 9", "1", "25.0"]]


def test_ten_thousand_classes_have_a_page_of_bearable_length():
    truth = np.arange(10_000).repeat(2)
    quality = measure_quality(truth, np.roll(truth, 1), range(10_000))
    assert confusion_grid(quality).lines == []
    assert len(render_quality_page("many", quality)) < 60_000


def test_a_calibration_table_has_a_line_for_each_bin_with_rows():
    assert cells(calibration_grid(GOOD)) == [["90.0", "90.0", "200"]]


def test_a_useless_model_opens_its_page_with_that():
    html = render_quality_page("final.onnx", ALWAYS_NO)
    words = words_of(html)
    assert 'class="headline warning"' in html
    first = words.index("no better than always naming 'no'")
    assert first < words.index("Class 'yes' is never predicted") < words.index("Balanced accuracy")


def test_a_good_model_opens_its_page_with_that():
    """180 of 200 right: by Wilson's formula 85.1 to 93.4."""
    html = render_quality_page("final.onnx", GOOD, facts=[("File", "rows.csv")])
    assert 'class="headline warning"' not in html
    words = words_of(html)
    assert "better than always naming 'no': it is right on 90.0 % (85.1 to 93.4 %) of the rows" in words
    assert "File rows.csv" in words


def test_other_models_stand_beside_it_and_a_better_one_is_a_warning():
    against = compare_accuracy(TRUTH, LABELS, TRUTH)
    html = render_quality_page("final.onnx", GOOD, comparisons=[("mine.onnx", against)])
    words = words_of(html)
    assert 'class="headline warning"' in html
    assert "WORSE than mine.onnx on these rows: -10.0 points" in words
    assert cells(comparison_grid([("mine.onnx", against)]))[0][3:] == ["0", "20"]
    equal = compare_accuracy(TRUTH, LABELS, LABELS)
    assert comparison_words("mine.onnx", equal).startswith("Cannot be told apart from mine.onnx")
    better = compare_accuracy(TRUTH, TRUTH, LABELS)
    assert comparison_words("mine.onnx", better).startswith("Better than mine.onnx")


def test_names_of_strangers_stay_text():
    evil = "<script>alert(1)</script>"
    quality = measure_quality([0, 1] * 20, [0] * 40, [evil, "b"], [[0.5, 0.5]] * 40)
    html = render_quality_page(
        evil, quality, comparisons=[(evil, compare_accuracy([0], [0], [0]))], facts=[(evil, evil)]
    )
    assert "<script" not in html


def test_pictures_are_described_and_the_same_for_the_same_figures():
    interval, calibration, confusion = quality_pictures(ALWAYS_NO)
    assert "Accuracy 78.0 % (68.9 to 85.0), always “no” 78.0 %" in interval.words
    assert calibration.words == "100 rows at 78 % are right in 78 %."
    assert confusion.words == "no: 78 of 78 found; yes: 0 of 22 found."
    for first, second in zip(quality_pictures(ALWAYS_NO), quality_pictures(ALWAYS_NO), strict=True):
        assert first.svg() == second.svg()


def test_of_many_other_models_the_opening_counts_and_the_table_names_them():
    """One better, one alike and two worse than the model, which is wrong on 20 rows of 200.

    Agresti and Min of 0 and 20: -20/202 -+ 1.96 sqrt(21 - 400/202)/202, which is -9.90 -+ 4.23 points.
    """
    half = np.where(np.arange(200) % 2 == 0, 1 - TRUTH, TRUTH)
    others = {"perfect": TRUTH, "alike": LABELS, "half": half, "other half": 1 - half}
    against = [(name, compare_accuracy(TRUTH, LABELS, labels)) for name, labels in others.items()]
    html = render_quality_page("final.onnx", GOOD, comparisons=against)
    opening, _, rest = html.partition('<div class="pair">')
    assert (
        "better than 2 of 4 other models on these rows and worse than 1; the other 1 cannot be told apart"
        in words_of(opening)
    )
    assert "perfect" not in opening
    assert 'class="headline warning"' in opening
    assert all(f'<th scope="row">{name}</th>' in rest for name in others)
    # With its interval under it a figure takes one column, as a phone has room for four.
    head = [word.replace("\n", " ") for word in narrow_comparison_grid(against).head]
    assert head == ["Other model", "Points (95 % between)", "Only this right", "Only the other"]
    assert cells(narrow_comparison_grid(against))[0][1:] == ["-10.0 (-14.1 to -5.7)", "0", "20"]


def test_how_often_the_model_is_right_follows_its_verdicts_and_not_what_others_do():
    truth = np.repeat([0, 1], 100)
    labels = np.where(np.arange(200) % 10 == 0, 1 - truth, truth)
    unsure = measure_quality(truth, labels, ["no", "yes"], np.where(labels[:, None] == [0, 1], 0.6, 0.4))
    sentences = quality_opening(unsure, [("mine.onnx", compare_accuracy(truth, labels, labels))])["sentences"]
    assert [each.split(" ")[0] for each in sentences] == ["The", "Right", "Cannot"]


def test_a_line_does_not_end_between_a_number_and_its_sign():
    opening = render_quality_page("final.onnx", GOOD).partition("<h3>")[0].partition('class="headline')[2]
    assert "90.0\u00a0%" in opening
