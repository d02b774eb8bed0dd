"""Trees grown on bins, as scikit-learn grows them. Compiled by numba; kept on disk.

All of it stands in one file: kept machine code is made anew when the file of the outermost function changes, not when
that of one inside it does.

Class counts of a row are whole numbers, so several of them share a word of 64 bits, and one addition adds up all of
them. The last count of a row is that of its samples: a row that is drawn as two classes is two samples.

What a tree does is what `sklearn.tree` does for `splitter="best"` and Gini's impurity: columns are tried in random
order until enough were seen and one of them was not constant, a threshold lies in the middle between two values of the
node, and missing values go to the better side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fedkt.models.forests.bins import MISSING

Table = NDArray[Any]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled when it is first called.

    The machine code is kept in NUMBA_CACHE_DIR, else beside this file, else in the user's cache folder. Where none can
    be written it is compiled anew in each process.
    """
    try:
        kernel: Callable[..., Any] = numba.njit(cache=True)(function)
    except RuntimeError:
        kernel = numba.njit(function)
    return kernel


U = np.uint64
STEP, FIRST, SECOND = U(0x9E3779B97F4A7C15), U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)
"""Of the generator SplitMix64 (Steele, Lea and Flood 2014): a tree has one of its own."""
HALF = U(32)
LOW_HALF = U(0xFFFFFFFF)
DEEP = 64
"""Down to this depth a node knows which columns were constant above it."""


@compiled
def next_number(state: Table) -> Any:
    """The next 64 random bits."""
    state[0] += STEP
    z = state[0]
    z = (z ^ (z >> U(30))) * FIRST
    z = (z ^ (z >> U(27))) * SECOND
    return z ^ (z >> U(31))


@compiled
def count_of(word: Any, slot: int, bits: int) -> Any:
    """One of the counts in a word."""
    return np.int64((word >> U(slot * bits)) & ((U(1) << U(bits)) - U(1)))


@compiled
def draw_table(weights: Table) -> Table:
    """Walker's table for draws in proportion to weights; an empty one where all weigh the same.

    Entry i stands for itself with a chance of 2⁻³² times its upper half, else for the entry that is its lower half.
    """
    n = len(weights)
    scaled = weights * (n / weights.sum())
    if (weights == weights[0]).all():
        return np.empty(0, np.uint64)
    table = np.arange(n).astype(np.uint64)
    large = np.flatnonzero(scaled >= 1.0)
    above = 0
    for i in np.flatnonzero(scaled < 1.0):
        # What i lacks is taken from a large weight, which may then lack something itself.
        while above < len(large) and scaled[i] < 1.0:
            j = large[above]
            table[i] = U(scaled[i] * 4294967296.0) << HALF | U(j)
            scaled[j] -= 1.0 - scaled[i]
            if scaled[j] >= 1.0:
                break
            above += 1
            i = j
    return table


@compiled
def draw_samples(
    table: Table, rows: Table, classes: Table, counts: Table, n_classes: int, bits: int, state: Table
) -> None:
    """Add a bootstrap sample of as many pairs as there are to the packed counts of their rows. No pair is there twice.

    Drawn first and added up afterwards: what is read in random order is then as little as can be.
    """
    n, per = U(len(rows)), 64 // bits
    times = np.zeros(len(rows), np.uint32)
    for _ in range(len(rows)):
        number = next_number(state)
        i = ((number >> HALF) * n) >> HALF
        if len(table) > 0:
            entry = table[i]
            i = i if (number & LOW_HALF) < (entry >> HALF) else entry & LOW_HALF
        times[i] += np.uint32(1)
    for p in range(len(rows)):
        if times[p] > 0:
            counts[rows[p], classes[p] // per] += U(times[p]) << U(classes[p] % per * bits)
            counts[rows[p], n_classes // per] += U(1) << U(n_classes % per * bits)


@compiled
def gain(lower: Table, total: Table, n_classes: int, bits: int, min_leaf: int) -> float:
    """How pure two sides are together, more for purer ones; −1 where one of them has too few samples."""
    per = 64 // bits
    q, s = n_classes // per, n_classes % per
    samples = count_of(lower[q], s, bits)
    if samples < min_leaf or count_of(total[q], s, bits) - samples < min_leaf:
        return -1.0
    left = right = left_squares = right_squares = 0
    for c in range(n_classes):
        here = count_of(lower[c // per], c % per, bits)
        rest = count_of(total[c // per], c % per, bits) - here
        left, left_squares = left + here, left_squares + here * here
        right, right_squares = right + rest, right_squares + rest * rest
    return left_squares / left + right_squares / right


@compiled
def fill(hist: Table, column: Table, rows: Table, weights: Table, bins: int, gaps: bool, total: Table) -> None:
    """Add up the counts of the rows in each bin of a column."""
    words = len(weights)
    for q in range(words):
        hist[MISSING, q] = 0
    if bins == 2 and words == 1 and not gaps:
        upper = U(0)
        for p in range(len(rows)):
            upper += weights[0, p] * U(column[rows[p]])
        hist[1, 0], hist[0, 0] = upper, total[0] - upper
        return
    hist[:bins] = 0
    if words == 1:
        for p in range(len(rows)):
            hist[column[rows[p]], 0] += weights[0, p]
        return
    for p in range(len(rows)):
        v = column[rows[p]]
        for q in range(words):
            hist[v, q] += weights[q, p]


@compiled
def best_cut(
    hist: Table, bins: int, total: Table, n_classes: int, bits: int, min_leaf: int, lower: Table
) -> tuple[float, int, int, int]:
    """The best cut of a column: its gain, the bins before and after it, and whether missing values go left.

    A gain of −1 is no cut, and of −2 a column that is constant; −1 for missing values, that there are none.
    """
    last = len(total) - 1
    missing = hist[MISSING, last] != 0
    best, before, after, side = -2.0, -1, -1, -1
    for missing_left in range(2 if missing else 1):
        for q in range(len(total)):
            lower[q] = hist[MISSING, q] if missing_left else U(0)
        at = -1
        for v in range(bins + 1):
            # Behind the last bin: everything that is not missing against what is.
            if v == bins and (not missing or missing_left or at < 0):
                continue
            if v < bins and hist[v, last] == 0:
                continue
            if at >= 0:
                found = gain(lower, total, n_classes, bits, min_leaf)
                if found > best:
                    best, before, after, side = found, at, v, missing_left if missing else -1
            if v < bins:
                at = v
                for q in range(len(total)):
                    lower[q] += hist[v, q]
    return best, before, after, side


@compiled
def place_threshold(low: Table, high: Table, before: int, after: int) -> tuple[int, Any]:
    """The last bin on the left, and the threshold: the middle between the bins `before` and `after` a cut.

    Bins in between have no row here. Only a threshold between two bins says the same of every row that a bin says.
    """
    if after == len(low):
        return len(low) - 1, np.float32(np.inf)
    middle = (np.float64(high[before]) + np.float64(low[after])) / 2
    cut = before
    while cut + 1 < after and high[cut + 1] <= middle:
        cut += 1
    if middle >= low[cut + 1]:
        middle = (np.float64(high[cut]) + np.float64(low[cut + 1])) / 2
    threshold = np.float32(middle)
    return cut, threshold if threshold < low[cut + 1] else high[cut]


@compiled
def divide(
    column: Table, cut: int, missing_left: bool, rows: Table, weights: Table, spare_rows: Table, spare_weights: Table
) -> int:
    """Bring the rows that go left to the front, all in their order; how many these are."""
    left = right = 0
    for p in range(len(rows)):
        code = column[rows[p]]
        goes = (code <= cut) | (missing_left & (code == MISSING))
        # Written to both sides, of which one goes on: no branch that a processor could not foresee.
        rows[left] = spare_rows[right] = rows[p]
        for q in range(len(weights)):
            weights[q, left] = spare_weights[q, right] = weights[q, p]
        left += goes
        right += not goes
    # Loops, because the compiler takes seconds for assignments of slices.
    for p in range(right):
        rows[left + p] = spare_rows[p]
        for q in range(len(weights)):
            weights[q, left + p] = spare_weights[q, p]
    return left


@compiled
def grow_tree(
    codes: Table,
    start: Table,
    low: Table,
    high: Table,
    gaps: Table,
    counts: Table,
    n_classes: int,
    bits: int,
    limits: tuple[int, int, int, int],
    state: Table,
    nodes: tuple[Table, ...],
) -> tuple[int, int]:
    """Grow one tree on the rows that have counts, and write its nodes; how many there are, and how deep they lie.

    `limits` are the most depth, the fewest samples to be split, the fewest in a leaf, and the columns tried at a node.
    """
    max_depth, min_split, min_leaf, tries = limits
    feature, threshold, left, missing_left, value, weight = nodes
    n_columns, words, per = len(codes), counts.shape[1], 64 // bits
    last = words - 1
    rows = np.flatnonzero(counts[:, last]).astype(np.uint32)
    weights = np.ascontiguousarray(counts[rows].T)
    spare_rows, spare_weights = np.empty_like(rows), np.empty_like(weights)
    order = np.arange(n_columns)
    hist = np.zeros((256, words), np.uint64)
    total, lower = np.empty(words, np.uint64), np.empty(words, np.uint64)
    todo = np.empty((min(max_depth, len(rows)) + 2, 4), np.int64)
    known = np.zeros((min(max_depth, DEEP) + 1, n_columns), np.bool_)
    for j in range(n_columns):
        known[0, j] = start[j + 1] - start[j] + gaps[j] < 2
    todo[0] = (0, len(rows), 0, 0)
    waiting = used = 1
    deepest = 0
    while waiting > 0:
        waiting -= 1
        a, b, node, depth = todo[waiting]
        own_rows, own_weights = rows[a:b], weights[:, a:b]
        for q in range(words):
            total[q] = own_weights[q].sum()
        samples = count_of(total[last], n_classes % per, bits)
        weight[node] = most = 0
        for c in range(n_classes):
            here = count_of(total[c // per], c % per, bits)
            weight[node], most = weight[node] + here, max(most, here)
            value[node, c] = here
        value[node] /= weight[node]
        feature[node], threshold[node], left[node], missing_left[node] = 0, np.inf, node, True
        if depth >= max_depth or samples < min_split or samples < 2 * min_leaf or most == weight[node]:
            continue
        best, best_column, before, after, side = -1.0, -1, 0, 0, -1
        level = min(depth, DEEP)
        if level > 0:
            known[level] = known[level - 1]
        visited = constant = 0
        while visited < n_columns and (visited < tries or visited <= constant):
            pick = np.int64(((next_number(state) >> HALF) * U(n_columns - visited)) >> HALF)
            visited += 1
            j = order[pick]
            order[pick], order[n_columns - visited] = order[n_columns - visited], j
            if known[level, j]:
                constant += 1
                continue
            bins = start[j + 1] - start[j]
            fill(hist, codes[j], own_rows, own_weights, bins, gaps[j], total)
            found, x, y, z = best_cut(hist, bins, total, n_classes, bits, min_leaf, lower)
            if found == -2.0:
                known[level, j] = True
                constant += 1
            if found > best:
                best, best_column, before, after, side = found, j, x, y, z
        if best_column < 0:
            continue
        first, end = start[best_column], start[best_column + 1]
        cut, threshold[node] = place_threshold(low[first:end], high[first:end], before, after)
        middle = a + divide(codes[best_column], cut, side == 1, own_rows, own_weights, spare_rows, spare_weights)
        here = 0
        for p in range(a, middle):
            here += count_of(weights[last, p], n_classes % per, bits)
        # Where nothing is missing now, what will be later goes with the majority.
        missing_left[node] = side == 1 if side >= 0 else 2 * here > samples
        feature[node], left[node], deepest = best_column, used, max(deepest, depth + 1)
        todo[waiting], todo[waiting + 1] = (middle, b, used + 1, depth + 1), (a, middle, used, depth + 1)
        waiting, used = waiting + 2, used + 2
    return used, deepest
