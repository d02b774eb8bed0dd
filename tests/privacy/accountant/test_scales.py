"""The accountants at every scale of noise, queries and voters: an answer, never below zero, and in order."""

import dataclasses
import math

from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fedkt.privacy.accountant import ACCOUNTANTS, argmax, game
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian, GaussianCounts
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Release

QUICK = ("pure", "paper", "paper-8", "rdp", "pld", "gdp")


def between(low, high):
    """Numbers of every size between two positive ones."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def numbers(high):
    return between(1, high).map(int)


ANY_NOISE = st.one_of(
    between(1e-3, 1e6).map(Gaussian),
    between(1e-3, 1e6).map(GaussianCounts),
    between(1e-6, 50).map(Laplace),
    between(1e-6, 50).map(Gumbel),
    st.builds(ConfidentGaussian, st.floats(-10, 1e6), between(1e-3, 1e6), between(1e-3, 1e6), numbers(1e6)),
)


def with_more_noise(noise, factor):
    """The same mechanism with so much more noise."""
    if isinstance(noise, ConfidentGaussian):
        wider = {"sigma": noise.sigma * factor, "sigma_test": noise.sigma_test * factor}
        return dataclasses.replace(noise, **wider)
    return type(noise)(
        *(each * factor if isinstance(noise, GaussianCounts) else each / factor for each in noise.scale.values())
    )


@settings(max_examples=150, deadline=None)
@given(ANY_NOISE, numbers(1e6), numbers(1e5), st.sampled_from([2, 3, 10]), between(1e-14, 0.9), between(1.01, 100))
def test_quick_accountants_answer_at_every_scale_and_in_order(noise, queries, voters, classes, delta, factor):
    """σ from 1e-3 to 1e6, γ and θ from 1e-6 to 50, k to 10⁶: no NaN, nothing below zero, more noise costs no more."""
    asked = Release(noise, queries, voters, classes, "record")
    more = dataclasses.replace(asked, queries=queries + 1 + queries // 9)
    less = dataclasses.replace(asked, noise=with_more_noise(noise, factor))
    for name in QUICK:
        # The distributions take seconds for tens of thousands of queries.
        if name != "pld" or queries < 2_000:
            low, middle, high = (ACCOUNTANTS[name](each, delta) for each in (less, asked, more))
            assert 0 <= low <= middle * (1 + 1e-9) + 1e-12
            assert middle <= high * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(between(1e-3, 1e6).map(Gaussian), between(1e-6, 50).map(Laplace), between(1e-6, 50).map(Gumbel)),
    st.integers(1, 20),
    st.integers(1, 9),
    st.booleans(),
    between(1e-14, 0.9),
)
def test_the_exact_game_answers_at_every_scale_and_in_order(noise, queries, voters, abstentions, delta):
    asked = Release(noise, queries, voters, 2, "party", abstentions=abstentions)
    more = dataclasses.replace(asked, queries=queries + 1)
    middle, high = (game.epsilon(each, delta) for each in (asked, more))
    # Within what the grid may add, a step at most and 0.2 %.
    assert 0 <= middle <= high * 1.005 + game.STEP
    assert middle <= queries * noise.pure() * (1 + 1e-9)


def test_more_noise_may_cost_the_exact_game_more():
    """Three voters, one query: what 2 to 1 says wrongly, 3 to 0 hardly ever says at all.

    With σ = 0.2 that is so seldom that δ covers it, and 2 to 1 against 1 to 2 is the worst. With a little more noise δ
    covers half of it, and for the rest 3 to 0 is far less likely. Only the label leaves, so a winner among noisier
    counts cannot be had from one among less noisy counts.
    """
    delta = 3.3e-4
    wrong = {(sigma, gap): norm.sf(gap / (math.sqrt(2) * sigma)) for sigma in (0.2, 0.22) for gap in (1, 3)}
    assert wrong[0.2, 1] < delta < wrong[0.22, 1]
    little = math.log((1 - wrong[0.2, 1] - delta) / wrong[0.2, 1])
    much = math.log((wrong[0.22, 1] - delta) / wrong[0.22, 3])
    for sigma, expected in ((0.2, little), (0.22, much)):
        price = game.epsilon(Release(Gaussian(sigma), 1, 3, 2, "record"), delta)
        assert expected - 1e-6 <= price <= expected * 1.002 + game.STEP


@settings(max_examples=25, deadline=None)
@given(
    st.one_of(
        between(1e-3, 1e6).map(Gaussian),
        st.builds(ConfidentGaussian, st.just(9.0), between(1e-3, 1e6), between(1e-3, 1e6), numbers(1e6)),
    ),
    numbers(1e6),
    st.sampled_from([2, 3]),
    between(1e-14, 0.9),
    between(1.01, 100),
)
def test_the_arg_max_bound_answers_at_every_scale_and_in_order(noise, queries, classes, delta, factor):
    asked = Release(noise, max(queries, 2_001), 5, classes, "party")
    more = dataclasses.replace(asked, queries=asked.queries + 1 + queries // 9)
    less = dataclasses.replace(asked, noise=with_more_noise(noise, factor))
    low, middle, high = (argmax.epsilon(each, delta) for each in (less, asked, more))
    # Only one order is certified, with a gap of 0.1 %.
    assert 0 <= low <= middle * 1.003 + 1e-9
    assert middle <= high * 1.003 + 1e-9
