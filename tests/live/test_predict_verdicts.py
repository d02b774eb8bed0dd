"""Predictions on labelled rows are judged as `fedkt evaluate` judges them, and probabilities also by what is known."""

import csv
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fedkt.live.final_file import read_final, write_final
from fedkt.models.base import fit_model
from fedkt.models.exchange import to_onnx, to_soft_onnx
from fedkt.plan import read_plan
from fedkt.privacy import statement
from fedkt.quality import Quality, probability_verdicts
from live_federation import NAMES, build, fedkt, party, server

FOUND = "The probabilities are far off, by 30 points on the average: the model is too sure of itself."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two final models of which only one gives probabilities, rows that turn every verdict on, and unlabelled ones."""
    folder = tmp_path_factory.mktemp("finals")
    build(folder)
    plan = read_plan(folder / "plan.toml")
    table = plan.columns.read(folder / "test.csv")
    X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
    model = fit_model(LogisticRegression(), X, y, rng=np.random.default_rng(0))
    options = {"n_features": X.shape[1], "n_classes": 2, "check_rows": X}
    promise = statement("L0", None)
    soft = write_final(to_soft_onnx(model, **options), plan, promise, probability_verdicts=[FOUND])
    (folder / "soft.onnx").write_bytes(soft)
    (folder / "hard.onnx").write_bytes(write_final(to_onnx(model, **options), plan, promise))
    with (folder / "test.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    with (folder / "turned.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        for line in lines:
            other = "benign" if line["diagnosis"] == "malignant" else "malignant"
            writer.writerow({**line, "diagnosis": other})
    return folder


def predicted(folder, model, rows, *more):
    return fedkt("predict", folder / model, folder / rows, "-o", folder / "out.csv", *more)


@pytest.mark.parametrize("model", ["soft.onnx", "hard.onnx"])
@pytest.mark.parametrize("rows", ["turned.csv", "test.csv"])
def test_predict_finds_wrong_what_evaluate_finds_wrong(folder, model, rows):
    evaluated = json.loads(fedkt("evaluate", folder / model, folder / rows, "--json").out)
    told = predicted(folder, model, rows, "--json")
    facts = json.loads(told.out)
    assert facts["verdicts"] == evaluated["verdicts"]
    assert facts["quality"] == evaluated["quality"]
    assert facts["accuracy"] == evaluated["quality"]["accuracy"]["value"]
    said = " ".join(line.removeprefix("attention: ") for line in told.err.splitlines())
    assert said == " ".join(evaluated["verdicts"])


def test_wrong_labels_and_wrong_probabilities_are_a_line_each(folder):
    written, accuracy, labels, probabilities = predicted(folder, "soft.onnx", "turned.csv").err.splitlines()
    assert written.startswith("Written: ")
    assert accuracy.endswith("on 100 labelled rows")
    assert labels.startswith("attention: The model is no better than always naming")
    assert probabilities.startswith("attention: The probabilities are far off, by ")
    assert "The probabilities are worse than none" in probabilities


def test_labels_that_thresholds_moved_are_judged_as_they_were_moved(folder):
    told = predicted(folder, "soft.onnx", "test.csv", "--threshold", "malignant=1e-9", "--json")
    facts = json.loads(told.out)
    assert facts["quality"]["predicted"] == [100, 0]
    assert any("Class 'benign' is never predicted" in each for each in facts["verdicts"])
    assert "attention: " in told.err


def test_without_labels_what_the_server_found_about_probabilities_is_repeated_to_whoever_uses_them(folder):
    again = f"attention: {folder / 'soft.onnx'} says of itself, measured by its server: {FOUND}"
    for more in (("--probabilities",), ("--threshold", "benign=0.3")):
        assert again in predicted(folder, "soft.onnx", "public.csv", *more).err.splitlines()
    facts = json.loads(predicted(folder, "soft.onnx", "public.csv", "--probabilities", "--json").out)
    assert facts["probability_verdicts_of_the_server"] == [FOUND]
    assert (facts["quality"], facts["verdicts"], facts["accuracy"]) == (None, [], None)
    assert "attention" not in predicted(folder, "soft.onnx", "public.csv").err
    # Rows of one's own say more than those of the server.
    assert FOUND not in predicted(folder, "soft.onnx", "test.csv", "--probabilities").err


def test_a_server_writes_what_it_found_into_the_final_file(folder):
    for name in NAMES:
        party(folder, name)
    server(folder, "--test", folder / "turned.csv")
    report = json.loads((folder / "result" / "report.json").read_text(encoding="utf-8"))
    expected = probability_verdicts(Quality.from_dict(report["quality"]))
    assert len(expected) == 2
    assert read_final(folder / "result" / "final.onnx").card.probability_verdicts == expected
    server(folder)
    assert read_final(folder / "result" / "final.onnx").card.probability_verdicts == ()
