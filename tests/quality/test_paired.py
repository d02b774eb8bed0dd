"""Two models on the same rows."""

import math

import pytest

from fedkt.errors import DataError
from fedkt.quality import compare_accuracy


def test_a_difference_is_counted_row_by_row():
    """40 rows: 12 only ours gets right, 4 only theirs; half a row added to each of four cells gives 8 / 42."""
    truth = [1] * 40
    ours, theirs = [1] * 12 + [0] * 4 + [1] * 24, [0] * 12 + [1] * 4 + [1] * 24
    found = compare_accuracy(truth, ours, theirs)
    assert (found.wins, found.losses, found.rows, found.value) == (12, 4, 40, 0.2)
    spread = 1.959964 * math.sqrt(17 - 64 / 42) / 42
    assert (found.low, found.high) == pytest.approx((8 / 42 - spread, 8 / 42 + spread))
    assert found.better
    assert not found.worse


def test_turned_around_it_has_the_other_sign():
    one, other = [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]
    ours, theirs = compare_accuracy([0, 1, 1, 0, 0], one, other), compare_accuracy([0, 1, 1, 0, 0], other, one)
    assert (ours.value, ours.low, ours.high) == pytest.approx((-theirs.value, -theirs.high, -theirs.low))


def test_models_that_agree_are_not_certainly_equal():
    found = compare_accuracy([0, 1, 1], [0, 1, 0], [0, 1, 0])
    assert found.value == 0
    assert found.low < 0 < found.high
    assert not found.better
    assert not found.worse
    assert str(found).startswith("+0.0 points (-")


def test_only_the_same_rows_are_compared():
    for truth, ours, theirs in (([0, 1], [0], [0, 1]), ([], [], [])):
        with pytest.raises(DataError, match="same rows"):
            compare_accuracy(truth, ours, theirs)
