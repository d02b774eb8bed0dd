"""Rows as codes of one byte."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fedkt.models.forests.bins import BINS, MISSING, bin_rows, cut


def test_a_column_of_few_values_has_a_bin_for_each():
    bins = bin_rows(np.array([[3.0, 1], [1.0, 1], [2.5, 1], [3.0, 1]]))
    assert bins.codes.tolist() == [[2, 0, 1, 2], [0, 0, 0, 0]]
    assert bins.low.tolist() == bins.high.tolist() == [1.0, 2.5, 3.0, 1.0]
    assert bins.start.tolist() == [0, 3, 4]


def test_a_missing_value_has_a_code_of_its_own():
    bins = bin_rows(np.array([[np.nan, 1.0], [5.0, 2.0]]))
    assert bins.codes.tolist() == [[MISSING, 0], [0, 1]]
    assert bins.gaps.tolist() == [True, False]


def test_a_column_of_many_values_is_cut_into_bins_of_about_as_many_rows():
    values = np.random.default_rng(0).permutation(10_000).astype(np.float32)
    low, high = cut(values)
    assert len(low) == BINS
    assert (high[:-1] < low[1:]).all()
    assert set(np.round(high - low + 1)) <= {39, 40}  # 10,000 / 255 is 39.2


def test_the_zeros_of_an_amount_take_one_bin_and_leave_the_others_to_the_amounts():
    amounts = np.arange(1, 1_001, dtype=np.float32)
    low, high = cut(amounts, zeros=99_000)
    assert (low[0], high[0]) == (0, 0)
    assert len(low) > 245


@pytest.mark.parametrize("kind", [sparse.csc_matrix, sparse.csc_array])
def test_a_sparse_table_has_the_bins_of_the_dense_one(kind):
    rng = np.random.default_rng(1)
    X = rng.integers(-3, 4, size=(60, 5)) * rng.integers(0, 2, size=(60, 5)) * 0.5
    X[:, 4] = rng.integers(1, 3, size=60)
    dense, thin = bin_rows(X), bin_rows(kind(X))
    for name in ("codes", "start", "low", "high", "gaps"):
        assert np.array_equal(getattr(dense, name), getattr(thin, name)), name


def test_numbers_without_end_have_no_bins():
    assert bin_rows(np.array([[1.0], [np.inf]])) is None
    assert bin_rows(np.array([[1.0], [1e300]])) is None  # in float32
