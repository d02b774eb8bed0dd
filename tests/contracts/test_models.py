"""What every model family of the catalogue must do, as teacher, student and final model."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from fedkt.algorithms import FedKT
from fedkt.algorithms.soft_lesson import gives_probabilities
from fedkt.errors import ConfigurationError, DataError
from fedkt.federation import Party, Server, simulate
from fedkt.models.base import FittedModel, fit_model
from fedkt.models.catalogue import ALIASES, MODELS, as_estimator, canonical_name, default_teacher, roles, trained_for
from fedkt.models.ensemble import is_calibrated, is_neural, learns_distributions

X, LABELS = make_classification(240, 6, n_informative=4, n_classes=3, class_sep=2.0, random_state=0)
X = X.astype(np.float32)
IMAGES = np.kron(np.pad(X, ((0, 0), (0, 2))).reshape(-1, 2, 4), np.ones((8, 4))).reshape(-1, 256).astype(np.float32)
"""The same numbers as patches of a 16 × 16 picture, for who reads pictures."""


@pytest.fixture(params=MODELS)
def family(request):
    return request.param


def estimator_of(family):
    """A small problem's version of the family: networks see so few rows more often."""
    estimator = as_estimator(family)
    return estimator.set_params(epochs=60) if MODELS[family].network else estimator


def rows_for(family):
    return IMAGES if MODELS[family].only_images else X


def image_for(family):
    return (16, 16, 1) if MODELS[family].only_images else None


def test_the_catalogue_knows_what_its_families_can_do(family):
    """A plan is checked by these names alone, on a machine that may lack the family's library."""
    estimator = as_estimator(family)
    facts = MODELS[family]
    assert facts.name == family
    assert facts.probabilities == gives_probabilities(estimator)
    assert facts.network == is_neural(estimator)
    assert facts.calibrated == is_calibrated(estimator) == is_calibrated(family)
    assert facts.learns_distributions == learns_distributions(estimator)
    assert facts.summary


def fitted(family, rows, labels, seed=0):
    estimator = estimator_of(family)
    if MODELS[family].only_images:
        estimator.set_params(image=(16, 16))
    return fit_model(estimator, rows, labels, rng=np.random.default_rng(seed))


def test_it_reads_tables_unless_it_is_said_to_read_images_only(family):
    if MODELS[family].only_images:
        with pytest.raises(DataError, match="reads images"):
            fit_model(as_estimator(family), X, LABELS, rng=np.random.default_rng(0))
    else:
        assert fit_model(as_estimator(family), X, LABELS, rng=np.random.default_rng(0)).n_features == X.shape[1]


def miscalibration(family):
    """By how much a class is more or less frequent than it is found probable, over five bins of new rows.

    The log odds of the second class are the first of two numbers, which stand four times each in a row: who takes
    columns for independent is too sure.
    """
    rng = np.random.default_rng(0)
    odds = rng.normal(size=(6000, 2))
    rows, truth = np.repeat(odds, 4, axis=1).astype(np.float32), 1 / (1 + np.exp(-odds[:, 0]))
    labels = (rng.random(3000) < truth[:3000]).astype(int)
    estimator = trained_for(family, 5)
    if MODELS[family].only_images:
        rows = np.kron(rows.reshape(-1, 2, 4), np.ones((8, 4))).reshape(-1, 256).astype(np.float32)
        estimator.set_params(image=(16, 16))
    model = fit_model(as_estimator(estimator), rows[:3000], labels, rng=rng)
    sure, truth = model.predict_proba(rows[3000:], 2)[:, 1], truth[3000:]
    bins = np.minimum((sure * 5).astype(int), 4)
    return sum(abs(sure[bins == each].sum() - truth[bins == each].sum()) for each in range(5)) / len(sure)


def test_what_is_said_to_be_calibrated_finds_a_class_as_probable_as_it_is(family):
    if MODELS[family].calibrated:
        assert miscalibration(family) < 0.08
    elif family == "naive-bayes":
        # Not by the way: whoever is too sure fails the test above.
        assert miscalibration(family) > 0.15


def test_it_learns_classes_that_are_not_0_to_k(family):
    agreed = np.array([1, 4, 6])[LABELS]
    rows = rows_for(family)
    predictions = fitted(family, rows, agreed).predict(rows)
    assert set(predictions.tolist()) <= {1, 4, 6}
    assert np.mean(predictions == agreed) > 0.8


def test_it_answers_with_the_only_class_it_saw(family):
    model = fitted(family, X[:5], np.full(5, 3))
    assert model.predict(X).tolist() == [3] * len(X)
    assert model.predict_proba(X, 5)[:, 3].tolist() == [1.0] * len(X)


def test_it_learns_from_a_single_row(family):
    model = fitted(family, X[:1], [2])
    assert model.predict(X[:4]).tolist() == [2, 2, 2, 2]


def test_the_same_generator_gives_the_same_model(family):
    rows = rows_for(family)
    first, second = (fitted(family, rows, LABELS, seed=7) for _ in range(2))
    assert first.predict(rows).tolist() == second.predict(rows).tolist()


def test_the_estimator_given_is_not_touched(family):
    estimator = as_estimator(family)
    if MODELS[family].only_images:
        estimator.set_params(image=(16, 16))
    before = repr(estimator.get_params())
    fit_model(estimator, rows_for(family), LABELS, rng=np.random.default_rng(0))
    assert repr(estimator.get_params()) == before


def test_a_federation_of_parties_with_missing_classes_works(family):
    classes = ("a", "b", "c")
    halves = [np.flatnonzero(missing != LABELS)[:60] for missing in (0, 1, 2)]
    table, image = rows_for(family), image_for(family)
    public = table[180:]
    parties = [
        Party(public, classes, i, image=image, name=str(i), X=table[rows], y=LABELS[rows])
        for i, rows in enumerate(halves)
    ]
    outcome = simulate(FedKT(estimator_of(family), subsets=2), parties, Server(public, classes, 9, image=image))
    assert np.mean(outcome.final.models[0].predict(public) == LABELS[180:]) > 0.55


def test_a_model_without_rows_is_empty_handed(family):
    rows = rows_for(family)
    model = fitted(family, rows, LABELS)
    assert model.predict(rows[:0]).shape == (0,)


def test_tree_ensembles_are_taught_by_single_trees():
    assert type(default_teacher(as_estimator("forest"))).__name__ == "DecisionTreeClassifier"
    assert default_teacher(as_estimator("forest")).max_depth == 6
    assert type(default_teacher(as_estimator("boosting"))).__name__ == "DecisionTreeClassifier"
    assert type(roles("logistic").teacher.steps[-1][1]).__name__ == "LogisticRegression"


def test_a_pipeline_keeps_its_preparation_when_a_tree_teaches_it():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    teacher = default_teacher(make_pipeline(StandardScaler(), RandomForestClassifier(max_depth=3)))
    assert [type(step).__name__ for _, step in teacher.steps] == ["StandardScaler", "DecisionTreeClassifier"]
    assert teacher.steps[-1][1].max_depth == 3


def test_an_unknown_family_is_refused_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"no model 'oracle'.*forest"):
        as_estimator("oracle")


def test_a_class_instead_of_an_instance_is_refused():
    from sklearn.tree import DecisionTreeClassifier

    with pytest.raises(ConfigurationError, match="got the class DecisionTreeClassifier"):
        as_estimator(DecisionTreeClassifier)


def test_a_regressor_is_refused():
    from sklearn.tree import DecisionTreeRegressor

    with pytest.raises(ConfigurationError, match="predicts numbers, not classes"):
        as_estimator(DecisionTreeRegressor())


def test_predictions_do_not_depend_on_the_block_size(monkeypatch):
    model = fit_model(as_estimator("tree"), X, LABELS, rng=np.random.default_rng(0))
    at_once = model.predict(X)
    monkeypatch.setattr("fedkt.models.base.BLOCK_ROWS", 7)
    assert model.predict(X).tolist() == at_once.tolist()


def test_a_column_of_predictions_is_read_as_labels():
    class Column:
        def predict(self, rows):
            return np.ones((len(rows), 1))

    assert FittedModel(Column(), np.array([5, 8])).predict(X[:3]).tolist() == [8, 8, 8]


@pytest.mark.parametrize("soft", [False, True], ids=["label", "probability"])
def test_checking_a_graph_of_ours_leaves_its_bytes_as_they_are(family, soft):
    from fedkt.models.exchange import graph_bytes
    from fedkt.models.onnx_rules import check_graph

    if soft and not MODELS[family].probabilities:
        pytest.skip("it only names a class")
    rows = rows_for(family)
    model = fitted(family, rows[:60], LABELS[:60])
    labels = [int(each) for each in model.labels]
    width = rows.shape[1]
    graph = graph_bytes(model.estimator, labels, width, double=False, n_classes=3 if soft else None)
    assert check_graph(graph, n_features=width, n_classes=3, soft=soft).data == graph


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("xgboost", "boosting"),
        ("XGBClassifier", "boosting"),
        ("lightgbm", "lightgbm"),
        ("LGBMClassifier", "lightgbm"),
        ("random_forest", "forest"),
        ("Random Forest", "forest"),
        ("RandomForestClassifier", "forest"),
        ("lr", "logistic"),
        ("LogisticRegression", "logistic"),
        ("naive_bayes", "naive-bayes"),
        ("MLP", "mlp"),
    ],
)
def test_a_family_is_known_by_what_people_call_it(said, name):
    assert canonical_name(said) == name


@pytest.mark.parametrize(("said", "name"), [("forrest", "forest"), ("xgbost", "boosting"), ("logistics", "logistic")])
def test_a_name_that_is_nearly_one_is_answered_with_the_one(said, name):
    with pytest.raises(ConfigurationError, match=f"There is no model '{said}'. Did you mean '{name}'"):
        canonical_name(said)


def test_no_alias_hides_a_family():
    assert all(canonical_name(name) == name for name in MODELS)
    assert not set(ALIASES) & set(MODELS)


def test_a_torch_network_is_told_how_to_take_part():
    torch = pytest.importorskip("torch")
    with pytest.raises(ConfigurationError, match=r"A Linear is a torch network.*NeuralClassifier\(build\)"):
        as_estimator(torch.nn.Linear(2, 2))
