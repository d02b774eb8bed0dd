"""The audit: an attack on a noisy vote that must not learn more than the price allows.

Two votes that differ in one voter and lie on either side of the decision (26 to 25 and 25 to 26 of 51) are released
over and over, and a likelihood-ratio test has to tell from the labels which of the two it was. (ε, δ)-privacy bounds
every such test: true positives ≤ e^ε · false positives + δ. So the rates of one test give a lower bound on ε,

    ε ≥ ln((true positives − δ) / false positives),

here with Clopper–Pearson bounds in place of the rates, so that it holds with 95 % confidence. The test's threshold is
chosen on one half of the releases and its rates are counted on the other: no peeking.

Noise on sums of features is attacked with two sums at its whole distance Δ, and a test of what is released.

A bound above the claim is a bug, in the noise or in the claim, or one unlucky audit in twenty at worst. A bound below
it is no proof: there may be better attacks, and small probabilities are out of reach of a finite number of releases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ConfigurationError
from fedkt.privacy.noise import BLOCK, Noise
from fedkt.privacy.price import Price
from fedkt.privacy.stream import Floats, Source
from fedkt.privacy.sums import SENSITIVITY, GaussianSums
from fedkt.votes import NO_VOTE, winners

Fault = Literal["none", "double-sensitivity"]
TRIALS = 60_000
LEAST_TRIALS = 1_000
CONFIDENCE = 0.95
CHOOSING_TAIL = 1e-3
"""Stricter bounds where the threshold is chosen: the best of many would else be a lucky one with few positives."""
SMALLEST_PROBABILITY = 1e-300
NUMBERS = 4
"""Of a sum that is attacked: the other sum lies in one direction, and the test looks along it."""


@dataclass(frozen=True)
class Audit:
    """What the attack found, beside what was claimed."""

    claim: Price
    empirical: float
    """The ε the release has at least, with 95 % confidence."""
    trials: int
    """Releases of each of the two votes; half of them chose the threshold."""
    true_positives: int
    false_positives: int
    fault: Fault = "none"
    bare: bool = False
    """The noise was left out: level L0."""

    @property
    def broken(self) -> bool:
        """Whether the release gives away more than the claim allows."""
        return self.empirical > self.claim.epsilon


def neighbours(noise: Noise | None, voters: int, classes: int) -> tuple[Floats, Floats]:
    """The counts of two votes that differ in one voter, as near to a tie as they can be: 26 to 25 and 25 to 26.

    A noise that also tells whether it answers hangs on more than the gap: there the pair that tells most is taken.
    """

    def split(first: int) -> tuple[Floats, Floats]:
        votes = np.zeros((2, classes))
        votes[:, 0] = first, first - 1
        votes[:, 1] = voters - votes[:, 0]
        return votes[0], votes[1]

    nearest = voters - voters // 2
    if noise is None or noise.has_win_probability:
        return split(nearest)
    return max((split(first) for first in range(nearest, voters + 1)), key=lambda pair: divergence(noise, *pair))


def divergence(noise: Noise, first: Floats, second: Floats) -> float:
    """The mean log-likelihood ratio of one label, in nats: how fast it tells the two worlds apart."""
    shares = outcome_shares(noise, first)
    return float(np.append(shares, 1 - min(1.0, shares.sum())) @ log_ratios(noise, first, second))


def attack(
    claim: Price,
    *,
    rng: Source,
    trials: int = TRIALS,
    fault: Fault = "none",
    bare: bool = False,
) -> Audit:
    """Attack the release that a price was given for.

    `fault` plants a mistake that the audit has to catch: "double-sensitivity" counts every vote twice, with the noise
    of votes counted once. `bare` leaves the noise out.
    """
    if fault not in get_args(Fault):
        raise ConfigurationError(f"There is no fault {fault!r}. Choose one of: {', '.join(get_args(Fault))}.")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < LEAST_TRIALS:
        raise ConfigurationError(f"An audit needs at least {LEAST_TRIALS:,} trials to say anything, got {trials!r}.")
    release = claim.release
    if release.queries < 1:
        raise ConfigurationError("An audit needs at least one query: nothing is released otherwise.")
    noise = None if bare else release.noise
    weight = 2 if fault == "double-sensitivity" else 1
    if isinstance(release.noise, GaussianSums):
        first, second = (
            sum_scores(release.noise, far * weight, release.queries, trials, rng, bare=bare)
            for far in (SENSITIVITY, 0.0)
        )
        bound, true, false = lower_bound(first, second, claim.delta)
        return Audit(claim, bound, trials, true, false, fault, bare)
    worlds = neighbours(noise, release.voters, release.classes)
    # The attacker believes in the honest mechanism: a fault makes the true log-ratios larger, in the same order.
    evidence = log_ratios(noise, *worlds)
    scores = [score(noise, weight * votes, release.queries, trials, evidence, rng) for votes in worlds]
    bound, true, false = lower_bound(scores[0], scores[1], claim.delta)
    return Audit(claim, bound, trials, true, false, fault, bare)


def sum_scores(noise: GaussianSums, far: float, queries: int, trials: int, rng: Source, *, bare: bool) -> Floats:
    """How far released sums lie towards the one at this distance from 0, which orders them as their likelihoods do."""
    along = np.full(NUMBERS, 1 / math.sqrt(NUMBERS))
    sums = np.broadcast_to(far * along, (trials * queries, NUMBERS))
    found = sums if bare else noise.sums(sums, rng) * noise.step
    return np.asarray(np.round((found @ along).reshape(trials, queries).sum(axis=1), 9))


def log_ratios(noise: Noise | None, first: Floats, second: Floats) -> Floats:
    """ln P(outcome in the first world) / P(in the second) for each class, and at the end for no answer at all."""
    laws = []
    for votes in (first, second):
        shares = outcome_shares(noise, votes)
        laws.append(np.log(np.maximum(np.append(shares, 1 - min(1.0, shares.sum())), SMALLEST_PROBABILITY)))
    # An outcome that rounding alone makes possible (no answer, where there always is one) tells nothing.
    rare = np.maximum(*laws) < math.log(1e-9)
    return np.where(rare, 0.0, laws[0] - laws[1])


def outcome_shares(noise: Noise | None, votes: Floats) -> Floats:
    """The probability of each class as the released label of these counts."""
    if noise is None:
        best = votes == votes.max()
        return np.asarray(best / best.sum())
    probabilities = noise.class_probabilities(votes)
    if probabilities is not None:
        return np.asarray(probabilities)
    if len(votes) > 2 or not noise.has_win_probability:
        raise ConfigurationError(f"{noise.name} noise can be audited with two classes only: it gives no probabilities.")
    gap = votes[1] - votes[0]
    return np.array([float(noise.win_probability(-gap)), float(noise.win_probability(gap))])


def score(noise: Noise | None, votes: Floats, queries: int, trials: int, evidence: Floats, rng: Source) -> Floats:
    """The log-likelihood ratio of each of so many releases of the same vote, in blocks to spare memory."""
    scores = np.empty(trials)
    step = max(1, BLOCK // queries)
    for start in range(0, trials, step):
        number = min(step, trials - start)
        labels = releases(noise, votes, queries, number, rng)
        # Class −1, no answer, reads the last entry. Past the cap nothing is answered, in either world: no evidence.
        ratios = evidence[labels]
        if noise is not None and noise.most_answers is not None:
            answered = labels != NO_VOTE
            ratios = np.where(np.cumsum(answered, axis=1) - answered < noise.most_answers, ratios, 0.0)
        scores[start : start + number] = ratios.sum(axis=1)
    # Sums of the same terms in another order differ in the last digits: they are one score.
    return np.round(scores, 9)


def releases(noise: Noise | None, votes: Floats, queries: int, number: int, rng: Source) -> NDArray[np.int64]:
    """So many releases of `queries` labels each, through the mechanism's own door."""
    if noise is not None and noise.most_answers is not None:
        one = np.broadcast_to(votes, (queries, len(votes)))
        # Its cap on answers holds per call.
        return np.stack([noise.labels(one, rng) for _ in range(number)])
    rows = np.broadcast_to(votes, (number * queries, len(votes)))
    labels = winners(rows, rng) if noise is None else noise.labels(rows, rng)
    return labels.reshape(number, queries)


def lower_bound(first: Floats, second: Floats, delta: float) -> tuple[float, int, int]:
    """ε at δ that telling two worlds apart proves, with the true and false positives of the test that proves it.

    The scores favour the first world where they are large. Both directions are tried, on the half that chooses.
    """
    half = len(first) // 2
    there, back = (first, second), (-second, -first)
    # Of two equal ones the first is taken.
    tests = [(best_threshold(mine[:half], others[:half], delta), mine, others) for mine, others in (there, back)]
    (_, threshold), mine, others = max(tests, key=lambda test: test[0])
    mine, others = mine[half:], others[half:]
    true, false = int((mine >= threshold).sum()), int((others >= threshold).sum())
    bound = float(epsilon_at_least(np.array([true]), np.array([false]), len(mine), delta, (1 - CONFIDENCE) / 2)[0])
    return bound, true, false


def best_threshold(mine: Floats, others: Floats, delta: float) -> tuple[float, float]:
    """The largest bound over all thresholds on these scores, and its threshold."""
    thresholds = np.unique(np.concatenate([mine, others]))
    true = len(mine) - np.searchsorted(np.sort(mine), thresholds)
    false = len(others) - np.searchsorted(np.sort(others), thresholds)
    bounds = epsilon_at_least(true, false, len(mine), delta, CHOOSING_TAIL)
    best = int(np.argmax(bounds))
    return float(bounds[best]), float(thresholds[best])


def epsilon_at_least(
    true: NDArray[np.int64], false: NDArray[np.int64], trials: int, delta: float, tail: float
) -> Floats:
    """ε ≥ ln((true − δ)/false) with Clopper–Pearson bounds, each missed with probability `tail`; 0 at least."""
    from scipy.stats import beta

    with np.errstate(invalid="ignore"):
        true_low = np.where(true > 0, beta.ppf(tail, true, trials - true + 1), 0.0)
        false_high = np.where(false < trials, beta.ppf(1 - tail, false + 1, trials - false), 1.0)
    usable = np.maximum(true_low - delta, SMALLEST_PROBABILITY)
    return np.maximum(0.0, np.log(usable / false_high))
