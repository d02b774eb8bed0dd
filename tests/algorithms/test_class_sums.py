"""Sums of features by class, made in blocks."""

import numpy as np
import pytest

from fedkt.algorithms import class_sums
from fedkt.algorithms.class_sums import sums_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(500, 4)), RNG.integers(0, 3, 500)


class Plain:
    """A map whose rows have nothing to do with each other; it counts how often it is asked."""

    width = 5

    def __init__(self):
        self.asked = 0

    def __call__(self, rows):
        self.asked += 1
        return np.concatenate([np.ones((len(rows), 1)), rows / 10], axis=1)


@pytest.mark.parametrize(("values", "times"), [(1, 8), (5 * 64 * 3, 3), (2**23, 1)])
def test_a_map_that_is_asked_about_large_blocks_gives_the_same_sums_to_the_last_bit(monkeypatch, values, times):
    monkeypatch.setattr(class_sums, "MOST_VALUES", values)
    monkeypatch.setattr(class_sums, "BLOCK", 64)
    phi = Plain()
    sums = sums_of(phi, X, Y, 3, gram=True)
    moments, gram = np.zeros((5, 3)), np.zeros((5, 5))
    for start in range(0, 500, 64):
        block = Plain()(X[start : start + 64])
        moments += block.T @ np.eye(3)[Y[start : start + 64]]
        gram += block.T @ block
    np.testing.assert_array_equal(sums.moments, moments)
    np.testing.assert_array_equal(sums.gram, gram)
    assert phi.asked == times
