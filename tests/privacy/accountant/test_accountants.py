"""The accountants against dp-accounting used directly, against closed forms, and against each other."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import from_randomized_response
from dp_accounting.rdp import RdpAccountant

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.privacy.accountant import ACCOUNTANTS, gdp, moments, pld, price, pure, rdp
from fedkt.privacy.accountant.together import merge_releases, price_together
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Release

DELTA = 1e-5
QUICK = ("pure", "paper", "paper-8", "rdp", "pld", "gdp")
NOISES = [Laplace(0.05), Laplace(0.5), Gaussian(20.0), Gaussian(3.0), Gumbel(0.05), Gumbel(0.5)]
CONFIDENT = ConfidentGaussian(30.0, 20.0, 10.0, 40)


def release(noise, queries=20, classes=2):
    return Release(noise, queries, 50, classes, "party")


def brute_force_delta(noise, queries, epsilon, gaps):
    """δ(ε) of the same pair of neighbouring two-class votes asked again and again, over all answers."""
    total = 0.0
    p, q = float(noise.win_probability(gaps[0])), float(noise.win_probability(gaps[1]))
    for wins in range(queries + 1):
        ways = math.comb(queries, wins)
        one = ways * p**wins * (1 - p) ** (queries - wins)
        other = ways * q**wins * (1 - q) ** (queries - wins)
        total += max(0.0, one - math.exp(epsilon) * other)
    return total


@pytest.mark.parametrize("noise", [*NOISES, CONFIDENT], ids=repr)
def test_no_queries_cost_nothing(noise):
    nothing = price(release(noise, 0), DELTA)
    assert nothing.epsilon == 0
    assert set(nothing.accountants.values()) == {0.0}


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("queries", [1, 7, 40])
def test_no_accountant_is_below_what_narrow_votes_really_cost(noise, queries):
    """A repeated near-tie of two classes is one thing an adversary may do: a lower bound for every accountant."""
    for name in QUICK:
        epsilon = ACCOUNTANTS[name](release(noise, queries), DELTA)
        if math.isfinite(epsilon):
            for gaps in ((1, -1), (0, -1), (5, 3), (-3, -5)):
                assert brute_force_delta(noise, queries, epsilon, gaps) <= DELTA


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("noise", [*NOISES, CONFIDENT], ids=repr)
def test_more_queries_or_a_smaller_delta_never_cost_less(name, noise):
    account = ACCOUNTANTS[name]
    by_queries = [account(release(noise, queries), DELTA) for queries in (1, 2, 5, 20, 90, 300)]
    by_delta = [account(release(noise), delta) for delta in (0.5, 1e-2, 1e-5, 1e-8)]
    assert all(a <= b for a, b in itertools.pairwise(by_queries))
    assert all(a <= b for a, b in itertools.pairwise(by_delta))


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        (Laplace(0.2), Laplace(0.1)),
        (Gaussian(5.0), Gaussian(9.0)),
        (Gumbel(0.2), Gumbel(0.1)),
        (ConfidentGaussian(30, 5, 5, 9), ConfidentGaussian(30, 9, 5, 9)),
        (ConfidentGaussian(30, 5, 5, 9), ConfidentGaussian(30, 5, 5, 8)),
    ],
)
def test_more_noise_costs_less(weaker, stronger):
    for name in QUICK:
        more, less = (ACCOUNTANTS[name](release(noise), DELTA) for noise in (weaker, stronger))
        assert math.isinf(more) or less < more


@pytest.mark.parametrize("noise", [Laplace(0.05), Gumbel(0.05)], ids=repr)
def test_pure_composition_is_two_gamma_a_query(noise):
    assert pure.epsilon(release(noise, 81), DELTA) == pytest.approx(8.1)
    assert math.isinf(pure.epsilon(release(Gaussian(5.0)), DELTA))


def test_the_papers_moments_by_a_plain_search_over_l():
    for gamma, queries in itertools.product((0.02, 0.05, 0.3, 1.5), (1, 8, 40, 300)):
        found = [
            (queries * min(2 * gamma**2 * order * (order + 1), 2 * gamma * order) + math.log(1e5)) / order
            for order in range(1, 5000)
        ]
        noise = release(Laplace(gamma), queries)
        assert moments.epsilon(noise, DELTA) == pytest.approx(min(*found, 2 * gamma * queries), rel=1e-12)
        assert moments.epsilon8(noise, DELTA) == pytest.approx(min(found[:8]), rel=1e-12)


def test_a_party_that_counts_s_times_is_one_vote_with_s_times_gamma():
    """Theorem 2 with s = 2 and γ = .05: 2s²γ²l(l+1) per query."""
    found = min((74 * 2 * (2 * 0.05) ** 2 * order * (order + 1) + math.log(1e5)) / order for order in range(1, 9))
    assert moments.epsilon8(release(Laplace(2 * 0.05), 74), DELTA) == pytest.approx(found)


@pytest.mark.parametrize(("sigma", "queries"), [(20.0, 4), (20.0, 90), (8.6, 500), (1.5, 3)])
def test_gaussian_rdp_gdp_and_pld_agree_with_dp_accounting(sigma, queries):
    event = SelfComposedDpEvent(GaussianDpEvent(sigma / math.sqrt(2)), queries)
    ours = release(Gaussian(sigma), queries)
    by_rdp = RdpAccountant().compose(event).get_epsilon(DELTA)
    assert by_rdp * 0.995 <= rdp.epsilon(ours, DELTA) <= by_rdp * 1.0001
    exact = get_epsilon_gaussian(sigma / math.sqrt(2 * queries), DELTA)
    assert exact <= gdp.epsilon(ours, DELTA) * (1 + 1e-9)
    assert gdp.epsilon(ours, DELTA) == pytest.approx(exact, rel=1e-6)
    assert exact - 1e-9 <= pld.epsilon(ours, DELTA) <= exact * 1.001
    assert PLDAccountant().compose(event).get_epsilon(DELTA) == pytest.approx(pld.epsilon(ours, DELTA), rel=1e-3)


@pytest.mark.parametrize(("gamma", "queries"), [(0.04, 81), (0.3, 20)])
def test_laplace_pld_agrees_with_dp_accounting_and_is_rounded_up(gamma, queries):
    finer = PLDAccountant(value_discretization_interval=gamma / 1000)
    event = SelfComposedDpEvent(LaplaceDpEvent(1 / gamma), 2 * queries)
    exact = finer.compose(event).get_epsilon(DELTA)
    assert exact * (1 - 1e-5) <= pld.epsilon(release(Laplace(gamma), queries), DELTA) <= exact * 1.001


def test_gdp_is_rounded_up_and_inverts_the_exact_curve():
    for mu in (1e-3, 0.1, 1.0, 5.0, 40.0):
        for delta in (1e-3, 1e-5, 1e-9):
            epsilon = gdp.from_mu(mu, delta)
            assert gdp.delta_at(mu, epsilon) <= delta
            if epsilon > 0:
                assert gdp.delta_at(mu, epsilon * (1 - 1e-6)) > delta
                assert get_sigma_gaussian(epsilon, delta) * mu == pytest.approx(1, rel=1e-5)


def test_randomised_response_composes_as_in_dp_accounting_and_by_hand():
    # One answer: δ(ε) = (e^ε₀ − e^ε)/(1 + e^ε₀).
    assert pld.randomised_response_delta(1.0, 1, 0.5) == pytest.approx((math.e - math.exp(0.5)) / (1 + math.e))
    # dp-accounting's noise parameter is the chance of a uniform draw: 1 − tanh(ε₀/2) for two buckets.
    other = from_randomized_response(1 - math.tanh(0.1 / 2), 2, value_discretization_interval=1e-4)
    composed = other.self_compose(60).get_epsilon_for_delta(DELTA)
    assert pld.randomised_response_epsilon(0.1, 60, DELTA) == pytest.approx(composed, abs=0.01)
    assert pld.randomised_response_epsilon(0.1, 60, DELTA) <= 6


@pytest.mark.parametrize("queries", [10, 40, 100])
def test_the_confident_noise_pays_every_test_and_at_most_its_cap_of_answers(queries):
    answers = min(queries, CONFIDENT.answers)
    mu = math.sqrt(queries / 20.0**2 + 2 * answers / 10.0**2)
    ours = release(CONFIDENT, queries)
    assert gdp.epsilon(ours, DELTA) == pytest.approx(get_epsilon_gaussian(1 / mu, DELTA), rel=1e-6)
    event = GaussianDpEvent(1 / mu)
    assert rdp.epsilon(ours, DELTA) == pytest.approx(RdpAccountant().compose(event).get_epsilon(DELTA), rel=5e-3)
    # Less than the noisy numbers behind them: only a yes or no, and a winner, are told.
    assert price(ours, DELTA).epsilon < 0.9 * gdp.epsilon(ours, DELTA)


def test_rdp_orders_reach_from_1_05_to_beyond_1000():
    assert rdp.orders().min() == pytest.approx(1.05)
    assert rdp.orders().max() >= 1000


def test_finer_orders_hardly_improve_rdp(monkeypatch):
    ours = [release(noise, 30) for noise in NOISES]
    usual = [rdp.epsilon(each, DELTA) for each in ours]
    monkeypatch.setattr(rdp, "orders", lambda: 1 + np.geomspace(0.05, 1e5, 7000))
    finer = [rdp.epsilon(each, DELTA) for each in ours]
    np.testing.assert_allclose(usual, finer, rtol=1e-4)


@pytest.mark.parametrize("noise", [*NOISES, CONFIDENT], ids=repr)
@pytest.mark.parametrize("classes", [2, 5])
def test_the_price_is_the_smallest_answer_with_its_name(noise, classes):
    paid = price(release(noise, classes=classes), DELTA)
    assert paid.epsilon == min(paid.accountants.values()) == paid.accountants[paid.accountant]
    assert set(paid.accountants) == set(ACCOUNTANTS)
    assert 0 < paid.epsilon < math.inf
    assert (paid.delta, paid.release) == (DELTA, release(noise, classes=classes))


def test_a_price_can_be_changed_by_its_holder_without_changing_the_next_one():
    first = price(release(Laplace(0.1)), DELTA, accountants=["pure"])
    first.accountants["pure"] = 0.0
    assert price(release(Laplace(0.1)), DELTA, accountants=["pure"]).epsilon == pytest.approx(4.0)


def test_what_a_price_means_can_be_written_out():
    paid = price(release(Gaussian(9.0)), DELTA, accountants=["gdp", "rdp"])
    assert dataclasses.asdict(paid)["accountants"].keys() == {"gdp", "rdp"}


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, math.nan, "1e-5", None, True])
def test_a_delta_outside_zero_and_one_is_refused_in_words(delta):
    with pytest.raises(ConfigurationError, match="strictly between 0 and 1"):
        price(release(Laplace(0.1)), delta)


def test_an_unknown_accountant_is_refused_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"no accountant 'magic'\. Choose from: pure, paper"):
        price(release(Laplace(0.1)), DELTA, accountants=["magic"])
    with pytest.raises(ConfigurationError, match="none was named"):
        price(release(Laplace(0.1)), DELTA, accountants=[])


def test_an_accountant_that_answers_nonsense_is_not_believed(monkeypatch):
    monkeypatch.setitem(ACCOUNTANTS, "broken", lambda release, delta: math.nan)
    with pytest.raises(PrivacyError, match="'broken' answered nan"):
        price(release(Laplace(0.1)), DELTA, accountants=["broken"])


def test_a_noise_that_cannot_be_remembered_is_priced_all_the_same():
    class Unhashable(Laplace):
        __hash__ = None

    assert price(release(Unhashable(0.1)), DELTA, accountants=["pure", "rdp"]).epsilon == pytest.approx(
        price(release(Laplace(0.1)), DELTA, accountants=["pure", "rdp"]).epsilon
    )


def test_pld_leaves_too_many_queries_to_the_others():
    assert math.isinf(pld.epsilon(release(Laplace(0.001), 50_001), DELTA))
    assert price(release(Laplace(0.001), 50_001), DELTA, accountants=QUICK).accountant == "rdp"


def test_a_rerun_costs_as_much_as_one_run_of_both_lengths():
    both = price_together([release(Gaussian(20.0), 30), release(Gaussian(20.0), 10)], DELTA)
    assert both == price(release(Gaussian(20.0), 40), DELTA)
    for nothing in ([], [release(Laplace(0.1), 0)]):
        with pytest.raises(PrivacyError, match="Nothing was released"):
            price_together(nothing, DELTA)


def test_merging_never_forgets_voters_or_abstentions():
    few, many = Release(Laplace(0.1), 5, 10, 2, "party"), Release(Laplace(0.1), 7, 50, 2, "party")
    assert merge_releases([few, many]) == [Release(Laplace(0.1), 12, 50, 2, "party", abstentions=True)]
    assert merge_releases([few, few]) == [Release(Laplace(0.1), 10, 10, 2, "party")]
    assert len(merge_releases([few, dataclasses.replace(few, classes=3)])) == 2
    assert len(merge_releases([release(CONFIDENT), release(CONFIDENT)])) == 2


def test_different_gaussian_releases_compose_as_one_gaussian():
    paid = price_together([release(Gaussian(20.0), 30), release(CONFIDENT, 100)], DELTA, adaptive=True, first=2)
    mu = math.sqrt(2 * 30 / 20.0**2 + 100 / 20.0**2 + 2 * 40 / 10.0**2)
    assert (paid.accountant, paid.release.queries) == ("gdp over 2 kinds of release", 130)
    assert paid.epsilon == pytest.approx(get_epsilon_gaussian(1 / mu, DELTA), rel=1e-6)


def test_different_releases_cost_no_more_than_their_shares_and_no_less_than_each():
    parts = [release(Laplace(0.05), 40), release(Gaussian(20.0), 40), release(Gumbel(0.05), 10)]
    epsilon = price_together(parts, DELTA).epsilon
    assert max(price(each, DELTA).epsilon for each in parts) <= epsilon
    assert epsilon <= sum(price(each, DELTA / 3).epsilon for each in parts)
    filtered = price_together(parts, DELTA, adaptive=True, first=3)
    assert filtered.accountant == "zcdp over 3 kinds of release"
    # Two Laplace counts are γ²-zCDP at least, Gaussian counts exactly 1/σ², bounded range at most η²/8.
    rho = 40 * 0.05**2 + 40 / 20.0**2 + 10 * 0.1**2 / 8
    expected = RdpAccountant().compose(GaussianDpEvent(1 / math.sqrt(2 * rho))).get_epsilon(DELTA)
    assert epsilon <= filtered.epsilon
    assert filtered.epsilon == pytest.approx(expected, rel=0.02)


def test_releases_that_protect_different_things_have_no_common_price():
    record = dataclasses.replace(release(Laplace(0.1)), unit="record")
    with pytest.raises(PrivacyError, match=r"no common ε: party, record"):
        price_together([release(Laplace(0.1)), record], DELTA)
