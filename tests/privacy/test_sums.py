"""Noise on sums of features: what one record moves, what it costs, and what leaves."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fedkt.errors import PrivacyError
from fedkt.privacy import Ledger, price_together
from fedkt.privacy.calibrate import smallest_noise
from fedkt.privacy.entries import release_fields, release_from
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.price import party_sums_release, sums_release
from fedkt.privacy.stream import Stream
from fedkt.privacy.sums import SENSITIVITY, GaussianSums


def moved_by(one, other):
    """How far the sum by class moves when a record (u, y) is replaced by another."""
    (u, y), (v, z) = one, other
    sums = np.zeros((len(u) + 1, 3))
    sums[:, y] += np.concatenate([[1.0], u])
    sums[:, z] -= np.concatenate([[1.0], v])
    return np.linalg.norm(sums)


def test_no_pair_of_records_moves_a_sum_by_more_than_its_sensitivity_and_some_by_as_much():
    rng = np.random.default_rng(0)
    worst = {True: 0.0, False: 0.0}
    for _ in range(3000):
        one, other = rng.normal(size=(2, 4))
        one /= max(np.linalg.norm(one), 1)
        other /= max(np.linalg.norm(other), 1)
        y, z = rng.integers(0, 3, 2)
        # Up the hill from a random pair: each in turn as far from the other as it may be.
        for u, v in ((one, other), (one / np.linalg.norm(one), -one / np.linalg.norm(one))):
            worst[bool(y == z)] = max(worst[bool(y == z)], moved_by((u, y), (v, z)))
    assert max(worst.values()) <= SENSITIVITY + 1e-12
    assert worst[True] == pytest.approx(SENSITIVITY)
    assert worst[False] == pytest.approx(SENSITIVITY)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_a_release_costs_what_the_analytic_gaussian_mechanism_costs(epsilon):
    """Balle and Wang 2018, Theorem 8, solved here by another library."""

    def excess(mu):
        return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - 1e-5

    sigma = SENSITIVITY / brentq(excess, 1e-3, 10)
    price = price_together([sums_release(GaussianSums(sigma), 2)], 1e-5)
    assert price.epsilon == pytest.approx(epsilon, rel=1e-6)
    least = smallest_noise(
        GaussianSums.name, epsilon=epsilon, delta=1e-5, queries=1, voters=1, classes=2, unit="record"
    )
    assert least.sigma == pytest.approx(sigma, rel=2e-4)
    assert least.sigma >= sigma * (1 - 1e-9)


def test_what_leaves_are_whole_multiples_of_a_public_step_far_finer_than_the_noise():
    noise = GaussianSums(5.0)
    assert noise.step == 2**-6
    true = np.random.default_rng(1).normal(size=(40, 50)) * 100
    noisy = noise.sums(true, Stream.of(7))
    assert noisy.dtype == np.int64
    away = noisy * noise.step - true
    assert away.std() == pytest.approx(5.0, rel=0.05)
    assert abs(away.mean()) < 0.5


def test_a_ledger_reads_the_release_of_sums_that_it_wrote():
    for release in (sums_release(GaussianSums(3.0), 2), party_sums_release(GaussianSums(3.0), 2, 50)):
        assert release_from(release_fields(release)) == release


def test_nothing_is_summed_up_that_the_budget_does_not_cover():
    ledger, looked = Ledger(owner="north", budget=0.5), []
    with pytest.raises(PrivacyError, match="does not cover"):
        ledger.release_sums(lambda: looked.append(1), sums_release(GaussianSums(2.0), 2), shape=(2, 2), rng=None)
    assert looked == []


def test_other_noise_and_other_shapes_are_refused():
    ledger = Ledger()
    with pytest.raises(PrivacyError, match="not noise for sums"):
        ledger.release_sums(lambda: None, sums_release(GaussianCounts(2.0), 2), shape=(2, 2), rng=None)
    with pytest.raises(PrivacyError, match="Asked for sums of shape"):
        ledger.release_sums(lambda: np.zeros(3), sums_release(GaussianSums(2.0), 2), shape=(2, 2), rng=Stream.of(1))
    with pytest.raises(PrivacyError, match="not for votes"):
        GaussianSums(1.0).labels(np.zeros((1, 2)), Stream.of(1))
