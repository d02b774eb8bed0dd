"""The data-dependent ε: confidential, to look at and never to publish or store.

It is a function of the private votes, so the figure itself tells about them. It belongs in no bundle, model card,
listing or log; the guarantee is the data-independent price of `fedkt.privacy.accountant`. For laplace noise it is the
paper's (Theorems 2 and 3 with Lemma 7), for gaussian and confident-gaussian that of PATE (2018; see `gnmax`). All of
them bound how far these votes are from their neighbours', not the other way round, as their authors do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from fedkt.errors import PrivacyError
from fedkt.privacy.accountant import check_delta, rdp
from fedkt.privacy.accountant.together import price_together
from fedkt.privacy.mechanisms import known_noises
from fedkt.privacy.noise import Noise, counts
from fedkt.privacy.price import Release, Unit
from fedkt.privacy.stream import Floats

CONFIDENTIAL = "confidential: depends on the private votes, do not publish"
EIGHT = np.arange(1.0, 9.0)
MOMENTS = np.unique(np.concatenate([np.arange(1, 257), np.geomspace(257, 20_000, 200).astype(np.int64)])).astype(float)
"""Whole moments tried for "any l"; any set of them gives a true bound."""
SOME_ORDERS = 6
"""Of the accountants' Rényi orders every so manieth is tried here."""


@dataclass(frozen=True)
class Diagnostic:
    """The data-dependent ε. Confidential, like the votes it was computed from."""

    epsilon: float = field(repr=False)
    """Over any moment, or Rényi order."""
    epsilon_8: float | None = field(repr=False)
    """laplace only: over the moments l = 1 … 8, as in the paper's code."""
    delta: float
    queries: int
    unit: Unit
    warning: str = CONFIDENTIAL


def wrong_probability(votes: ArrayLike, gamma: float) -> Floats:
    """Lemma 7: q ≥ Pr[label ≠ o*] = Σ_{o≠o*} (2 + γ(v_o* − v_o)) / (4 exp(γ(v_o* − v_o))) of every query."""
    table = counts(votes)
    behind = gamma * (table.max(axis=1, keepdims=True) - table)
    terms = (2 + behind) / 4 * np.exp(-behind)
    terms[np.arange(len(table)), table.argmax(axis=1)] = 0.0
    return np.asarray(terms.sum(axis=1))


def moments(votes: ArrayLike, gamma: float, orders: ArrayLike) -> Floats:
    """Theorems 2 and 3, summed over the queries: Σ min(ln((1−q)((1−q)/(1−e^{2γ}q))^l + q e^{2γl}), 2γ²l(l+1), 2γl).

    γ is that of one vote per voter: for the paper's votes times s with Lap(1/γ), pass s·γ, and the same sensitivity is
    in the formula, in q and in its gate q < (e^{2γ}−1)/(e^{4γ}−1) = 1/(e^{2γ}+1). Past the gate the first term proves
    nothing (it even turns negative), so the data-independent terms stand alone.
    """
    order = np.asarray(orders, dtype=np.float64)
    q, times = np.unique(wrong_probability(votes, gamma), return_counts=True)
    free = np.minimum(2 * gamma**2 * order * (order + 1), 2 * gamma * order)
    gated = q < 1 / (math.exp(2 * gamma) + 1)
    total = times[~gated].sum() * free
    for chance, often in zip(q[gated], times[gated], strict=True):
        right = (order + 1) * np.log1p(-chance) - order * np.log1p(-math.exp(2 * gamma) * chance)
        wrong = (math.log(chance) if chance > 0 else -math.inf) + 2 * gamma * order
        total = total + often * np.minimum(np.maximum(np.logaddexp(right, wrong), 0.0), free)
    return np.asarray(total)


def _best_moment(votes: ArrayLike, noise: Noise, delta: float, orders: Floats) -> float:
    return float(np.min((noise.cost_of_votes(votes, orders) - math.log(delta)) / orders))


def check_diagnosed(noise: Noise) -> None:
    """Refuse, in words, a noise that nobody has a data-dependent ε for."""
    if noise.diagnosis is None:
        *most, last = (name for name, each in known_noises().items() if each.diagnosis is not None)
        raise PrivacyError(
            f"The data-dependent ε is for votes with {', '.join(most)} or {last} noise, "
            f"got {noise.name}. Use the data-independent price."
        )


def diagnose(votes: ArrayLike, noise: Noise, delta: float, *, unit: Unit = "party", partitions: int = 1) -> Diagnostic:
    """The data-dependent ε of one vote (confidential): L1's consistent votes, or one party's of all its `partitions`.

    At L1, unit "record" gives the party's figure too: the paper's example-level theorem puts the number z of
    partitions with a narrow vote in place of s. z depends on the data (a local sensitivity), so that is no guarantee,
    while whatever protects a party protects each of its records.
    """
    check_diagnosed(noise)
    delta, table = check_delta(delta), counts(votes)
    queries = len(table)
    if noise.diagnosis == "renyi":
        return Diagnostic(_by_orders(table, noise, delta, unit, partitions), None, delta, queries, unit)
    if queries == 0:
        return Diagnostic(0.0, 0.0, delta, 0, unit)
    every = min(_best_moment(votes, noise, delta, MOMENTS), queries * noise.pure())
    return Diagnostic(every, _best_moment(votes, noise, delta, EIGHT), delta, queries, unit)


def _by_orders(votes: Floats, noise: Noise, delta: float, unit: Unit, partitions: int) -> float:
    """The ε on these votes by Rényi bounds, never above what it is on any: both bound the same release."""
    if len(votes) == 0:
        return 0.0
    if partitions < 1 or len(votes) % partitions:
        raise PrivacyError(f"{len(votes)} rows of votes are not those of {partitions} partitions of the same length.")
    # The cap on answers holds for each partition alone; a record is in all of them, so that their costs add up.
    calls = votes.reshape(partitions, -1, votes.shape[1])
    orders = rdp.orders()[::SOME_ORDERS]
    total = np.zeros(len(orders))
    for call in calls:
        total += noise.cost_of_votes(call, orders)
    # With three classes no accountant asks how many voters there are, and what bounds three bounds two.
    whatever = Release(noise, calls.shape[1], 1, max(3, votes.shape[1]), unit)
    return min(rdp.from_orders(orders, total, delta), price_together([whatever] * partitions, delta).epsilon)


def diagnose_parties(
    votes_by_party: Iterable[ArrayLike], noise: Noise, delta: float, *, partitions: int = 1
) -> Diagnostic:
    """L2's figure for the final model (confidential): the largest over the parties, whose people must be disjoint.

    Each party's array holds the votes of all its partitions, s·k rows (Theorem 4, parallel composition).
    """
    each = [diagnose(votes, noise, delta, unit="record", partitions=partitions) for votes in votes_by_party]
    if not each:
        raise PrivacyError("The diagnostic needs the votes of at least one party, got none.")
    eights = [one.epsilon_8 for one in each if one.epsilon_8 is not None]
    return Diagnostic(
        max(one.epsilon for one in each),
        max(eights, default=None),
        each[0].delta,
        max(one.queries for one in each),
        "record",
    )
