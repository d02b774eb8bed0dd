"""The least amount that keeps a budget: priced itself, hardly more than necessary, and from few prices."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkt.privacy.secant import least_amount

TOLERANCE = 1e-4


class Prices:
    """Remembers which amounts were priced."""

    def __init__(self, price_of):
        self.price_of, self.seen = price_of, {}

    def __call__(self, amount):
        return self.seen.setdefault(amount, self.price_of(amount))

    def least(self, budget=2.0, start=1.0):
        return least_amount(self, budget, start=start, tolerance=TOLERANCE)


@pytest.mark.parametrize("start", [1e-3, 0.9, 1.0, 30.0])
@pytest.mark.parametrize(
    ("price_of", "root"),
    [
        (lambda amount: 6 / amount, 3.0),
        (lambda amount: 2 * (5 / amount) ** 1.3, 5.0),
        # x/2 + x² = 2 at x = (√33 − 1)/4, the amount is 4/x.
        (lambda amount: 2 / amount + 16 / amount**2, 16 / (math.sqrt(33) - 1)),
    ],
)
def test_a_smooth_price_is_met_from_a_handful_of_prices(price_of, root, start):
    prices = Prices(price_of)
    assert root <= prices.least(start=start) <= root * (1 + 2 * TOLERANCE)
    # Of them as many as factors of 4 lie between the start and the root.
    assert len(prices.seen) <= 6 + abs(math.log(start / root, 4))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-30, 30), min_size=1, max_size=8, unique=True).map(sorted),
    st.lists(st.sampled_from([0.0, 1e-9, 1.99, 2.0, 2.01, 50.0, 1e300, math.inf]), min_size=9, max_size=9),
    st.floats(1e-3, 1e3),
)
def test_whatever_the_steps_what_is_returned_was_priced_and_so_was_an_amount_just_below(edges, levels, start):
    """Prices that jump up and down: nothing can be concluded from one amount about another."""
    prices = Prices(lambda amount: levels[sum(edge < math.log(amount) for edge in edges)])
    found = prices.least(start=start)
    assert len(prices.seen) <= 120
    if math.isinf(found):
        assert max(prices.seen) > 1e11
        return
    assert prices.seen[found] <= 2
    below = [amount for amount in prices.seen if amount < found]
    assert (below and prices.seen[max(below)] > 2 and found <= max(below) * (1 + TOLERANCE) * (1 + 1e-12)) or (
        found < 1e-8 and found == min(prices.seen)
    )


def test_a_price_that_always_keeps_the_budget_is_answered_with_next_to_nothing_and_one_that_never_does_with_infinity():
    assert Prices(lambda amount: 0.0).least() < 1e-8
    assert Prices(lambda amount: 2.0).least() < 1e-8
    assert Prices(lambda amount: math.inf).least() == math.inf
    assert Prices(lambda amount: 2.0 + 1e-12).least() == math.inf


def test_a_kink_and_a_jump_are_closed_in_on_by_halves():
    kinked = Prices(lambda amount: 2 * (3 / amount) ** (0.01 if amount < 3 else 9))
    assert kinked.least() == pytest.approx(3, rel=TOLERANCE)
    jump = Prices(lambda amount: 900.0 if amount < 3 else 1e-3)
    assert jump.least() == pytest.approx(3, rel=TOLERANCE)
    assert len(jump.seen) < 40
    assert all(one != other for one, other in pairwise(jump.seen))
