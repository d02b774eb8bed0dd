"""The exact price of noisy arg max votes over two classes: the value of a game.

What leaves a vote is a label, not the noisy counts. With two classes and N voters the gap between the counts is one of
finitely many numbers, so a query is one of finitely many pairs of coins: the probability that class 1 wins where the
watched unit votes 0, and where it votes 1. An adversary who may choose the pair anew before every query, knowing all
answers so far, gains the most (ε, δ) evidence that any sequence of k queries can give:

    V_0(y)     = max(0, 1 − y)
    V_{j+1}(y) = max over pairs (P, Q) of  Σ_o P(o) · V_j(y · Q(o) / P(o))
    δ(ε)       = V_k(e^ε)

V_0 is E_P[(1 − e^ε Q/P)_+] at y = e^ε · Q/P, which is the definition of δ(ε) once all answers are in; each step adds
one answer. Adaptive choice only adds sequences, so V_k is an upper bound for any real run and attained by some.

Which pairs. The other N − 1 voters leave a gap r (class 1 minus class 0), the unit moves it to r − 1 or r + 1. Where
the unit may also abstain (gap r), the pairs (r − 1, r) and (r, r + 1) tell less: with a ≤ b ≤ c the coins (a, b) and
(b, c) are garblings of (a, c), and V_j is convex, so they never win the maximum. Abstention by others frees the parity
of r. Both directions (unit votes 0 in P and 1 in Q, or the reverse) are played: with independent equal noise on both
counts they are mirror images, the pair at r reversed being the pair at −r with the two labels exchanged.

Why every rounding is upward. V_j is convex in y (V_0 is; perspectives and maxima keep it) and falls from V_j(0) = 1. It
is kept on the grid y_i = e^{−u_i}, u_i a multiple of the step h, so the kink of V_0 at y = 1 lies on the grid.
  * Between grid points the chord lies above a convex function.
  * Below the smallest y the chord to (0, 1) lies above it; above the largest y it is at most the last value.
  * One answer moves y by at most e^L, L the largest loss of any pair. So V_j is 0 from y = e^{jL} on, and is set so
    after every query: chords alone would carry a little of it one grid point further each time, past the end of the
    grid. For the same reason ε is at most k·L.
  * A pair whose rarer answer has at most the probability η in both worlds adds at most η to V_j(y), so it is left out:
    V_j(ty) ≤ V_j(y) + 1 − t for t < 1 (the chord to (0, 1)), hence the likely answer's share is at most P V_j(y) plus
    what Q lacks of P, and the rare one's at most P. Every pair left gives V_j(y) at least, by Jensen's inequality.
  * V falls with y, so a loss is taken 1e−14 larger than float64 has it. A factor 1 + 1e−12 per step covers the rounding
    of a few operations on positive terms (relative 1e−15 each), an added 1e−280 covers probabilities that underflow and
    pairs left out.
How much the grid adds. Slopes of V_j lie in [−1, 0], so a chord over [y, y·e^h] is at most y·h/4 too high, and
E_P[y·Q/P] ≤ y, so k steps add at most k·h·e^ε/4 to δ(ε). That is the worst case (a kink in the middle of every chord);
after a few queries V is smooth and the excess is of second order. `all_ties`, what a run of near ties really costs, is
a lower bound for every sound accountant: for the paper's settings the two are within 1.5 % of each other in ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg.blas import daxpy
from scipy.stats import binom

from fedkt.privacy.noise import Noise
from fedkt.privacy.price import Release
from fedkt.privacy.stream import Floats

STEP = 1e-3
"""Grid step h in ln y, unless answers tell so little that it has to be finer."""
LEAST_STEP = 1e-7
STEPS_OF_A_TIE = 8
"""Chords spread a move over two grid points. A near tie that moves by so many steps makes ε 0.2 % too large at most."""
MOST_POINTS = 60_000
LARGEST_EPSILON = 60.0
"""Beyond this nobody is protected; the grid ends here, and the answer is the largest loss of every query, summed."""
ABOVE = 8.0
"""How far the grid reaches below y = 1, in ln y; no further than all losses together, where V is a chord itself."""
CERTAIN_LOSS = 300.0
MOST_QUERIES = 2_000
"""More queries than this take too long; the answer is then infinite, and another accountant's is used."""
MOST_MOVES = 4_000_000
"""The same for queries times pairs, by the number of voters alone: more noise must not make a price infinite."""
BLOCK = 8_000
"""Grid points at a time: they stay in the cache, and are too few for a BLAS to start threads over."""
TWO = np.array([2.0])
INFLATION = 1.0 + 1e-12
UNDERFLOW = 1e-280
LOSS_ERROR = 1e-14
"""Allowed for the error of a loss, a difference of two logarithms."""


def applies(release: Release) -> bool:
    """Two classes and a mechanism whose only output is the winner."""
    return release.classes == 2 and release.noise.has_win_probability


def takes_too_long(release: Release) -> bool:
    """Whether the game is left to the other accountants."""
    gaps = release.voters * (2 if release.abstentions else 1)
    return release.queries > MOST_QUERIES or release.queries * gaps > MOST_MOVES


def epsilon(release: Release, delta: float) -> float:
    """The smallest ε that the game proves at this δ; infinite where it does not apply."""
    if not applies(release) or takes_too_long(release) or delta <= 2 * release.queries * UNDERFLOW:
        return math.inf
    if release.queries == 0:
        return 0.0
    most = release.queries * largest_loss(coin_pairs(release.noise, release.voters, release.abstentions))
    if all_ties(release, LARGEST_EPSILON) > delta:
        return most  # what the grid would say after much work
    step = fine_step(release)
    values, lowest = game_values(release.noise, release.queries, release.voters, release.abstentions, step)
    # values[i] is V at y = e^{−u_i}, u rising from `lowest`: read from the far end, ε = −u falls to 0 at index `zero`.
    zero = round(-lowest / step)
    private = np.flatnonzero(values[: zero + 1] <= delta)
    if len(private) == 0:
        return most
    if private[-1] == zero:
        return 0.0
    best = int(private[-1])
    # Between this point and the next the chord in y is an upper bound: solve chord(y) = δ for y.
    y_high, y_low = math.exp(-(lowest + best * step)), math.exp(-(lowest + (best + 1) * step))
    high, low = float(values[best]), float(values[best + 1])
    share = (low - delta) / (low - high)
    return min(most, math.log(y_low + share * (y_high - y_low)) * (1 + 1e-12))


def fine_step(release: Release) -> float:
    """The grid step: so fine that a near tie moves over several points, but not too many points in all."""
    coins = coin_pairs(release.noise, release.voters, release.abstentions)
    tie = nearest_tie(coins)
    loss = math.log(coins.p_zero[tie]) - math.log(max(coins.q_zero[tie], UNDERFLOW))
    most = release.queries * largest_loss(coins)
    width = reach_of(release.noise, release.queries, largest_loss(coins)) + min(ABOVE, most)
    return min(STEP, max(loss / STEPS_OF_A_TIE, width / MOST_POINTS, LEAST_STEP))


def reach_of(noise: Noise, queries: int, largest: float) -> float:
    """How far the grid reaches above y = 1, in ln y.

    Losses cannot add up to more than k times the largest: beyond it V is 0, so the grid need not reach further. Nor
    need it reach where V is below any δ of interest; how far that is (ρ + 2√(40ρ), the tail e^{−40} of zCDP) decides
    only how much work is done: what lies beyond the grid is taken at its last value, which is an upper bound.
    """
    rho = queries * float(noise.rdp(TWO)[0]) / 2
    return min(queries * largest, rho + 2 * math.sqrt(40 * rho) + 1, LARGEST_EPSILON)


@lru_cache(maxsize=64)
def game_values(noise: Noise, queries: int, voters: int, abstentions: bool, step: float) -> tuple[Floats, float]:
    """V_k on the grid, as values by rising u = −ln y, and the lowest u."""
    coins = coin_pairs(noise, voters, abstentions)
    largest = largest_loss(coins)
    reach = reach_of(noise, queries, largest)
    lowest = -math.ceil(reach / step + 1) * step
    points = round(-lowest / step) + math.ceil(min(ABOVE, queries * largest) / step) + 2
    values: Floats = np.maximum(0.0, -np.expm1(-(lowest + step * np.arange(points))))
    pairs = [
        Pair.of(((p_one, q_one), (p_zero, q_zero)), step)
        for p_one, q_one, p_zero, q_zero in zip(coins.p_one, coins.q_one, coins.p_zero, coins.q_zero, strict=True)
    ]
    for query in range(1, queries + 1):
        values = one_query(values, pairs, step)
        if query * largest < -lowest:
            beyond = math.floor((-query * largest - lowest) / step - 1e-6) + 1
            values[:beyond] = np.minimum(values[:beyond], query * UNDERFLOW)
    values.setflags(write=False)
    return values, lowest


@dataclass(frozen=True)
class Pair:
    """One pair on the grid: the chance that an answer gives the game away, and V at which points counts how much."""

    certain: float
    taps: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, answers: tuple[tuple[float, float], ...], step: float) -> Pair:
        """The pair whose answers have these probabilities under P and Q."""
        certain, taps = 0.0, []
        for p, q in answers:
            loss = math.log(p) - math.log(q) + LOSS_ERROR if p and q else math.inf
            # So large a loss is as good as certainty: V is at most 1, and the grid need not hold the shift.
            if loss > CERTAIN_LOSS:
                certain += p
                continue
            shift, weight = place(loss / step, step)
            taps += [(shift, p * (1.0 - weight)), (shift + 1, p * weight)]
        return cls(certain, tuple(taps))


def one_query(values: Floats, pairs: list[Pair], step: float) -> Floats:
    """V_{j+1} from V_j: the best pair at every point of the grid, rounded up."""
    points = len(values)
    reach = max((abs(shift) for pair in pairs for shift, _ in pair.taps), default=0) + 1
    # Room on both sides: the last value towards large y, the chord to (y, V) = (0, 1) towards y = 0.
    beyond = np.exp(-step * np.arange(1, reach + 1))
    room = np.concatenate([np.full(reach, values[0]), values, 1.0 - (1.0 - values[-1]) * beyond])
    best = np.zeros(points)
    for low in range(0, points, BLOCK):
        block = best[low : low + BLOCK]
        total, start = np.empty(len(block)), low + reach
        for pair in pairs:
            total.fill(pair.certain)
            for shift, weight in pair.taps:
                total = daxpy(room, total, len(block), weight, start + shift)
            np.maximum(block, total, out=block)
    return np.minimum(1.0, best * INFLATION + UNDERFLOW)


def place(position: float, step: float) -> tuple[int, float]:
    """The grid point at or below a position, and the weight of the next one in a chord that is straight in y.

    On a grid that is even in u the weight depends on the fraction only: (1 − e^{−fh}) / (1 − e^{−h}).
    """
    index = math.floor(position)
    fraction = position - index
    return index, math.expm1(-fraction * step) / math.expm1(-step)


@dataclass(frozen=True)
class CoinPairs:
    """Per gap of the others: the probability that class 1 or 0 wins where the unit votes 0 (P) and 1 (Q)."""

    p_one: Floats
    p_zero: Floats
    q_one: Floats
    q_zero: Floats


def largest_loss(coins: CoinPairs) -> float:
    """The most that one answer can tell, rounded up: where the unit votes 0 and class 0 wins (the rest is mirrored)."""
    possible = coins.p_zero > 0
    with np.errstate(divide="ignore"):
        losses = np.log(coins.p_zero[possible]) - np.log(coins.q_zero[possible])
    return float(np.max(losses)) * (1 + 1e-12) + LOSS_ERROR


def coin_pairs(noise: Noise, voters: int, abstentions: bool) -> CoinPairs:
    """Every pair the adversary may choose; each probability from its own tail, so that none is lost to cancellation.

    Pairs of which one answer is as good as certain in both worlds are left out; the nearest tie always stays.
    """
    others = np.arange(-(voters - 1), voters, 1 if abstentions else 2, dtype=float)
    others = others[noise.win_probability(1 - np.abs(others)) > UNDERFLOW]
    return CoinPairs(
        p_one=noise.win_probability(others - 1),
        p_zero=noise.win_probability(1 - others),
        q_one=noise.win_probability(others + 1),
        q_zero=noise.win_probability(-1 - others),
    )


def nearest_tie(coins: CoinPairs) -> int:
    """The pair in which the unit decides between two labels that are equally likely without it, or nearly so."""
    return int(np.argmin(np.abs(coins.p_one + coins.q_one - 1)))


def all_ties(release: Release, epsilon: float) -> float:
    """δ at this ε where every query is the same near tie: a lower bound for any sound accountant."""
    coins = coin_pairs(release.noise, release.voters, release.abstentions)
    tie = nearest_tie(coins)
    p, q = float(coins.p_one[tie]), float(coins.q_one[tie])
    wins = np.arange(release.queries + 1)
    return float(
        np.maximum(
            binom.pmf(wins, release.queries, p) - math.exp(epsilon) * binom.pmf(wins, release.queries, q), 0
        ).sum()
    )
