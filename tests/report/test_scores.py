"""How good the models of a run are, in its report."""

import json

import numpy as np
import pytest

from fedkt.lab.results import read_report
from fedkt.models.base import FittedModel
from fedkt.privacy import statement
from fedkt.quality import measure_quality, verdicts
from fedkt.report import RunLog, build_report, figure_of, figures_alone, qualities

FACTS = {
    "dataset": "wards",
    "algorithm": "fedkt",
    "model": "tree",
    "parties": 2,
    "partitions": 1,
    "subsets": 5,
    "seed": 7,
    "bytes_sent": None,
}
ALWAYS_NO = measure_quality([0] * 78 + [1] * 22, [0] * 100, ["no", "yes"], [[0.9, 0.1]] * 100)


class Always:
    """Says the first column, with 80 %."""

    classes_ = np.arange(2)

    def predict(self, rows):
        return rows[:, 0].astype(int)

    def predict_proba(self, rows):
        return np.where(rows[:, :1] == [0, 1], 0.8, 0.2)


class OnlyNames:
    def predict(self, rows):
        return rows[:, 0].astype(int)


def test_a_useless_model_says_so_in_its_report_and_first():
    report = build_report(statement("L0", None), RunLog(notes=("later",)), quality=ALWAYS_NO, notes=("next",), **FACTS)
    assert (report.accuracy, report.balanced_accuracy) == (0.78, 0.5)
    assert report.notes == (*verdicts(ALWAYS_NO), "next", "later")
    text = str(report)
    assert "ATTENTION: The model is no better than always naming 'no'" in text
    assert "note: The model" not in text
    assert "Right on 78.0 % (68.9 to 85.0 %) of 100 rows; always naming 'no' is right on 78.0 %." in text
    assert "AUC, one class against the rest: 50.0 %" in text


def test_a_report_with_its_quality_is_read_back_from_json():
    report = build_report(statement("L0", None), RunLog(), quality=ALWAYS_NO, **FACTS)
    values = json.loads(json.dumps(report.as_dict()))
    assert read_report(values) == report
    del values["quality"], values["alone"]
    assert read_report(values).quality is None


def test_models_are_measured_with_their_probabilities_where_they_have_any():
    rows, y = np.array([[0], [1], [1], [0]]), np.array([0, 1, 0, 0])
    soft, hard = qualities(
        [FittedModel(Always(), np.arange(2)), FittedModel(OnlyNames(), np.arange(2))], rows, y, ["no", "yes"]
    )
    assert soft.accuracy.value == hard.accuracy.value == 0.75
    assert soft.calibration_error == pytest.approx(0.05)
    assert hard.calibration_error is None
    assert soft.classes == ("no", "yes")


def test_parties_alone_have_a_mean_and_one_weighted_by_their_rows():
    """Accuracies 1 and .5 of parties of 30 and 10 rows: .75 and .875."""
    right = measure_quality([0, 1, 0, 1], [0, 1, 0, 1], [0, 1])
    half = measure_quality([0, 1, 0, 1], [0, 0, 0, 0], [0, 1], [[0.5, 0.5]] * 4)
    figures = figures_alone([right, half], [30, 10])
    assert figures["accuracy"] == {"mean": 0.75, "by_rows": 0.875}
    # Only one of them gives probabilities.
    assert figures["auc"] == {"mean": 0.5, "by_rows": 0.5}
    report = build_report(
        statement("L0", None), RunLog(), accuracy=0.75, balanced_accuracy=0.75, alone=figures, **FACTS
    )
    assert (figure_of(report, "accuracy"), figure_of(report, "accuracy", by_rows=True)) == (0.75, 0.875)
    assert figure_of(report, "majority") == 0.5
    assert "weighted by the parties' rows: accuracy 0.875" in str(report)


def test_what_was_not_measured_is_not_known():
    report = build_report(statement("L0", None), RunLog(), accuracy=0.75, balanced_accuracy=None, **FACTS)
    assert (figure_of(report, "accuracy"), figure_of(report, "auc"), figure_of(report, "majority")) == (
        0.75,
        None,
        None,
    )
