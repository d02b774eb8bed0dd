"""Weights of classes act once, and nobody is accused for them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from fedkt.algorithms import FedKT
from fedkt.algorithms.final import final_lesson
from fedkt.algorithms.voting.base import LabelledRows
from fedkt.errors import ConfigurationError
from fedkt.federation import Party, Server, simulate
from fedkt.models.class_weights import class_weight_settings
from fedkt.privacy import Gaussian

CENTRE = np.array([1.5, 0.5, 0.0])
RARE = (0.04, 0.04, 0.6)
FAMILIES = {
    "forest": RandomForestClassifier(40, max_depth=6),
    "logistic": LogisticRegression(),
    "tree": DecisionTreeClassifier(max_depth=5),
    "hist-boosting": HistGradientBoostingClassifier(max_iter=20),
}


def table(rng, n_rows, rare):
    """Two classes of the same shape, one of them rare and moved."""
    y = (rng.random(n_rows) < rare).astype(int)
    return rng.normal(size=(n_rows, 3)) + y[:, None] * CENTRE, y


def probability_of_rare(rows, rare):
    """What is to be known about such rows where so many are of the rare class (Bayes' rule)."""
    return 1 / (1 + np.exp(-(np.log(rare / (1 - rare)) + rows @ CENTRE - CENTRE @ CENTRE / 2)))


@pytest.fixture(scope="module")
def shifted():
    """Two parties that hardly know the rare class, a small one that does, and test rows like all of them together."""
    rng = np.random.default_rng(0)
    own = [table(rng, n_rows, rare) for n_rows, rare in zip((1500, 1500, 300), RARE, strict=True)]
    all_rare = sum(int(y.sum()) for _, y in own) / 3300
    public, test = table(rng, 1000, all_rare)[0], table(rng, 3000, all_rare)
    return [Party(public, (0, 1), k, name=f"p{k}", X=X, y=y) for k, (X, y) in enumerate(own)], test


def lessons_of(algorithm, party):
    return algorithm.lessons(party, algorithm.voting.roles_for(algorithm, party.model))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("voting", ["expert", "expert-no-counts"])
def test_weights_of_classes_cost_experts_nothing(shifted, family, voting):
    parties, (rows, truth) = shifted
    right = {}
    for weights in (None, "balanced"):
        # The final model is an unweighted one of its own: seen is what the students say.
        weighed = clone(FAMILIES[family]).set_params(class_weight=weights)
        algorithm = FedKT(weighed, voting=voting, final="logistic")
        outcome = simulate(algorithm, [fresh(each) for each in parties], Server(parties[0].public, (0, 1), 9))
        right[weights] = np.mean(outcome.final.models[0].predict(rows) == truth)
        assert not [note for note in outcome.server.notes if "do not fit" in note]
    assert right["balanced"] > right[None] - 0.015


def fresh(party, **changes):
    return Party(**{name: getattr(party, name) for name in ("public", "classes", "seed", "name", "X", "y")} | changes)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_student_of_a_weighted_teacher_finds_a_class_as_probable_as_it_is(shifted, family):
    parties, _ = shifted
    weighed = clone(FAMILIES[family]).set_params(class_weight="balanced")
    for party, rare in zip(parties, RARE, strict=True):
        sent = FedKT(weighed, voting="expert").party_step(fresh(party), None)
        says = sent.models[0].predict_proba(party.public, 2)[:, 1].mean()
        assert says == pytest.approx(probability_of_rare(party.public, rare).mean(), abs=0.04)


def test_priors_of_naive_bayes_are_undone_as_well(shifted):
    parties, _ = shifted
    means = []
    for estimator in (GaussianNB(), GaussianNB(priors=[0.5, 0.5])):
        (student,) = FedKT(estimator, voting="expert").party_step(fresh(parties[0]), None).models
        means.append(student.predict_proba(parties[0].public, 2)[:, 1].mean())
    assert means[1] == pytest.approx(means[0], abs=0.005)


def test_a_party_says_of_itself_that_its_teachers_weigh_classes(shifted):
    parties, _ = shifted
    sent = FedKT("tree", teacher=LogisticRegression(class_weight={1: 5}), voting="expert")
    assert sent.party_step(fresh(parties[0]), None).weighted
    assert not FedKT("tree", voting="expert").party_step(fresh(parties[0]), None).weighted
    own = fresh(parties[0], model=LogisticRegression(class_weight="balanced"))
    assert FedKT("tree", voting="expert").party_step(own, None).weighted


@pytest.mark.parametrize(
    "estimator",
    [SVC(class_weight="balanced"), RidgeClassifier(class_weight="balanced")],
    ids=["svm", "ridge"],
)
def test_weights_that_cannot_be_undone_are_taken_off(shifted, estimator):
    parties, _ = shifted
    (lesson,) = lessons_of(FedKT(estimator, voting="expert"), parties[0])
    assert class_weight_settings(lesson.roles.teacher) == class_weight_settings(lesson.roles.student) == {}
    inside = BaggingClassifier(DecisionTreeClassifier(class_weight="balanced"))
    (lesson,) = lessons_of(FedKT("tree", teacher=inside, voting="expert"), parties[0])
    assert class_weight_settings(lesson.roles.teacher) == {}


@pytest.mark.parametrize(
    ("voting", "level", "final_weighs"),
    [("consistent", "L0", False), ("consistent", "L2", False), ("expert", "L0", True), ("expert", "L2", False)],
)
def test_classes_are_weighed_once(shifted, voting, level, final_weighs):
    """By the teachers that vote; only where students' word is held against counts, by the final model instead."""
    parties, _ = shifted
    noise = {"level": "L2", "noise": Gaussian(2.0), "queries": 50} if level == "L2" else {}
    algorithm = FedKT(RandomForestClassifier(class_weight="balanced_subsample"), voting=voting, **noise)
    for lesson in lessons_of(algorithm, parties[0]):
        assert lesson.roles.teacher.class_weight in ("balanced", "balanced_subsample")
        assert lesson.roles.student.class_weight is None
    server = Server(parties[0].public, (0, 1), 9)
    task = final_lesson(algorithm, server, LabelledRows(np.arange(1000) % 2)).task
    assert bool(class_weight_settings(task.estimator)) is final_weighs


def test_the_single_tree_that_teaches_boosting_weighs_what_boosting_would():
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    teachers = [
        FedKT(each).voting.roles_for(FedKT(each)).teacher.class_weight
        for each in (
            xgboost.XGBClassifier(scale_pos_weight=7.0),
            lightgbm.LGBMClassifier(is_unbalance=True),
            lightgbm.LGBMClassifier(class_weight={1: 3}),
            xgboost.XGBClassifier(),
        )
    ]
    assert teachers == [{0: 1.0, 1: 7.0}, "balanced", {1: 3}, None]


def test_a_weight_means_the_same_class_at_a_party_that_lacks_one():
    """Local labels there are 0 and 1; a weight of class 1 must not land on class 2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, 2, 1)
    party = Party(X, (0, 1, 2), 0, name="lacks one", X=X, y=y)

    def share_of_2(weights):
        algorithm = FedKT(LogisticRegression(class_weight=weights), partitions=1, subsets=1)
        return float(np.mean(algorithm.party_step(fresh(party), None).models[0].predict(X) == 2))

    assert share_of_2({0: 1, 1: 1, 2: 9}) > share_of_2(None) + 0.2
    assert share_of_2({0: 1, 1: 9}) < share_of_2(None) - 0.2


def test_weights_of_classes_that_nobody_agreed_on_are_refused_before_anything_is_trained(shifted):
    parties, _ = shifted
    with pytest.raises(ConfigurationError, match="weighs the class 'yes'"):
        FedKT(LogisticRegression(class_weight={"yes": 5})).party_step(fresh(parties[0]), None)
    with pytest.raises(ConfigurationError, match="weighs the class 2"):
        FedKT("tree", final=LogisticRegression(class_weight={2: 5})).final_model(Server(parties[0].public, (0, 1), 0))
