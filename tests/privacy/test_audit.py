"""The audit: sound noise stays below its claim, a planted fault and missing noise do not."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from fedkt.errors import ConfigurationError
from fedkt.privacy import ConfidentGaussian, Gaussian, Gumbel, Laplace, Release
from fedkt.privacy.accountant import price
from fedkt.privacy.audit import attack, epsilon_at_least, log_ratios, lower_bound, neighbours, sum_scores
from fedkt.privacy.sums import GaussianSums
from fedkt.system.threads import one_thread

DELTA = 1e-5
# The least noise for epsilon 2 at 20 queries of 51 voters, as `fedkt privacy calibrate` gives it.
NOISES = [Laplace(0.1165), Gaussian(10.43), Gumbel(0.1128)]


def claim(noise, queries=20, voters=51, classes=2):
    return price(Release(noise, queries, voters, classes, "record"), DELTA)


def rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_sound_noise_stays_below_its_claim(noise):
    found = attack(claim(noise), rng=rng())
    assert 0.5 < found.empirical < found.claim.epsilon
    assert not found.broken


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_a_doubled_sensitivity_is_caught(noise):
    priced = claim(noise)
    caught = [attack(priced, rng=rng(seed), fault="double-sensitivity").broken for seed in range(5)]
    assert sum(caught) >= 4


@pytest.mark.parametrize("unit", ["record", "party"])
def test_noise_on_sums_stays_below_its_claim_and_a_fault_is_caught(unit):
    priced = price(Release(GaussianSums(3.0), 1, 50, 2, unit), DELTA)
    found = attack(priced, rng=rng())
    assert 0.5 < found.empirical < found.claim.epsilon
    assert sum(attack(priced, rng=rng(seed), fault="double-sensitivity").broken for seed in range(5)) >= 4
    assert attack(priced, rng=rng(), trials=2_000, bare=True).broken


def test_the_attack_on_sums_is_the_test_of_two_gaussians_at_the_whole_distance():
    """From N(2, 3²) and N(0, 3²) the rates at the best threshold follow from the normal distribution."""
    first, second = (sum_scores(GaussianSums(3.0), far, 1, 200_000, rng(far), bare=False) for far in (2, 0))
    for threshold in (0.0, 3.0, 6.0):
        assert np.mean(first >= threshold) == pytest.approx(norm.sf((threshold - 2) / 3), abs=0.005)
        assert np.mean(second >= threshold) == pytest.approx(norm.sf(threshold / 3), abs=0.005)


def test_too_few_trials_catch_nothing():
    assert not attack(claim(NOISES[1]), rng=rng(), trials=4_000, fault="double-sensitivity").broken


def test_a_vote_without_noise_shows_at_least_nine():
    found = attack(claim(Gaussian(10.43)), rng=rng(), bare=True)
    # All 30,000 true positives, no false one: ln((0.025^(1/n) - delta) / (1 - 0.025^(1/n))).
    never = 0.025 ** (1 / 30_000)
    assert found.empirical == pytest.approx(math.log((never - DELTA) / (1 - never)))
    assert found.empirical >= 9
    assert found.broken


def test_an_even_number_of_voters_and_bare_ties_can_be_audited():
    assert attack(claim(Gaussian(10.0), voters=50), rng=rng(), trials=20_000, bare=True).broken


def test_noise_with_a_threshold_and_a_cap_stays_below_its_claim():
    found = attack(claim(ConfidentGaussian(30, 12.6, 17.8, 5)), rng=rng(), trials=10_000)
    assert not found.broken


@pytest.mark.parametrize("noise", [Laplace(0.1), Gaussian(10.0)], ids=lambda noise: noise.name)
def test_more_than_two_classes_can_be_audited(noise):
    found = attack(claim(noise, classes=4), rng=rng(), trials=20_000)
    assert not found.broken
    assert found.empirical > 0


def test_the_two_votes_differ_in_one_voter_and_straddle_the_decision():
    first, second = neighbours(None, 51, 3)
    assert first.tolist() == [26, 25, 0]
    assert second.tolist() == [25, 26, 0]


def test_a_threshold_is_attacked_where_it_tells_most():
    first, second = neighbours(ConfidentGaussian(40, 1.0, 1000.0, 20), 51, 2)
    # With such answers only the test tells, most where the winner has the threshold between the two worlds.
    assert {first[0], second[0]} == {40, 39}


def test_the_evidence_is_the_logarithm_of_the_odds_of_winning():
    noise = Gumbel(0.2)
    # P(class 0) is s(theta) in the first world, s(-theta) in the second, and their log-ratio is theta.
    assert log_ratios(noise, *neighbours(noise, 51, 2)) == pytest.approx([0.2, -0.2, 0.0])


def test_the_bound_is_that_of_clopper_and_pearson():
    true = binomtest(500, 30_000).proportion_ci(0.95, method="exact").low
    false = binomtest(40, 30_000).proportion_ci(0.95, method="exact").high
    found = epsilon_at_least(np.array([500]), np.array([40]), 30_000, DELTA, 0.025)
    assert found == pytest.approx([math.log((true - DELTA) / false)])


def test_the_edges_of_the_bound_are_finite():
    found = epsilon_at_least(np.array([0, 100, 100]), np.array([0, 0, 100]), 100, DELTA, 0.025)
    assert np.isfinite(found).all()
    assert found[0] == 0
    assert found[2] == 0


def test_worlds_that_are_the_same_prove_nothing():
    bounds = [lower_bound(rng(i).normal(size=4_000), rng(i + 99).normal(size=4_000), DELTA)[0] for i in range(20)]
    assert sum(bound > 0 for bound in bounds) <= 2


def test_the_threshold_is_chosen_on_the_half_that_is_not_counted():
    # The first half of each world is told apart entirely, the second is constant: an honest bound is 0.
    first, second = np.zeros(2_000), np.zeros(2_000)
    first[:1_000] = 1.0
    assert lower_bound(first, second, DELTA)[0] == 0


def test_the_same_seed_gives_the_same_audit():
    assert attack(claim(NOISES[0]), rng=rng(3), trials=2_000) == attack(claim(NOISES[0]), rng=rng(3), trials=2_000)


@pytest.mark.parametrize("wrong", [{"fault": "gremlin"}, {"trials": 10}, {"trials": 60000.5}])
def test_an_audit_that_says_nothing_is_refused(wrong):
    with pytest.raises(ConfigurationError):
        attack(claim(NOISES[1]), rng=rng(), **wrong)


def test_a_release_of_nothing_is_not_audited():
    with pytest.raises(ConfigurationError, match="at least one query"):
        attack(claim(NOISES[1], queries=0), rng=rng())


@pytest.mark.parametrize("side", ["party", "server"])
def test_whole_steps_with_next_to_no_noise_are_told_apart_and_drowned_ones_are_not(side):
    steps = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "audit_steps.py"))
    step = steps["party_step"] if side == "party" else steps["server_step"](steps["students"]())
    with one_thread():
        bare = steps["attack"](side, step, Gaussian(0.01), 1.0, 30, broken=True)
        drowned = steps["attack"](side, step, Gaussian(1e4), 1.0, 30, broken=False)
    assert bare.empirical > 1
    assert bare.as_expected
    assert drowned.as_expected
    votes = np.array([[1.0, 0.0]] * 2000)
    wins = np.mean(steps["heavy"](Gaussian(2.0)).labels(votes, np.random.default_rng(0)) == 0)
    assert wins == pytest.approx(float(Gaussian(2.0).win_probability(4)), abs=0.05)
