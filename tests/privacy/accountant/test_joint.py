"""Votes and Gaussian numbers together: against an adversary followed by hand, lower bounds, and both ends."""

import math

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.optimize import brentq
from scipy.stats import binom, norm

from fedkt.privacy.accountant import game, joint
from fedkt.privacy.gaussian import Gaussian
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Release

DELTA = 1e-5
EDGES = np.concatenate([[-np.inf], np.linspace(-7, 7, 701), [np.inf]])
"""Told only between which of them a Gaussian fell, an adversary knows a little less: a lower bound."""


def votes(noise, queries=40, voters=25, **more):
    return Release(noise, queries, voters, 2, "record", **more)


def coins(noise, voters):
    """What the adversary may choose from: the chance of class 1 with the unit's vote on one side and on the other."""
    gaps = range(-(voters - 1), voters, 2)
    pairs = [(float(noise.win_probability(r - 1)), float(noise.win_probability(r + 1))) for r in gaps]
    return [*pairs, *((q, p) for p, q in pairs)]


def best_vote(pairs, value):
    """One more query, whatever is known by then."""
    return lambda y: np.max(
        [p * value(y * q / p) + (1 - p) * value(y * (1 - q) / (1 - p)) for p, q in pairs],
        axis=0,
    )


def with_counts(mu, value):
    """The counts, whatever is known by then: N(0, 1) against N(μ, 1)."""
    p, q = np.diff(norm.cdf(EDGES)), np.diff(norm.cdf(EDGES - mu))
    return lambda y: value(np.multiply.outer(y, q / p)) @ p


def followed(noise, voters, mu, order, epsilon):
    """δ(ε) where `order` says what leaves first to last, v for a vote and c for the counts; no grid in y."""

    def value(y):
        return np.maximum(0.0, 1 - y)

    for each in reversed(order):
        value = with_counts(mu, value) if each == "c" else best_vote(coins(noise, voters), value)
    return float(value(np.array(math.exp(epsilon))))


@pytest.mark.parametrize("noise", [Gaussian(2.0), Laplace(0.6), Gumbel(0.4)], ids=repr)
@pytest.mark.parametrize(("mu", "voters"), [(0.1, 3), (0.5, 4), (1.5, 1)])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_it_is_above_every_order_and_hardly_above_counts_that_come_first(noise, mu, voters, epsilon):
    for queries in (1, 2, 3):
        bound = joint.delta_at(votes(noise, queries, voters), mu, epsilon)
        first = followed(noise, voters, mu, "c" + queries * "v", epsilon)
        assert first <= bound
        assert bound <= first + queries * game.STEP * math.exp(epsilon) / 4 + 1e-5
        for before in range(1, queries + 1):
            assert followed(noise, voters, mu, before * "v" + "c" + (queries - before) * "v", epsilon) <= first + 1e-12


def near_ties(asked, mu, epsilon):
    """δ of one fixed run, and so a lower bound: every vote the same near tie, and the counts."""
    gap = 1 if asked.voters % 2 else 0
    p, q = (float(asked.noise.win_probability(each)) for each in (-gap, 2 - gap))
    wins = np.arange(asked.queries + 1)
    known = binom.logpmf(wins, asked.queries, p) - binom.logpmf(wins, asked.queries, q)
    left = epsilon - known
    curve = norm.cdf(mu / 2 - left / mu) - np.exp(left) * norm.cdf(-mu / 2 - left / mu)
    return float(binom.pmf(wins, asked.queries, p) @ curve)


@pytest.mark.parametrize(
    ("noise", "queries", "voters"),
    [
        (Laplace(0.04), 81, 25),
        (Laplace(0.05), 297, 25),
        (Gaussian(40.0), 40, 25),
        (Gaussian(8.0), 30, 15),
        (Gumbel(0.1), 40, 25),
        (Gaussian(200.0), 81, 50),
    ],
    ids=repr,
)
@pytest.mark.parametrize("part", [0.05, 1.0])
def test_it_is_above_near_ties_and_as_near_to_them_as_the_votes_alone(noise, queries, voters, part):
    asked, mu = votes(noise, queries, voters), math.sqrt(part * noise.squared_mu(queries))
    found = joint.epsilon(asked, mu, DELTA)
    assert near_ties(asked, mu, found) <= DELTA
    alone = game.epsilon(asked, DELTA)
    lower = brentq(lambda epsilon: game.all_ties(asked, epsilon) - DELTA, 0, alone)
    assert near_ties(asked, mu, found * lower / alone / 1.005) > DELTA


def test_another_library_that_rounds_down_stays_below():
    asked, mu = votes(Laplace(0.04), 81), 0.1
    p, q = (2.04 / 4 * math.exp(-0.04), 1 - 2.04 / 4 * math.exp(-0.04))
    down = {"value_discretization_interval": 1e-5, "pessimistic_estimate": False}
    vote = pld.from_two_probability_mass_functions(
        {0: math.log(1 - p), 1: math.log(p)}, {0: math.log(1 - q), 1: math.log(q)}, **down
    )
    numbers = pld.from_gaussian_mechanism(1 / mu, use_connect_dots=False, **down)
    lower = vote.self_compose(81).compose(numbers).get_epsilon_for_delta(DELTA)
    assert lower <= joint.epsilon(asked, mu, DELTA) <= 1.02 * lower


def test_counts_that_tell_nothing_leave_the_price_of_the_votes():
    asked = votes(Gaussian(20.0))
    assert joint.epsilon(asked, 1e-7, DELTA) == pytest.approx(game.epsilon(asked, DELTA), rel=1e-5)
    assert joint.epsilon(asked, 1e-7, DELTA) >= game.epsilon(asked, DELTA)


def test_votes_that_tell_nothing_leave_the_price_of_the_counts():
    for mu in (0.05, 0.27, 2.0):
        alone = get_epsilon_gaussian(1 / mu, DELTA)
        assert alone <= joint.epsilon(votes(Gaussian(1e6), 1), mu, DELTA) <= alone * (1 + 1e-3)


def test_more_of_either_costs_more_and_a_larger_delta_less():
    price = joint.epsilon(votes(Gaussian(20.0)), 0.1, DELTA)
    assert game.epsilon(votes(Gaussian(20.0)), DELTA) < price
    assert price < joint.epsilon(votes(Gaussian(20.0)), 0.11, DELTA)
    assert price < joint.epsilon(votes(Gaussian(20.0), 41), 0.1, DELTA)
    assert price > joint.epsilon(votes(Gaussian(20.0)), 0.1, 2 * DELTA)


def test_a_price_that_the_grid_does_not_hold_is_left_to_others():
    assert joint.epsilon(votes(Gaussian(20.0), 0), 0.1, DELTA) == math.inf
    assert joint.epsilon(Release(Gaussian(20.0), 40, 25, 3, "record"), 0.1, DELTA) == math.inf
    assert joint.epsilon(votes(Gaussian(1.0), 300), 0.1, DELTA) == math.inf
    assert joint.epsilon(votes(Gaussian(20.0)), 90.0, DELTA) == math.inf
    # What rounding alone may add is more than so small a δ.
    assert joint.epsilon(votes(Gaussian(20.0)), 0.1, 1e-16) == math.inf
