"""A noise that somebody adds, one class and one line of the catalogue, is treated like every other."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from fedkt.algorithms import FedKT
from fedkt.algorithms.calibration import count_noise, noise_for_epsilon
from fedkt.bundle.manifest import Claim
from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.live.claims import claim_of
from fedkt.plan.privacy import Privacy
from fedkt.privacy import ConfidentGaussian, Gaussian, Gumbel, Laplace, Ledger, Release, make_noise, statement
from fedkt.privacy.accountant import price
from fedkt.privacy.audit import attack
from fedkt.privacy.calibrate import chance_right, smallest_noise
from fedkt.privacy.diagnostic import diagnose
from fedkt.privacy.entries import Spending
from fedkt.privacy.ledger import total_of
from fedkt.privacy.ledger_file import LedgerFile
from fedkt.privacy.mechanisms import NOISES, calibrated_alone, noise_of_scale, parse_noise
from fedkt.privacy.noise import Noise, noisy_winners, positive

DELTA = 1e-5
EXAMPLES = [Laplace(0.04), Gaussian(40.0), Gumbel(0.1), ConfidentGaussian(30, 20, 10, 100)]


@dataclass(frozen=True)
class Steady(Noise):
    """Gaussian noise by its precision 1/σ², which is enough of another noise to tell whether anything knows names."""

    name = "steady"
    about = "N(0, 1/precision) on every count"
    safer_if_smaller = ("precision",)
    has_win_probability = True

    precision: float

    def __post_init__(self):
        object.__setattr__(self, "precision", positive(self.name, "precision", self.precision))

    @property
    def spread(self):
        return 1 / math.sqrt(self.precision)

    def labels(self, votes, rng):
        return noisy_winners(votes, lambda shape: rng.normal(0.0, self.spread, shape))

    def win_probability(self, gap):
        return Gaussian(self.spread).win_probability(gap)

    def rdp(self, orders):
        return np.asarray(orders, dtype=float) * self.precision


@pytest.fixture(autouse=True)
def steady(monkeypatch):
    monkeypatch.setitem(NOISES, "steady", Steady)


def released(noise, purpose="student 1"):
    return Release(noise, 30, 25, 2, "record", purpose=purpose)


def test_it_is_priced_by_every_accountant_that_it_has_the_facts_for():
    found, twin = (price(released(noise), DELTA).accountants for noise in (Steady(0.01), Gaussian(10.0)))
    assert found["exact"] == pytest.approx(twin["exact"], rel=1e-9)
    assert found["rdp"] == pytest.approx(twin["rdp"], rel=1e-9)
    # What it does not state it does not have.
    assert all(found[name] == math.inf for name in ("pure", "paper", "pld", "gdp", "arg-max"))


def test_it_is_calibrated_the_way_that_is_safer_for_it():
    public = {"delta": DELTA, "voters": 25, "classes": 2, "unit": "record"}
    noise = smallest_noise("steady", epsilon=2, queries=10, **public)
    twin = smallest_noise("gaussian", epsilon=2, queries=10, **public)
    assert noise.spread == pytest.approx(twin.sigma, rel=3e-4)
    short = noise.rounded()
    assert len(f"{short.precision:.10g}".lstrip("0.").replace(".", "")) <= 5
    assert noise.precision * (1 - 1e-4) <= short.precision <= noise.precision
    fedkt = FedKT("tree", level="L2", queries=10, partitions=1, subsets=25)
    assert noise_for_epsilon(fedkt, "steady", epsilon=2, delta=DELTA, public_rows=10, classes=2, parties=3) == noise
    assert "steady" in calibrated_alone()


def test_its_spread_measures_out_the_noise_on_counts_beside_it():
    assert count_noise(Steady(0.01), 1000).sigma == pytest.approx(count_noise(Gaussian(10.0), 1000).sigma)


def test_it_is_written_into_a_ledger_and_priced_when_it_is_read_again(tmp_path):
    ledger = Ledger(owner="north", delta=DELTA, budget=10.0, file=LedgerFile.open(tmp_path / "ledger"))
    votes = np.tile([20, 5], (30, 1))
    labels = ledger.release(lambda: votes, released(Steady(0.01)), rng=np.random.default_rng(0))
    assert len(labels) == 30
    line = json.loads((tmp_path / "ledger").read_text())
    assert (line["mechanism"], line["scale"], line["purpose"]) == ("steady", {"precision": 0.01}, "student 1")
    (entry,) = LedgerFile.open(tmp_path / "ledger").entries
    assert entry.release == released(Steady(0.01))
    assert total_of([entry], DELTA) == price(released(Steady(0.01)), DELTA).epsilon


def test_an_entry_of_a_noise_that_left_the_catalogue_is_read_and_has_no_price(tmp_path, monkeypatch):
    LedgerFile.open(tmp_path / "ledger").append(Spending(who="north", release=released(Steady(0.01))))
    before = (tmp_path / "ledger").read_bytes()
    monkeypatch.delitem(NOISES, "steady")
    ledger_file = LedgerFile.open(tmp_path / "ledger")
    (entry,) = ledger_file.entries
    assert entry.line == before
    assert (entry.release.noise.name, dict(entry.release.noise.scale)) == ("steady", {"precision": 0.01})
    assert total_of([entry], DELTA) == math.inf
    with pytest.raises(PrivacyError, match="There is no noise 'steady'"):
        entry.release.noise.labels([[3, 2]], np.random.default_rng(0))


def test_it_is_claimed_stated_and_agreed_on():
    algorithm = FedKT("tree", level="L2", noise=Steady(0.01), partitions=2, subsets=25, queries=30)
    found = algorithm.price(public_rows=100, classes=2, parties=3, delta=DELTA)
    assert claim_of(found) == Claim(
        mechanism="steady",
        scale={"precision": 0.01},
        queries=30,
        partitions=2,
        voters=25,
        classes=2,
        epsilon=found.epsilon,
        delta=DELTA,
        unit="record",
        adjacency="replace-one",
        total_epsilon=found.epsilon,
        releases=2,
    )
    said = statement("L2", found)
    assert (said.mechanism, said.scale, said.queries) == ("steady", {"precision": 0.01}, 60)
    assert "60 noisy labels of steady (precision 0.01) over 25 voters" in str(said)
    agreed = Privacy(mechanism="steady", scale={"precision": 0.01}, queries=30, delta=DELTA)
    assert agreed.noise == Steady(0.01)


def test_it_is_audited_and_refused_where_it_states_no_formula():
    found = attack(price(released(Steady(0.01)), DELTA), rng=np.random.default_rng(1), trials=2_000)
    assert not found.broken
    assert chance_right(Steady(0.01), (20, 5)) == pytest.approx(chance_right(Gaussian(10.0), (20, 5)))
    with pytest.raises(PrivacyError, match="laplace, gaussian or confident-gaussian noise, got steady"):
        diagnose([[20, 5]], Steady(0.01), DELTA)
    with pytest.raises(ConfigurationError, match="two classes only"):
        attack(price(replace(released(Steady(0.01)), classes=3), DELTA), rng=np.random.default_rng(1), trials=2_000)


def test_its_word_is_parsed_and_its_scale_alone_names_it():
    assert parse_noise("steady:0.01") == Steady(0.01)
    assert noise_of_scale()["precision"] == "steady"


@pytest.mark.parametrize(
    ("word", "noise"),
    [
        ("gaussian:40", Gaussian(40.0)),
        ("laplace:0.04", Laplace(0.04)),
        ("gumbel:1e-1", Gumbel(0.1)),
        ("confident-gaussian:30,20,10,100", ConfidentGaussian(30, 20, 10, 100)),
        (" confident-gaussian:30, 20, 10, 100 ", ConfidentGaussian(30, 20, 10, 100)),
    ],
)
def test_a_word_is_a_name_and_its_numbers_in_order(word, noise):
    assert parse_noise(word) == noise


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("gauss:40", r"There is no noise 'gauss'\. Choose one of: laplace, gaussian, gumbel, confident-gaussian"),
        ("40", "There is no noise '40'"),
        ("", "There is no noise ''"),
        ("gaussian-counts:3", "There is no noise 'gaussian-counts'"),
        ("gaussian", r"takes 1 number \(sigma\), got 0 in 'gaussian'\. Write gaussian:SIGMA\."),
        ("gaussian:40,2", r"takes 1 number \(sigma\), got 2"),
        (
            "confident-gaussian:30,20",
            r"takes 4 numbers \(threshold, sigma_test, sigma, answers\), got 2 in .* Write "
            r"confident-gaussian:THRESHOLD,SIGMA_TEST,SIGMA,ANSWERS\.",
        ),
        ("gaussian:", "The sigma of gaussian noise is a number, got '' in 'gaussian:'"),
        ("laplace:much", r"The gamma of laplace noise is a number, got 'much' in .* Write laplace:GAMMA\."),
        ("gaussian:-1", "must be above zero"),
        ("gaussian:inf", "must be finite"),
        ("confident-gaussian:30,20,10,2.5", "whole number"),
    ],
)
def test_a_word_that_names_no_noise_is_refused_with_what_to_write(word, reason):
    with pytest.raises(ConfigurationError, match=reason):
        parse_noise(word)


@pytest.mark.parametrize("noise", EXAMPLES, ids=repr)
def test_every_noise_states_its_facts(noise):
    assert noise.about
    assert "\n" not in noise.about
    assert set(noise.safer_if_larger) | set(noise.safer_if_smaller) | set(noise.fixed_parameters()) == set(noise.scale)
    draws = noise.labels(np.tile([40, 40], (2_000, 1)), np.random.default_rng(5))
    assert set(draws[draws >= 0]) == {0, 1}
    for name in noise.scale:
        if name in noise.fixed_parameters():
            continue
        factor = 1.1 if name in noise.safer_if_larger else 1 / 1.1
        safer = make_noise(noise.name, {**noise.scale, name: noise.scale[name] * factor})
        assert (safer.rdp([2.0, 9.0]) < noise.rdp([2.0, 9.0])).all()


@pytest.mark.parametrize(
    ("noise", "spread"),
    [
        (Laplace(0.5), math.sqrt(2) / 0.5),
        (Gaussian(7.0), 7.0),
        (Gumbel(0.5), math.pi / math.sqrt(6) / 0.5),
        (ConfidentGaussian(0, 1, 7, 5), 7.0),
    ],
    ids=repr,
)
def test_the_spread_is_the_standard_deviation_of_what_is_drawn(noise, spread):
    assert noise.spread == pytest.approx(spread)

    class Kept:
        """A source that remembers what it drew last."""

        def __init__(self):
            self.rng = np.random.default_rng(8)

        def __getattr__(self, name):
            def draw(*figures):
                self.last = getattr(self.rng, name)(*figures)
                return self.last

            return draw

    source = Kept()
    noise.labels(np.ones((50_000, 2)), source)
    assert source.last.std() == pytest.approx(spread, rel=0.03)


@pytest.mark.parametrize(
    ("noise", "short"),
    [
        (Laplace(0.123456789), Laplace(0.12345)),
        (Gaussian(12.3456789), Gaussian(12.346)),
        (Gumbel(98765.4321), Gumbel(98765.0)),
        (ConfidentGaussian(30.123456, 1.2345678, 0.00123456, 7), ConfidentGaussian(30.123456, 1.2346, 0.0012346, 7)),
    ],
    ids=repr,
)
def test_a_scale_is_rounded_to_five_digits_and_to_the_private_side(noise, short):
    assert noise.rounded() == short
