"""The data-dependent ε of Gaussian noise: Theorem 6 of PATE by hand and by quadrature, its threshold by brute force."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fedkt.errors import PrivacyError
from fedkt.privacy import gnmax
from fedkt.privacy.accountant import price
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.diagnostic import CONFIDENTIAL, diagnose, diagnose_parties
from fedkt.privacy.gaussian import Gaussian
from fedkt.privacy.price import Release

DELTA = 1e-5
ORDERS = np.array([1.1, 2.0, 5.0, 17.0, 60.0])


def winner_law(votes, sigma):
    """P(class j has the largest noisy count), by adaptive quadrature over its noisy count."""

    def density(x, j):
        others = [norm.cdf((x - v) / sigma) for i, v in enumerate(votes) if i != j]
        return norm.pdf((x - votes[j]) / sigma) / sigma * math.prod(others)

    low, high = min(votes) - 12 * sigma, max(votes) + 12 * sigma
    return np.array([quad(density, low, high, (j,), epsabs=0, epsrel=1e-8, limit=200)[0] for j in range(len(votes))])


def two_class_law(votes, sigma):
    gap = (votes[1] - votes[0]) / (sigma * math.sqrt(2))
    return np.array([norm.sf(gap), norm.cdf(gap)])


def moved(votes):
    """All counts that one voter can make of these: another vote, no vote, or a vote where there was none."""
    classes = range(len(votes))
    changes = [(a, b) for a, b in permutations(classes, 2) if votes[a] > 0]
    changes += [(a, None) for a in classes if votes[a] > 0] + [(None, b) for b in classes]
    for lost, gained in changes:
        counts = list(votes)
        if lost is not None:
            counts[lost] -= 1
        if gained is not None:
            counts[gained] += 1
        yield counts


def divergence(p, q, order):
    return np.logaddexp.reduce(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)


def test_proposition_7_by_hand_and_however_small():
    # σ = 5: behind by 10 and by 20 votes, the difference of two noises has σ√2.
    expected = norm.sf(10 / (5 * math.sqrt(2))) + norm.sf(20 / (5 * math.sqrt(2)))
    assert np.exp(gnmax.log_wrong([[20, 10, 0]], 5.0)) == pytest.approx([expected])
    assert gnmax.log_wrong([[100, 0]], 1.0)[0] == pytest.approx(norm.logsf(100 / math.sqrt(2)), rel=1e-12)
    assert gnmax.log_wrong([[9, 9, 9, 9, 9]], 1.0)[0] == 0


def test_theorem_6_by_hand():
    sigma, order = 10.0, 5.0
    q = norm.sf(50 / (sigma * math.sqrt(2)))
    second = sigma * math.sqrt(math.log(1 / q))
    first = second + 1
    a = (1 - q) / (1 - (q * math.exp(second / sigma**2)) ** ((second - 1) / second))
    b = math.exp(first / sigma**2) / q ** (1 / (first - 1))
    expected = math.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)
    assert expected < 0.05 * order / sigma**2
    assert gnmax.winners_rdp([[50, 0]] * 3, sigma, [order]) == pytest.approx([3 * expected])


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 15.0])
def test_no_neighbour_of_two_class_votes_is_further_away_than_theorem_6_says(sigma):
    for lead in range(40):
        votes = [lead + 3, 3]
        bound = gnmax.winners_rdp([votes], sigma, ORDERS)
        assert (bound <= ORDERS / sigma**2).all()
        p = two_class_law(votes, sigma)
        for other in moved(votes):
            q = two_class_law(other, sigma)
            if min(p.min(), q.min()) > 1e-250:
                for order, most in zip(ORDERS, bound, strict=True):
                    assert divergence(p, q, order) <= most * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize(
    ("votes", "sigma"), [([9, 1, 0], 1.5), ([12, 2, 2], 2.0), ([6, 5, 5], 1.0), ([8, 3, 1, 0], 1.2), ([20, 2, 1], 5.0)]
)
def test_no_neighbour_of_many_class_votes_is_further_away_than_theorem_6_says(votes, sigma):
    bound = gnmax.winners_rdp([votes], sigma, ORDERS)
    p = winner_law(votes, sigma)
    for other in moved(votes):
        q = winner_law(other, sigma)
        for order, most in zip(ORDERS, bound, strict=True):
            assert divergence(p, q, order) <= most * (1 + 1e-6)


def test_a_clear_winner_costs_less_and_a_tie_what_any_votes_cost():
    assert (gnmax.winners_rdp([[25, 25]], 4.0, ORDERS) == ORDERS / 16).all()
    clear = gnmax.winners_rdp([[50, 0]], 4.0, ORDERS)
    assert (clear < 1e-6 * ORDERS / 16)[:3].all()


def test_orders_past_the_theorem_cost_what_any_votes_cost():
    # Votes 12 to 0 at σ = 4: μ1 is about 9.
    bound = gnmax.winners_rdp([[12, 0]], 4.0, ORDERS)
    assert bound[1] < ORDERS[1] / 16
    assert (bound[3:] == ORDERS[3:] / 16).all()


def confident_law(votes, noise):
    passed = norm.cdf((max(votes) - noise.threshold) / noise.sigma_test)
    return np.append(1 - passed, passed * two_class_law(votes, noise.sigma))


def transcripts(laws, cap):
    """The probability of every transcript of a call: 0 is no answer; nothing is told after the last answer."""
    found = {(): 1.0}
    for law in laws:
        grown = {}
        for told, chance in found.items():
            if sum(each > 0 for each in told) == cap:
                grown[told] = chance
                continue
            for outcome, share in enumerate(law):
                grown[(*told, outcome)] = chance * share
        found = grown
    return np.array(list(found.values()))


@pytest.mark.parametrize("cap", [1, 2, 3, 9])
@pytest.mark.parametrize("noise", [(8.0, 2.0, 1.5), (5.0, 1.0, 3.0), (12.0, 3.0, 0.8)])
def test_no_neighbour_of_a_confident_call_is_further_away_than_its_tree_says(noise, cap):
    noise = ConfidentGaussian(*noise, cap)
    asked = [[9, 1], [6, 4], [2, 8]]
    bound = gnmax.confident_rdp(asked, noise, ORDERS)
    p = transcripts([confident_law(votes, noise) for votes in asked], cap)
    # At every query the unit may do something else.
    for others in product(*(list(moved(votes)) for votes in asked)):
        q = transcripts([confident_law(votes, noise) for votes in others], cap)
        for order, most in zip(ORDERS, bound, strict=True):
            assert divergence(p, q, order) <= most * (1 + 1e-9)
    assert (bound <= noise.rdp_of(3, ORDERS)).all()


def test_a_tree_without_answers_is_its_tests():
    """Far below the threshold nothing is answered: ln Σ p^λ q^{1−λ} of the coins alone."""
    noise = ConfidentGaussian(30.0, 2.0, 1.0, 7)
    p = norm.cdf((20 - 30) / 2.0)
    expected = []
    for order in ORDERS:
        sides = [norm.cdf((m - 30) / 2.0) for m in (19, 21)]
        expected.append(max(divergence(np.array([1 - p, p]), np.array([1 - q, q]), order) for q in sides))
    found = gnmax.confident_rdp([[20, 0]] * 7, noise, ORDERS)
    # An answer, were there one, would cost next to nothing: 20 votes ahead at σ = 1.
    np.testing.assert_allclose(found[:3], 7 * np.array(expected)[:3], rtol=1e-6)


@pytest.mark.parametrize("noise", [Gaussian(6.0), ConfidentGaussian(30.0, 8.0, 6.0, 20)], ids=repr)
def test_clear_votes_cost_less_than_any_and_ties_no_more(noise):
    release = Release(noise, 40, 50, 10, "party")
    clear = diagnose([[50] + 9 * [0]] * 40, noise, DELTA)
    tied = diagnose([[25, 25] + 8 * [0]] * 40, noise, DELTA)
    assert clear.epsilon < 0.3 * price(release, DELTA).epsilon
    assert clear.epsilon < tied.epsilon <= price(release, DELTA).epsilon
    assert (clear.epsilon_8, clear.queries, clear.unit) == (None, 40, "party")


def test_the_cap_of_answers_holds_for_each_partition_alone():
    noise = ConfidentGaussian(8.0, 3.0, 3.0, 2)
    votes = [[10, 5], [9, 6], [12, 3], [8, 7]]
    two = diagnose(votes, noise, DELTA, unit="record", partitions=2)
    # One call of four queries stops after two answers; two calls may give four.
    assert two.epsilon > diagnose(votes, noise, DELTA).epsilon
    assert diagnose_parties([votes, [[15, 0]] * 4], noise, DELTA, partitions=2).epsilon == two.epsilon
    with pytest.raises(PrivacyError, match="4 rows of votes are not those of 3 partitions"):
        diagnose(votes, noise, DELTA, partitions=3)


def test_it_says_that_it_is_confidential_and_does_not_show_itself_in_a_log():
    found = diagnose([[50, 0]] * 20, Gaussian(9.0), DELTA)
    assert found.warning == CONFIDENTIAL
    assert "epsilon" not in repr(found)
