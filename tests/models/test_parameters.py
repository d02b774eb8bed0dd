"""Untrained copies: what scikit-learn's own `clone` gives, and the random states that were always drawn."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fedkt.errors import DataError
from fedkt.models.base import fit_model
from fedkt.models.parameters import are_valid, parameters_of, plain_parameters, untrained_copy

X, Y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])


class OwnTree(DecisionTreeClassifier):
    """One of somebody's own, that counts how often it is made."""

    def __init__(self, made=None, random_state=None):
        self.made = made
        super().__init__(random_state=random_state)


class Doubtful(ClassifierMixin, BaseEstimator):
    def __init__(self, n_jobs=None):
        self.n_jobs = n_jobs


ESTIMATORS = [
    DecisionTreeClassifier(max_depth=3),
    DecisionTreeClassifier(random_state=5, class_weight={0: 2.0, 1: 1.0}),
    RandomForestClassifier(n_estimators=7, max_features=0.5, class_weight="balanced"),
    RandomForestClassifier(max_depth=np.int64(4)),
    LogisticRegression(C=0.1),
    GaussianNB(),
    BaggingClassifier(DecisionTreeClassifier()),
    make_pipeline(StandardScaler(), LogisticRegression()),
    OwnTree(made="by hand"),
    Doubtful(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_copy_is_the_clone_with_its_unset_states_drawn_in_the_order_of_their_names(estimator):
    before = repr(estimator)
    own = untrained_copy(estimator, np.random.default_rng(3))
    expected, rng = clone(estimator), np.random.default_rng(3)
    for name in sorted(expected.get_params()):
        if name.rpartition("__")[2] == "random_state" and expected.get_params()[name] is None:
            expected.set_params(**{name: int(rng.integers(2**31 - 1))})
    if isinstance(estimator, Doubtful):
        expected.set_params(n_jobs=1)
    assert type(own) is type(estimator)
    assert own is not estimator
    assert repr(own.get_params()) == repr(expected.get_params())
    assert repr(estimator) == before
    assert parameters_of(estimator).keys() == estimator.get_params(deep=True).keys()


def test_what_clone_takes_along_besides_parameters_is_taken_along():
    with sklearn.config_context(enable_metadata_routing=True):
        asking = DecisionTreeClassifier().set_fit_request(sample_weight=True)
        own = untrained_copy(asking, np.random.default_rng(0))
        assert own.get_metadata_routing().fit.requests == {"sample_weight": True}


def test_a_copy_shares_nothing_that_can_be_changed():
    weights = {0: 2.0, 1: 1.0}
    own = untrained_copy(DecisionTreeClassifier(class_weight=weights), np.random.default_rng(0))
    weights[0] = 9.0
    assert own.class_weight == {0: 2.0, 1: 1.0}


def test_only_estimators_of_scikit_learns_own_with_plain_values_are_copied_without_asking_them():
    plain = [type(each).__name__ for each in ESTIMATORS if plain_parameters(each) is not None]
    assert plain == ["DecisionTreeClassifier", "RandomForestClassifier", "LogisticRegression", "GaussianNB"]


def test_a_parameter_that_cannot_be_is_refused_however_many_good_ones_came_before():
    good, rng = RandomForestClassifier(2, bootstrap=True), np.random.default_rng(0)
    assert are_valid(good)
    fit_model(good, X, Y, rng=rng)
    for name, value in {"max_depth": "three", "min_samples_leaf": -1, "bootstrap": 1}.items():
        bad = clone(good).set_params(**{name: value})
        assert not are_valid(bad)
        with pytest.raises(DataError, match=name):
            fit_model(bad, X, Y, rng=rng)
