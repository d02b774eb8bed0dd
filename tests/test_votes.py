"""Counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedkt.votes import NO_VOTE, consistent_choice, consistent_votes, count_votes, stand_in_vote, sum_votes, winners


def test_votes_are_counted_per_query_and_class():
    assert count_votes([[0, 2], [0, 1], [1, 1]], 3).tolist() == [[2, 1, 0], [0, 2, 1]]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int64])
def test_votes_of_parties_add_up(kind):
    north, south = np.array([[0, 2, 1], [0, 1, 1]], kind), np.array([[2, 2, 2], [2, 1, 7]], kind)
    votes = sum_votes(iter([north, south]), 3)
    # The last student of south votes for no class on the last row.
    assert votes.tolist() == [[2, 0, 2], [0, 2, 2], [0, 2, 1]]
    assert votes.dtype == np.int64
    assert votes.flags.c_contiguous


def test_an_abstention_is_nobodys_vote():
    assert count_votes([[NO_VOTE, 1], [0, NO_VOTE]], 2).tolist() == [[1, 0], [0, 1]]


def test_a_party_speaks_only_where_all_its_students_agree():
    assert consistent_choice([[0, 1, 2], [0, 2, 2]]).tolist() == [0, NO_VOTE, 2]


def test_a_consistent_party_has_one_vote_whatever_its_number_of_students():
    north = [[0, 1], [0, 1], [0, 0]]
    south = [[1, 1]]
    assert consistent_votes([north, south], 2).tolist() == [[1, 1], [0, 1]]


def test_counting_without_parties_is_refused():
    with pytest.raises(ValueError, match="at least one party"):
        consistent_votes([], 2)


def test_the_class_with_most_votes_wins():
    assert winners([[1, 4, 2], [3, 0, 0]], np.random.default_rng(0)).tolist() == [1, 0]


def test_a_query_without_votes_has_no_winner():
    assert winners([[0, 0, 0], [0, 0, 1]], np.random.default_rng(0)).tolist() == [NO_VOTE, 2]


def test_ties_are_broken_at_random_and_only_among_the_tied():
    drawn = winners(np.tile([5, 1, 5], (6000, 1)), np.random.default_rng(1))
    counts = np.bincount(drawn, minlength=3)
    assert counts[1] == 0
    # A fair coin of 6,000 throws stays within 5 standard deviations (5 · √1500 ≈ 194) of 3,000.
    assert abs(counts[0] - 3000) < 194


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=20), st.integers(0, 99))
def test_a_winner_has_the_most_votes(votes, seed):
    for row, winner in zip(votes, winners(votes, np.random.default_rng(seed)).tolist(), strict=True):
        assert (winner == NO_VOTE and max(row) == 0) or (max(row) > 0 and row[winner] == max(row))


def test_who_has_no_vote_of_its_own_names_the_classes_in_turn_beginning_with_another_each():
    assert stand_in_vote(0, 5, 3).tolist() == [0, 1, 2, 0, 1]
    assert stand_in_vote(2, 5, 3).tolist() == [2, 0, 1, 2, 0]
    assert stand_in_vote(3, 5, 3).tolist() == [0, 1, 2, 0, 1]
    together = count_votes([stand_in_vote(voter, 5, 3) for voter in range(6)], 3)
    assert together.tolist() == [[2, 2, 2]] * 5, "together they favour none"
