"""What a fitted FedKTClassifier gives away: a file, students, and its face in a notebook."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fedkt import FedKTClassifier
from fedkt.errors import ModelError
from fedkt.final_card import parse_card
from fedkt.live.final_file import read_final
from fedkt.privacy import Gaussian
from tests.support.live_federation import fedkt

X, Y = load_breast_cancer(return_X_y=True)
LABELS = np.array(["malignant", "benign"])[Y]
HOSPITAL = np.array(["north", "south", "west"])[np.arange(len(Y)) % 3]
FRAME = pd.DataFrame({"size": X[:, 0], "ward": np.where(X[:, 1] > 19, "A", "B"), "area": X[:, 3]})
NOTE = (
    pd.Series(np.where(Y, "all is fine and well with", "a lump was found in"))
    + " number "
    + pd.Series(range(len(Y))).map(str)
)


def predictions(folder, rows, *more):
    fedkt("predict", folder / "final.onnx", folder / rows, "-o", folder / "out.csv", *more)
    return pd.read_csv(folder / "out.csv")


@pytest.mark.parametrize(
    ("model", "frame"),
    [
        ("forest", FRAME[["size", "area"]]),
        ("forest", FRAME),
        ("logistic", FRAME.assign(note=NOTE)),
        (None, FRAME.assign(note=NOTE)),
    ],
)
def test_the_command_line_predicts_what_the_classifier_does(tmp_path, model, frame):
    own = FedKTClassifier(model, random_state=0)
    own.fit(frame[:400], LABELS[:400], parties=HOSPITAL[:400], public=frame[400:500])
    data = own.to_onnx(tmp_path / "final.onnx")
    assert (tmp_path / "final.onnx").read_bytes() == data
    frame[500:].to_csv(tmp_path / "new.csv", index=False)
    told = predictions(tmp_path, "new.csv", "--probabilities")
    assert told["prediction"].tolist() == own.predict(frame[500:]).tolist()
    np.testing.assert_allclose(told["probability_benign"], own.predict_proba(frame[500:])[:, 0], atol=1e-3)


def test_arrays_and_images_travel_by_their_places(tmp_path):
    own = FedKTClassifier("tree", random_state=0).fit(X[:400], Y[:400], public=X[400:500])
    own.to_onnx(tmp_path / "final.onnx")
    assert read_final(tmp_path / "final.onnx").card.columns.feature_names[:2] == ("x0", "x1")
    np.savez(tmp_path / "new.npz", X=X[500:])
    assert predictions(tmp_path, "new.npz")["prediction"].tolist() == own.predict(X[500:]).tolist()
    digits, labels = load_digits(return_X_y=True)
    pictures = FedKTClassifier("tree", random_state=0).fit(digits[:300].reshape(-1, 8, 8), labels[:300])
    pictures.to_onnx(tmp_path / "final.onnx")
    assert read_final(tmp_path / "final.onnx").card.columns.feature_names[-1] == "pixel 7,7"


@pytest.mark.parametrize("frame", [FRAME, FRAME[["size", "area"]]])
def test_a_file_is_judged_by_rows_whose_label_is_called_as_y_was(tmp_path, frame):
    own = FedKTClassifier("tree", random_state=0).fit(frame[:400], pd.Series(LABELS[:400], name="diagnosis"))
    own.to_onnx(tmp_path / "final.onnx")
    frame[500:].assign(diagnosis=LABELS[500:]).to_csv(tmp_path / "test.csv", index=False)
    judged = json.loads(fedkt("evaluate", tmp_path / "final.onnx", tmp_path / "test.csv", "--json").out)
    assert judged["quality"]["accuracy"]["value"] == own.score(frame[500:], LABELS[500:])


def test_a_pipeline_of_strings_has_no_file():
    texts = NOTE.tolist()
    own = FedKTClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0).fit(texts, LABELS)
    with pytest.raises(ModelError, match=r"reads strings, which have no place in its file.*Name a family"):
        own.to_onnx()


def test_classes_that_a_file_cannot_tell_apart_are_refused_in_words():
    own = FedKTClassifier("tree", random_state=0).fit(X, np.array(["1", "1.0"])[Y])
    with pytest.raises(ModelError, match=r"classes: it has the same class twice \(1 and '1' are the same\)"):
        own.to_onnx()


def test_a_file_says_what_was_promised():
    own = FedKTClassifier(
        "tree", level="L1", noise=Gaussian(sigma=2.0), noise_seed=0, class_labels=["benign", "malignant"]
    )
    own.fit(X[:400], LABELS[:400], parties=HOSPITAL[:400], public=X[400:500])
    with pytest.raises(AttributeError, match="Level L1 protects the parties"):
        _ = own.students_
    card = parse_card(own.to_onnx(), "final.onnx")
    assert (card.level, card.classes, card.plan) == ("L1", ("benign", "malignant"), "0" * 64)
    assert card.privacy["epsilon"] == pytest.approx(own.report_.epsilon)


@pytest.mark.parametrize("voting", ["consistent", "expert", "expert-no-counts"])
def test_students_are_classifiers_of_their_parties(voting):
    own = FedKTClassifier("forest", voting=voting, partitions=2 if voting == "consistent" else 1, random_state=0)
    frame = FRAME.assign(hospital=HOSPITAL)
    own.fit(frame[:400], LABELS[:400], parties="hospital", public=frame[400:500])
    assert list(own.students_) == ["north", "south", "west"]
    assert all(len(each) == (2 if voting == "consistent" else 1) for each in own.students_.values())
    student = own.students_["south"][0]
    assert np.mean(student.predict(frame[500:]) == LABELS[500:]) > 0.8
    assert student.predict_proba(frame[500:]).sum(axis=1) == pytest.approx(1.0)
    assert type(student.estimator).__name__ == "RandomForestClassifier"


def test_sums_have_no_students():
    own = FedKTClassifier(voting="moments", random_state=0).fit(X, Y, parties=HOSPITAL)
    assert own.students_ == {"north": (), "south": (), "west": ()}


def test_a_notebook_shows_the_diagram_and_the_report():
    own = FedKTClassifier("tree", random_state=0)
    assert "fedkt-report" not in own._repr_html_()
    own.fit(X[:400], LABELS[:400], parties=np.array(["<b>north", "south"])[np.arange(400) % 2], public=X[400:500])
    for shown in (own._repr_html_(), own._repr_mimebundle_()["text/html"]):
        assert "sk-" in shown, "scikit-learn's own diagram stays"
        assert shown.count("fedkt-report") == 1
        assert "&lt;b&gt;north" in shown
        assert "<b>north" not in shown
    assert "accuracy" in own.evaluate(X[500:], LABELS[500:])._repr_html_()


def test_the_report_has_the_names_of_classes():
    few = np.flatnonzero((LABELS == "benign") | (np.arange(len(Y)) < 5))
    own = FedKTClassifier(voting="moments", random_state=0)
    own.fit(X[few], LABELS[few], parties=HOSPITAL[few], public=X)
    assert any("'malignant'" in note for note in own.report_.notes)
