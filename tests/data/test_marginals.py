"""What a row adds to what a party tells: written out by hand, and the farthest that one replaced row can move it."""

import itertools
import math

import numpy as np
import pytest

from fedkt.data.description import KnownColumn
from fedkt.data.marginals import MAX_PAIRED, Layout, tell
from fedkt.errors import DataError


def scores(*sizes):
    """Of columns with so many values each, what is missing last."""
    return [KnownColumn(name="a", categories=tuple(map(str, range(size)))).scores for size in sizes]


def vector(codes, own, alpha, beta):
    """t of one row, term by term."""
    hot = [
        alpha * float(code == place) for code, values in zip(codes, own, strict=True) for place in range(len(values))
    ]
    z = [values[code] for code, values in zip(codes, own, strict=True)]
    return np.array(hot + [beta * a * b for a, b in itertools.combinations(z, 2)])


def moved(one, other, own, paired):
    layout = Layout(tuple(map(len, own)), paired)
    m = len(own)
    alpha = math.sqrt((1 if paired else 2) / m)
    beta = math.sqrt(1 / (2 * (m // 2) * ((m + 1) // 2))) if paired else 0.0
    length = layout.shape[0]
    told = [layout.total(np.array([codes]), own) for codes in (one, other)]
    for codes, each in zip((one, other), told, strict=True):
        assert each == pytest.approx(vector(codes, own, alpha, beta)[:length])
    return np.linalg.norm(told[0] - told[1])


@pytest.mark.parametrize("sizes", [(2, 2), (3, 1), (2, 3, 2), (1, 1, 4)])
@pytest.mark.parametrize("paired", [True, False])
def test_no_two_rows_of_a_small_table_are_farther_apart_than_two(sizes, paired):
    own = scores(*sizes)
    rows = list(itertools.product(*(range(len(values)) for values in own)))
    assert max(moved(one, other, own, paired) for one, other in itertools.combinations(rows, 2)) <= 2 + 1e-12


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_a_search_for_the_worst_pair_ends_at_two_and_not_beyond(m):
    """One value after the other is moved to wherever the pair is farthest apart, from several starts."""
    own = scores(*[40] * m)
    rng = np.random.default_rng(m)
    worst = 0.0
    for _ in range(2):
        pair = rng.integers(0, 41, (2, m))
        pair[0, : m // 2], pair[1, : m // 2] = 0, 39
        pair[0, m // 2 :], pair[1, m // 2 :] = 0, 1
        pair[tuple(rng.integers(0, (2, m)))] = rng.integers(0, 41)
        for who, column in itertools.product(range(2), range(m)):
            tried = []
            for code in range(41):
                pair[who, column] = code
                tried.append(moved(pair[0], pair[1], own, True))
            pair[who, column] = int(np.argmax(tried))
            worst = max(worst, *tried)
    assert worst <= 2 + 1e-12
    # The bound is that of any number of bins; with forty of them pairs come close.
    assert worst > 1.93


def test_columns_told_alone_are_moved_by_two_exactly():
    assert moved((0, 0, 0), (1, 1, 1), scores(2, 2, 2), False) == pytest.approx(2)


def test_the_parts_of_a_sum_are_the_counts_and_products_of_the_rows():
    own = scores(2, 3)
    codes = np.array([[0, 0], [0, 2], [1, 3], [2, 1]])
    counts, products = tell(codes, own, paired=True)
    assert [each.tolist() for each in counts] == [[2, 1, 1], [1, 1, 1, 1]]
    # -1·-1, -1·1, 1·0 (missing) and 0·0.
    assert products.tolist() == [0.0]
    layout = Layout((3, 4), True)
    found = layout.parts(layout.total(codes, own))
    assert [each.tolist() for each in found[0]] == [pytest.approx([2, 1, 1]), pytest.approx([1, 1, 1, 1])]
    assert found[1] == pytest.approx([0.0])
    assert layout.shape == (8,)


def test_pairs_of_very_many_columns_are_refused():
    with pytest.raises(DataError, match="Tell columns alone"):
        Layout((3,) * (MAX_PAIRED + 1), True)
