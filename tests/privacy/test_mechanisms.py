"""The contract of a noise, for every one in the catalogue: what it draws, and that it costs no more than it says."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian
from fedkt.privacy.gumbel import Gumbel, bounded_range_rdp
from fedkt.privacy.laplace import Laplace, randomised_response_rdp, shifted_laplace_rdp
from fedkt.privacy.mechanisms import NOISES, make_noise, parameters
from fedkt.privacy.price import Noise
from fedkt.votes import NO_VOTE

EXAMPLES = {
    "laplace": [Laplace(0.04), Laplace(0.3), Laplace(2.0)],
    "gaussian": [Gaussian(20.0), Gaussian(4.0), Gaussian(0.8)],
    "gumbel": [Gumbel(0.04), Gumbel(0.3), Gumbel(2.0)],
    "confident-gaussian": [ConfidentGaussian(6.0, 3.0, 4.0, 10), ConfidentGaussian(9.0, 1.0, 0.8, 3)],
}
ALL = [noise for noises in EXAMPLES.values() for noise in noises]
ALWAYS_ANSWER = [noise for noise in ALL if noise.name != "confident-gaussian"]
ORDERS = np.array([1.01, 1.5, 2.0, 3.7, 8.0, 33.0, 250.0])


def renyi(p, q, order):
    """D_α(P ‖ Q) of two laws on the same few outcomes, from the definition."""
    log_terms = order * np.log(p) + (1 - order) * np.log(q)
    top = log_terms.max()
    return (top + np.log(np.exp(log_terms - top).sum())) / (order - 1)


def neighbours(votes):
    """Every vote with one voter's vote moved, withdrawn or added."""
    size = len(votes)
    for taken, given in itertools.product(range(-1, size), repeat=2):
        other = list(votes)
        if taken >= 0:
            other[taken] -= 1
        if given >= 0:
            other[given] += 1
        if min(other) >= 0 and other != list(votes):
            yield other


def outcomes(noise, votes):
    """The law of the label, the outcome "no answer" included where there is one."""
    law = noise.class_probabilities(votes)
    return law if noise in ALWAYS_ANSWER else np.append(law, 1 - law.sum())


def test_every_noise_of_the_catalogue_has_examples_here():
    assert set(EXAMPLES) == set(NOISES)
    assert all(noise.name == name and isinstance(noise, Noise) for name in EXAMPLES for noise in EXAMPLES[name])


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_a_noise_is_made_again_from_its_name_and_scale(noise):
    again = make_noise(noise.name, noise.scale)
    assert again == noise
    assert hash(again) == hash(noise)
    assert tuple(noise.scale) == parameters(noise.name)


@pytest.mark.parametrize("noise", ALWAYS_ANSWER, ids=repr)
@pytest.mark.parametrize("gap", [-3, 0, 1, 5])
def test_class_one_wins_as_often_as_it_says(noise, gap):
    trials = 40_000
    votes = np.tile([5, 5 + gap], (trials, 1))
    won = noise.labels(votes, np.random.default_rng(11)).mean()
    expected = float(noise.win_probability(gap))
    assert abs(won - expected) <= 5 * math.sqrt(expected * (1 - expected) / trials) + 1e-12


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_each_of_three_classes_is_drawn_as_often_as_it_says(noise):
    trials = 40_000
    noise = make_noise(noise.name, {**noise.scale, **({"answers": trials} if "answers" in noise.scale else {})})
    labels = noise.labels(np.tile([7, 5, 1], (trials, 1)), np.random.default_rng(12))
    expected = noise.class_probabilities([7, 5, 1])
    for label in range(3):
        error = math.sqrt(expected[label] * (1 - expected[label]) / trials)
        assert abs((labels == label).mean() - expected[label]) <= 5 * error + 1e-12


@pytest.mark.parametrize("noise", ALWAYS_ANSWER, ids=repr)
def test_the_chance_of_winning_is_symmetric_rises_with_the_gap_and_is_half_at_a_tie(noise):
    gaps = np.arange(-60, 61)
    won = noise.win_probability(gaps)
    assert won[60] == 0.5
    np.testing.assert_allclose(won + won[::-1], 1, rtol=0, atol=1e-15)
    assert (np.diff(won) >= 0).all()
    assert (np.diff(won[:61])[won[:60] > 0] > 0).all()


@pytest.mark.parametrize("noise", ALWAYS_ANSWER, ids=repr)
def test_far_tails_keep_thirteen_digits(noise):
    for gap in range(-45, 0, 4):
        with mpmath.workdps(60):
            if noise.name == "laplace":
                x = mpmath.mpf(noise.gamma) * -gap
                exact = (2 + x) / 4 * mpmath.exp(-x)
            elif noise.name == "gaussian":
                exact = mpmath.erfc(mpmath.mpf(-gap) / (2 * mpmath.mpf(noise.sigma))) / 2
            else:
                exact = 1 / (1 + mpmath.exp(-mpmath.mpf(noise.theta) * gap))
            if exact > 1e-290:
                assert abs(float(noise.win_probability(gap) / exact - 1)) < 1e-13


@pytest.mark.parametrize("noise", ALWAYS_ANSWER, ids=repr)
@pytest.mark.parametrize("votes", [(9, 4), (3, 3), (0, 12)])
def test_quadrature_agrees_with_the_closed_form_for_two_classes(noise, votes):
    expected = [float(noise.win_probability(votes[0] - votes[1])), float(noise.win_probability(votes[1] - votes[0]))]
    np.testing.assert_allclose(noise.class_probabilities(votes), expected, rtol=1e-11)


@pytest.mark.parametrize("noise", ALWAYS_ANSWER, ids=repr)
@pytest.mark.parametrize("voters", [1, 2, 9, 50])
def test_no_pair_of_neighbouring_two_class_votes_loses_more_than_claimed(noise, voters):
    """All gaps of up to `voters` votes, abstentions included; both directions, every outcome, every order."""
    gaps = np.arange(-voters, voters + 1)
    for moved in (1, 2):
        before, after = gaps[:-moved], gaps[moved:]
        for p_gap, q_gap in ((before, after), (after, before)):
            p = np.stack([noise.win_probability(p_gap), noise.win_probability(-p_gap)])
            q = np.stack([noise.win_probability(q_gap), noise.win_probability(-q_gap)])
            possible = (p > 1e-290).all(axis=0) & (q > 1e-290).all(axis=0)
            loss = np.abs(np.log(p[:, possible]) - np.log(q[:, possible]))
            assert loss.max() <= noise.pure() * (1 + 1e-12)
            for order in ORDERS:
                worst = max(renyi(p[:, i], q[:, i], order) for i in np.flatnonzero(possible))
                assert worst <= float(noise.rdp(order)) * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("noise", ALL, ids=repr)
@pytest.mark.parametrize("votes", [(2, 2, 1), (4, 0, 0), (3, 1, 1), (0, 0, 0), (6, 6, 6, 1)])
def test_no_pair_of_neighbouring_many_class_votes_loses_more_than_claimed(noise, votes):
    p = outcomes(noise, votes)
    for other in neighbours(votes):
        q = outcomes(noise, other)
        possible = (p > 1e-12) & (q > 1e-12)
        assert np.abs(np.log(p[possible] / q[possible])).max() <= noise.pure() + 1e-9
        for order in (1.5, 2.0, 8.0):
            assert renyi(p[possible], q[possible], order) <= float(noise.rdp(order)) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("noise", ALWAYS_ANSWER, ids=repr)
def test_every_row_gets_a_label_also_where_nobody_voted(noise):
    labels = noise.labels(np.zeros((3000, 3), dtype=int), np.random.default_rng(5))
    assert set(labels) == {0, 1, 2}
    assert np.bincount(labels).min() > 850
    assert labels.dtype == np.int64


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_no_rows_give_no_labels(noise):
    assert noise.labels(np.zeros((0, 2), dtype=int), np.random.default_rng(0)).shape == (0,)


@pytest.mark.parametrize("noise", ALL, ids=repr)
@pytest.mark.parametrize("votes", [[3, 4], [[3], [4]], [[1, -1]], [[1, math.nan]], [[math.inf, 0]]])
def test_what_is_not_a_count_is_refused_without_being_repeated(noise, votes):
    with pytest.raises(PrivacyError, match=r"^Votes are counts") as refusal:
        noise.labels(votes, np.random.default_rng(0))
    assert "nan" not in str(refusal.value)


def test_blocks_do_not_change_what_is_drawn(monkeypatch):
    votes = np.random.default_rng(1).integers(0, 9, (1000, 4))
    whole = Gaussian(3.0).labels(votes, np.random.default_rng(2))
    monkeypatch.setattr("fedkt.privacy.noise.BLOCK", 28)
    np.testing.assert_array_equal(Gaussian(3.0).labels(votes, np.random.default_rng(2)), whole)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "0.04", None, True])
def test_a_scale_that_protects_nobody_is_refused_in_words(name, value):
    good = EXAMPLES[name][0].scale
    for parameter in set(good) - {"threshold"}:
        with pytest.raises(ConfigurationError, match=f"{parameter} of {name} noise"):
            make_noise(name, {**good, parameter: value})


def test_unknown_noises_and_parameters_are_refused_with_the_known_ones():
    with pytest.raises(ConfigurationError, match="Choose one of: laplace, gaussian, gumbel, confident-gaussian"):
        make_noise("cauchy", {"gamma": 1})
    with pytest.raises(ConfigurationError, match=r"laplace noise takes gamma; it has no sigma; gamma is missing\."):
        make_noise("laplace", {"sigma": 1})
    with pytest.raises(ConfigurationError, match="whole number"):
        make_noise("confident-gaussian", {"threshold": 3, "sigma_test": 1, "sigma": 1, "answers": 2.5})


def test_the_confident_noise_answers_where_voters_agree_and_stops_at_its_cap():
    noise = ConfidentGaussian(threshold=30.0, sigma_test=1.0, sigma=1.0, answers=3)
    votes = np.array([[20, 20], [45, 0], [0, 45], [21, 20], [45, 0], [0, 45], [45, 0]])
    labels = noise.labels(votes, np.random.default_rng(3))
    assert labels.tolist() == [NO_VOTE, 0, 1, NO_VOTE, 0, NO_VOTE, NO_VOTE]


def test_the_confident_cap_holds_across_blocks(monkeypatch):
    monkeypatch.setattr("fedkt.privacy.confident.BLOCK", 8)
    labels = ConfidentGaussian(0.0, 0.1, 1.0, 10).labels(np.full((100, 2), 20), np.random.default_rng(4))
    assert (labels[:10] != NO_VOTE).all()
    assert (labels[10:] == NO_VOTE).all()


def test_the_confident_noise_has_no_chance_of_winning_at_a_gap():
    with pytest.raises(PrivacyError, match="no probability of winning at a gap"):
        EXAMPLES["confident-gaussian"][0].win_probability(3)


def test_the_bounded_range_supremum_is_found_by_no_finer_search():
    """The closed form against a dense search over the position x of the two coins, and against Hoeffding's bound."""
    x = np.linspace(-30, 30, 200_001)
    for eta in (0.01, 0.3, 2.0, 6.0):
        for order in (1.05, 2.0, 5.0, 40.0):
            log_p = -np.logaddexp(0, -x), -np.logaddexp(0, x)
            log_q = -np.logaddexp(0, -(x + eta)), -np.logaddexp(0, x + eta)
            terms = [order * a + (1 - order) * b for a, b in zip(log_p, log_q, strict=True)]
            searched = (np.logaddexp(*terms) / (order - 1)).max()
            claimed = float(bounded_range_rdp(eta, order))
            assert searched - 1e-12 <= claimed <= searched * (1 + 1e-5) + 1e-12
            assert claimed <= order * eta**2 / 8


def test_laplace_rdp_is_the_integral_of_its_definition():
    from scipy.integrate import quad

    for gamma, order in ((0.1, 2.0), (0.5, 6.0), (2.0, 3.5)):
        value = sum(
            quad(lambda x, g=gamma, a=order: g / 2 * math.exp(-a * g * abs(x) + (a - 1) * g * abs(x - 1)), *part)[0]
            for part in ((-math.inf, 0), (0, 1), (1, math.inf))
        )
        assert float(shifted_laplace_rdp(gamma, order)) == pytest.approx(math.log(value) / (order - 1), rel=1e-8)


def test_laplace_rdp_is_below_the_papers_moments():
    for gamma in (0.02, 0.1, 1.0):
        moments = np.minimum(2 * gamma**2 * ORDERS, 2 * gamma)
        assert (Laplace(gamma).rdp(ORDERS) <= moments).all()
        assert (randomised_response_rdp(2 * gamma, ORDERS) <= moments).all()
