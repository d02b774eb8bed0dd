"""Rows may count for more or less than others."""

from unittest import mock

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fedkt import FedKTClassifier
from fedkt.algorithms import FedKT, lesson
from fedkt.algorithms.solo import Solo
from fedkt.errors import ConfigurationError, DataError
from fedkt.federation import Party, Server, simulate
from fedkt.models.base import fit_model
from fedkt.models.catalogue import trained_for
from fedkt.models.ensemble import TrainingTask
from fedkt.models.training import train_models
from fedkt.privacy import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=600) > 0.5).astype(int)
OWNERS = np.array(["north", "south"])[(np.arange(600) % 3 == 0).astype(int)]
PUBLIC = RNG.normal(size=(300, 3))
SURE = (PUBLIC[:, 0] > 0.5).astype(int)
# Three fifths of the labels are wrong: whoever trusts all rows alike learns the contrary.
WRONG = RNG.random(600) < 0.6
TURNED = np.where(WRONG, 1 - Y, Y)
TRUST = np.where(WRONG, 0.01, 1.0)


def test_a_row_of_weight_two_is_two_rows():
    times = np.random.default_rng(1).integers(1, 4, 600)
    places = np.repeat(np.arange(600), times)
    model = FedKTClassifier(LogisticRegression(), random_state=0)
    answers = []
    for rows, weights in ((np.arange(600), times), (places, None)):
        model.fit(X[rows], Y[rows], sample_weight=weights, parties=OWNERS[rows], public=PUBLIC)
        answers.append(model.predict_proba(X))
    assert np.allclose(*answers, atol=1e-3)
    assert not np.allclose(answers[0], model.fit(X, Y, parties=OWNERS, public=PUBLIC).predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("weights_of_classes", [None, "balanced"])
@pytest.mark.parametrize("setting", [{}, {"voting": "consistent"}, {"voting": "expert-no-counts"}, {"n_parties": 3}])
def test_a_row_of_weight_zero_does_not_exist(setting, weights_of_classes):
    absurd = X.copy()
    absurd[::7] = 1e6
    kept = np.arange(600) % 7 != 0
    tree = DecisionTreeClassifier(max_depth=4, class_weight=weights_of_classes)
    model = FedKTClassifier(tree, random_state=0, **setting)
    names = None if "n_parties" in setting else OWNERS
    labels = np.where(kept, Y, 7)
    model.fit(absurd, labels, sample_weight=kept * 1.0, parties=names)
    some = model.predict_proba(X)
    assert model.classes_.tolist() == [0, 1]
    model.fit(X[kept], Y[kept], sample_weight=np.ones(kept.sum()), parties=None if names is None else names[kept])
    assert (model.predict_proba(X) == some).all()


FAMILIES = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(20, max_depth=3),
    "boosting": "hist-boosting",
    "bayes": GaussianNB(),
}


@pytest.mark.parametrize(
    ("family", "voting"),
    [
        *(("logistic", voting) for voting in ("expert", "consistent", "expert-no-counts")),
        ("forest", "consistent"),
        ("boosting", "expert"),
        ("bayes", "expert-no-counts"),
    ],
)
def test_rows_of_little_weight_teach_little(family, voting):
    estimator = FAMILIES[family]
    model = FedKTClassifier(estimator, voting=voting, random_state=0)
    right = np.mean(model.fit(X, TURNED, sample_weight=TRUST, parties=OWNERS, public=PUBLIC).predict(PUBLIC) == SURE)
    plain = np.mean(model.fit(X, TURNED, parties=OWNERS, public=PUBLIC).predict(PUBLIC) == SURE)
    assert plain < 0.5
    assert right > 0.7


def test_networks_take_weights_of_rows_alone_and_in_stacks():
    pytest.importorskip("torch")
    from fedkt.models.neural.classifier import NeuralClassifier

    network = NeuralClassifier(module="mlp", epochs=30)
    tasks = [TrainingTask(network, X, TURNED, np.random.default_rng(seed), weights=TRUST) for seed in (0, 1)]
    alone = [train_models([task], 2)[0].predict_proba(PUBLIC, 2) for task in tasks]
    tasks = [TrainingTask(network, X, TURNED, np.random.default_rng(seed), weights=TRUST) for seed in (0, 1)]
    for one, other in zip(alone, train_models(tasks, 2), strict=True):
        assert np.allclose(one, other.predict_proba(PUBLIC, 2), atol=1e-3)
        assert np.mean(one.argmax(axis=1) == SURE) > 0.75
    half = [TrainingTask(network, X, TURNED, np.random.default_rng(0), weights=TRUST / 2)]
    assert np.allclose(train_models(half, 2)[0].predict_proba(PUBLIC, 2), alone[0], atol=1e-4), "their mean is taken"
    trained = train_models([TrainingTask(network, X, TURNED, np.random.default_rng(0))], 2)[0]
    assert np.mean(trained.predict(PUBLIC) == SURE) < 0.5


def test_balanced_classes_weigh_the_same_also_where_rows_have_weights():
    """Families disagree about that: to some, balanced is what rows are without their weights."""
    weights = np.where(Y == 1, 3.0, 1.0)
    totals = np.array([weights[Y == 0].sum(), weights[Y == 1].sum()])
    expected = LogisticRegression().fit(X, Y, sample_weight=weights * (600 / 2 / totals * totals.sum() / 600)[Y])
    balanced = LogisticRegression(class_weight="balanced")
    model = fit_model(balanced, X, Y, rng=np.random.default_rng(0), weights=weights)
    assert np.allclose(model.predict_proba(X, 2), expected.predict_proba(X), atol=1e-4)


def test_class_counts_are_sums_of_weights_in_usual_rows():
    weights = np.where(Y == 1, 0.003, 0.001)
    sent = []
    for scale in (1.0, weights.mean()):
        party = Party(
            PUBLIC, (0, 1), 0, name="all", X=X, y=Y, weights=weights / weights.mean() * scale, usual_weight=scale
        )
        sent.append(FedKT(LogisticRegression(), voting="expert").party_step(party, None).counts)
    expected = [round((Y == 0).sum() * 0.001 / weights.mean()), round((Y == 1).sum() * 0.003 / weights.mean())]
    assert [list(each) for each in sent] == [expected, expected]
    assert sum(expected) == pytest.approx(600, abs=1)


def private(party_weights, voting="consistent"):
    """The lesson and the counts of a party at level L2; a noise this small lets counts through as they are."""
    algorithm = FedKT("tree", voting=voting, level="L2", noise=Gaussian(2.0), queries=20, subsets=4)
    party = Party(PUBLIC, (0, 1), 5, name="north", X=X, y=Y, weights=party_weights, noise_seed=1)
    (own,) = algorithm.lessons(party, algorithm.voting.roles_for(algorithm))
    return algorithm, party, own


def test_at_L2_a_record_of_weight_zero_moves_no_other_records_teacher():
    weights = np.ones(600)
    weights[10] = 0
    before, after = (private(each)[2].subset_rows for each in (np.ones(600), weights))
    assert sum(len(each) for each in after) == 599
    for one, other in zip(before, after, strict=True):
        assert other.tolist() == [row for row in one.tolist() if row != 10]


def heard(teacher, rows, weights, subsets):
    """What each teacher of a party has learned and said at level L2."""
    asked, told = lesson.train_and_ask, {}

    def listening(problems, *rest, **named):
        for place, answer in asked(problems, *rest, **named):
            task = problems[place]
            said = answer.encode() if isinstance(answer, str) else answer.tobytes()
            told[task.who] = np.asarray(task.own_rows).tobytes() + task.weights.tobytes() + said
            yield place, answer

    algorithm = FedKT("tree", teacher=teacher, level="L2", noise=Gaussian(2.0), queries=20, subsets=subsets)
    x, y = X[:rows].astype(np.float32), Y[:rows]
    party = Party(PUBLIC.astype(np.float32), (0, 1), 5, name="north", X=x, y=y, weights=weights, noise_seed=1)
    with mock.patch.object(lesson, "train_and_ask", listening):
        algorithm.party_step(party, None)
    return told


@pytest.mark.parametrize("weight", [0.0, 1e-300, 1e300])
@pytest.mark.parametrize(("rows", "subsets"), [(60, 4), (8, 8), (2, 4)])
@pytest.mark.parametrize("family", ["tree", "balanced", "logistic", "mlp"])
def test_at_L2_whatever_a_record_weighs_is_its_own_teachers_business(family, rows, subsets, weight):
    """Also where subsets are single rows, or of one class."""
    if family == "mlp":
        pytest.importorskip("torch")
    balanced = DecisionTreeClassifier(max_depth=3, class_weight="balanced")
    teacher = trained_for(balanced if family == "balanced" else family, 2)
    usual = np.where(np.arange(rows) % 2, 1.0, 2.0)
    before = heard(teacher, rows, usual, subsets)
    after = heard(teacher, rows, np.where(np.arange(rows) == 1, weight, usual), subsets)
    assert sum(before.get(who) != after.get(who) for who in {*before, *after}) <= 1


@pytest.mark.parametrize("family", ["tree", "logistic", "mlp"])
def test_at_L2_one_record_of_any_weight_and_none_are_both_enough(family):
    """Whether there is one is a record's secret, and so must be whether a run fails."""
    if family == "mlp":
        pytest.importorskip("torch")
    one = (np.arange(30) == 3) * 1.0
    assert [len(heard(trained_for(family, 2), 30, each, 3)) for each in (one, np.zeros(30))] == [1, 0]
    model = FedKTClassifier("tree", level="L2", noise=Gaussian(1.0), queries=100, subsets=3, random_state=0)
    model.fit(X, Y, sample_weight=np.zeros(600), parties=OWNERS, public=PUBLIC)
    assert model.predict(PUBLIC).shape == (300,)


def test_at_L2_a_record_counts_one_at_most_whatever_it_weighs():
    counts = []
    for weights in (np.ones(600), np.full(600, 1000.0), np.where(np.arange(600) == 10, 0.0, 1.0)):
        algorithm, party, _ = private(weights, voting="expert")
        counts.append(algorithm.voting.count_classes(algorithm, party))
    assert counts[0] == counts[1], "the same noise on the same counts"
    assert np.abs(np.subtract(counts[0], counts[2])).tolist() == np.eye(2, dtype=int)[Y[10]].tolist()


def test_at_L2_weights_are_taken():
    model = FedKTClassifier(
        "tree", level="L2", noise=Gaussian(1.0), queries=100, subsets=3, random_state=0, noise_seed=1
    )
    model.fit(X, TURNED, sample_weight=np.where(WRONG, 0.0, 1.0), parties=OWNERS, public=PUBLIC)
    assert np.mean(model.predict(PUBLIC) == SURE) > 0.8
    assert model.report_.rows["parties"] == 600


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(5), "600 rows need as many weights"),
        (np.ones((600, 2)), "600 rows need as many weights"),
        (np.full(600, -1.0), "at least 0"),
        (np.where(np.arange(600) == 3, np.nan, 1.0), "missing or infinite"),
        (np.zeros(600), "zero for every row"),
        (["heavy"] * 600, "has to be numbers"),
    ],
)
def test_weights_that_are_none_are_refused(weights, words):
    with pytest.raises(DataError, match=words):
        FedKTClassifier("tree").fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("voting", ["expert", "consistent"])
def test_who_takes_no_weights_is_refused_in_words(voting):
    with pytest.raises(ConfigurationError, match="Rows have weights, and KNeighborsClassifier takes none"):
        FedKTClassifier(KNeighborsClassifier(), voting=voting).fit(X, Y, sample_weight=np.ones(600))
    inner = make_pipeline(StandardScaler(), KNeighborsClassifier())
    with pytest.raises(ConfigurationError, match="KNeighborsClassifier takes none"):
        FedKTClassifier("tree", teacher=inner, voting=voting).fit(X, Y, sample_weight=np.ones(600))
    party = Party(PUBLIC, (0, 1), 0, name="north", X=X, y=Y, weights=np.ones(600))
    with pytest.raises(ConfigurationError, match="takes no weights of rows"):
        simulate(Solo("tree"), [party], Server(PUBLIC, (0, 1), 0))


def test_only_teachers_need_to_take_weights():
    model = FedKTClassifier(KNeighborsClassifier(), teacher="tree", random_state=0)
    model.fit(X, Y, sample_weight=np.ones(600), parties=OWNERS, public=PUBLIC)
    assert np.mean(model.predict(PUBLIC) == SURE) > 0.8


def test_weights_are_routed_through_cross_validation():
    with sklearn.config_context(enable_metadata_routing=True):
        inner = make_pipeline(StandardScaler(), LogisticRegression())
        model = FedKTClassifier(inner, random_state=0).set_fit_request(sample_weight=True, parties=True)
        model = model.set_score_request(sample_weight=False)
        scores = cross_val_score(model, X, Y, cv=3, params={"parties": OWNERS, "sample_weight": TRUST})
    assert scores.mean() > 0.8


def test_weights_go_with_rows_of_every_kind():
    model = FedKTClassifier("tree", random_state=0)
    sparse = model.fit(csr_matrix(X), Y, sample_weight=TRUST.tolist(), parties=OWNERS.tolist()).predict(csr_matrix(X))
    assert (sparse == model.fit(X, Y, sample_weight=TRUST, parties=OWNERS).predict(X)).all()
    assert (model.fit(X, Y, sample_weight=2.0).predict(X) == model.fit(X, Y).predict(X)).all()


class OnlyLabels(DummyClassifier):
    """A classifier that names a class and nothing more."""

    predict_proba = property()


def test_logarithms_of_probabilities_are_there_where_probabilities_are():
    model = FedKTClassifier(DecisionTreeClassifier(max_depth=3), random_state=0).fit(X, Y, parties=OWNERS)
    probabilities = model.predict_proba(X)
    assert (probabilities == 0).any(), "else nothing would be seen of −∞"
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(probabilities)
    assert np.isneginf(model.predict_log_proba(X)[probabilities == 0]).all()
    assert not hasattr(FedKTClassifier(OnlyLabels()), "predict_log_proba")
