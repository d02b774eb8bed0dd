"""The records of model families: found by an estimator's class, true to what its estimators do, one line to add."""

import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import all_estimators

from fedkt.algorithms import FedKT
from fedkt.algorithms.soft_lesson import gives_probabilities
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Party, Server, simulate
from fedkt.models.base import fit_model
from fedkt.models.catalogue import MODELS, OTHERS, as_estimator, default_teacher, family_of
from fedkt.models.ensemble import TrainingTask, fit_group, is_calibrated, is_neural, learns_distributions
from fedkt.models.exchange import to_onnx, to_soft_onnx
from fedkt.models.families.family import UNKNOWN, Family
from fedkt.models.families.networks import NETWORK
from fedkt.models.graphs import LabelScores, label_model
from fedkt.models.prediction import has_probabilities
from fedkt.models.tree_graphs import forest_of

CLASSES = ("a", "b", "c")
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 240)
CENTRES = np.array([[0.0, 4.0, 1.0], [4.0, 0.0, 1.0], [4.0, 4.0, 5.0]])
ROWS = np.abs(CENTRES[LABELS] + RNG.normal(size=(240, 3))).astype(np.float32)
"""Three clouds, apart by hand; no number below 0, for who reads counts."""
SHARES = np.tile([0.7, 0.2, 0.1], (len(ROWS), 1))

FAMILIES = [
    pytest.param(family, name, id=name)
    for family in (*MODELS.values(), *OTHERS)
    for name in family.classes
    if find_spec(family.library) is not None and find_spec(family.needs or family.library) is not None
]
"""Every class that a record is about, as far as its library is here."""


def make(family, name):
    """An untrained estimator of a family's class."""
    if name == "BinnedForest":
        pytest.importorskip("numba")
        from fedkt.models.forests.forest import BinnedForest

        return BinnedForest()
    if family.library == "sklearn":
        return dict(all_estimators("classifier"))[name]()
    if family.network:
        return as_estimator("mlp").set_params(epochs=40)
    if family.library == "fedkt":
        return type(family.estimator())()
    return getattr(import_module(family.library), name)()


@pytest.fixture
def estimator(family, name):
    return make(family, name)


@pytest.mark.parametrize(("family", "name"), FAMILIES)
def test_an_estimator_is_known_by_its_class(family, estimator):
    assert family_of(estimator) == family
    assert is_neural(estimator) == family.network


@pytest.mark.parametrize(("family", "name"), FAMILIES)
def test_a_record_says_who_learns_distributions(family, estimator):
    """Every row is taught as 0.7, 0.2, 0.1; a model of the likeliest labels would be sure of the first class."""
    task = TrainingTask(estimator, ROWS, SHARES, np.random.default_rng(0))
    if not family.learns_distributions:
        with pytest.raises(ModelError, match="cannot learn distributions over the classes, only labels"):
            fit_group([task], 3)
        return
    model = fit_group([task], 3)[0]
    if type(estimator).__name__ == "ComplementNB":
        # What it calls probabilities are no frequencies; it is enough that no label was left out.
        assert model.labels.tolist() == [0, 1, 2]
        return
    assert np.abs(model.predict_proba(ROWS, 3).mean(axis=0) - [0.7, 0.2, 0.1]).max() < 0.05


@pytest.mark.parametrize(("family", "name"), FAMILIES)
def test_a_record_says_how_its_estimators_travel(family, estimator):
    model = fit_model(estimator, ROWS, LABELS, rng=np.random.default_rng(0))
    assert (forest_of(model.estimator) is not None) == (family.trees is not None)
    received = to_onnx(model, n_features=3, n_classes=3, check_rows=ROWS)
    assert received.predict(ROWS[:20]).tolist() == model.predict(ROWS[:20]).tolist()


@pytest.mark.parametrize(("family", "name"), FAMILIES)
def test_a_record_says_who_teaches(family, estimator):
    teacher = default_teacher(estimator)
    assert (teacher is estimator) == (family.teacher is None)


@pytest.mark.parametrize(("family", "name"), FAMILIES)
def test_weights_of_classes_are_parameters_of_the_family_with_their_defaults(family, estimator):
    """A name that no estimator of the family has would be a fact about nothing."""
    parameters = {parameter for name in family.classes for parameter in make(family, name).get_params()}
    # LightGBM takes these without having them in its signature.
    aside = {"scale_pos_weight", "is_unbalance"} if family.library == "lightgbm" else set()
    assert set(family.class_weights) <= parameters | aside
    for name, value in estimator.get_params().items():
        if name in family.class_weights and value is not None:
            assert family.class_weights[name] == value


def test_no_two_records_are_about_one_class():
    names = [name for family in (*MODELS.values(), *OTHERS) for name in family.classes]
    assert len(set(names)) == len(names)


def test_what_nobody_knows_is_taken_for_the_least():
    family = family_of(RidgeClassifier())
    assert family == UNKNOWN
    assert not any((family.calibrated, family.learns_distributions, family.network))
    assert default_teacher(ridge := RidgeClassifier()) is ridge


def test_a_class_that_derives_from_a_known_one_travels_as_it_does_and_no_fact_is_taken_over():
    class Own(RandomForestClassifier):
        pass

    class OwnNeighbours(KNeighborsClassifier):
        pass

    family = family_of(Own())
    assert family == replace(UNKNOWN, trees=MODELS["forest"].trees)
    assert family_of(OwnNeighbours()) == UNKNOWN


def test_a_namesake_of_a_network_is_none():
    class NeuralClassifier(ClassifierMixin, BaseEstimator):
        pass

    assert family_of(NeuralClassifier()) == UNKNOWN
    assert NETWORK.network


def test_a_pipeline_is_of_the_family_of_its_end_and_a_network_in_one_is_nobodys():
    forest = family_of(make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), RandomForestClassifier())))
    assert (forest.row_weight, forest.teacher) == (MODELS["forest"].row_weight, MODELS["forest"].teacher)
    assert forest.trees is None
    assert family_of(make_pipeline(StandardScaler(), as_estimator("mlp"))) == UNKNOWN


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("boosting", r"is XGBoost, .* pip install 'fedkt\[boosting\]' \(or choose 'hist-boosting', .* more\)\.$"),
        ("lightgbm", r"^Model 'lightgbm' is not installed\. Run: pip install 'fedkt\[boosting\]'\.$"),
        ("mlp", r"^Model 'mlp' needs PyTorch, which is not installed\. Run: pip install 'fedkt\[neural\]'\.$"),
    ],
)
def test_a_family_without_its_library_says_what_to_install(name, words, monkeypatch):
    monkeypatch.setattr("fedkt.models.families.family.find_spec", lambda package: None)
    with pytest.raises(ConfigurationError, match=words):
        as_estimator(name)


def test_the_catalogue_loads_no_library():
    code = (
        "import sys; from fedkt.models.catalogue import MODELS; "
        "[each.learns_distributions for each in MODELS.values()]; "
        "print([m for m in ('numpy', 'sklearn', 'torch', 'xgboost', 'lightgbm', 'onnx') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# A family that nobody has: everything about it stands here, and `catalogue` below is its one line in the catalogue.


class Centroids(ClassifierMixin, BaseEstimator):
    """The class whose mean is nearest."""

    def fit(self, X, y, sample_weight=None):
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.classes_ = np.unique(y)
        self.means_ = np.array([np.average(X[y == k], axis=0, weights=weights[y == k]) for k in self.classes_])
        self.shares_ = np.array([weights[y == k].sum() for k in self.classes_]) / weights.sum()
        return self

    def scores(self, X):
        return 2 * X @ self.means_.T - (self.means_**2).sum(axis=1) + np.log(self.shares_)

    def predict(self, X):
        return self.classes_[self.scores(np.asarray(X, np.float64)).argmax(axis=1)]

    def predict_proba(self, X):
        scores = self.scores(np.asarray(X, np.float64))
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        return likely / likely.sum(axis=1, keepdims=True)


def centroids_graph(estimator, *, double):
    from onnx import helper, numpy_helper

    columns = (2 * estimator.means_.T).astype(np.float32)
    shift = (np.log(estimator.shares_) - (estimator.means_**2).sum(axis=1)).astype(np.float32)
    tables = [numpy_helper.from_array(columns, "columns"), numpy_helper.from_array(shift, "shift")]
    nodes = [
        helper.make_node("MatMul", ["rows", "columns"], ["product"]),
        helper.make_node("Add", ["product", "shift"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
    ]
    width = estimator.means_.shape[1]
    return label_model(nodes, width, tables)


CENTROIDS = Family(
    "centroids",
    "The class whose mean is nearest.",
    Centroids,
    classes=("Centroids",),
    row_weight=1.0,
    graph=centroids_graph,
    scores=lambda estimator: LabelScores("scores", len(estimator.classes_), "softmax"),
)


@pytest.fixture(
    params=[CENTROIDS, replace(CENTROIDS, row_weight=None, graph=None, scores=None)], ids=["able", "unable"]
)
def catalogue(request, monkeypatch):
    """The catalogue with a line more."""
    monkeypatch.setitem(MODELS, "centroids", request.param)
    return request.param


def test_a_new_family_is_taught_and_trained_by_its_name(catalogue):
    parties = [
        Party(ROWS[160:], CLASSES, i, name=str(i), X=ROWS[rows], y=LABELS[rows])
        for i, rows in enumerate(np.array_split(np.arange(160), 2))
    ]
    outcome = simulate(FedKT("centroids", subsets=2), parties, Server(ROWS[160:], CLASSES, 9))
    (final,) = outcome.final.models
    assert type(final.estimator) is Centroids
    assert np.mean(final.predict(ROWS[160:]) == LABELS[160:]) > 0.9


def test_a_new_family_learns_distributions_where_its_record_says_so(catalogue):
    task = TrainingTask(as_estimator("centroids"), ROWS, SHARES, np.random.default_rng(0))
    assert learns_distributions(task.estimator) == (catalogue is CENTROIDS)
    if catalogue is CENTROIDS:
        # All means are one mean, so what is left is how often each class occurs.
        assert np.allclose(fit_group([task], 3)[0].predict_proba(ROWS, 3), [0.7, 0.2, 0.1])
    else:
        with pytest.raises(ModelError, match="Centroids cannot learn distributions"):
            fit_group([task], 3)
    assert not is_calibrated("centroids")
    assert gives_probabilities(task.estimator)


def test_a_new_family_travels_where_its_record_says_how_and_is_refused_in_words_elsewhere(catalogue):
    model = fit_model(as_estimator("centroids"), ROWS, LABELS, rng=np.random.default_rng(0))
    if catalogue is not CENTROIDS:
        with pytest.raises(ModelError, match="Centroids cannot be converted to ONNX"):
            to_onnx(model, n_features=3, n_classes=3, check_rows=ROWS)
        return
    received = to_soft_onnx(model, n_features=3, n_classes=3, check_rows=ROWS, must=True)
    assert received.predict(ROWS).tolist() == model.predict(ROWS).tolist()
    assert has_probabilities(received)


def test_a_new_family_is_part_of_help_and_of_what_may_be_chosen(monkeypatch):
    monkeypatch.setitem(MODELS, "centroids", CENTROIDS)
    with pytest.raises(ConfigurationError, match=r"no model 'oracle'.*, centroids\."):
        as_estimator("oracle")
    code = """
import contextlib, io, typer
from typer.main import get_command
from fedkt.cli import app
from fedkt.models.catalogue import MODELS
from fedkt.models.families.family import Family
MODELS['centroids'] = Family('centroids')
commands = get_command(app).commands
commands['plan new'] = commands['plan'].commands['new']
verbs = ('simulate', 'compare', 'plan new')
for verb in verbs:
    with contextlib.redirect_stdout(io.StringIO()):
        commands[verb].get_help(typer.Context(commands[verb]))
options = [(verb, each) for verb in verbs for each in commands[verb].params if each.name == 'model']
print([verb for verb, each in options if 'centroids' in each.help])
"""
    verbs = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert verbs == "['simulate', 'compare', 'plan new']\n"
