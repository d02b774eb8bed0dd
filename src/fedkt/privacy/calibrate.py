"""Choosing a noise before a vote is read: by budget, by chance of the right label, by public figures only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from fedkt.errors import ConfigurationError
from fedkt.privacy.accountant import check_accountants, check_delta, price
from fedkt.privacy.mechanisms import noise_class
from fedkt.privacy.noise import Noise
from fedkt.privacy.price import Release, Unit
from fedkt.privacy.secant import least_amount

TOLERANCE = 1e-4
"""How much more noise than necessary a calibration may return, relative to its scale."""
ROUGHLY = 1e-2
"""The same for an amount that the slow accountants only start from."""
SLOW = ("exact", "arg-max")
MOST = 1_000_000
"""No answer of `most_queries` is larger."""
TRIALS = 400_000


def _by_amount(mechanism: str, queries: int, fixed: Mapping[str, float]) -> Callable[[float], Noise]:
    """The noise as a function of one number, its amount: the more of it, the more private."""
    build = partial(noise_class(mechanism, counts=True).of_amount, queries=queries, fixed=fixed)
    build(1.0)  # what is fixed is refused here, once, where it does not fit
    return build


def smallest_noise(
    mechanism: str,
    *,
    epsilon: float,
    delta: float,
    queries: int,
    voters: int,
    classes: int,
    unit: Unit,
    abstentions: bool = False,
    accountants: Iterable[str] | None = None,
    fixed: Mapping[str, float] | None = None,
) -> Noise:
    """The least noise whose price is at most ε, within 1 in 10,000 of its scale; price(result) ≤ ε was checked.

    A noise with parameters that nobody can find for it needs them as `fixed={"threshold": …, "answers": …}`.
    """
    delta, names = check_delta(delta), check_accountants(accountants)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ConfigurationError(f"The budget ε is a finite number above zero, got {epsilon!r}.")
    if queries < 1:
        raise ConfigurationError(f"Noise is calibrated for at least one query, got {queries!r}.")
    build = _by_amount(mechanism, queries, fixed or {})

    def least(start: float, use: tuple[str, ...], tolerance: float) -> float:
        def price_of(amount: float) -> float:
            release = Release(build(amount), queries, voters, classes, unit, abstentions=abstentions)
            return price(release, delta, accountants=use).epsilon

        return least_amount(price_of, epsilon, start=start, tolerance=tolerance)

    start = math.sqrt(queries) / epsilon
    quick = tuple(name for name in names if name not in SLOW)
    if quick and quick != names:
        # What the quick accountants prove is enough; the slow ones only have to take off the rest.
        enough = least(start, quick, ROUGHLY)
        start = enough if math.isfinite(enough) else start
    amount = least(start, names, TOLERANCE)
    if math.isinf(amount):
        raise ConfigurationError(
            f"No noise reaches ε ≤ {epsilon:g} at δ = {delta:g} for {queries} queries. Ask fewer queries or allow more."
        )
    return build(amount)


def most_queries(
    noise: Noise,
    *,
    epsilon: float,
    delta: float,
    voters: int,
    classes: int,
    unit: Unit = "party",
    abstentions: bool = False,
    accountants: Iterable[str] | None = None,
    limit: int = MOST,
) -> int:
    """The largest number of queries whose price is at most ε (0 where not even one is, never above `limit`)."""
    delta, names = check_delta(delta), check_accountants(accountants)

    def largest(start: int, use: tuple[str, ...]) -> int:
        """The largest number that fits, given one that does."""

        def fits(queries: int) -> bool:
            release = Release(noise, queries, voters, classes, unit, abstentions=abstentions)
            return price(release, delta, accountants=use).epsilon <= epsilon

        low, step = start, max(1, start // 8)
        while low < limit and fits(min(limit, low + step)):
            low, step = min(limit, low + step), 2 * step
        high = min(limit + 1, low + step)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    quick = tuple(name for name in names if name not in SLOW)
    start = largest(0, quick) if quick else 0
    return largest(start, names) if quick != names else start


def chance_right(noise: Noise, votes: Sequence[int]) -> float:
    """The probability that a query with these counts is given a label that has most votes.

    Closed forms or quadrature (error below 1e-11); for a mechanism without either, 400,000 draws from a fixed seed
    (standard error below 0.0008). Counts with a tie have several right labels. A row that is not answered is not right.
    """
    counts = np.asarray(votes, dtype=np.float64)
    right = counts == counts.max()
    if len(counts) == 2 and not right.all() and noise.has_win_probability:
        return float(noise.win_probability(abs(counts[1] - counts[0])))
    probabilities = noise.class_probabilities(counts)
    if probabilities is not None:
        return min(1.0, float(probabilities[right].sum()))
    rng = np.random.default_rng(20210819)
    labels = noise.labels(np.broadcast_to(counts, (TRIALS, len(counts))), rng)
    return float(np.isin(labels, np.flatnonzero(right)).mean())


def noise_for_chance(mechanism: str, votes: Sequence[int], chance: float) -> Noise:
    """The most noise that still gives counts like these the right label with this probability."""
    counts = np.asarray(votes, dtype=np.float64)
    floor = float((counts == counts.max()).mean())
    if not floor < chance < 1:
        raise ConfigurationError(
            f"The chance of the right label lies between {floor:g} (no better than a draw) and 1, got {chance!r}."
        )
    build = _by_amount(mechanism, 1, {})
    low, high = 1e-9, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if chance_right(build(middle), votes) >= chance else (low, middle)
    return build(low)
