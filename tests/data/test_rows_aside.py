"""Public and test rows set aside in every party and class in proportion."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkt.data.aside import set_aside
from fedkt.errors import DataError


def cells(rows, *columns):
    return Counter(zip(*([column[row] for row in rows] for column in columns), strict=True))


def test_every_party_and_class_gives_its_share_and_no_row_has_two_roles():
    owners = np.repeat(["north", "south"], [400, 100])
    labels = ["ill" if row % 4 == 0 else "well" for row in range(500)]
    rows = set_aside(labels, owners, seed=3, public=0.2, test=0.1, source="a.csv")
    assert sorted(np.concatenate([rows.train, rows.public, rows.test])) == list(range(500))
    assert (len(rows.public), len(rows.test)) == (100, 50)
    wanted = {("north", "ill"): 100, ("north", "well"): 300, ("south", "ill"): 25, ("south", "well"): 75}
    for share, role in ((0.2, rows.public), (0.1, rows.test)):
        found = cells(role, owners, labels)
        assert all(abs(found[cell] - share * size) <= 2 for cell, size in wanted.items()), found


def test_the_seed_decides_and_nothing_else():
    labels = ["a", "b"] * 50
    first, again, other = (set_aside(labels, None, seed=s, public=0.2, test=0.2, source="") for s in (1, 1, 2))
    assert [each.tolist() for each in vars(first).values()] == [each.tolist() for each in vars(again).values()]
    assert first.public.tolist() != other.public.tolist()


def test_a_party_of_one_row_keeps_it_and_a_class_of_two_stays_known_to_a_party():
    owners = np.array(["big"] * 40 + ["tiny"])
    labels = ["rare"] * 2 + ["usual"] * 39
    for seed in range(20):
        rows = set_aside(labels, owners, seed=seed, public=0.4, test=0.4, source="")
        assert "tiny" in owners[rows.train]
        assert "rare" in {labels[row] for row in rows.train}


def test_many_parties_of_a_row_or_two_share_out_what_they_can_spare():
    owners = np.array([f"p{row % 30}" for row in range(45)])
    rows = set_aside(["a", "b", "c"] * 15, owners, seed=0, public=0.3, test=0.3, source="")
    assert set(owners[rows.train]) == set(owners)
    assert len(rows.public) + len(rows.test) <= 15
    assert min(len(rows.public), len(rows.test)) >= 5


def test_a_share_of_nothing_sets_nothing_aside():
    rows = set_aside(["a", "b"] * 10, None, seed=0, public=0.0, test=0.5, source="")
    assert (len(rows.public), len(rows.test), len(rows.train)) == (0, 10, 10)


def test_rows_that_nobody_can_spare_are_refused_with_what_to_do():
    owners = np.array(["a", "b", "c"])
    with pytest.raises(DataError, match=r"x\.csv has 3 rows: too few to set public and test rows .*--public-file"):
        set_aside(["y", "n", "y"], owners, seed=0, public=0.2, test=0.2, source="x.csv")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60), st.integers(0, 5))
def test_however_the_rows_lie_each_has_one_role_and_no_party_is_left_without(pairs, seed):
    owners, labels = np.array([f"p{each}" for each, _ in pairs]), [str(each) for _, each in pairs]
    try:
        rows = set_aside(labels, owners, seed=seed, public=0.3, test=0.2, source="")
    except DataError:
        assert len(pairs) < len(set(owners)) + len(set(labels)) + 2
        return
    assert sorted(np.concatenate([rows.train, rows.public, rows.test])) == list(range(len(pairs)))
    assert set(owners[rows.train]) == set(owners)
    assert {labels[row] for row in rows.train} == set(labels)
    assert len(rows.public) > 0 < len(rows.test)
