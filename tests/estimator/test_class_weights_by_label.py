"""Weights of classes are in terms of the user's own labels."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fedkt import FedKTClassifier
from fedkt.errors import ConfigurationError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 2))
Y = (X[:, 0] + RNG.normal(size=900) > 1.2).astype(int)
LABELS = np.array(["no", "yes"])[Y]
OWNERS = np.arange(900) % 3


def share_of(label, y, weights, **settings):
    inner = make_pipeline(StandardScaler(), LogisticRegression(class_weight=weights))
    model = FedKTClassifier(inner, random_state=0, **settings).fit(X, y, parties=OWNERS)
    return float(np.mean(model.predict(X) == label))


@pytest.mark.parametrize("voting", ["expert", "consistent"])
def test_a_label_that_weighs_more_is_predicted_more_often_whatever_it_is_called(voting):
    plain = share_of("yes", LABELS, None, voting=voting)
    weighed = share_of("yes", LABELS, {"yes": 5, "no": 1}, voting=voting)
    assert weighed > plain + 0.03
    assert share_of("yes", LABELS, {"yes": 5}, voting=voting) == weighed
    # Labels 1 and 2 lie at the places 0 and 1.
    assert share_of(2, Y + 1, {1: 1, 2: 5}, voting=voting) == weighed


def test_in_consistent_voting_a_weight_does_about_what_it_does_in_scikit_learn():
    alone = LogisticRegression(class_weight={"yes": 5, "no": 1}).fit(X, LABELS)
    expected = float(np.mean(alone.predict(X) == "yes"))
    assert share_of("yes", LABELS, {"yes": 5}, voting="consistent") == pytest.approx(expected, abs=0.06)


def test_a_weight_of_a_label_that_is_not_there_is_refused():
    with pytest.raises(ConfigurationError, match=r"weighs the class 'maybe', which is not among the classes \['no'"):
        share_of("yes", LABELS, {"maybe": 5})
    own = {1: LogisticRegression(class_weight={0: 5})}
    with pytest.raises(ConfigurationError, match="weighs the class 0"):
        FedKTClassifier("tree", party_estimators=own).fit(X, LABELS, parties=OWNERS)


def test_the_users_estimator_is_not_touched():
    inner = LogisticRegression(class_weight={"yes": 5})
    FedKTClassifier(inner, random_state=0).fit(X, LABELS, parties=OWNERS)
    assert inner.class_weight == {"yes": 5}
