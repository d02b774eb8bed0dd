"""Releases chosen as one goes: what a ledger accepts keeps its ε at δ, not at a multiple of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.dp_event import ComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

from fedkt.errors import PrivacyError
from fedkt.privacy import ConfidentGaussian, Gaussian, Gumbel, Laplace, Ledger, Release, price_together
from fedkt.privacy.accountant import gdp, joint, price
from fedkt.privacy.accountant.together import _of_kind
from fedkt.privacy.entries import release_from
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.ledger import first_run, total_of
from fedkt.privacy.ledger_file import LedgerFile, Spending
from fedkt.privacy.price import counts_release

DELTA = 1e-5
PLAN = "ab" * 32


def release(noise, queries=30, voters=25, **more):
    return Release(noise, queries, voters, 2, "record", **more)


def of_rho(rho, delta):
    """ε of ρ-zCDP by another library: a Gaussian mechanism has the same Rényi curve."""
    return RdpAccountant().compose(ComposedDpEvent([GaussianDpEvent(1 / math.sqrt(2 * rho))])).get_epsilon(delta)


def of_mu(mu, delta):
    """ε of μ-GDP, by bisection of its closed form."""
    low, high = 0.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        if norm.cdf(mu / 2 - middle / mu) - math.exp(middle) * norm.cdf(-mu / 2 - middle / mu) > delta:
            low = middle
        else:
            high = middle
    return high


def spending(noise, queries=30, purpose="student 1", plan=PLAN):
    return Spending(who="north", release=release(noise, queries, purpose=purpose), plan=plan)


def test_a_sequence_that_only_a_rule_chosen_afterwards_accepts_is_refused(tmp_path):
    # As concentrated privacy at the whole δ both fit; but after a Gaussian first run that is not the rule, and while
    # only the first was out it was priced by another one: accepting by either proves 2δ.
    rho = 30 / 20.0**2 + 300 * 0.05**2 / 2
    budget = 1.01 * of_rho(rho, DELTA)
    ledger = Ledger(owner="north", delta=DELTA, budget=budget, file=LedgerFile.open(tmp_path / "ledger"))
    rng = np.random.default_rng(0)
    ledger.release(lambda: np.zeros((30, 2)), release(Gaussian(20.0), 30), rng=rng)
    with pytest.raises(PrivacyError, match="does not cover"):
        ledger.release(lambda: np.zeros((300, 2)), release(Gumbel(0.05), 300), rng=rng)
    assert len(LedgerFile.open(tmp_path / "ledger").entries) == 1


def test_after_the_first_run_each_rule_has_half_of_delta():
    mixed = price_together([release(Gaussian(20.0)), release(Gaussian(10.0))], DELTA, adaptive=True)
    mu = math.sqrt(2 * 30 / 20.0**2 + 2 * 30 / 10.0**2)
    assert mixed.epsilon == pytest.approx(of_mu(mu, DELTA / 2), rel=1e-6)
    assert (mixed.accountant, mixed.delta) == ("gdp over 2 kinds of release", DELTA)
    curved = price_together([release(Gumbel(0.1)), release(Gaussian(20.0))], DELTA, adaptive=True)
    assert curved.epsilon == pytest.approx(of_rho(30 * 0.2**2 / 8 + 30 / 20.0**2, DELTA / 2), rel=0.01)
    again = price_together([release(Gaussian(20.0)), release(Gaussian(20.0), 10)], DELTA, adaptive=True)
    assert again.epsilon == price(release(Gaussian(20.0), 40), DELTA / 2).epsilon
    assert (again.accountant, again.delta) == ("exact", DELTA)


def test_a_few_queries_add_up_without_any_delta():
    few = [release(Laplace(0.01), 1), release(Gumbel(0.01), 1)]
    assert price_together(few, DELTA, adaptive=True).epsilon == pytest.approx(0.04)


def test_the_first_run_alone_has_all_of_delta():
    assert price_together([release(Gaussian(20.0))], DELTA, adaptive=True) == price(release(Gaussian(20.0)), DELTA)
    run = [release(Gaussian(20.0)), release(Gaussian(20.0))]
    assert price_together(run, DELTA, adaptive=True, first=2) == price(release(Gaussian(20.0), 60), DELTA)
    nothing = [release(Laplace(0.1), 0), release(Gaussian(20.0))]
    assert price_together(nothing, DELTA, adaptive=True, first=1) == price(release(Gaussian(20.0)), DELTA)


@pytest.mark.parametrize(
    ("later", "same"),
    [
        ({"voters": 25}, True),
        ({"voters": 20}, True),
        ({"voters": 20, "abstentions": False}, True),
        ({"voters": 26}, False),
        ({"noise": Laplace(0.2)}, False),
    ],
    ids=str,
)
def test_where_voters_may_abstain_fewer_of_them_are_the_same_kind(later, same):
    opening = release(Laplace(0.1), abstentions=True)
    settings = {"noise": Laplace(0.1), "abstentions": True} | later
    assert _of_kind(release(**settings), opening) == same
    assert not _of_kind(release(Laplace(0.1), voters=20), release(Laplace(0.1)))


def test_capped_answers_are_never_one_longer_release():
    noise = ConfidentGaussian(threshold=15, sigma_test=20.0, sigma=10.0, answers=5)
    one = release(noise)
    mu = math.sqrt(2 * (30 / 20.0**2 + 2 * 5 / 10.0**2))
    twice = price_together([one, one], DELTA, adaptive=True)
    assert twice.epsilon == pytest.approx(of_mu(mu, DELTA / 2), rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 2.0, 8.0, 100.0])
def test_every_pure_mechanism_is_gaussian_private_at_its_mu(epsilon):
    # Randomised response is the worst of them: (e^ε − e^x)/(1 + e^ε) at every x.
    mu = gdp.mu_of_pure(epsilon)
    for x in np.linspace(0, epsilon, 50):
        worst = (1 - math.exp(x - epsilon)) / (1 + math.exp(-epsilon))
        assert worst <= gdp.delta_at(mu, x) + 1e-15
    assert mu == pytest.approx(-2 * norm.ppf(1 / (1 + math.exp(epsilon))), rel=1e-6)
    assert gdp.mu_of_pure(1e3) == math.inf


def test_the_first_run_is_what_one_plan_releases_once():
    def run(noise_key, plan=PLAN):
        parts = ("student 1", "student 2", "class counts")
        return [spending(Gaussian(20.0), purpose=f"{each} (noise {noise_key})", plan=plan) for each in parts]

    assert first_run(run("aa")) == 3
    assert first_run([*run("aa"), *run("bb")]) == 3
    assert first_run([*run("aa")[:1], *run("bb")]) == 1
    assert first_run([*run("aa")[:2], *run("bb", "cd" * 32)]) == 2
    assert first_run([*run("aa", "")]) == 1


def test_a_total_is_that_of_the_filter_and_infinite_with_a_noise_nobody_would_take():
    first, other = spending(Gaussian(20.0)), spending(Gaussian(10.0), purpose="student 1 (noise b)")
    mu = math.sqrt(2 * 30 / 20.0**2 + 2 * 30 / 10.0**2)
    assert total_of([first], DELTA) == price(release(Gaussian(20.0)), DELTA).epsilon
    assert total_of([first, other], DELTA) == pytest.approx(of_mu(mu, DELTA / 2), rel=1e-6)
    strange = replace(first, release=release_from({**first.as_dict(), "mechanism": "gauss"}))
    assert total_of([first, strange], DELTA) == math.inf


def test_class_counts_beside_the_votes_of_a_first_run_are_priced_by_the_game():
    run = [release(Gaussian(20.0)), counts_release(GaussianCounts(60.0), 2)]
    fixed, first = price_together(run, DELTA), price_together(run, DELTA, adaptive=True, first=2)
    assert first.epsilon == fixed.epsilon == joint.epsilon(run[0], math.sqrt(2) / 60, DELTA)
    assert first.accountant == "exact over 2 kinds of release"
    assert price(run[0], DELTA).epsilon < first.epsilon < of_mu(math.sqrt(2 * 30 / 20.0**2 + 2 / 60.0**2), DELTA)
    twice = [replace(run[0], queries=15), *run[::-1], replace(run[0], queries=0)]
    assert price_together(twice, DELTA).epsilon == pytest.approx(
        joint.epsilon(release(Gaussian(20.0), 45), math.sqrt(2) / 60, DELTA), rel=1e-12
    )


def test_what_follows_a_first_run_with_class_counts_is_added_by_the_rules_that_a_filter_has():
    run = [release(Gaussian(20.0)), counts_release(GaussianCounts(60.0), 2)]
    mu = math.sqrt(2 * 31 / 20.0**2 + 2 / 60.0**2)
    one_more = price_together([*run, release(Gaussian(20.0), 1)], DELTA, adaptive=True, first=2)
    assert one_more.epsilon == pytest.approx(of_mu(mu, DELTA / 2), rel=1e-6)
    counted_later = price_together(run, DELTA, adaptive=True, first=1)
    assert counted_later.epsilon == pytest.approx(of_mu(math.sqrt(2 * 30 / 400 + 2 / 3600), DELTA / 2), rel=1e-6)


@pytest.mark.parametrize(
    "votes",
    [
        [release(Gaussian(20.0)), release(Gaussian(10.0))],
        [release(Gaussian(20.0)), release(Laplace(0.1))],
        [replace(release(Gaussian(20.0)), classes=3)],
    ],
    ids=["two scales", "two noises", "three classes"],
)
def test_votes_that_are_no_single_game_of_two_classes_are_not_priced_by_it(votes):
    counts = counts_release(GaussianCounts(60.0), 2)
    for adaptive in (False, True):
        total = price_together([*votes, counts], DELTA, adaptive=adaptive, first=3)
        assert total.accountants["exact"] == math.inf
        assert math.isfinite(total.epsilon)
