"""Exponents: known powers are found again, and their intervals say how sure that is."""

from __future__ import annotations

import numpy as np
import pytest

from fedkt.bench.growth import AXES, exponent_of, growth_along, measure_axis
from fedkt.bench.rows import made_up
from fedkt.errors import ConfigurationError


def test_a_known_power_is_found_and_nothing_is_in_doubt():
    # 0.5 · n^1.5 at n = 1, 4, 16.
    found = exponent_of([1, 4, 16], [0.5, 4.0, 32.0])
    assert found.value == pytest.approx(1.5)
    assert (found.low, found.high) == pytest.approx((1.5, 1.5))


def test_what_is_constant_has_the_power_zero():
    assert exponent_of([1, 2, 4, 8], [3.0, 3.0, 3.0, 3.0]).value == pytest.approx(0.0)


def test_the_interval_is_that_of_a_regression_line():
    stats = pytest.importorskip("scipy.stats")
    values, seconds = [1, 2, 4, 8, 16], [1.1, 1.8, 4.3, 7.6, 16.9]
    line = stats.linregress(np.log(values), np.log(seconds))
    # Three degrees of freedom; 3.1824 is Student's 97.5 % point from a printed table.
    found = exponent_of(values, seconds)
    assert found.value == pytest.approx(line.slope)
    assert (found.high - found.low) / 2 == pytest.approx(3.1824 * line.stderr, rel=1e-4)


def test_growth_of_several_turns_has_an_exponent_for_each_way_and_the_ratio_at_the_end():
    points = [{"value": n, "fedkt": factor * n, "plain": n**0.5} for n in (1, 4, 16) for factor in (1.0, 2.0, 3.0)]
    found = growth_along("parties", points)
    assert found["exponents"]["fedkt"]["value"] == pytest.approx(1.0)
    assert found["exponents"]["plain"]["value"] == pytest.approx(0.5)
    # At 16: 16, 32 and 48 to 4.
    assert found["ratios"] == {"plain": 8.0}


@pytest.mark.parametrize("axis", AXES)
def test_every_axis_is_something_that_rows_can_be_made_with(axis):
    least = AXES[axis][0]
    work = made_up(**{"parties": 2, "private_rows": 8, "public_rows": 8, axis: least})
    sizes = {
        "parties": len(work.sizes),
        "public_rows": len(work.public),
        "private_rows": work.sizes[0],
        "partitions": work.partitions,
        "subsets": work.subsets,
        "classes": work.n_classes,
    }
    assert sizes[axis] == least
    assert len(work.y) == sum(work.sizes)


def test_a_family_without_a_bare_loop_is_refused():
    with pytest.raises(ConfigurationError, match=r"no bare loop over 'svm'.*tree, forest"):
        measure_axis("parties", repeats=1, model="svm", seed=0)
