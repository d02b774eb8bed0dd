"""What is planned for moments, and attacks whose outcome is known beforehand."""

import json
from dataclasses import replace
from math import exp

import numpy as np
import pytest

from fedkt.algorithms import ALGORITHMS
from fedkt.data import DATASETS, KnownDataset
from fedkt.errors import DataError
from fedkt.privacy.sums import GaussianSums
from paper.kept import make_missing
from paper.moments_attack import bound, figures, lira, proven_epsilon, ratio
from paper.moments_data import package_folder, register
from paper.moments_study import MOMENTS, PARTS, known, make_part, setting_of


@pytest.mark.parametrize("part", list(PARTS))
def test_what_is_planned_is_understood_by_the_laboratory_or_left_out_in_words(part):
    register()
    settings = list(PARTS[part](range(300, 310)))
    for setting in settings:
        assert known(setting) or setting.with_defaults().seed in range(300, 310)
    assert settings[0].algorithm == MOMENTS, "the decisive runs come first"
    assert all(each.algorithm in ALGORITHMS for each in settings if not known(each))


def test_a_run_that_cannot_be_had_is_named_and_keeps_no_other_waiting(tmp_path, monkeypatch):
    def missing(**_):
        raise DataError("no such package")

    monkeypatch.setitem(DATASETS, "flights", KnownDataset(missing, 11, "forest", "", "column"))
    monkeypatch.setitem(ALGORITHMS, MOMENTS, replace(ALGORITHMS[MOMENTS], levels=("L0",)))
    settings = [
        setting_of("flights", "centralised", 1),
        setting_of("digits", MOMENTS, 1, level="L2", epsilon=1.0),
        setting_of("digits", "centralised", 1),
    ]
    left_out = make_part(settings, tmp_path / "runs.jsonl", data_dir=None)
    assert sorted(left_out.values()) == ["'fedkt-moments' has no level L2 here", "no such package"]
    (line,) = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert json.loads(line)["setting"]["dataset"] == "digits"


def test_a_finished_line_is_not_made_again(tmp_path):
    made, keys = [], [{"seed": 1}, {"seed": 2}]

    def make(key):
        made.append(key["seed"])
        return {"accuracy": 0.5}

    make_missing(tmp_path / "runs.jsonl", keys, make, say=lambda _: None)
    make_missing(tmp_path / "runs.jsonl", [*keys, {"seed": 3}], make, say=lambda _: None)
    assert made == [1, 2, 3]
    lines = [json.loads(each) for each in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(each["seed"], each["accuracy"]) for each in lines] == [(1, 0.5), (2, 0.5), (3, 0.5)]


def test_a_package_that_is_not_there_is_refused_with_the_command_that_has_it():
    with pytest.raises(ValueError, match="pip install --no-deps --target FOLDER no_such_package"):
        package_folder("no_such_package")


def test_scores_that_tell_all_members_reach_everything_and_equal_ones_nothing():
    apart = figures(np.arange(100.0, 200.0), np.arange(0.0, 100.0))
    assert (apart["auc"], apart["tpr"]) == (1.0, 1.0)
    alike = figures(np.ones(100), np.ones(100))
    assert (alike["auc"], alike["tpr"]) == (0.5, 0.0)


def test_shadow_models_find_members_whose_confidence_rises_and_only_those():
    rng = np.random.default_rng(0)
    inside = np.array([rng.permutation(200) < 100 for _ in range(12)])
    noise = rng.normal(size=inside.shape)
    assert lira(noise, inside)["auc"] == pytest.approx(0.5, abs=0.05)
    assert lira(noise + 10 * inside, inside)["auc"] > 0.99


def test_the_best_test_of_the_noise_is_as_good_as_gaussians_that_far_apart():
    # Δ/σ = 2/2 = 1: an AUC of Φ(1/√2) = .7602.
    noise, rng = GaussianSums(2.0), np.random.default_rng(0)
    first, second = np.array([[1.0], [1.0]]), np.array([[1.0], [-1.0]])
    scores = [[ratio(noise, truth, first, second - first, rng) for _ in range(4_000)] for truth in (first, second)]
    assert figures(*map(np.array, scores))["auc"] == pytest.approx(0.7602, abs=0.02)
    # Its exact ε at δ = 1e-5 is 4.4, which no errors disprove.
    assert 0.5 < proven_epsilon(*map(np.array, scores)) < 4.4


def test_a_promise_bounds_the_hits_at_one_percent_false_alarms():
    assert bound(1.0) == pytest.approx(0.01 * exp(1) + 1e-5)
    assert bound(8.0) == pytest.approx(1 - exp(-8) * 0.98999), "of a large ε the other inequality is the sharper one"
