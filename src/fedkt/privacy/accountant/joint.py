"""The exact price of two-class votes with Gaussian numbers about the same rows beside them, as class counts are.

Let V = V_k be the value of the game (`game`): what k adaptive votes add to whatever is known already, as a function of
y = e^ε·Q/P, the likelihood ratio so far. Class counts with noise are, for every pair of neighbours, N(0, I) against
N(v, I) with |v| ≤ μ: a garbling of N(0, 1) against N(μ, 1), which whoever sees them can shrink and blur to N(|v|, 1),
turn by a fixed rotation and fill up with noise in the other directions. V is convex, so by Jensen the most telling pair
is the worst, and the ratio that it leaves is e^ε·e^{−L}, L ~ N(μ²/2, μ²) under P, the same in either direction. Hence

    δ(ε) ≤ G V (e^ε),   (G f)(y) = E_P[f(y·e^{−L})].

**The counts come first.** One step of the game is (M f)(y) = max over pairs of E f, and G M f ≥ M G f, because an
expectation of maxima is at least the maximum of the expectations. So G V_k = G M^k V_0 is above M^j G M^{k−j} V_0: it
covers counts that leave before, among or after the votes, and votes that are chosen by the counts. To start the game
from the curve of the counts, M^k G V_0, is half a percent to one percent less, but covers only votes that were chosen
before anybody saw the counts. Several Gaussian releases whose μ are fixed are one with the root of Σμ².

Nothing is rounded down. Between its grid points V is replaced by chords in y, beyond its largest y by the last value,
below its smallest by the chord to (0, 1): upper bounds all (`game`). Of such a broken line U the expectation is a sum,

    G U (e^ε) = U(y_0) + Σ_i (U(y_{i+1}) − U(y_i)) / (y_i − y_{i+1}) · (put(y_i) − put(y_{i+1})),
    put(y) = E_P[(y − e^{ε−L})_+] = y·Φ(μ/2 − (ε − ln y)/μ) − e^ε·Φ(−μ/2 − (ε − ln y)/μ).

A put is off by a few ulps of y at most, neighbours differ by y·(1 − e^{−h}) on a grid of step h, and the rises of U add
up to 1 at most: the sum is off by a few ulps over h, for which `ULPS` over h is added. An error in ln y of a grid point
is one in ε, for which `SHIFT` is added.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from fedkt.privacy.accountant import game
from fedkt.privacy.price import Release

ULPS = 64 * 2.0**-53
SHIFT = 1e-12
PRECISION = 1e-9
"""How much larger than the smallest ε that is proven the answer may be, relative to it."""


def epsilon(votes: Release, mu: float, delta: float) -> float:
    """The smallest ε that is proven at δ for these votes and μ-GDP numbers beside them; infinite without a game."""
    if not game.applies(votes) or game.takes_too_long(votes) or not votes.queries:
        return math.inf
    # Votes alone already cost more than the grid holds.
    if game.all_ties(votes, game.LARGEST_EPSILON) > delta:
        return math.inf
    low, high = 0.0, 1.0
    while delta_at(votes, mu, high) > delta:
        if high == game.LARGEST_EPSILON:
            return math.inf
        low, high = high, min(2 * high, game.LARGEST_EPSILON)
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(votes, mu, middle) <= delta else (middle, high)
    return high + SHIFT


def delta_at(votes: Release, mu: float, epsilon: float) -> float:
    """δ(ε) of the votes and the numbers beside them, rounded up."""
    step = game.fine_step(votes)
    values, lowest = game.game_values(votes.noise, votes.queries, votes.voters, votes.abstentions, step)
    u = lowest + step * np.arange(len(values))
    y = np.exp(-u)
    edge = mu / 2 - (epsilon + u) / mu
    put = y * ndtr(edge) - math.exp(epsilon) * ndtr(edge - mu)
    slopes = np.diff(values, append=1.0) / -np.diff(y, append=0.0)
    total = float(values[0]) + float(slopes @ -np.diff(put, append=0.0))
    return min(1.0, max(total, 0.0) * game.INFLATION + ULPS / step)
