"""Runs: reproducible, and refused in words."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedkt.data import DATASETS, PARTITIONERS, by_dirichlet
from fedkt.data.digits import load_digits
from fedkt.errors import ConfigurationError, DataError
from fedkt.lab.results import summarise
from fedkt.lab.runner import run
from fedkt.lab.setting import Setting, fingerprint
from fedkt.privacy import Gaussian, Release
from fedkt.privacy.accountant import price
from real_data import DATA_DIR, needs_real_data

QUICK = Setting("digits", model="tree", parties=3, partitions=1, subsets=2)
NOISY = ("seconds", "cpu_seconds")


def figures(report):
    return {name: value for name, value in report.as_dict().items() if name not in NOISY}


def test_a_run_with_the_same_seed_gives_the_same_numbers_whatever_the_workers():
    assert figures(run(QUICK)) == figures(run(QUICK, jobs=2))


def test_another_seed_gives_another_split():
    from dataclasses import replace

    assert run(QUICK).accuracy != run(replace(QUICK, seed=1)).accuracy


def test_a_report_names_everything_that_decided_the_result():
    report = run(QUICK, command="fedkt simulate digits")
    assert (report.dataset, report.algorithm, report.model) == ("digits", "fedkt", "tree")
    assert (report.parties, report.partitions, report.subsets, report.level, report.seed) == (3, 1, 2, "L0", 0)
    assert report.rows == {"parties": 1347, "public": 225, "test": 225}
    assert report.versions["fedkt"]
    assert report.epsilon is None
    assert "L0" in report.privacy


def test_bytes_are_measured_from_real_bundles_on_request():
    assert run(QUICK).bytes_sent is None
    sent = run(QUICK, measure_bytes=True).bytes_sent
    # Three parties with one tree each: a zip, a manifest and a model are never under 500 bytes.
    assert sent is not None
    assert sent > 3 * 500


def test_accuracies_are_those_of_scikit_learn():
    from sklearn.metrics import accuracy_score, balanced_accuracy_score

    from fedkt.models.base import FittedModel
    from fedkt.report import accuracies

    class Says:
        def predict(self, rows):
            return rows[:, 0]

    y = np.array([0, 0, 0, 1, 1, 2])
    answers = np.array([[0], [0], [1], [1], [2], [2]])
    plain, balanced = accuracies([FittedModel(Says(), np.arange(3))], answers, y)
    assert plain == [pytest.approx(accuracy_score(y, answers[:, 0]))]
    assert balanced == [pytest.approx(balanced_accuracy_score(y, answers[:, 0]))]


def test_mean_and_spread_are_over_the_seeds():
    from dataclasses import replace

    one = run(QUICK)
    reports = [replace(one, accuracy=value, seed=seed) for seed, value in enumerate((0.8, 0.9, 1.0))]
    summary = summarise(reports)[0]
    assert summary.accuracy == (pytest.approx(0.9), pytest.approx(0.1))
    assert summary.seeds == (0, 1, 2)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"dataset": "moon"}, "no dataset 'moon'.*digits"),
        ({"algorithm": "magic"}, "no algorithm 'magic'.*fedkt"),
        ({"partition": "odd"}, "no partition 'odd'.*dirichlet"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(wrong, words):
    with pytest.raises(ConfigurationError, match=words):
        Setting(**{"dataset": "digits", **wrong}).with_defaults()


def test_digits_has_no_column_of_parties():
    with pytest.raises(DataError, match="no column that says"):
        run(Setting("digits", partition="column"))


@needs_real_data
def test_hospitals_are_parties_by_themselves_and_may_differ_in_family():
    report = run(Setting("heart", party_models=("tree", "logistic", "naive-bayes"), subsets=2), data_dir=DATA_DIR)
    assert report.parties == 4
    assert report.partition == "column"
    assert report.accuracy > 0.7


@needs_real_data
def test_adult_with_single_trees_learns_more_than_the_majority_class():
    # 75.9 % of Adult earns 50K or less; balanced accuracy .5 would be a model that says so of everybody.
    report = run(Setting("adult", model="tree", parties=10, partition="even"), data_dir=DATA_DIR)
    assert report.accuracy > 0.82
    assert report.balanced_accuracy > 0.65


def test_subsets_are_no_part_of_a_method_that_has_none():
    asked = Setting("digits", "fedkt-expert-no-counts", partitions=3, subsets=5)
    assert fingerprint(asked.with_defaults()) == fingerprint(
        replace(asked, partitions=None, subsets=None).with_defaults()
    )


def odd_or_even(**settings):
    """The digits as two classes, of which the price of a vote depends on the number of voters."""
    data = load_digits(**settings)
    labels = {each: getattr(data, each) % 2 for each in ("y", "y_public", "y_test")}
    return replace(data, classes=("even", "odd"), **labels)


@pytest.mark.parametrize(
    ("level", "release"),
    [
        ("L1", {"queries": 10, "voters": 7, "unit": "party", "abstentions": True}),
        ("L2", {"queries": 30, "voters": 4, "unit": "record"}),
    ],
)
def test_an_epsilon_is_kept_among_as_many_voters_as_there_are(monkeypatch, level, release):
    monkeypatch.setitem(DATASETS, "digits", replace(DATASETS["digits"], loader=odd_or_even))
    private = {"algorithm": "fedkt", "level": level, "epsilon": 2.0, "queries": 10}
    report = run(replace(QUICK, parties=7, partitions=3, subsets=4, **private))
    sigma = report.privacy_statement["scale"]["sigma"]
    assert 1.9 < price(Release(Gaussian(sigma), classes=2, **release), 1e-5).epsilon <= 2.0
    assert 1.9 < report.epsilon <= 2.0


def test_a_level_that_there_is_not_is_refused_with_the_known_ones_whatever_the_algorithm():
    with pytest.raises(ConfigurationError, match=r"no privacy level 'L9'\. Choose one of: L0, L1, L2"):
        Setting("digits", algorithm="solo", level="L9").with_defaults()


def test_copies_are_part_of_a_setting_only_where_they_are_wanted_and_can_be():
    plain = Setting("mnist", algorithm="fedkt-expert", model="mlp")
    assert "copies" not in fingerprint(plain.with_defaults())
    assert '"copies": true' in fingerprint(replace(plain, copies=True).with_defaults())
    # Who has no final model of its own to teach runs the same with and without.
    assert fingerprint(Setting("mnist", algorithm="solo", copies=True).with_defaults()) == fingerprint(
        Setting("mnist", algorithm="solo").with_defaults()
    )


def test_parties_without_rows_do_not_take_part_and_are_not_counted(monkeypatch):
    """Dir(0.01) gives most of 60 parties nothing of any class; the vote is priced for those that have one."""
    monkeypatch.setitem(PARTITIONERS, "dirichlet", partial(by_dirichlet, max_tries=10))
    crowd = replace(QUICK, parties=60, partition="dirichlet", beta=0.01, level="L1", epsilon=1.0, mechanism="gaussian")
    report = run(crowd)
    assert 1 < report.parties < 60
    assert report.privacy_statement["voters"] == report.parties
    (note,) = [each for each in report.notes if "drew no rows" in each]
    assert note.startswith(f"{60 - report.parties} of 60 parties")
    alone = run(replace(QUICK, algorithm="solo", parties=60, partition="dirichlet", beta=0.01))
    assert len(alone.party_rows) == report.parties
    assert min(alone.party_rows.values()) >= 1
