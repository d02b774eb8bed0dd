"""The exact accountant: against brute force, a finer grid, a lower bound, and figures known beforehand."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from fedkt.privacy.accountant import game
from fedkt.privacy.gaussian import Gaussian
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Release


@dataclass(frozen=True)
class Coin:
    """A stand-in mechanism with the Laplace closed form, so that this file does not lean on the product's."""

    gamma: float
    has_win_probability: bool = True

    def win_probability(self, gap):
        size = np.abs(np.asarray(gap, dtype=float)) * self.gamma
        tail = 0.5 * np.exp(-size) * (1 + size / 2)
        return np.where(np.asarray(gap) >= 0, 1 - tail, tail)

    def rdp(self, orders):
        return 2 * self.gamma**2 * np.asarray(orders, dtype=float)


def release(gamma, queries, voters, *, abstentions=False):
    return Release(Coin(gamma), queries, voters, 2, "record", abstentions=abstentions)


def game_delta(asked, epsilon, *, step=None):
    """An upper bound for δ at this ε: the game's values, read at y = e^ε by the chord between two points."""
    step = game.fine_step(asked) if step is None else step
    values, lowest = game.game_values(asked.noise, asked.queries, asked.voters, asked.abstentions, step)
    position = (-epsilon - lowest) / step
    if position < 0:
        return float(values[0])
    index, weight = game.place(position, step)
    return min(1.0, float((1 - weight) * values[index] + weight * values[index + 1]) * game.INFLATION)


def brute_force(noise, queries, voters, abstentions, epsilon):
    """V_k by following every choice of the adversary, every move of the unit and both directions; no grid."""
    others = range(-(voters - 1), voters) if abstentions else range(-(voters - 1), voters, 2)
    gaps = {r: [r - 1, r, r + 1] if abstentions else [r - 1, r + 1] for r in others}
    coins = {
        (float(noise.win_probability(a)), float(noise.win_probability(b)))
        for choices in gaps.values()
        for a in choices
        for b in choices
        if a != b
    }

    def value(left, y):
        if left == 0:
            return max(0.0, 1 - y)
        return max(p * value(left - 1, y * q / p) + (1 - p) * value(left - 1, y * (1 - q) / (1 - p)) for p, q in coins)

    return value(queries, math.exp(epsilon))


@settings(max_examples=40, deadline=None)
@given(
    gamma=st.floats(0.05, 1.5),
    queries=st.integers(1, 3),
    voters=st.integers(1, 4),
    abstentions=st.booleans(),
    epsilon=st.floats(0, 3),
)
def test_it_is_above_brute_force_and_hardly(gamma, queries, voters, abstentions, epsilon):
    exact = brute_force(Coin(gamma), queries, voters, abstentions, epsilon)
    bound = game_delta(release(gamma, queries, voters, abstentions=abstentions), epsilon)
    assert exact <= bound + 1e-15
    # The stated discretisation error: k · h · e^ε / 4.
    assert bound <= exact + queries * game.STEP * math.exp(epsilon) / 4 + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_finer_grid_lowers_the_bound_a_little_and_never_raises_it(epsilon):
    asked = release(0.06, 60, 25)
    coarse, fine = (game_delta(asked, epsilon, step=step) for step in (2e-3, 5e-4))
    assert fine <= coarse * (1 + 1e-9)
    assert fine >= 0.98 * coarse


@pytest.mark.parametrize(
    ("gamma", "queries", "voters", "abstentions", "plain_rounding", "paper"),
    [
        (0.04, 81, 25, False, 1.43, 3.72),
        (0.06, 81, 25, False, 2.19, 5.79),
        (0.05, 148, 25, False, 2.70, 6.58),
        (0.05, 297, 25, False, 4.13, 9.78),
        (0.06, 81, 50, True, 2.19, 5.78),
        (0.1, 74, 50, True, 3.66, 6.89),
        (0.1, 148, 50, True, 5.62, 11.2),
        (0.06, 148, 50, True, 3.28, 5.14),
    ],
)
def test_it_undercuts_plain_rounding_and_lies_within_1_5_percent_of_the_lower_bound(
    gamma, queries, voters, abstentions, plain_rounding, paper
):
    asked = release(gamma, queries, voters, abstentions=abstentions)
    found = game.epsilon(asked, 1e-5)
    assert found <= plain_rounding + 0.005
    assert found < paper
    # No sound accountant can be below what a run of near ties really costs.
    assert game.all_ties(asked, found * (1 - 1e-9)) <= 1e-5 * (1 + 1e-6)
    assert game.all_ties(asked, found / 1.015) > 1e-5


@pytest.mark.parametrize("queries", [10, 100])
@pytest.mark.parametrize("noise", [Gaussian(1e3), Gaussian(1e4), Gaussian(1e6), Laplace(1e-4), Gumbel(1e-5)], ids=repr)
def test_noise_so_strong_that_an_answer_tells_less_than_a_grid_step_is_priced_as_sharply(noise, queries):
    asked = Release(noise, queries, 25, 2, "record")
    delta = game.all_ties(asked, 0.0) / 1000
    found = game.epsilon(asked, delta)
    assert game.all_ties(asked, found * (1 - 1e-9)) <= delta * (1 + 1e-6)
    assert game.all_ties(asked, found / 1.01) > delta


def test_epsilon_and_delta_answer_each_other():
    asked = release(0.05, 100, 30)
    for delta in (1e-3, 1e-5, 1e-8):
        assert game_delta(asked, game.epsilon(asked, delta)) == pytest.approx(delta, rel=1e-6)


def test_one_voter_and_one_query_is_a_single_coin():
    # With a single voter the counts are (1, 0) or (0, 1): P(1) = w(−1), Q(1) = w(1). δ(ε) = Q(1)-side mirror image.
    w = float(Coin(0.5).win_probability(1))
    expected = w - math.exp(0.2) * (1 - w)
    assert game_delta(release(0.5, 1, 1), 0.2) == pytest.approx(expected, rel=1e-6)


def epsilon_of_coins(tails, queries, delta):
    """The ε of k answers of one voter, by bisection of binomial sums: p against 1 − p, whatever the order."""
    wins = np.arange(queries + 1)
    one, other = binom.pmf(wins, queries, 1 - tails), binom.pmf(wins, queries, tails)

    def too_small(epsilon):
        return np.maximum(one - math.exp(epsilon) * other, 0).sum() > delta

    low, high = 0.0, queries * math.log((1 - tails) / tails)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return high


@pytest.mark.parametrize("abstentions", [False, True])
@pytest.mark.parametrize("queries", [1, 2, 10, 100])
@pytest.mark.parametrize(
    ("noise", "tails"),
    [
        # P(N(1, 2σ²) < 0), the logistic function at −θ, and (2 + γ)/4 · e^{−γ}.
        (Gaussian(5.0), norm.cdf(-1 / (5 * math.sqrt(2)))),
        (Gaussian(0.3), norm.cdf(-1 / (0.3 * math.sqrt(2)))),
        (Gumbel(0.7), 1 / (1 + math.exp(0.7))),
        (Laplace(0.1), 2.1 / 4 * math.exp(-0.1)),
    ],
    ids=repr,
)
def test_one_voter_is_randomised_response(noise, tails, queries, abstentions):
    """An only voter's vote is 1 or 0; abstaining, the coin (½, ½), lies between. Nothing else can be chosen."""
    exact = epsilon_of_coins(tails, queries, 1e-5)
    found = game.epsilon(Release(noise, queries, 1, 2, "party", abstentions=abstentions), 1e-5)
    assert exact * (1 - 1e-9) <= found <= exact * 1.0001 + 1e-4
    assert found <= queries * math.log((1 - tails) / tails) * (1 + 1e-9)


@pytest.mark.parametrize("voters", [1, 2, 3, 10])
@pytest.mark.parametrize("delta", [1e-5, 1e-9, 1e-30])
def test_it_never_exceeds_plain_composition(voters, delta):
    for queries, gamma in ((1, 0.3), (5, 0.3), (20, 0.3), (3, 4.0), (40, 4.0)):
        assert game.epsilon(release(gamma, queries, voters), delta) <= queries * 2 * gamma


def test_pairs_that_no_longer_tell_anything_are_left_out_and_change_nothing():
    assert len(game.coin_pairs(Coin(0.5), 100_000, False).p_one) < 3_000
    few, many = (release(5.0, 3, voters) for voters in (501, 20_001))
    assert game.epsilon(many, 1e-5) == pytest.approx(game.epsilon(few, 1e-5), rel=1e-12)


def test_what_would_take_minutes_is_left_to_the_other_accountants():
    assert game.epsilon(release(1e-3, 50, 100_000), 1e-5) == math.inf
    assert game.epsilon(release(1e-3, 2_001, 3), 1e-5) == math.inf


def test_more_queries_and_less_noise_cost_more():
    assert game.epsilon(release(0.05, 50, 20), 1e-5) < game.epsilon(release(0.05, 51, 20), 1e-5)
    assert game.epsilon(release(0.05, 50, 20), 1e-5) < game.epsilon(release(0.06, 50, 20), 1e-5)


def test_a_larger_delta_never_costs_more_and_no_query_costs_nothing():
    asked = release(0.05, 50, 20)
    assert game.epsilon(asked, 1e-3) < game.epsilon(asked, 1e-6)
    assert game.epsilon(release(0.05, 0, 20), 1e-6) == 0.0
    assert game.epsilon(release(0.001, 1, 20), 0.5) == 0.0


def test_three_classes_and_unknown_mechanisms_are_not_priced():
    assert game.epsilon(Release(Coin(0.1), 10, 5, 3, "record"), 1e-5) == math.inf
    assert game.epsilon(Release(Coin(0.1, has_win_probability=False), 10, 5, 2, "record"), 1e-5) == math.inf


def test_the_reach_of_the_grid_changes_the_work_and_not_the_answer():
    class Far(Coin):
        def rdp(self, orders):
            return np.full(len(orders), 1e6)

    near, far = (Release(kind(0.05), 300, 11, 2, "party") for kind in (Coin, Far))
    assert game.epsilon(near, 1e-5) == pytest.approx(game.epsilon(far, 1e-5), rel=1e-9)
    assert len(game.game_values(near.noise, 300, 11, False, 1e-3)[0]) < len(
        game.game_values(far.noise, 300, 11, False, 1e-3)[0]
    )


def test_noise_too_weak_for_the_grid_costs_the_largest_loss_of_every_query():
    # The tails of the gaps 3 and 5, (2 + γx)/4 · e^{−γx}, differ most: by 60 − ln(152/92).
    assert game.epsilon(release(30.0, 20, 5), 1e-5) == pytest.approx(20 * (60 - math.log(152 / 92)), rel=1e-9)


def test_where_near_ties_already_cost_more_than_the_grid_holds_no_game_is_played(monkeypatch):
    monkeypatch.setattr(game, "game_values", lambda *_: pytest.fail("the game was played"))
    # 450 answers of 200 voters, each with a loss near 2γ.
    assert 60 < game.epsilon(release(1.0, 450, 200), 1e-5) <= 900
