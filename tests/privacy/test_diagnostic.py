"""The paper's data-dependent ε: Theorems 2 and 3 by hand, gated, and never above the data-independent figure.

That of gaussian noise is in test_gnmax.py.
"""

import math

import numpy as np
import pytest

from fedkt.errors import PrivacyError
from fedkt.privacy.accountant import moments as paper
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.diagnostic import CONFIDENTIAL, diagnose, diagnose_parties, moments, wrong_probability
from fedkt.privacy.gaussian import Gaussian, GaussianCounts
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Release

DELTA = 1e-5


def test_lemma_7_by_hand():
    # γ = .1: behind by 10 → (2 + 1)/(4e); behind by 20 → (2 + 2)/(4e²).
    votes = [[20, 10, 0]]
    assert wrong_probability(votes, 0.1) == pytest.approx([3 / (4 * math.e) + 1 / math.e**2])


def test_lemma_7_keeps_its_digits_where_it_is_tiny():
    assert wrong_probability([[100, 0]], 1.0)[0] == pytest.approx(102 / 4 * math.exp(-100), rel=1e-12)


def test_lemma_7_is_exact_for_two_classes_and_a_bound_for_three():
    noise = Laplace(0.2)
    assert wrong_probability([[12, 5]], 0.2)[0] == pytest.approx(float(noise.win_probability(-7)))
    assert wrong_probability([[12, 5, 4]], 0.2)[0] >= 1 - noise.class_probabilities([12, 5, 4])[0]


def test_theorem_2_by_hand():
    gamma, order = 0.06, 5
    q = (2 + 3) / (4 * math.exp(3))  # 50 to 0
    right = (1 - q) * ((1 - q) / (1 - math.exp(2 * gamma) * q)) ** order
    expected = math.log(right + q * math.exp(2 * gamma * order))
    assert expected < 2 * gamma**2 * order * (order + 1)
    assert float(moments([[50, 0]] * 3, gamma, order)) == pytest.approx(3 * expected)


@pytest.mark.parametrize("gamma", [0.05, 0.5, 1.0, 3.0])
def test_past_the_gate_only_the_data_independent_moments_count(gamma):
    """Gate q < 1/(e^{2γ}+1), with the γ of the formula; past it the first term may be anything, even negative."""
    for lead in range(0, 60):
        votes = [[lead, 0]]
        q = float(wrong_probability(votes, gamma)[0])
        for order in (1, 8, 30):
            value = float(moments(votes, gamma, order))
            free = min(2 * gamma**2 * order * (order + 1), 2 * gamma * order)
            assert 0 <= value <= free
            if q >= 1 / (math.exp(2 * gamma) + 1):
                assert value == free


def test_the_gate_of_two_votes_a_party_is_not_that_of_one():
    """s = 2, γ = .4: with the gate of one vote, q would pass and the formula for two be past its pole."""
    gamma, s = 0.4, 2
    votes = [[2, 0]]
    q = float(wrong_probability(votes, s * gamma)[0])
    assert 1 / (math.exp(2 * s * gamma) + 1) < q < 1 / (math.exp(2 * gamma) + 1)
    order = 8
    assert float(moments(votes, s * gamma, order)) == min(
        2 * (s * gamma) ** 2 * order * (order + 1), 2 * s * gamma * order
    )


def test_it_is_a_true_bound_on_the_moment_of_every_neighbour():
    """Two classes, exact laws: ln E_P[(P/Q)^l] of moved votes stays below the theorem's value at P's own votes."""
    for gamma in (0.05, 0.3, 1.0):
        noise = Laplace(gamma)
        for ahead in range(0, 30):
            for other in (ahead - 2, ahead - 1, ahead + 1, ahead + 2):
                p = np.array([float(noise.win_probability(ahead)), float(noise.win_probability(-ahead))])
                q = np.array([float(noise.win_probability(other)), float(noise.win_probability(-other))])
                for order in (1, 4, 8):
                    exact = math.log(float((p * (p / q) ** order).sum()))
                    assert exact <= float(moments([[ahead, 0]], gamma, order)) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("gamma", "queries"), [(0.04, 81), (0.1, 148), (0.06, 8)])
def test_ties_cost_what_the_data_independent_formula_says_and_nothing_costs_more(gamma, queries):
    release = Release(Laplace(gamma), queries, 50, 2, "party")
    tied = diagnose(np.full((queries, 2), 25), Laplace(gamma), DELTA)
    assert tied.epsilon == pytest.approx(paper.epsilon(release, DELTA))
    assert tied.epsilon_8 == pytest.approx(paper.epsilon8(release, DELTA))
    class_one = np.random.default_rng(0).integers(0, 51, queries)
    mixed = diagnose(np.stack([class_one, 50 - class_one], axis=1), Laplace(gamma), DELTA)
    assert mixed.epsilon <= tied.epsilon
    assert mixed.epsilon_8 <= tied.epsilon_8


def test_records_at_level_one_get_the_partys_figure():
    votes = [[50, 0]] * 20
    party, record = (diagnose(votes, Laplace(0.1), DELTA, unit=unit) for unit in ("party", "record"))
    assert record.epsilon == party.epsilon
    assert (party.unit, record.unit) == ("party", "record")


def test_level_two_is_the_largest_over_the_parties():
    clear, narrow = [[25, 0]] * 30, [[13, 12]] * 30
    together = diagnose_parties([clear, narrow], Laplace(0.1), DELTA)
    assert together.epsilon == diagnose(narrow, Laplace(0.1), DELTA).epsilon
    assert together.epsilon > diagnose(clear, Laplace(0.1), DELTA).epsilon
    with pytest.raises(PrivacyError, match="at least one party"):
        diagnose_parties([], Laplace(0.1), DELTA)


def test_it_says_that_it_is_confidential_and_does_not_show_itself_in_a_log():
    found = diagnose([[50, 0]] * 20, Laplace(0.1), DELTA)
    assert found.warning == CONFIDENTIAL == "confidential: depends on the private votes, do not publish"
    assert f"{found.epsilon:.3f}"[:4] not in repr(found)
    assert "epsilon" not in repr(found)


@pytest.mark.parametrize("noise", [Gumbel(0.1), GaussianCounts(3.0)], ids=repr)
def test_noises_that_nobody_has_a_theorem_for_are_refused(noise):
    with pytest.raises(PrivacyError, match=f"got {noise.name}"):
        diagnose([[5, 0]], noise, DELTA)


def test_no_votes_cost_nothing():
    for noise in (Laplace(0.1), Gaussian(3.0), ConfidentGaussian(3.0, 2.0, 2.0, 5)):
        assert diagnose(np.zeros((0, 2)), noise, DELTA).epsilon == 0
