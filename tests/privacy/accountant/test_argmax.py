"""The price of a Gaussian winner: the cells, the certificates, full arg-max laws, and answers behind a threshold."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad, simpson
from scipy.optimize import brentq
from scipy.stats import binom, norm

from fedkt.privacy.accountant import argmax, gdp, price, rdp
from fedkt.privacy.accountant.three_cells import bound, cells, excess, halves
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian, GaussianCounts
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Release

SETTINGS = [(1.3, 10.0), (2.5, 50.0), (3.0, 10.0), (11.0, 10.0), (21.0, 10.0), (2.0, 1.0), (3.0, 0.5), (41.0, 10.0)]
"""Orders and σ over the whole range: (α − 1)/σ from 0.03 to 4."""


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return math.log((p**order * q ** (1 - order)).sum()) / (order - 1)


def winner_law(votes: list[float], sigma: float) -> np.ndarray:
    """P(class j has the largest noisy count) by adaptive quadrature over its noisy count."""

    def density(x: float, j: int) -> float:
        product = math.exp(-(((x - votes[j]) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        for i, v in enumerate(votes):
            if i != j:
                product *= math.erfc((v - x) / (sigma * math.sqrt(2))) / 2
        return product

    low, high = min(votes) - 9 * sigma, max(votes) + 9 * sigma
    return np.array([quad(density, low, high, (j,), epsabs=0, epsrel=1e-9, limit=400)[0] for j in range(len(votes))])


def test_cells_agree_with_simpsons_rule_however_small() -> None:
    for u, v in [(0.0, 0.0), (-3.0, 1.0), (2.0, -4.0), (-12.0, 5.0), (-9.0, -14.0), (7.0, 7.0), (-25.0, 9.0)]:
        w = np.linspace(0, 50, 200_001)
        log_value = norm.logpdf(w - u) + norm.logcdf(v + w)
        top = log_value.max()
        expected = top + math.log(simpson(np.exp(log_value - top), x=w))
        assert cells(np.array([u]), np.array([v])).log[0, 0] == pytest.approx(expected, abs=1e-11)


def test_cells_agree_with_integration_over_the_plane() -> None:
    x, y = 0.4, -0.7
    u, v = (x - y) / math.sqrt(2), (x + y) / math.sqrt(2)
    a, b, c = np.exp(cells(np.array([u]), np.array([v])).log[:, 0])
    first = dblquad(lambda t, s: math.exp(-((t - y) ** 2 + (s - x) ** 2) / 2) / (2 * math.pi), 0, 9, -9, lambda s: s)[0]
    second = dblquad(lambda s, t: math.exp(-((t - y) ** 2 + (s - x) ** 2) / 2) / (2 * math.pi), 0, 9, -9, lambda t: t)[
        0
    ]
    assert (a, b, c) == pytest.approx((first, second, norm.cdf(-x) * norm.cdf(-y)), abs=1e-8)


@settings(max_examples=200, deadline=None)
@given(st.floats(-25, 25), st.floats(-25, 12))
def test_cells_sum_to_one_and_their_slopes_are_slopes(u: float, v: float) -> None:
    at, vs = np.array([u, u - 1e-5, u + 1e-5]), np.full(3, v)
    found = cells(at, vs)
    assert np.exp(found.log).sum(axis=0) == pytest.approx(1, abs=1e-13)
    assert (found.log[:, 2] - found.log[:, 1]) / 2e-5 == pytest.approx(found.along_u[:, 0], abs=1e-6, rel=1e-6)
    up = cells(np.full(2, u), np.array([v - 1e-5, v + 1e-5]))
    assert (up.log[:, 1] - up.log[:, 0]) / 2e-5 == pytest.approx(found.along_v[:, 0], abs=1e-6, rel=1e-6)


def test_the_excess_is_the_renyi_divergence_of_the_cells() -> None:
    u, v, order, shift = np.array([0.3]), np.array([0.8]), 4.0, 0.5
    p, q = np.exp(cells(u, v).log[:, 0]), np.exp(cells(u - shift, v).log[:, 0])
    assert math.log1p(excess(u, v, order, shift)[0]) / (order - 1) == pytest.approx(divergence(p, q, order), rel=1e-12)


@pytest.mark.parametrize(("order", "sigma"), SETTINGS)
def test_no_point_of_a_box_exceeds_its_bound(order: float, sigma: float) -> None:
    rng = np.random.default_rng(7)
    shift, n = math.sqrt(2) / sigma, 1500
    # All sizes down to boxes so small that nothing but rounding is left.
    size = 10 ** rng.uniform(-6, -0.3, (n, 2))
    boxes = np.column_stack([rng.uniform(-9, 5, n), rng.uniform(-6, 7, n), size])
    value, upper = bound(boxes, order, shift)
    assert (value <= upper).all()
    for _ in range(12):
        corner = rng.choice([-1.0, 1.0, 0.0, 0.6], (n, 2))
        inside = boxes[:, :2] + corner * boxes[:, 2:]
        assert (excess(inside[:, 0], inside[:, 1], order, shift) <= upper).all()


def test_third_derivatives_stay_below_the_bound_used() -> None:
    rng = np.random.default_rng(3)
    u, v, h = rng.uniform(-15, 15, 4000), rng.uniform(-15, 9, 4000), 1e-3
    angle = rng.uniform(0, math.pi, 4000)
    du, dv = h * np.cos(angle), h * np.sin(angle)

    def slope(k: int) -> np.ndarray:
        there = cells(u + k * du, v + k * dv)
        return (there.along_u * du + there.along_v * dv) / h

    second, third = (slope(1) - slope(-1)) / (2 * h), (slope(1) - 2 * slope(0) + slope(-1)) / h**2
    assert second.min() > -1 - 1e-6
    assert second.max() < 1e-6
    assert np.abs(third).max() < 2


def hill(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """3 exp(−(u − 0.3)² − 2 (v + 1)²): supremum 3, no second derivative above 6 or 12 in size."""
    u, v, wide, high = boxes.T
    value = 3 * np.exp(-((u - 0.3) ** 2) - 2 * (v + 1) ** 2)
    slope_u, slope_v = 2 * (u - 0.3) * value, 4 * (v + 1) * value
    return value, value + abs(slope_u) * wide + abs(slope_v) * high + 12 * (wide**2 + high**2)


def test_a_known_supremum_is_certified_from_above_within_the_gap() -> None:
    found = argmax.supremum(hill, np.array([[0.0, 0.0, 5.0, 5.0]]), 1e-4)
    assert 3 * (1 - 1e-4) < found.largest <= 3 <= found.certified <= 3 * (1 + 1e-4)


def test_a_certificate_without_enough_boxes_is_still_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argmax, "_MOST_BOXES", 20)
    found = argmax.supremum(hill, np.array([[0.0, 0.0, 5.0, 5.0]]), 1e-6)
    assert found.largest <= 3 < found.certified < math.inf


@pytest.mark.parametrize(("order", "sigma"), SETTINGS)
def test_the_certificate_is_close_to_what_was_found_and_below_the_noisy_counts(order: float, sigma: float) -> None:
    proven = argmax.certificate(order, sigma)
    assert proven is not None
    assert proven.largest <= proven.certified <= proven.largest * (1 + 1.01 * argmax.GAP)
    assert proven.certified < order / sigma**2
    assert argmax.rdp(order, sigma) == proven.certified


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(SETTINGS), st.floats(-40, 40), st.floats(-40, 40))
def test_no_two_counts_whatever_cost_more_than_the_bound(setting: tuple[float, float], a: float, b: float) -> None:
    order, sigma = setting
    u, v = np.array([(a - b) / math.sqrt(2)]), np.array([(a + b) / math.sqrt(2)])
    shift = math.sqrt(2) / sigma
    limit = math.expm1((order - 1) * argmax.rdp(order, sigma))
    assert excess(u, v, order, shift)[0] <= limit
    # The other direction: the laws exchanged.
    p, q = cells(u - shift, v).log[:, 0], cells(u, v).log[:, 0]
    assert np.exp(order * p - (order - 1) * q).sum() - 1 <= limit + 1e-12


@pytest.mark.parametrize(("order", "sigma"), SETTINGS)
def test_a_fine_search_where_the_supremum_lies_stays_below_the_bound(order: float, sigma: float) -> None:
    u, v = (side.ravel() for side in np.meshgrid(np.linspace(-7, 3, 201), np.linspace(-4, 10, 141)))
    found = np.log1p(excess(u, v, order, math.sqrt(2) / sigma).max()) / (order - 1)
    assert 0.97 * argmax.rdp(order, sigma) < found <= argmax.rdp(order, sigma)


@pytest.mark.parametrize(("order", "sigma"), SETTINGS)
def test_the_limit_of_two_classes_and_abstentions_are_inside_the_bound(order: float, sigma: float) -> None:
    u = np.linspace(-14, 14, 20001)
    for shift in (math.sqrt(2) / sigma, 1 / sigma, -1 / sigma):
        p, q = halves(u).log, halves(u - shift).log
        found = np.logaddexp.reduce(order * p - (order - 1) * q, axis=0).max() / (order - 1)
        assert found <= argmax.rdp(order, sigma)


@pytest.mark.parametrize(
    ("votes", "sigma"),
    [
        ([5, 5, 4], 2.0),
        ([9, 1, 0], 3.0),
        ([7, 7, 7], 10.0),
        ([4, 4, 3, 2], 2.0),
        ([3, 3, 3, 3], 5.0),
        ([6, 5, 1, 0], 1.0),
    ],
)
def test_full_arg_max_laws_of_neighbouring_votes_cost_no_more(votes: list[float], sigma: float) -> None:
    before = winner_law(votes, sigma)
    neighbours: list[tuple[int, int | None]] = [(a, b) for a, b in permutations(range(len(votes)), 2) if votes[a] > 0]
    moves = neighbours + [(a, None) for a in range(len(votes)) if votes[a] > 0]
    for lost, gained in moves:
        changed = list(votes)
        changed[lost] -= 1
        if gained is not None:
            changed[gained] += 1
        after = winner_law(changed, sigma)
        for order in (1.5, 3.0, 8.0):
            limit = argmax.rdp(order, sigma)
            assert divergence(before, after, order) <= limit
            assert divergence(after, before, order) <= limit


def test_real_votes_come_close_to_the_bound() -> None:
    sigma, order = 10.0, 3.0
    before, after = winner_law([40, 40, 2], sigma), winner_law([39, 41, 2], sigma)
    assert divergence(before, after, order) > 0.98 * argmax.rdp(order, sigma)


def test_more_noise_never_costs_more() -> None:
    for order in (1.5, 4.0, 20.0):
        for less, more in [(2.0, 2.02), (10.0, 11.0)]:
            low = argmax.certificate(order, more)
            if low is not None:
                assert low.largest <= argmax.rdp(order, less)


def test_orders_out_of_reach_fall_back_on_the_noisy_counts() -> None:
    assert argmax.certificate(1e4, 1.0) is None
    assert argmax.rdp(1e4, 1.0) == 1e4
    assert argmax.certificate(2.0, 1e6) is None


def test_ten_classes_at_matched_utility_cost_what_was_computed_before() -> None:
    votes = [20, 5, 5, 4, 4, 3, 3, 2, 2, 2]
    sigma = brentq(lambda s: Gaussian(s).class_probabilities(votes)[0] - 0.95, 1, 20)
    for queries, expected in [(4, 2.18), (20, 5.13), (40, 7.63), (90, 12.4), (500, 38.0)]:
        release = Release(Gaussian(sigma), queries, 50, 10, "party")
        found = argmax.epsilon(release, 1e-5)
        assert found == pytest.approx(expected, rel=3e-3)
        assert found < gdp.epsilon(release, 1e-5) < rdp.epsilon(release, 1e-5)


def test_epsilon_is_the_published_conversion_of_the_best_certified_order() -> None:
    sigma, queries, delta = 8.0, 40, 1e-5

    def converted(order: float) -> float:
        total = queries * argmax.rdp(order, sigma)
        return total + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)

    found = argmax.epsilon(Release(Gaussian(sigma), queries, 50, 5, "party"), delta)
    others = [converted(order) for order in rdp.orders()[200:290:9]]
    assert min(others) * 0.995 < found < min(others) * 1.0002


def test_the_price_of_three_classes_names_the_arg_max() -> None:
    priced = price(Release(Gaussian(8.0), 40, 50, 3, "party", abstentions=True), 1e-5)
    assert priced.accountant == "arg-max"
    assert priced.epsilon == priced.accountants["arg-max"] < priced.accountants["gdp"]


def test_other_noise_and_two_classes_that_the_game_prices_have_no_such_price() -> None:
    assert argmax.epsilon(Release(Laplace(0.1), 10, 50, 5, "party"), 1e-5) == math.inf
    assert argmax.epsilon(Release(Gaussian(5.0), 10, 50, 2, "party"), 1e-5) == math.inf
    assert argmax.epsilon(Release(GaussianCounts(5.0), 10, 50, 5, "party"), 1e-5) == math.inf
    assert argmax.epsilon(Release(Gaussian(5.0), 0, 50, 5, "party"), 1e-5) == 0


def test_two_classes_asked_too_often_for_the_game_cost_less_than_their_counts() -> None:
    release = Release(Gaussian(100.0), 10_000, 50, 2, "party")
    paid = price(release, 1e-5)
    assert paid.accountant == "arg-max"
    assert paid.epsilon < 0.85 * paid.accountants["gdp"]
    # A near tie asked 10,000 times: what an adversary of 50 voters can do is a lower bound.
    wins = np.arange(10_001)
    one, other = (binom.pmf(wins, 10_000, norm.cdf(gap / (100 * math.sqrt(2)))) for gap in (0, -2))
    assert np.maximum(one - math.exp(paid.epsilon) * other, 0).sum() <= 1e-5
    assert np.maximum(one - math.exp(0.85 * paid.epsilon) * other, 0).sum() > 1e-5


@pytest.mark.parametrize(
    ("order", "shift"), [(1.3, 0.14), (2.5, 0.03), (11.0, 0.14), (3.0, 1.4), (41.0, 0.14), (2.0, 3.0)]
)
def test_two_halves_are_certified_close_above_a_fine_search(order: float, shift: float) -> None:
    u = np.linspace(-30, 30, 60_001)
    terms = [order * norm.logcdf(side * u) - (order - 1) * norm.logcdf(side * (u - shift)) for side in (1, -1)]
    found = np.logaddexp(*terms).max() / (order - 1)
    assert found <= argmax.halves_rdp(order, shift) <= found * (1 + 1.2 * argmax.GAP)
    # Smaller steps and steps back tell no more.
    for step in (-shift, shift / 2, -shift / 3):
        terms = [order * norm.logcdf(side * u) - (order - 1) * norm.logcdf(side * (u - step)) for side in (1, -1)]
        assert np.logaddexp(*terms).max() / (order - 1) <= argmax.halves_rdp(order, shift)


def test_halves_out_of_reach_fall_back_on_the_gaussian() -> None:
    assert argmax.halves_certificate(1e4, 1.0) is None
    assert argmax.halves_rdp(1e4, 1.0) == 5e3
    assert argmax.halves_rdp(2.0, 1e-6) == pytest.approx(1e-12)


CONFIDENT = ConfidentGaussian(6.0, 3.0, 4.0, 8)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize(("noise", "queries"), [(CONFIDENT, 8), (ConfidentGaussian(30.0, 20.0, 10.0, 40), 100)])
def test_confident_answers_and_tests_cost_a_seventh_less_than_what_they_are_taken_from(
    noise: ConfidentGaussian, queries: int, classes: int
) -> None:
    paid = price(Release(noise, queries, 50, classes, "party", abstentions=True), 1e-5)
    assert paid.accountant == "arg-max"
    assert 0.75 * paid.accountants["gdp"] < paid.epsilon < 0.86 * paid.accountants["gdp"]
    order = 6.0
    limit = queries * argmax.halves_rdp(order, 1 / noise.sigma_test) + noise.answers * (
        argmax.halves_rdp(order, math.sqrt(2) / noise.sigma) if classes == 2 else argmax.rdp(order, noise.sigma)
    )
    assert paid.epsilon <= limit + math.log1p(-1 / order) - math.log(1e-5 * order) / (order - 1)


def confident_law(votes: list[float], noise: ConfidentGaussian) -> np.ndarray:
    """No answer, then each class: the outcome of one query while answers are left."""
    passed = norm.cdf((max(votes) - noise.threshold) / noise.sigma_test)
    return np.append(1 - passed, passed * winner_law(votes, noise.sigma))


@pytest.mark.parametrize(
    ("before", "after"),
    [([6, 6], [5, 7]), ([5, 7], [6, 6]), ([6, 5], [5, 6]), ([8, 4], [7, 5]), ([5, 5, 2], [4, 6, 2])],
)
def test_no_votes_asked_again_and_again_cost_more_than_the_confident_price(
    before: list[float], after: list[float]
) -> None:
    p, q = confident_law(before, CONFIDENT), confident_law(after, CONFIDENT)
    epsilon = price(Release(CONFIDENT, 8, 12, len(before), "party"), 1e-5).epsilon
    delta = 0.0
    for outcomes in combinations_with_replacement(range(len(p)), 8):
        often = np.bincount(outcomes, minlength=len(p))
        ways = math.factorial(8) / math.prod(map(math.factorial, often))
        delta += max(0.0, ways * (math.prod(p**often) - math.exp(epsilon) * math.prod(q**often)))
    assert delta <= 1e-5
