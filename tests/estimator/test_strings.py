"""Texts and columns of strings in FedKTClassifier: read by pipelines as they are, encoded for everybody else."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from fedkt import FedKTClassifier
from fedkt.errors import ConfigurationError, DataError
from fedkt.privacy import Gaussian
from fedkt.privacy.sums import GaussianSums

WORDS = {"bill": "invoice payment overdue amount", "trip": "train ticket platform delay", "food": "recipe onion oven"}
RNG = np.random.default_rng(0)
TOPICS = np.array([*WORDS] * 100)
PAIRS = [RNG.choice(WORDS[each].split(), 2) for each in TOPICS]
TEXTS = [f"dear{' 😀' * (n % 2)} all, the {one} we spoke about {other}" for n, (one, other) in enumerate(PAIRS)]
OWNERS = np.array(["north", "south", "west"])[RNG.integers(0, 3, len(TEXTS))]
NEW = ["the invoice we spoke about invoice", "the TRAIN we spoke about train", "", "the onion we spoke about onion"]
PIPELINE = make_pipeline(TfidfVectorizer(), LogisticRegression(C=20))

X, Y = load_breast_cancer(return_X_y=True)
FRAME = pd.DataFrame({"size": X[:, 0], "ward": np.where(X[:, 1] > 19, "A", "B"), "job": np.where(Y, "nurse", "cook")})
LABELS = np.array(["malignant", "benign"])[Y]
HOSPITAL = np.array(["north", "south", "west"])[np.arange(len(Y)) % 3]


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, lambda each: np.array(each, dtype=object)])
@pytest.mark.parametrize("settings", [{"parties": OWNERS[:200], "public": True}, {"parties": OWNERS[:200]}, {}])
def test_a_pipeline_reads_texts_however_they_come(kind, settings):
    if settings.get("public"):
        settings = {**settings, "public": kind(TEXTS[200:])}
    model = FedKTClassifier(PIPELINE, n_parties=2, random_state=0)
    model.fit(kind(TEXTS[:200]), TOPICS[:200], **settings)
    assert model.predict(kind(NEW))[[0, 1, 3]].tolist() == ["bill", "trip", "food"]
    assert model.predict_proba(NEW).shape == (4, 3)
    assert model.schema_ is None
    assert not hasattr(model, "n_features_in_")
    assert model.score(kind(TEXTS[:10]), TOPICS[:10]) > 0.9


@pytest.mark.parametrize("settings", [{}, {"estimator": "logistic"}, {"estimator": RandomForestClassifier(20)}])
def test_whoever_reads_no_texts_gets_numbers_of_their_words(settings):
    model = FedKTClassifier(**settings, random_state=0)
    model.fit(TEXTS[:200], TOPICS[:200], parties=OWNERS[:200], public=TEXTS[200:])
    assert model.predict(NEW)[[0, 1, 3]].tolist() == ["bill", "trip", "food"]
    (column,) = model.schema_.columns
    assert {"invoice", "oven", "😀"} <= set(column.terms)
    assert any("by the 100 public rows alone: text (" in note for note in model.report_.notes)


def test_texts_of_whoever_chooses_nothing_are_learned_by_a_linear_family_in_expert_voting():
    model = FedKTClassifier(random_state=0).fit(TEXTS, TOPICS, parties=OWNERS)
    assert model.report_.algorithm == "fedkt-expert"
    assert type(model.final_estimator_[-1]) is LogisticRegression
    assert any("Texts are learned by 'logistic' in fedkt-expert" in note for note in model.report_.notes)
    forest = FedKTClassifier("forest", random_state=0).fit(TEXTS, TOPICS, parties=OWNERS)
    assert type(forest.final_estimator_) is RandomForestClassifier
    auto = FedKTClassifier(voting="auto", random_state=0).fit(TEXTS, TOPICS, parties=OWNERS)
    assert auto.report_.algorithm == "fedkt-auto"


@pytest.mark.parametrize("settings", [{"level": "L1"}, {"level": "L2", "class_labels": [*WORDS]}])
def test_texts_work_at_private_levels_where_nobody_chose_a_family(settings):
    model = FedKTClassifier(noise=GaussianSums(sigma=1.0), noise_seed=0, random_state=0, **settings)
    model.fit(TEXTS[:200], TOPICS[:200], parties=OWNERS[:200], public=TEXTS[200:])
    assert model.report_.algorithm == "fedkt-moments"
    assert model.predict(NEW).shape == (4,)


def test_texts_are_cross_validated():
    assert cross_val_score(FedKTClassifier(PIPELINE, random_state=0), TEXTS, TOPICS, cv=2).mean() > 0.8


@pytest.mark.parametrize("voting", ["auto", "moments"])
def test_sums_of_texts_are_encoded_or_refused_in_words(voting):
    model = FedKTClassifier(PIPELINE, voting=voting, n_parties=2, random_state=0)
    if voting == "moments":
        # Nothing of the pipeline is trained.
        assert model.fit(TEXTS, TOPICS).predict(NEW[:1]).tolist() == ["bill"]
    else:
        with pytest.raises(ConfigurationError, match="fedkt-auto sums up numbers, and these rows hold strings"):
            model.fit(TEXTS, TOPICS)


@pytest.mark.parametrize(
    ("rows", "words"),
    [([1.0, 2.0], "Rows are texts here"), ([["a"], ["b"]], "Rows are texts here"), (X[:2], "Rows are texts here")],
)
def test_other_rows_than_texts_are_refused(rows, words):
    model = FedKTClassifier(PIPELINE, random_state=0).fit(TEXTS, TOPICS)
    with pytest.raises(DataError, match=words):
        model.predict(rows)
    with pytest.raises(DataError, match="`public` cannot be used: Rows are texts"):
        FedKTClassifier(PIPELINE).fit(TEXTS, TOPICS, public=X)


@pytest.mark.parametrize("rows", [FRAME, FRAME.to_numpy(dtype=object), FRAME.astype({"ward": "category"})])
def test_columns_of_strings_are_encoded_by_the_public_rows(rows):
    take = rows.iloc if hasattr(rows, "iloc") else rows
    model = FedKTClassifier("forest", random_state=0)
    model.fit(take[:400], LABELS[:400], parties=HOSPITAL[:400], public=take[400:500])
    assert model.score(take[500:], LABELS[500:]) == 1.0
    size, ward, job = model.schema_.columns
    assert (size.kind, ward.categories, job.categories) == ("number", ("A", "B"), ("cook", "nurse"))
    assert size.mean == pytest.approx(X[400:500, 0].mean())
    assert model.n_features_in_ == 3
    (note,) = (note for note in model.report_.notes if "encoded" in note)
    assert "by the 100 public rows alone: " in note
    assert "(2 categories)" in note


def test_days_and_truths_of_a_data_frame_are_what_they_are_in_a_file():
    days = pd.date_range("2020-01-01", periods=len(Y))
    frame = FRAME[["ward"]].assign(admitted=days, smoker=Y.astype(bool))
    model = FedKTClassifier("tree", random_state=0).fit(frame[:400], LABELS[:400], public=frame[400:500])
    ward, admitted, smoker = model.schema_.columns
    assert (ward.kind, admitted.date, smoker.boolean) == ("category", True, True)
    # 18262 days after 1970-01-01 is 2020-01-01; 400 to 499 days later the middle is 449.5.
    assert admitted.mean == 18262 + 449.5
    assert any("ward (2 categories), admitted (days), smoker (2 categories)" in note for note in model.report_.notes)
    assert model.score(frame[500:], LABELS[500:]) == 1.0


def test_rows_that_would_look_odd_in_a_file_are_rows():
    assert FedKTClassifier("logistic").fit(TEXTS, TOPICS, public=[*TEXTS[:50], "Total"]).schema_ is not None
    digits = pd.DataFrame({place: [f"{n % (5 + place)}" for n in range(90)] for place in range(3)}).assign(ward="A")
    assert FedKTClassifier("tree").fit(digits.rename(columns=str), np.arange(90) % 3).schema_ is not None


def test_what_the_public_rows_do_not_have_counts_as_none_of_them_and_gaps_are_taken():
    model = FedKTClassifier("tree", random_state=0).fit(FRAME[:400], LABELS[:400], public=FRAME[400:500])
    odd = pd.DataFrame({"job": ["nurse", "cook", "pilot"], "ward": ["C", None, "A"], "size": [10.0, np.nan, 12]})
    assert model.predict(odd[["size", "ward", "job"]])[:2].tolist() == ["benign", "malignant"]
    strange = FRAME[:400].assign(ward="C")
    noted = FedKTClassifier("tree", random_state=0).fit(strange, LABELS[:400], public=FRAME[400:500]).report_.notes
    assert any("('C', …) are not among the agreed categories" in note for note in noted)


def test_at_private_levels_the_report_says_nothing_of_the_parties_strings():
    model = FedKTClassifier(
        "tree", level="L1", noise=Gaussian(sigma=1.0), noise_seed=0, class_labels=["benign", "malignant"]
    )
    model.fit(FRAME[:400].assign(ward="C"), LABELS[:400], parties=HOSPITAL[:400], public=FRAME[400:500])
    assert "'C'" not in str(model.report_)


def test_columns_of_texts_are_told_from_categories():
    frame = pd.DataFrame({"letter": TEXTS, "ward": np.where(RNG.random(len(TEXTS)) < 0.5, "A", "B")})
    frame["letter"] += [f" number {place}" for place in range(len(frame))]
    model = FedKTClassifier("logistic", random_state=0)
    model.fit(frame[:200], TOPICS[:200], parties=OWNERS[:200], public=frame[200:])
    assert [column.kind for column in model.schema_.columns] == ["text", "category"]
    assert model.score(frame[:200], TOPICS[:200]) > 0.9


def test_numbers_alone_are_not_encoded():
    assert FedKTClassifier("tree").fit(FRAME[["size"]], LABELS).schema_ is None
    assert FedKTClassifier("tree").fit(X.astype(object)[:100], Y[:100]).schema_ is None
    with pytest.raises(ValueError, match="Convert your data"):
        FedKTClassifier("tree").fit(X, Y).predict(X.astype(str))


def test_a_column_may_name_the_parties_and_is_no_feature():
    frame = FRAME[["size", "ward"]].assign(hospital=HOSPITAL)
    model = FedKTClassifier("forest", random_state=0)
    model.fit(frame[:400], LABELS[:400], parties="hospital", public=frame[400:500])
    by_array = FedKTClassifier("forest", random_state=0)
    plain = frame[["size", "ward"]]
    by_array.fit(plain[:400], LABELS[:400], parties=HOSPITAL[:400], public=plain[400:500])
    assert model.feature_names_in_.tolist() == ["size", "ward"]
    assert model.report_.party_rows == by_array.report_.party_rows
    expected = by_array.predict(FRAME[500:][["size", "ward"]]).tolist()
    assert (
        model.predict(frame[500:]).tolist() == model.predict(frame[500:].drop(columns="hospital")).tolist() == expected
    )


@pytest.mark.parametrize(
    ("rows", "name", "words"),
    [(FRAME, "hospital", r"is no column of X\. It has: 'size', 'ward', 'job'"), (X, "job", "X is no data frame")],
)
def test_a_column_of_parties_that_is_not_there_is_refused(rows, name, words):
    with pytest.raises(DataError, match=words):
        FedKTClassifier("tree").fit(rows, LABELS, parties=name)


def test_a_named_family_is_searched_by_its_parameters():
    model = FedKTClassifier("tree", random_state=0)
    assert model.get_params()["estimator__max_depth"] == 6
    assert "estimator__max_depth" not in model.get_params(deep=False)
    search = GridSearchCV(model, {"estimator__max_depth": [1, 4], "subsets": [1, 2]}, cv=2).fit(FRAME, LABELS)
    assert search.best_estimator_.estimator.max_depth in (1, 4)
    assert search.best_estimator_.schema_ is not None, "a name of which a parameter is set goes on encoding strings"
    assert model.estimator == "tree", "the one that was searched with stays as it is"
    both = GridSearchCV(model, {"estimator": ["tree", "forest"], "estimator__max_depth": [3]}, cv=2).fit(X, Y)
    assert both.best_params_["estimator__max_depth"] == 3


def test_parameters_of_a_family_that_nobody_chose_are_refused_in_words():
    with pytest.raises(ConfigurationError, match="Nobody has chosen a family as `estimator`"):
        FedKTClassifier().set_params(estimator__max_depth=3)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        FedKTClassifier("tree").set_params(depth=3)


def test_a_name_is_cloned_as_a_name_and_a_wrong_one_waits_for_fit():
    assert clone(FedKTClassifier("xgboost", final="lr")).get_params(deep=False)["estimator"] == "xgboost"
    changed = clone(FedKTClassifier("logistic").set_params(estimator__logisticregression__C=0.5))
    assert changed.estimator[-1].C == 0.5
    wrong = FedKTClassifier("forrest")
    assert wrong.get_params()["estimator"] == "forrest"
    with pytest.raises(ConfigurationError, match="Did you mean 'forest'"):
        wrong.fit(X, Y)


def test_a_scaler_before_the_classifier_does_not_make_a_pipeline_read_strings():
    model = FedKTClassifier("logistic", random_state=0).set_params(estimator__logisticregression__C=0.5)
    assert model.fit(FRAME, LABELS).schema_ is not None
