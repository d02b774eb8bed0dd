"""Partitions: every row has one party, sizes are as promised, and a generator reproduces them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkt.data import PARTITIONERS, by_balanced_dirichlet, by_column, by_dirichlet, evenly, partition
from fedkt.errors import ConfigurationError, DataError


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(1, 200), min_size=1, max_size=6),
    n_parties=st.integers(1, 8),
    beta=st.sampled_from([0.1, 0.5, 1.0, 100.0]),
    seed=st.integers(0, 2**32 - 1),
    deal=st.sampled_from([by_dirichlet, by_balanced_dirichlet]),
)
def test_every_row_has_one_party_and_every_party_its_least_rows(counts, n_parties, beta, seed, deal):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    # At 0.1 and a single class no draw in ten thousand may have rows for everybody, which is refused in words.
    least = 0 if beta < 0.5 else min(3, len(y) // (n_parties * 4))
    if len(y) < n_parties:
        return
    parties = deal(y, n_parties, beta=beta, rng=generator(seed), min_rows=least)
    assert parties.dtype == np.int64
    assert parties.shape == y.shape
    assert parties.min() >= 0
    assert parties.max() < n_parties
    assert np.bincount(parties, minlength=n_parties).min() >= least
    np.testing.assert_array_equal(parties, deal(y, n_parties, beta=beta, rng=generator(seed), min_rows=least))


@settings(max_examples=60, deadline=None)
@given(n_rows=st.integers(1, 500), n_parties=st.integers(1, 50), seed=st.integers(0, 1000))
def test_even_parties_differ_by_at_most_one_row(n_rows, n_parties, seed):
    if n_parties > n_rows:
        return
    sizes = np.bincount(evenly(n_rows, n_parties, generator(seed)), minlength=n_parties)
    assert sizes.sum() == n_rows
    assert sizes.max() - sizes.min() <= 1


def test_a_large_beta_gives_every_party_the_same_share_of_every_class():
    y = np.repeat([0, 1], [1000, 3000])
    parties = by_dirichlet(y, 4, beta=1e6, rng=generator())
    for party in range(4):
        assert abs(np.sum((parties == party) & (y == 0)) - 250) < 5
        assert abs(np.sum((parties == party) & (y == 1)) - 750) < 15


def test_a_small_beta_gives_almost_every_class_to_one_party():
    y = np.repeat(np.arange(10), 100)
    parties = by_dirichlet(y, 3, beta=1e-6, rng=generator(1), min_rows=0)
    for label in range(10):
        assert len(np.unique(parties[y == label])) == 1


def test_shares_follow_the_dirichlet_distribution():
    # Dir(0.5, …, 0.5) over 4 parties: a share is Beta(0.5, 1.5), with mean 1/4 and variance 1/16.
    y = np.zeros(10_000, dtype=int)
    rng = generator(3)
    shares = np.array([np.bincount(by_dirichlet(y, 4, rng=rng, min_rows=0), minlength=4) / 1e4 for _ in range(2000)])
    assert shares.mean(axis=0) == pytest.approx(0.25, abs=0.02)
    assert shares.var(axis=0) == pytest.approx(1 / 16, abs=0.006)


def test_balancing_gives_a_full_party_nothing_more():
    # Two classes of 50 rows, two parties: whoever holds 50 rows or more after class 0 gets none of class 1.
    y = np.repeat([0, 1], 50)
    for seed in range(50):
        parties = by_balanced_dirichlet(y, 2, beta=0.5, rng=generator(seed), min_rows=0)
        first = np.bincount(parties[y == 0], minlength=2)
        second = np.bincount(parties[y == 1], minlength=2)
        if first.max() == 50:
            assert second[first.argmax()] == 0


def test_the_balanced_partition_deals_the_rarest_class_first():
    # Whoever holds its N/n = 250 rows of the rarer class gets none of the other one.
    full = np.array([0] * 400 + [1] * 600)
    for seed in range(20):
        parties = by_balanced_dirichlet(full, 4, beta=0.05, rng=generator(seed), min_rows=0)
        first = np.bincount(parties[full == 0], minlength=4)
        later = np.bincount(parties[full == 1], minlength=4)
        assert (later[first >= 250] == 0).all()


def test_balanced_parties_are_of_more_even_size_than_plain_ones():
    y = np.random.default_rng(0).integers(0, 10, 5000)
    plain = np.mean([np.bincount(by_dirichlet(y, 10, rng=generator(s))).std() for s in range(10)])
    balanced = np.mean([np.bincount(by_balanced_dirichlet(y, 10, rng=generator(s))).std() for s in range(10)])
    assert balanced < plain


def test_which_rows_of_a_class_a_party_gets_is_random():
    y = np.zeros(1000, dtype=int)
    parties = by_dirichlet(y, 2, beta=100, rng=generator())
    assert 0 < np.sum(parties[:100] == 0) < 100


def test_labels_may_be_strings():
    parties = by_dirichlet(np.array(["ill", "well"] * 50), 5, beta=10, rng=generator())
    assert set(parties.tolist()) == set(range(5))


def test_a_column_of_names_is_its_own_partition():
    assert by_column(np.array(["north", " south ", "north"])).tolist() == ["north", "south", "north"]
    assert by_column([3, 1, 3]).tolist() == ["3", "1", "3"]


@pytest.mark.parametrize("values", [["a", ""], ["a", None], [1.0, float("nan")], [["a"], ["b"]], []])
def test_a_column_without_a_party_in_every_row_is_refused(values):
    with pytest.raises(DataError):
        by_column(np.array(values, dtype=object))


def test_a_dataset_without_groups_cannot_be_partitioned_by_column():
    with pytest.raises(DataError, match="no column that says which party"):
        partition("column", [0, 1], 2, rng=generator())


@pytest.mark.parametrize("deal", [by_dirichlet, by_balanced_dirichlet])
@pytest.mark.parametrize("beta", [0, -1, float("nan"), float("inf"), 1e-300, 1e300, "0.5", None, True])
def test_a_beta_that_is_no_concentration_is_refused(deal, beta):
    with pytest.raises(ConfigurationError, match="beta"):
        deal([0, 1] * 50, 2, beta=beta, rng=generator())


@pytest.mark.parametrize("deal", [by_dirichlet, by_balanced_dirichlet])
@pytest.mark.parametrize("n_parties", [0, -3, 2.5, float("nan"), "4", True, 101])
def test_a_number_of_parties_that_cannot_be_is_refused(deal, n_parties):
    with pytest.raises(ConfigurationError, match=r"parties"):
        deal([0, 1] * 50, n_parties, rng=generator())


@pytest.mark.parametrize(("n_rows", "n_parties"), [(5, 6), (0, 1), (5, 0), (5, -1), (5.5, 2)])
def test_an_even_partition_that_cannot_be_is_refused(n_rows, n_parties):
    with pytest.raises(ConfigurationError):
        evenly(n_rows, n_parties, generator())


def test_labels_that_are_nan_or_not_one_per_row_are_refused():
    with pytest.raises(DataError, match="1 of 4 labels are NaN"):
        by_dirichlet([0.0, 1.0, np.nan, 1.0], 2, rng=generator())
    with pytest.raises(DataError, match="shape"):
        by_dirichlet([[0], [1]], 2, rng=generator())


@pytest.mark.parametrize("deal", [by_dirichlet, by_balanced_dirichlet])
def test_a_party_below_the_least_rows_gets_them_from_the_largest_where_chance_never_gives_them(deal):
    parties = deal([0] * 1000, 10, beta=0.1, rng=generator(), min_rows=100, max_tries=50)
    assert np.bincount(parties).tolist() == [100] * 10
    # A single draw of two parties, of which one gets both classes: it gives the other what that lacks.
    y = np.repeat([0, 1], [300, 100])
    assert np.bincount(deal(y, 2, beta=1e-3, rng=generator(1), min_rows=40, max_tries=1)).tolist() == [40, 360]


def test_fifty_balanced_parties_of_a_small_beta_can_be_drawn():
    y = np.repeat([0, 1], [18_500, 5_920])
    sizes = np.bincount(by_balanced_dirichlet(y, 50, beta=0.1, rng=generator()), minlength=50)
    assert sizes.sum() == 24_420
    assert sizes.min() == 10


def test_parties_to_whom_chance_gives_nothing_are_left_out_of_a_dirichlet_partition():
    y = np.random.default_rng(0).integers(0, 2, 2_000)
    parties = by_dirichlet(y, 200, beta=0.2, rng=generator(), max_tries=100)
    assert len(parties) == 2_000
    assert 100 < len(np.unique(parties)) < 200
    np.testing.assert_array_equal(parties, by_dirichlet(y, 200, beta=0.2, rng=generator(), max_tries=100))


@pytest.mark.parametrize(
    ("deal", "start"),
    [
        (by_dirichlet, [2, 4, 1, 2, 3, 1, 1, 3, 0, 2, 4, 1, 3, 4, 5, 0, 3, 3, 2, 3, 2, 1, 2, 3]),
        (by_balanced_dirichlet, [5, 1, 0, 3, 1, 4, 3, 1, 4, 5, 1, 0, 5, 2, 2, 1, 2, 4, 1, 2, 0, 1, 3, 0]),
    ],
)
def test_what_could_be_drawn_by_version_0_1_is_drawn_the_same(deal, start):
    assert deal(np.arange(200) % 3, 6, beta=0.5, rng=generator(7))[:24].tolist() == start


def test_an_unknown_partition_names_the_known_ones():
    with pytest.raises(ConfigurationError, match="dirichlet, balanced, even, column"):
        partition("random", [0, 1], 2, rng=generator())


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_partition_has_a_name(name):
    y = np.arange(200) % 2
    groups = np.array(["a", "b"] * 100)
    assert len(partition(name, y, 4, rng=generator(), groups=groups)) == 200
