"""Every family says the same before and after it has travelled."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from fedkt.errors import DataError, ModelError
from fedkt.models.base import FittedModel, fit_model
from fedkt.models.exchange import OnnxModel, run_with_probabilities, to_onnx
from fedkt.models.onnx_rules import check_graph
from fedkt.models.tree_graphs import forest_graph, forest_of

DATA = Path(os.environ.get("FEDKT_DATA", Path(__file__).parents[3] / "shared" / "data"))
ROWS = np.random.default_rng(1).normal(size=(1_000, 5)).astype(np.float32)
SIGNAL = ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 2]


def boosted(module, name, **options):
    """An optional family, or None where its library is missing."""
    try:
        return getattr(__import__(module), name)(**options)
    except ImportError:
        return None


FAMILIES = {
    "logistic": LogisticRegression(),
    "ridge": RidgeClassifier(),
    "sgd": SGDClassifier(),
    "linear svc": LinearSVC(),
    "svc": SVC(),
    "gaussian nb": GaussianNB(),
    "bernoulli nb": BernoulliNB(),
    "lda": LinearDiscriminantAnalysis(),
    "mlp": MLPClassifier((10,), max_iter=30),
    "neighbours": KNeighborsClassifier(),
    "tree": DecisionTreeClassifier(),
    "forest": RandomForestClassifier(10),
    "extra trees": ExtraTreesClassifier(10, min_samples_leaf=2),
    "gradient boosting": GradientBoostingClassifier(n_estimators=5),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5),
    "scaled svc": make_pipeline(SimpleImputer(), MinMaxScaler(), SVC()),
    "scaled linear svc": make_pipeline(StandardScaler(), LinearSVC()),
    "scaled mlp": make_pipeline(StandardScaler(), MLPClassifier((10,), max_iter=30)),
    "imputed forest": make_pipeline(SimpleImputer(strategy="median"), RandomForestClassifier(10)),
    "scaled neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
    "rotated tree": make_pipeline(PCA(3), DecisionTreeClassifier(max_depth=4)),
    "soft voting": VotingClassifier(
        [("a", LogisticRegression()), ("b", GaussianNB())], voting="soft", flatten_transform=False
    ),
    "xgboost": boosted("xgboost", "XGBClassifier", n_estimators=5),
    "lightgbm": boosted("lightgbm", "LGBMClassifier", n_estimators=5, verbose=-1),
    "catboost": boosted("catboost", "CatBoostClassifier", iterations=5, verbose=0, allow_writing_files=False),
}


def trained(estimator, classes=(1, 4), rows=200, seed=0):
    """The estimator fitted on labels that are neither 0 nor adjacent."""
    cuts = np.quantile(SIGNAL, np.linspace(0, 1, len(classes) + 1)[1:-1])
    labels = np.asarray(classes)[np.digitize(SIGNAL, cuts)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_model(estimator, ROWS[:rows], labels[:rows], rng=np.random.default_rng(seed))


@pytest.mark.parametrize("classes", [(1, 4), (0, 2, 5)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore")
def test_the_labels_agree_with_the_native_model(family, classes):
    if FAMILIES[family] is None:
        pytest.skip(f"the library behind {family} is not installed")
    model = trained(FAMILIES[family], classes)
    sent = to_onnx(model, n_features=5, n_classes=6, check_rows=ROWS[:300])
    # Rows that to_onnx did not see.
    np.testing.assert_array_equal(run_with_probabilities(sent.data, ROWS[300:], 0)[0], model.predict(ROWS[300:]))
    assert to_onnx(model, n_features=5, n_classes=6, check_rows=ROWS[:300]).data == sent.data, "bytes differ"


def test_a_constant_travels():
    model = FittedModel(None, np.array([2]), 5)
    sent = to_onnx(model, n_features=5, n_classes=3, check_rows=ROWS)
    assert b"ConstantOfShape" not in sent.data
    rows = ROWS[:4].copy()
    rows[1] = np.nan
    np.testing.assert_array_equal(run_with_probabilities(sent.data, rows, 0)[0], [2, 2, 2, 2])


def test_a_received_model_answers_through_the_sandbox():
    model = trained(DecisionTreeClassifier())
    sent = to_onnx(model, n_features=5, n_classes=6, check_rows=ROWS)
    np.testing.assert_array_equal(sent.predict(ROWS.astype(np.float64)), model.predict(ROWS))
    with pytest.raises(DataError, match="5 columns"):
        sent.predict(ROWS[:, :3])


def test_a_model_that_cannot_run_says_so_by_name():
    with pytest.raises(ModelError, match="model 3 of 'north' could not be run"):
        OnnxModel(b"nothing", 5, 2, "model 3 of 'north'").predict(ROWS)


def test_true_ties_go_where_the_forest_sends_them():
    # Two stumps, pure leaves: rows on which they disagree are exact ties, which np.argmax gives to the first class.
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    forest = fit_model(
        RandomForestClassifier(2, max_features=1, bootstrap=False), X, [3, 3, 5, 5], rng=np.random.default_rng(0)
    )
    first, second = (DecisionTreeClassifier().fit(X, y) for y in ([0, 0, 1, 1], [1, 1, 0, 0]))
    forest.estimator.estimators_ = [first, second]
    np.testing.assert_array_equal(forest.predict(X), [3, 3, 3, 3])
    sent = to_onnx(forest, n_features=2, n_classes=6, check_rows=X)
    np.testing.assert_array_equal(run_with_probabilities(sent.data, X, 0)[0], [3, 3, 3, 3])


@pytest.mark.parametrize("family", ["forest", "extra trees", "histogram boosting", "tree", "xgboost", "lightgbm"])
def test_trees_send_missing_values_the_same_way(family):
    if FAMILIES[family] is None:
        pytest.skip(f"the library behind {family} is not installed")
    rng = np.random.default_rng(3)
    rows = ROWS.copy()
    rows[rng.random(rows.shape) < 0.2] = np.nan
    labels = (np.nan_to_num(rows[:, 0]) + rng.normal(size=len(rows)) > 0).astype(int)
    model = fit_model(FAMILIES[family], rows[:300], labels[:300], rng=rng)
    sent = to_onnx(model, n_features=5, n_classes=2, check_rows=rows)
    np.testing.assert_array_equal(run_with_probabilities(sent.data, rows, 0)[0], model.predict(rows))


def test_a_threshold_between_two_float32_numbers_is_kept():
    # The threshold is their middle; as float32 it would round to the higher one, and both rows would go left.
    low = np.nextafter(np.float32(2), np.float32(3))
    high = np.nextafter(low, np.float32(3))
    assert np.float32((np.float64(low) + np.float64(high)) / 2) == high
    X = np.array([[low], [high]], np.float32)
    model = fit_model(DecisionTreeClassifier(), X, [0, 1], rng=np.random.default_rng(0))
    sent = to_onnx(model, n_features=1, n_classes=2, check_rows=X)
    np.testing.assert_array_equal(run_with_probabilities(sent.data, X, 0)[0], [0, 1])


@pytest.mark.parametrize(("name", "width"), [("a9a.gz", 123), ("cod-rna.gz", 8)])
def test_small_forests_agree_on_real_rows(name, width):
    if not (DATA / name).exists():
        pytest.skip(f"{name} is missing; set FEDKT_DATA to the folder that has it")
    from sklearn.datasets import load_svmlight_file

    sparse, labels = load_svmlight_file(str(DATA / name), n_features=width)
    X, y = sparse[:4_000].toarray().astype(np.float32), (labels[:4_000] > 0).astype(int)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sample = rng.choice(4_000, 60, replace=False)
        model = fit_model(RandomForestClassifier(20, min_samples_leaf=1 + seed), X[sample], y[sample], rng=rng)
        graph = forest_graph(forest_of(model.estimator), model.labels.tolist(), width).SerializeToString()
        np.testing.assert_array_equal(run_with_probabilities(graph, X, 0)[0], model.predict(X))


def test_a_family_that_cannot_travel_is_refused_with_the_list_of_those_that_can():
    with pytest.raises(ModelError, match=r"AdaBoostClassifier cannot be converted.*random forests"):
        to_onnx(trained(AdaBoostClassifier(n_estimators=2)), n_features=5, n_classes=6, check_rows=ROWS)


def test_a_model_that_would_answer_differently_is_refused_with_the_number_of_rows():
    model = trained(DecisionTreeClassifier(max_depth=2))

    class Contrary:
        labels, estimator = model.labels, model.estimator

        def predict(self, X):
            answer = model.predict(X)
            answer[:7] = np.where(answer[:7] == 1, 4, 1)
            return answer

    with pytest.raises(ModelError, match=r"another label on 7 of 1000 rows.*random forests"):
        to_onnx(Contrary(), n_features=5, n_classes=6, check_rows=ROWS)


def test_labels_outside_the_agreed_classes_are_refused():
    with pytest.raises(ModelError, match="classes"):
        to_onnx(FittedModel(None, np.array([9]), 5), n_features=5, n_classes=3, check_rows=ROWS)


def test_a_large_forest_stays_within_the_limits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 5)).astype(np.float32)
    model = fit_model(RandomForestClassifier(50), X, rng.integers(0, 2, 1_000), rng=rng)
    graph = forest_graph(forest_of(model.estimator), [0, 1], 5).SerializeToString()
    check_graph(graph, n_features=5, n_classes=2)
