"""How much a class weighs beyond its rows, and how that is said, undone and taken off."""

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_class_weight

from fedkt.errors import ConfigurationError
from fedkt.models.class_weights import (
    can_undo_class_weights,
    check_class_weights,
    class_factors,
    class_weight_settings,
    label_factors,
    with_local_class_weights,
    without_class_weights,
)

# Six rows of class 1 and two of class 2; nobody has class 0.
Y = np.array([1, 1, 2, 1, 1, 1, 2, 1])


@pytest.mark.parametrize(
    ("estimator", "ratio"),
    [
        (LogisticRegression(class_weight="balanced"), 3.0),
        (RandomForestClassifier(class_weight="balanced_subsample"), 3.0),
        (DecisionTreeClassifier(class_weight={1: 2.0, 2: 5.0}), 2.5),
        (DecisionTreeClassifier(class_weight={0: 9.0, 2: 5.0}), 5.0),
        (make_pipeline(StandardScaler(), LogisticRegression(class_weight={2: 7})), 7.0),
        # The rows say 3 : 1, the priors of the two classes that are there 1 : 4.
        (GaussianNB(priors=[0.5, 0.1, 0.4]), 12.0),
        (BernoulliNB(fit_prior=False), 3.0),
        (BernoulliNB(fit_prior=False, class_prior=[0.5, 0.25, 0.25]), 3.0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_class_weighs_as_much_as_the_parameter_says(estimator, ratio):
    first, second = class_factors(estimator, Y)
    assert second / first == pytest.approx(ratio)


def test_balanced_weights_are_scikit_learns_own():
    y = np.array([0] * 7 + [1] * 2 + [3] * 5)
    expected = compute_class_weight("balanced", classes=np.unique(y), y=y)
    assert class_factors(HistGradientBoostingClassifier(class_weight="balanced"), y) == pytest.approx(expected)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        RandomForestClassifier(),
        DecisionTreeClassifier(class_weight={1: 2, 2: 2}),
        GaussianNB(),
        GaussianNB(priors=[0.2, 0.6, 0.2]),
        ComplementNB(fit_prior=False),
        BaggingClassifier(DecisionTreeClassifier(class_weight="balanced")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_who_weighs_no_class_has_no_factors(estimator):
    assert class_factors(estimator, Y) is None


def test_boosting_weighs_the_second_of_two_classes():
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    assert class_factors(xgboost.XGBClassifier(scale_pos_weight=4.0), Y).tolist() == [1.0, 4.0]
    assert class_factors(xgboost.XGBClassifier(), Y) is None
    assert class_factors(xgboost.XGBClassifier(scale_pos_weight=4.0), [0, 1, 2]) is None
    first, second = class_factors(lightgbm.LGBMClassifier(is_unbalance=True), Y)
    assert second / first == pytest.approx(3.0)


def test_labels_are_weighed_by_the_shares_of_what_is_learned():
    balanced = LogisticRegression(class_weight="balanced")
    assert label_factors(balanced, [0.9, 0.1]) == pytest.approx([1 / 1.8, 5.0])
    distributions = np.array([[0.8, 0.2, 0.0], [1.0, 0.0, 0.0]])
    assert label_factors(balanced, distributions) == pytest.approx([1 / 1.8, 5.0, 1.0]), "nobody speaks of class 2"
    assert label_factors(DecisionTreeClassifier(class_weight={1: 5}), [0.9, 0.1]).tolist() == [1.0, 5.0]
    assert label_factors(LogisticRegression(), [0.9, 0.1]) is None


def test_weights_are_taken_off_wherever_they_stand():
    inside = make_pipeline(StandardScaler(), AdaBoostClassifier(DecisionTreeClassifier(class_weight="balanced")))
    assert set(class_weight_settings(inside)) == {"adaboostclassifier__estimator__class_weight"}
    assert class_weight_settings(without_class_weights(inside)) == {}
    assert without_class_weights(SVC(class_weight="balanced")).class_weight is None
    assert without_class_weights(RidgeClassifier(class_weight={0: 2})).class_weight is None
    assert without_class_weights(GaussianNB(priors=[0.5, 0.5])).priors is None
    assert inside[-1].estimator.class_weight == "balanced", "the user's own stays as it is"


def test_weights_that_act_like_weights_of_rows_can_be_undone():
    assert can_undo_class_weights(LogisticRegression(class_weight="balanced"))
    assert can_undo_class_weights(make_pipeline(StandardScaler(), DecisionTreeClassifier(class_weight={0: 3})))
    assert can_undo_class_weights(RidgeClassifier()), "there is nothing to undo"
    assert not can_undo_class_weights(RidgeClassifier(class_weight="balanced"))
    assert not can_undo_class_weights(SVC(probability=True, class_weight="balanced"))
    assert not can_undo_class_weights(OneVsRestClassifier(LogisticRegression(class_weight="balanced")))


def test_weights_by_class_are_translated_into_local_labels():
    assert with_local_class_weights(DecisionTreeClassifier(class_weight={0: 1, 1: 5, 2: 7}), Y).class_weight == {
        0: 5.0,
        1: 7.0,
    }
    bagged = with_local_class_weights(BaggingClassifier(LogisticRegression(class_weight={2: 7})), Y)
    assert bagged.estimator.class_weight == {0: 1.0, 1: 7.0}
    assert with_local_class_weights(GaussianNB(priors=[0.5, 0.1, 0.4]), Y).priors == pytest.approx([0.2, 0.8])
    balanced = LogisticRegression(class_weight="balanced")
    assert with_local_class_weights(balanced, Y) is balanced


def test_a_background_beyond_the_priors_is_as_common_as_its_rows():
    priors = with_local_class_weights(GaussianNB(priors=[0.9, 0.1]), np.array([0, 1, 2, 2])).priors
    assert priors == pytest.approx([0.45, 0.05, 0.5])


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (LogisticRegression(class_weight={"yes": 5}), "weighs the class 'yes'"),
        (LogisticRegression(class_weight={0: 1, 3: 5}), "weighs the class 3"),
        (LogisticRegression(class_weight={True: 5}), "weighs the class True"),
        (LogisticRegression(class_weight={0: 0.0}), "above 0"),
        (make_pipeline(StandardScaler(), GaussianNB(priors=[0.5, 0.5])), "has 2 numbers, and there are 3 classes"),
        (OneVsRestClassifier(LogisticRegression(class_weight={0: 1, 1: 5})), "may hand it others"),
    ],
    ids=["name", "number", "truth", "nothing", "priors", "one-vs-rest"],
)
def test_weights_that_do_not_fit_the_classes_are_refused(estimator, words):
    with pytest.raises(ConfigurationError, match=words):
        check_class_weights(estimator, 3)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(class_weight={0: 1, 2: 5}),
        OneVsRestClassifier(LogisticRegression(class_weight="balanced")),
        BaggingClassifier(DecisionTreeClassifier(class_weight={1: 3})),
        GaussianNB(priors=[0.5, 0.3, 0.2]),
        RandomForestClassifier(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_weights_that_fit_the_classes_are_taken(estimator):
    check_class_weights(estimator, 3)


def test_a_weight_of_the_second_of_two_classes_is_refused_where_there_are_three():
    boosted = pytest.importorskip("xgboost").XGBClassifier(scale_pos_weight=4.0)
    check_class_weights(boosted, 2)
    with pytest.raises(ConfigurationError, match="second of two classes, and there are 3"):
        check_class_weights(boosted, 3)
    check_class_weights(OneVsRestClassifier(boosted), 3)
