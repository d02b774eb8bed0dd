"""Rows brought inside the bounds of public ones, some at a time."""

import numpy as np
import pytest

from fedkt.models import base
from fedkt.models.base import within

PUBLIC = np.array([[0.0, -1.0, np.nan], [1.0, 5.0, 2.0], [0.5, 0.0, 4.0]])


@pytest.mark.parametrize("block", [1, 3, 100])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16])
def test_every_block_is_brought_inside_the_same_bounds(monkeypatch, block, kind):
    monkeypatch.setattr(base, "BLOCK_ROWS", block)
    rows = np.random.default_rng(0).normal(scale=9, size=(10, 3)).astype(kind)
    if kind is not np.int16:
        rows[4] = np.nan
        rows[5, 0] = np.inf
    before = rows.copy()
    found = within(rows, PUBLIC)
    # By hand: the least and the largest public number, and the median where public rows have no gap.
    for column, (low, high, middle) in enumerate([(0, 1, 0.5), (-1, 5, 0), (2, 4, np.nan)]):
        for row in range(10):
            value = float(rows[row, column])
            expected = middle if np.isnan(value) else min(max(value, low), high)
            np.testing.assert_array_equal(found[row, column], kind(expected))
    assert found.dtype == kind
    np.testing.assert_array_equal(rows, before)
