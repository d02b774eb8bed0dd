"""FedKTClassifier behaves as scikit-learn users expect."""

import importlib
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from fedkt import FedKTClassifier
from fedkt.errors import ConfigurationError, DataError

X, Y = load_breast_cancer(return_X_y=True)
LABELS = np.array(["malignant", "benign"])[Y]
HOSPITAL = np.array(["north", "south", "west"])[np.arange(len(Y)) % 3]
TRAIN, REST = train_test_split(np.arange(len(Y)), train_size=0.6, random_state=0)
PUBLIC, TEST = REST[:110], REST[110:]

RANDOM = (
    "Rows are dealt at random to public rows, parties and subsets: a row given twice may fall into two of them. "
    "Where nothing is dealt, two rows are one of weight two (test_sample_weight.py)."
)


@parametrize_with_checks(
    [
        FedKTClassifier(DecisionTreeClassifier(), random_state=0),
        FedKTClassifier(LogisticRegression(), n_parties=2, subsets=2, random_state=0),
        FedKTClassifier("logistic", n_parties=2, random_state=0),
    ],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": RANDOM for kind in ("dense", "sparse")
    },
)
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_array_api_check_passes_where_scipy_allows_it():
    code = (
        "from sklearn.utils.estimator_checks import estimator_checks_generator as checks; "
        "from sklearn.tree import DecisionTreeClassifier; from fedkt import FedKTClassifier; "
        "found = [c(e) for e, c in checks(FedKTClassifier(DecisionTreeClassifier())) if 'array_api' in str(c)]; "
        "print(len(found))"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr


def test_five_lines_are_enough():
    model = FedKTClassifier(RandomForestClassifier(max_depth=6, n_estimators=20), random_state=0)
    model.fit(X[TRAIN], LABELS[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
    assert model.score(X[TEST], LABELS[TEST]) > 0.85
    assert model.classes_.tolist() == ["benign", "malignant"]
    assert model.report_.parties == 3
    assert model.report_.rows["public"] == 110
    assert "L0 adds no noise" in str(model.report_)
    assert (model.report_.algorithm, model.report_.partitions, model.report_.subsets) == ("fedkt-expert", 1, 1)


def test_probabilities_are_the_final_models_and_sum_to_one():
    model = FedKTClassifier(DecisionTreeClassifier(), random_state=0)
    model.fit(X[TRAIN], LABELS[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
    probabilities = model.predict_proba(X[TEST])
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X[TEST])).all()


def test_a_final_model_that_compares_pairs_of_three_classes_has_no_predict_proba():
    from sklearn.svm import SVC

    pairs = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))
    three = np.where(X[:, 0] > 15, 2, Y)
    for labels, several in ((three, True), (Y, False)):
        model = FedKTClassifier(pairs, voting="expert", random_state=0)
        model.fit(X[TRAIN], labels[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
        assert hasattr(model, "predict_proba") != several


@pytest.mark.parametrize("name", ["svm:LinearSVC", "linear_model:RidgeClassifier", "linear_model:Perceptron"])
def test_a_final_model_that_only_scores_classes_has_calibrated_probabilities(name):
    module, _, kind = name.partition(":")
    final = getattr(importlib.import_module(f"sklearn.{module}"), kind)(random_state=0)
    model = FedKTClassifier("tree", final=make_pipeline(StandardScaler(), final), voting="expert", random_state=0)
    model.fit(X[TRAIN], Y[TRAIN], public=X[PUBLIC])
    probabilities = model.predict_proba(X[TEST])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.mean(model.classes_[probabilities.argmax(axis=1)] == Y[TEST]) > 0.85
    np.testing.assert_allclose(model.predict_log_proba(X[TEST]), np.log(probabilities))


def test_rows_set_aside_as_public_are_said_in_the_report():
    model = FedKTClassifier(DecisionTreeClassifier(), random_state=0).fit(X, Y)
    alone, aside = model.report_.notes
    assert "All rows are one party's" in alone
    assert "114 of the 569 rows were set aside" in aside


def test_the_same_random_state_gives_the_same_classifier_whatever_the_workers():
    answers = [
        FedKTClassifier(DecisionTreeClassifier(), random_state=3, n_jobs=jobs)
        .fit(X[TRAIN], Y[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
        .predict(X[TEST])
        .tolist()
        for jobs in (1, 2)
    ]
    assert answers[0] == answers[1]


def test_it_works_inside_a_pipeline_and_cross_validation():
    pipeline = make_pipeline(StandardScaler(), FedKTClassifier(DecisionTreeClassifier(max_depth=3), random_state=0))
    assert cross_val_score(pipeline, X, LABELS, cv=3).mean() > 0.85


def test_parties_are_routed_through_cross_validation_and_grid_search():
    with sklearn.config_context(enable_metadata_routing=True):
        model = FedKTClassifier(DecisionTreeClassifier(), random_state=0).set_fit_request(parties=True)
        assert cross_val_score(model, X, Y, cv=3, params={"parties": HOSPITAL}).mean() > 0.8
        search = GridSearchCV(model, {"subsets": [1, 3], "estimator__max_depth": [2, 4]}, cv=2)
        search.fit(X, Y, parties=HOSPITAL)
        inside = FedKTClassifier("logistic", random_state=0).set_fit_request(parties=True)
        assert cross_val_score(inside, X, Y, cv=2, params={"parties": HOSPITAL}).mean() > 0.8
    assert search.best_estimator_.report_.parties == 3


def test_pipelines_with_text_columns_work_on_data_frames():
    frame = pd.DataFrame({"size": X[:, 0], "ward": np.where(X[:, 1] > 19, "A", "B")})
    inner = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["ward"]), remainder="passthrough"),
        RandomForestClassifier(10, max_depth=4),
    )
    model = FedKTClassifier(inner, random_state=0)
    model.fit(frame.iloc[TRAIN], LABELS[TRAIN], parties=HOSPITAL[TRAIN], public=frame.iloc[PUBLIC])
    assert model.score(frame.iloc[TEST], LABELS[TEST]) > 0.8
    assert model.feature_names_in_.tolist() == ["size", "ward"]


def test_a_party_may_bring_a_classifier_of_its_own():
    model = FedKTClassifier(
        DecisionTreeClassifier(), party_estimators={"south": LogisticRegression(max_iter=5000)}, random_state=0
    )
    model.fit(X[TRAIN], Y[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
    assert model.score(X[TEST], Y[TEST]) > 0.85
    strange = clone(model).set_params(party_estimators={"east": LogisticRegression()}).fit(X, Y, parties=HOSPITAL)
    assert any("names ['east'], who hold no rows here" in note for note in strange.report_.notes)


def test_parties_with_numbers_for_names_are_found_by_their_number():
    numbers = np.arange(len(Y)) % 2
    model = FedKTClassifier(DecisionTreeClassifier(), party_estimators={1: LogisticRegression()}, random_state=0)
    model.fit(X, Y, parties=numbers)
    assert set(model.report_.party_rows) == {"0", "1"}
    assert not any("hold no rows" in note for note in model.report_.notes)


def test_a_name_from_the_catalogue_can_do_what_its_estimator_can():
    from scipy.sparse import csr_matrix

    gaps = X.copy()
    gaps[::7, 3] = np.nan
    assert FedKTClassifier("hist-boosting", random_state=0, subsets=2).fit(gaps, Y).score(gaps, Y) > 0.8
    assert FedKTClassifier("tree", random_state=0).fit(csr_matrix(X), Y).score(X, Y) > 0.8


def test_a_regressor_is_refused():
    from sklearn.tree import DecisionTreeRegressor

    with pytest.raises(ConfigurationError, match="not classes"):
        FedKTClassifier(DecisionTreeRegressor()).fit(X, Y)


def test_public_rows_that_cannot_be_matched_or_are_none_are_refused():
    with pytest.raises(DataError, match="matched by name"):
        FedKTClassifier(DecisionTreeClassifier()).fit(X, Y, public=pd.DataFrame(X))
    with pytest.raises(DataError, match="no rows"):
        FedKTClassifier(DecisionTreeClassifier()).fit(X, Y, public=X[:0])


@pytest.mark.parametrize(
    ("parties", "words"),
    [
        (["a"], "expected 569 names, got 1"),
        ([None] * 569, "missing values"),
        (pd.Series([pd.NA] + ["a"] * 568, dtype="string"), "missing values"),
        ([float("nan")] + [1.0] * 568, "missing values"),
        ([1, "1"] + ["1"] * 567, "mixes kinds"),
    ],
)
def test_parties_that_do_not_fit_the_rows_are_refused(parties, words):
    with pytest.raises(DataError, match=words):
        FedKTClassifier(DecisionTreeClassifier()).fit(X, Y, parties=parties)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"level": "L2"}, "needs a noise"),
        ({"public_share": 0}, "public_share"),
        ({"n_parties": 0}, "n_parties"),
        ({"n_parties": 2.5}, "n_parties"),
        ({"n_parties": "3"}, "n_parties"),
        ({"public_share": "a"}, "public_share"),
        ({"partitions": 0}, "partitions"),
        ({"estimator": "no such model"}, "no model"),
    ],
)
def test_settings_that_cannot_work_are_refused_when_fitting(setting, words):
    with pytest.raises(ConfigurationError, match=words):
        FedKTClassifier(**setting).fit(X, Y)


def test_a_private_level_says_what_it_promises():
    from fedkt.privacy import Gaussian

    model = FedKTClassifier(DecisionTreeClassifier(), level="L2", noise=Gaussian(2.0), queries=60, random_state=0)
    model.fit(X[TRAIN], LABELS[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
    assert 0 < model.report_.epsilon < 50
    assert model.report_.partitions == 1
    assert model.report_.algorithm == "fedkt", "noise hides single votes"
    assert "for one record" in model.report_.privacy
    assert "protects nobody" not in model.report_.privacy
    seeded = clone(model).set_params(noise_seed=1, class_labels=["benign", "malignant"])
    seeded.fit(X[TRAIN], LABELS[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
    assert "protects nobody" in seeded.report_.privacy
    assert any("declare it with class_labels" in note for note in model.report_.notes)
    assert not any("class_labels" in note for note in seeded.report_.notes)


def test_at_L1_the_report_says_nothing_that_depends_on_the_rows_of_one_party():
    from fedkt.privacy import Laplace

    owners = HOSPITAL[TRAIN].copy()
    owners[:3] = "tiny"
    model = FedKTClassifier("tree", level="L1", noise=Laplace(0.5), queries=20, random_state=0)
    model.fit(X[TRAIN], LABELS[TRAIN], parties=owners, public=X[PUBLIC])
    report = model.report_
    assert not any("tiny" in note for note in report.notes), report.notes
    assert any("With 4 parties" in note for note in report.notes), "what follows from public figures is still said"
    (alarm,) = report.alarms
    assert "expect labels little better than chance" in alarm
    assert str(report).splitlines()[1] == f"  ATTENTION: {alarm}"
    assert (report.rows, report.party_rows, report.votes) == ({"public": 110}, {}, {})
    assert (report.seconds, report.cpu_seconds) == (int(report.seconds), int(report.cpu_seconds))
    without = model.set_params(level="L0", noise=None, queries=1.0, voting="consistent")
    without.fit(X[TRAIN], LABELS[TRAIN], parties=owners, public=X[PUBLIC])
    assert without.report_.alarms == ()
    assert any("Party 'tiny' has 3 rows" in note for note in without.report_.notes)
    assert without.report_.rows == {"parties": 341, "public": 110}
    assert without.report_.party_rows["tiny"] == 3


def test_a_delta_is_held_against_the_number_of_private_rows():
    from fedkt.privacy import Gaussian

    hospitals = len(set(HOSPITAL[TRAIN]))
    # Larger than one in so many rows, smaller than one in so few hospitals.
    delta = 2 / len(X[TRAIN])
    assert delta < 1 / hospitals
    private = {"level": "L2", "noise": Gaussian(2.0), "queries": 60, "delta": delta, "random_state": 0}
    model = FedKTClassifier(DecisionTreeClassifier(), **private)
    model.fit(X[TRAIN], LABELS[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
    assert any(f"larger than one in {len(X[TRAIN])} rows" in note for note in model.report_.notes)


def test_a_private_level_without_public_rows_is_refused():
    from fedkt.privacy import Gaussian

    with pytest.raises(ConfigurationError, match="needs `public` rows"):
        FedKTClassifier(DecisionTreeClassifier(), level="L2", noise=Gaussian(2.0)).fit(X, Y)


def test_declared_classes_need_not_all_occur():
    model = FedKTClassifier(DecisionTreeClassifier(), class_labels=["maybe", "benign", "malignant"], random_state=0)
    model.fit(X, LABELS)
    assert model.classes_.tolist() == ["benign", "malignant", "maybe"]
    assert model.predict_proba(X[:3]).shape == (3, 3)
    with pytest.raises(DataError, match="'malignant', which is not among"):
        FedKTClassifier(DecisionTreeClassifier(), class_labels=["benign", "maybe"]).fit(X, LABELS)


def test_public_rows_with_other_columns_are_refused():
    with pytest.raises(ValueError, match="features"):
        FedKTClassifier(DecisionTreeClassifier()).fit(X, Y, public=X[:, :5])


def test_the_report_tells_how_good_the_final_model_is_on_labelled_rows():
    from sklearn.metrics import roc_auc_score

    model = FedKTClassifier("tree", random_state=0)
    model.fit(X[TRAIN], Y[TRAIN], parties=HOSPITAL[TRAIN], public=X[PUBLIC])
    report = model.evaluate(X[TEST], Y[TEST])
    assert report.accuracy == model.score(X[TEST], Y[TEST])
    assert report.quality["auc"]["value"] == pytest.approx(roc_auc_score(Y[TEST], model.predict_proba(X[TEST])[:, 1]))
    assert "always naming" in str(report)
    assert model.report_.quality is None, "what fit reported stays"


def test_a_useless_classifier_is_called_so_first_by_its_report():
    coins = np.random.default_rng(0).integers(0, 2, len(Y))
    model = FedKTClassifier("tree", random_state=0).fit(X[TRAIN], coins[TRAIN], public=X[PUBLIC])
    report = model.evaluate(X[TEST], coins[TEST])
    assert "always naming" in report.notes[0]
    with pytest.raises(DataError, match="'maybe', which is not among the classes"):
        model.evaluate(X[TEST][:2], ["maybe", "0"])


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0.0, 1.0, np.nan, 1.0]),
        np.array(["a", "b", None, "b"], dtype=object),
        np.array(["a", "b", float("nan"), "b"], dtype=object),
    ],
)
@pytest.mark.parametrize("declared", [None, ["a", "b"]])
def test_missing_labels_are_refused_in_words(labels, declared):
    with pytest.raises(DataError, match=r"1 label is missing, in row 2 \(counted from 0\)\. Fill them in or leave"):
        FedKTClassifier(class_labels=declared).fit(np.arange(8.0).reshape(4, 2), labels)
