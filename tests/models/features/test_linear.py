"""Logistic regression on public directions: what it takes from public rows, and what it makes of few rows."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fedkt.algorithms import FedKT
from fedkt.errors import DataError
from fedkt.federation import Party
from fedkt.models.catalogue import as_estimator
from fedkt.models.ensemble import fit_to_rows
from fedkt.models.features.linear import PublicLogistic
from fedkt.models.features.tables import linear_map
from fedkt.privacy import Gaussian

RNG = np.random.default_rng(1)
PUBLIC = RNG.normal(size=(400, 4)) @ np.array([[3.0, 1, 0, 0], [0, 1, 0, 2], [0, 0, 0.1, 0], [0, 0, 0, 5]]) + 7
ROWS = PUBLIC[:60]
LABELS = (ROWS[:, 0] - 0.2 * ROWS[:, 1] > 6).astype(int)


def half_whitened(rows):
    """Standardised, in the directions of the public rows' singular vectors, over the fourth root of variance."""
    mean, deviation = PUBLIC.mean(axis=0), PUBLIC.std(axis=0)
    standard = np.clip((PUBLIC - mean) / deviation, -4, 4)
    centre = standard.mean(axis=0)
    _, singular, directions = np.linalg.svd(standard - centre, full_matrices=False)
    variance = singular**2 / (len(PUBLIC) - 1)
    return (np.clip((rows - mean) / deviation, -4, 4) - centre) @ (directions.T / variance**0.25)


def balanced_chances(features, labels, wanted):
    """Chances of class 1 by minimising the balanced logistic loss with a ridge of ½, directly."""
    weights = np.where(labels == 1, 1 / np.mean(labels == 1), 1 / np.mean(labels == 0)) / 2
    signs = 2 * labels - 1

    def loss(parameters):
        return (
            weights @ np.logaddexp(0, -signs * (features @ parameters[1:] + parameters[0]))
            + parameters[1:] @ parameters[1:] / 2
        )

    best = minimize(loss, np.zeros(features.shape[1] + 1), tol=1e-10).x
    return 1 / (1 + np.exp(-(wanted @ best[1:] + best[0])))


def test_it_is_a_balanced_logistic_regression_on_half_whitened_public_directions():
    teacher = fit_to_rows(as_estimator("linear"), PUBLIC.astype(np.float32), None).fit(ROWS.astype(np.float32), LABELS)
    expected = balanced_chances(half_whitened(ROWS), LABELS, half_whitened(PUBLIC))
    np.testing.assert_allclose(teacher.predict_proba(PUBLIC.astype(np.float32))[:, 1], expected, atol=2e-3)
    assert not 0.4 < LABELS.mean() < 0.6


def test_the_scale_is_that_of_the_public_rows_whatever_a_party_has():
    agreed = fit_to_rows(as_estimator("linear"), PUBLIC, None)
    own, shifted = (agreed.fit(rows, LABELS).head_.feature_map for rows in (ROWS, 100 * ROWS))
    assert own.digest == shifted.digest == linear_map(PUBLIC).digest
    assert PublicLogistic().fit(ROWS, LABELS).head_.feature_map.digest == linear_map(ROWS).digest != own.digest


def test_an_absurd_value_and_a_gap_leave_a_model_of_finite_weights():
    rows = ROWS.copy()
    rows[0, 0], rows[1, 1] = 1e30, np.nan
    teacher = fit_to_rows(as_estimator("linear"), PUBLIC, None).fit(rows, LABELS)
    assert np.mean(teacher.predict(ROWS[2:]) == LABELS[2:]) > 0.9
    assert np.abs(teacher.head_.weights).max() < 100


def test_a_rare_class_among_a_teachers_rows_counts_as_much_as_the_other():
    few = np.concatenate([ROWS[LABELS == 0][:2], ROWS[LABELS == 1][:20]])
    labels = np.repeat([0, 1], [2, 20])
    fair, plain = (as_estimator("linear").set_params(class_weight=each).fit(few, labels) for each in ("balanced", None))
    assert np.mean(fair.predict(ROWS) == 0) > np.mean(plain.predict(ROWS) == 0)


def test_rows_of_which_nothing_can_be_learned_are_refused_in_words():
    with pytest.raises(DataError, match="Every column of the public rows is constant"):
        fit_to_rows(as_estimator("linear"), np.ones((5, 3)), None)


def test_behind_other_steps_it_takes_its_scale_from_what_they_give():
    pipeline = make_pipeline(StandardScaler(), as_estimator("linear"))
    assert fit_to_rows(pipeline, PUBLIC, None) is pipeline
    assert pipeline.fit(ROWS, LABELS).score(ROWS, LABELS) > 0.9


def test_a_party_of_level_l2_teaches_on_the_public_scale_alone():
    party = Party(PUBLIC, ("a", "b"), 0, name="north", X=100 * ROWS, y=LABELS)
    fedkt = FedKT("tree", teacher="linear", level="L2", noise=Gaussian(5.0), subsets=5, queries=20)
    teacher = fedkt.roles_at([party])[0].teacher
    assert teacher.feature_map.digest == linear_map(PUBLIC).digest
    (student,) = fedkt.party_step(party, None).models
    assert student.predict(PUBLIC).shape == (len(PUBLIC),)
