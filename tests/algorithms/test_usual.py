"""What runs where nobody chose an algorithm."""

import pytest

from fedkt import FedKTClassifier
from fedkt.algorithms import ALGORITHMS
from fedkt.algorithms.usual import OF_VOTES, usual_algorithm
from fedkt.estimator.choice import algorithm_of
from fedkt.lab.setting import Setting
from fedkt.privacy import Gaussian
from fedkt.privacy.sums import GaussianSums


@pytest.mark.parametrize(("level", "name"), [("L0", "fedkt-auto"), ("L1", "fedkt-moments"), ("L2", "fedkt-moments")])
def test_who_chooses_neither_family_nor_vote_is_served_what_was_best(level, name):
    assert usual_algorithm(level, ["dataset", "seed", "epsilon", "parties"]) == name


@pytest.mark.parametrize(("level", "name"), [("L0", "fedkt-expert"), ("L1", "fedkt"), ("L2", "fedkt")])
@pytest.mark.parametrize("setting", sorted(OF_VOTES))
def test_who_names_a_family_or_the_shape_of_a_vote_gets_votes(level, name, setting):
    assert usual_algorithm(level, [setting]) == name


def test_what_is_of_votes_is_a_setting_or_the_weights_of_rows():
    known = {*vars(Setting("heart")), *(name for card in ALGORITHMS.values() for name in card.takes)}
    assert known >= OF_VOTES - {"weights"}


@pytest.mark.parametrize(
    ("parameters", "weighted", "name"),
    [
        ({}, False, "fedkt-auto"),
        ({}, True, "fedkt-expert"),
        ({"estimator": "forest"}, False, "fedkt-expert"),
        ({"final": "boosting"}, False, "fedkt-expert"),
        ({"party_estimators": {"north": "tree"}}, False, "fedkt-expert"),
        ({"level": "L2", "noise": GaussianSums(10.0)}, False, "fedkt-moments"),
        ({"level": "L1", "noise": GaussianSums(10.0), "class_shares": {"no": 0.7}}, False, "fedkt-moments"),
        ({"level": "L2", "noise": Gaussian(40.0)}, False, "fedkt"),
        ({"level": "L1", "noise": Gaussian(4.0), "queries": 40}, False, "fedkt"),
        ({"voting": "consistent"}, False, "fedkt"),
        ({"voting": "moments", "estimator": "forest"}, False, "fedkt-moments"),
    ],
)
def test_a_classifier_stands_for_the_algorithm_that_its_parameters_ask_for(parameters, weighted, name):
    assert algorithm_of(FedKTClassifier(**parameters), None, weighted=weighted).name == name
