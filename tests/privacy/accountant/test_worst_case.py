"""Every accountant against the worst that can happen: all votes, all moves of one voter, all answers, k up to three.

The laws of a noisy vote are computed here, in other ways than the product does.
"""

import math
from functools import lru_cache
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.stats import norm

from fedkt.privacy.accountant import ACCOUNTANTS
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Release

NOISES = [Gaussian(0.8), Gaussian(6.0), Laplace(1.2), Laplace(0.1), Gumbel(1.0), Gumbel(0.1)]
CONFIDENT = [ConfidentGaussian(2.0, 1.5, 1.0, 1), ConfidentGaussian(1.0, 3.0, 4.0, 2)]


@lru_cache
def falling_law(noise, votes):
    """The probability of each class by Simpson's rule over the winner's noisy count, for votes in falling order."""
    if isinstance(noise, Gumbel):
        weights = np.exp(noise.theta * np.array(votes))
        return weights / weights.sum()
    flat = isinstance(noise, Laplace)
    v = np.array(votes) * (noise.gamma if flat else 1 / noise.sigma)
    # Every kink of the Laplace density lies at the end of a piece.
    ends = np.unique([v.min() - 40, *v, v.max() + 40])
    x = np.concatenate([np.linspace(a, b, 8001) for a, b in pairwise(ends)])
    away = x[:, None] - v
    density = np.exp(-np.abs(away)) / 2 if flat else norm.pdf(away)
    below = np.where(away < 0, np.exp(-np.abs(away)) / 2, 1 - np.exp(-np.abs(away)) / 2) if flat else norm.cdf(away)
    values = np.stack([density[:, j] * np.delete(below, j, axis=1).prod(axis=1) for j in range(len(v))])
    pieces = range(0, len(x), 8001)
    shares = sum(simpson(values[:, i : i + 8001], x=x[i : i + 8001], axis=1) for i in pieces)
    return shares / shares.sum()


def winner_law(noise, votes):
    order = np.argsort(votes)[::-1]
    shares = np.empty(len(votes))
    shares[order] = falling_law(noise, tuple(votes[i] for i in order))
    return shares


def law(noise, votes):
    """The outcomes of one query; for confident-gaussian the first is no answer."""
    if not isinstance(noise, ConfidentGaussian):
        return winner_law(noise, votes)
    passed = norm.cdf((max(votes) - noise.threshold) / noise.sigma_test)
    return np.append(1 - passed, passed * winner_law(noise, votes))


def telling_pairs(noise, voters, classes, abstentions):
    """The laws of all neighbouring votes, in both directions, each kind once: arrays of shape (pairs, outcomes)."""
    choices = [*range(classes), None] if abstentions else range(classes)

    def count(teacher_votes):
        return tuple(sum(ballot == each for ballot in teacher_votes) for each in range(classes))

    neighbours = {
        (count((mine, *others)), count((also, *others)))
        for others in product(choices, repeat=voters - 1)
        for mine in choices
        for also in choices
        if mine != also
    }
    laws = {votes: law(noise, votes) for votes in {votes for pair in neighbours for votes in pair}}
    silent = isinstance(noise, ConfidentGaussian)
    kinds = set()
    for one, other in neighbours:
        told = list(zip(laws[one].round(13), laws[other].round(13), strict=True))
        # Which class is which does not matter to what is told.
        kinds.add((*told[:silent], *sorted(told[silent:])))
    found = np.array(sorted(kinds))
    return found[..., 0], found[..., 1]


def worst(pairs, y, left, answers):
    """The largest Σ (P − y Q)_+ over all that may be asked, the next query chosen when the last answer is known."""
    if left == 0 or answers == 0:
        return np.maximum(0.0, 1 - y)
    p, q = pairs
    ratio = q / p
    silent = answers is not None
    values = np.empty((len(y), *p.shape))
    if silent:
        values[..., 0] = worst(pairs, (y[:, None] * ratio[:, 0]).ravel(), left - 1, answers).reshape(len(y), -1)
    after = (y[:, None, None] * ratio[:, silent:]).ravel()
    values[..., silent:] = worst(pairs, after, left - 1, answers - 1 if silent else None).reshape(
        len(y), len(p), p.shape[1] - silent
    )
    return (values * p).sum(axis=2).max(axis=1)


def true_delta(noise, pairs, queries, epsilon):
    answers = noise.answers if isinstance(noise, ConfidentGaussian) else None
    return float(worst(pairs, np.array([math.exp(epsilon)]), queries, answers)[0])


@pytest.mark.parametrize("noise", [*NOISES, *CONFIDENT], ids=repr)
@pytest.mark.parametrize(
    ("voters", "classes", "abstentions"),
    [(1, 2, False), (1, 2, True), (2, 2, False), (3, 2, True), (1, 3, True), (2, 3, False), (2, 3, True)],
)
def test_no_accountant_is_below_the_worst_case_and_the_exact_one_is_it(noise, voters, classes, abstentions):
    pairs = telling_pairs(noise, voters, classes, abstentions)
    for queries, delta in product((1, 2, 3), (1e-5, 1e-2)):
        release = Release(noise, queries, voters, classes, "party", abstentions=abstentions)
        answers = {name: account(release, delta) for name, account in ACCOUNTANTS.items()}
        for epsilon in answers.values():
            if math.isfinite(epsilon) and epsilon < 500:
                assert true_delta(noise, pairs, queries, epsilon) <= delta * (1 + 1e-6) + 1e-12
        exact = answers["exact"]
        assert math.isfinite(exact) == (classes == 2 and noise not in CONFIDENT)
        if math.isfinite(exact) and exact > 0:
            assert true_delta(noise, pairs, queries, exact / 1.01) > delta
