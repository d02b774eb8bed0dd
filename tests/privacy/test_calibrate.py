"""Calibration: what it returns fits the budget, hardly more noise than needed, and the stated chances hold."""

import numpy as np
import pytest

from fedkt.errors import ConfigurationError
from fedkt.privacy.accountant import ACCOUNTANTS, _cached_epsilon, price
from fedkt.privacy.calibrate import chance_right, most_queries, noise_for_chance, smallest_noise
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.mechanisms import make_noise
from fedkt.privacy.noise import Noise
from fedkt.privacy.price import Release

DELTA = 1e-5
QUICK = ("pure", "paper", "rdp", "pld", "gdp")
PUBLIC = {"delta": DELTA, "voters": 50, "classes": 2, "unit": "party"}


def cost(noise, queries, accountants=QUICK):
    return price(Release(noise, queries, 50, 2, "party"), DELTA, accountants=accountants).epsilon


def less(noise):
    """The same noise with 2 in 10,000 less of it."""
    factor = {"gamma": 1.0002, "theta": 1.0002, "sigma": 1 / 1.0002, "sigma_test": 1 / 1.0002}
    return make_noise(noise.name, {name: value * factor.get(name, 1) for name, value in noise.scale.items()})


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "gumbel"])
@pytest.mark.parametrize(("epsilon", "queries"), [(0.3, 1), (2.0, 40), (12.0, 300)])
def test_the_smallest_noise_fits_the_budget_and_a_little_less_does_not(mechanism, epsilon, queries):
    noise = smallest_noise(mechanism, epsilon=epsilon, queries=queries, accountants=QUICK, **PUBLIC)
    assert cost(noise, queries) <= epsilon < cost(less(noise), queries)


def test_the_smallest_confident_noise_splits_its_price_between_tests_and_answers():
    fixed = {"threshold": 30, "answers": 20}
    noise = smallest_noise("confident-gaussian", epsilon=2, queries=100, accountants=QUICK, fixed=fixed, **PUBLIC)
    assert isinstance(noise, ConfidentGaussian)
    assert cost(noise, 100) <= 2 < cost(less(noise), 100)
    assert 100 / noise.sigma_test**2 == pytest.approx(2 * 20 / noise.sigma**2)
    with pytest.raises(ConfigurationError, match="given `threshold` and number of `answers`"):
        smallest_noise("confident-gaussian", epsilon=2, queries=100, **PUBLIC)


def test_a_smaller_budget_or_more_queries_need_more_noise():
    budgets = [smallest_noise("gaussian", epsilon=e, queries=20, accountants=QUICK, **PUBLIC).sigma for e in (1, 2, 4)]
    queries = [smallest_noise("gaussian", epsilon=2, queries=k, accountants=QUICK, **PUBLIC).sigma for k in (5, 20, 80)]
    assert budgets == sorted(budgets, reverse=True)
    assert queries == sorted(queries)


def test_the_exact_accountant_needs_less_noise_for_the_same_budget():
    quick = smallest_noise("gaussian", epsilon=2, queries=10, accountants=QUICK, **PUBLIC)
    exact = smallest_noise("gaussian", epsilon=2, queries=10, accountants=(*QUICK, "exact"), **PUBLIC)
    assert cost(exact, 10, (*QUICK, "exact")) <= 2
    assert exact.sigma < 0.95 * quick.sigma


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "gumbel"])
@pytest.mark.parametrize(("epsilon", "queries"), [(0.5, 20), (2.0, 40)])
def test_five_games_are_played_for_a_noise_and_the_one_of_the_answer_is_among_them(
    mechanism, epsilon, queries, monkeypatch
):
    """Halving a bracket took fourteen or fifteen; a game is what a calibration costs."""
    played = {}
    game = ACCOUNTANTS["exact"]

    def counted(release, delta):
        return played.setdefault(release.noise, game(release, delta))

    monkeypatch.setitem(ACCOUNTANTS, "exact", counted)
    _cached_epsilon.cache_clear()
    noise = smallest_noise(mechanism, epsilon=epsilon, queries=queries, **PUBLIC)
    _cached_epsilon.cache_clear()
    assert played[noise] <= epsilon
    assert len(played) <= 5
    assert cost(less(noise), queries, (*QUICK, "exact")) > epsilon


@pytest.mark.parametrize("epsilon", [8.6, 10.0, 41.0])
def test_where_more_noise_costs_more_the_answer_keeps_the_budget_all_the_same(epsilon):
    """Three voters, one query: the game says 8.5 at σ = 0.2 and 41.6 at 0.22 (see test_scales)."""
    public = {"delta": 3.3e-4, "voters": 3, "classes": 2, "unit": "record"}
    noise = smallest_noise("gaussian", epsilon=epsilon, queries=1, **public)
    release = Release(noise, 1, 3, 2, "record")
    assert price(release, 3.3e-4).epsilon <= epsilon


@pytest.mark.parametrize("noise", [Laplace(0.05), Gaussian(20.0), Gumbel(0.05), ConfidentGaussian(30, 60, 40, 20)])
def test_the_most_queries_fit_and_one_more_does_not(noise):
    most = most_queries(noise, epsilon=2, accountants=QUICK, **PUBLIC)
    assert most >= 1
    assert cost(noise, most) <= 2 < cost(noise, most + 1)


def test_too_small_a_budget_buys_no_query_and_a_huge_one_stops_at_the_limit():
    assert most_queries(Laplace(1.0), epsilon=0.1, accountants=QUICK, **PUBLIC) == 0
    assert most_queries(Laplace(0.001), epsilon=50, accountants=["pure"], limit=900, **PUBLIC) == 900


@pytest.mark.parametrize("budget", [0, -1, float("inf"), float("nan")])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(ConfigurationError, match="finite number above zero"):
        smallest_noise("gaussian", epsilon=budget, queries=10, **PUBLIC)


def test_no_noise_can_be_found_where_the_accountants_do_not_know_the_mechanism():
    with pytest.raises(ConfigurationError, match="No noise reaches ε ≤ 2"):
        smallest_noise("gaussian", epsilon=2, queries=10, accountants=["pure"], **PUBLIC)


@pytest.mark.parametrize("noise", [Laplace(0.2), Gaussian(6.0), Gumbel(0.2), ConfidentGaussian(15, 6, 6, 10**6)])
@pytest.mark.parametrize("votes", [(20, 12), (20, 5, 5, 4, 4), (7, 7, 2)])
def test_the_chance_of_the_right_label_is_what_draws_show(noise, votes):
    trials = 60_000
    labels = noise.labels(np.tile(votes, (trials, 1)), np.random.default_rng(8))
    right = np.isin(labels, np.flatnonzero(np.array(votes) == max(votes))).mean()
    chance = chance_right(noise, votes)
    assert abs(right - chance) <= 5 * np.sqrt(chance * (1 - chance) / trials) + 1e-12


def test_a_mechanism_without_formulas_is_drawn_instead():
    class Opaque(Noise):
        name = "opaque"
        spread = 6.0
        labels = staticmethod(Gaussian(6.0).labels)
        rdp = staticmethod(Gaussian(6.0).rdp)

    assert chance_right(Opaque(), (20, 5, 5)) == pytest.approx(chance_right(Gaussian(6.0), (20, 5, 5)), abs=0.004)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "gumbel"])
@pytest.mark.parametrize("votes", [(35, 15), (20, 5, 5, 4, 4, 3, 3, 2, 2, 2)])
def test_the_noise_for_a_chance_has_that_chance(mechanism, votes):
    assert chance_right(noise_for_chance(mechanism, votes, 0.95), votes) == pytest.approx(0.95, abs=1e-9)


@pytest.mark.parametrize(
    ("votes", "mechanism", "accountant", "expected"),
    [
        ((35, 15), "laplace", "paper", {4: 1.31, 20: 6.54, 40: 12.2, 90: 20.2, 500: 65.0}),
        ((35, 15), "gaussian", "gdp", {4: 1.25, 20: 3.08, 40: 4.58, 90: 7.39, 500: 21.8}),
        (
            (20, 5, 5, 4, 4, 3, 3, 2, 2, 2), "laplace", "paper",
            {4: 2.62, 20: 13.1, 40: 26.2, 90: 50.2, 500: 227},
        ),
    ],
)  # fmt: skip
def test_prices_at_matched_utility_are_the_known_ones(votes, mechanism, accountant, expected):
    """Winner released with probability .95, 50 voters, δ = 1e-5: figures computed independently, three digits."""
    noise = noise_for_chance(mechanism, votes, 0.95)
    for queries, epsilon in expected.items():
        assert float(f"{cost(noise, queries, [accountant]):.3g}") == epsilon
