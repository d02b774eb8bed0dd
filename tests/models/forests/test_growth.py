"""One tree, held against every split that there could have been."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from fedkt.models.forests.bins import bin_rows
from fedkt.models.forests.growth import draw_samples, draw_table, grow_tree

BITS = 10


def grow(X, y, *, max_depth=9, min_split=2, min_leaf=1):
    """A tree of all columns in which every row counts once: its nodes as dictionaries, the root first."""
    bins, k = bin_rows(X), int(y.max()) + 1
    per = 64 // BITS
    counts = np.zeros((len(X), k // per + 1), np.uint64)
    for row, label in enumerate(y):
        for slot in (label, k):
            counts[row, slot // per] += np.uint64(1) << np.uint64(slot % per * BITS)
    forms = (np.int32, np.float32, np.int32, np.bool_, (np.float64, k), np.int64)
    nodes = tuple(np.zeros(2 * len(X), form) for form in forms)
    limits = (max_depth, min_split, min_leaf, X.shape[1])
    state = np.array([7], np.uint64)
    used, _ = grow_tree(bins.codes, bins.start, bins.low, bins.high, bins.gaps, counts, k, BITS, limits, state, nodes)
    names = ("feature", "threshold", "left", "missing_left", "value", "weight")
    return [dict(zip(names, each, strict=True)) for each in zip(*(part[:used] for part in nodes), strict=True)]


def goes_left(node, value):
    return node["missing_left"] if np.isnan(value) else value <= node["threshold"]


def purity(labels):
    return (np.bincount(labels) ** 2).sum() / len(labels)


def best_purity(X, y, min_leaf):
    """The purest two sides of any split, by trying all of them; None where no column can be split."""
    best = None
    for column in X.T:
        values = np.unique(column[~np.isnan(column)])
        cuts = [*((values[1:] + values[:-1]) / 2), np.inf]
        for at in cuts:
            for missing in (False, True):
                left = np.where(np.isnan(column), missing, column <= at)
                if min(left.sum(), (~left).sum()) < min_leaf:
                    continue
                found = purity(y[left]) + purity(y[~left])
                best = found if best is None else max(best, found)
    return best


values = st.sampled_from([0.0, 1.0, 1.5, 4.0, -2.0, float("nan")])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_node_has_the_best_split_of_all(data):
    n_rows, n_columns = data.draw(st.integers(1, 14)), data.draw(st.integers(1, 3))
    X = np.array(data.draw(st.lists(values, min_size=n_rows * n_columns, max_size=n_rows * n_columns)))
    X = X.reshape(n_rows, n_columns)
    k = data.draw(st.sampled_from([2, 3, 8]))
    y = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n_rows, max_size=n_rows)))
    min_leaf, min_split = data.draw(st.integers(1, 3)), data.draw(st.integers(2, 4))
    nodes = grow(X, y, max_depth=3, min_split=min_split, min_leaf=min_leaf)
    waiting = [(0, np.arange(n_rows), 0)]
    while waiting:
        place, rows, depth = waiting.pop()
        node, labels = nodes[place], y[rows]
        assert node["weight"] == len(rows)
        assert np.array_equal(node["value"], np.bincount(labels, minlength=len(node["value"])) / len(rows))
        left = np.array([goes_left(node, X[row, node["feature"]]) for row in rows])
        best = best_purity(X[rows], labels, min_leaf)
        enough = len(rows) >= max(min_split, 2 * min_leaf) and len(set(labels)) > 1
        may_split = depth < 3 and enough and best is not None
        assert (node["left"] != place) == may_split
        if may_split:
            assert purity(labels[left]) + purity(labels[~left]) == pytest.approx(best)
            waiting += [(node["left"], rows[left], depth + 1), (node["left"] + 1, rows[~left], depth + 1)]


def test_a_threshold_lies_in_the_middle_of_the_values_of_its_own_node():
    # Below the first split on column 0 no row has a value of 1 in column 1: 0 and 4 stand side by side.
    X = np.array([[0.0, 0], [0, 0], [0, 4], [0, 4], [1, 1], [1, 1], [1, 1]])
    nodes = grow(X, np.array([0, 0, 1, 1, 2, 2, 2]))
    assert (nodes[0]["feature"], nodes[0]["threshold"]) in {(0, 0.5), (1, 2.5)}
    inner = [(node["feature"], node["threshold"]) for place, node in enumerate(nodes) if node["left"] != place]
    assert set(inner) in ({(0, 0.5), (1, 2.0)}, {(1, 2.5), (0, 0.5)})


def test_rows_are_drawn_in_proportion_to_their_weights_and_never_without_one():
    weights = np.array([0.0, 1.0, 2.0, 0.0, 5.0])
    table, rows = draw_table(weights), np.arange(5)
    total, state = np.zeros(5), np.array([1], np.uint64)
    for _ in range(4_000):
        counts = np.zeros((5, 1), np.uint64)
        draw_samples(table, rows, np.zeros(5, np.int64), counts, 1, BITS, state)
        drawn = counts[:, 0] & np.uint64(1023)
        assert np.array_equal(counts[:, 0] >> np.uint64(BITS), drawn > 0)
        total += drawn
    assert total[[0, 3]].tolist() == [0, 0]
    assert total.sum() == 20_000
    # Six standard deviations of a binomial count.
    assert np.abs(total - 20_000 * weights / 8).max() < 6 * np.sqrt(20_000 / 4)
