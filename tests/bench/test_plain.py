"""The bare loops are rivals worth the name: the same models on the same rows, and the same answers."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from fedkt.bench import ours, plain
from fedkt.bench.cases import STUDENTS, Case
from fedkt.bench.plain import learners
from fedkt.bench.rows import made_up, work_of
from fedkt.bench.work import load_work, save_work
from fedkt.models.catalogue import as_estimator, default_teacher

SMALL = {"parties": 3, "private_rows": 60, "public_rows": 80, "subsets": 3, "classes": 3, "columns": 4}
USED_BY_NEITHER = {"n_jobs", "random_state", "verbose"}


def work_for(voting, model="tree"):
    shape = {"partitions": 2} if voting == "consistent" else {"partitions": 1, "subsets": 1}
    return made_up(voting=voting, model=model, **{**SMALL, **shape})


@pytest.fixture
def fits(monkeypatch):
    """Every fit of a tree or of naive Bayes, by what it was given."""
    seen = []
    for kind in (DecisionTreeClassifier, GaussianNB):

        def fit(self, X, y, sample_weight=None, _fit=kind.fit, **options):
            weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            parts = (np.asarray(X, dtype=np.float32), np.asarray(y, dtype=np.int64), weights.round(6))
            seen.append((type(self).__name__, self.get_params().get("random_state"), len(y), digest(parts)))
            return _fit(self, X, y, sample_weight=sample_weight, **options)

        monkeypatch.setattr(kind, "fit", fit)
    return seen


def digest(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in arrays)).hexdigest()


@pytest.mark.parametrize("voting", STUDENTS)
def test_both_ways_fit_the_same_models_on_the_same_rows_and_answer_alike(voting, fits):
    work = work_for(voting)
    mine = ours.play(work)
    of_fedkt = sorted(fits, key=str)
    fits.clear()
    theirs = plain.play(work)
    assert sorted(fits, key=str) == of_fedkt
    # Teachers, students and the final model: 3 · (2 · 3 + 2) + 1, 3 · (1 + 1) + 1 and 3 · (2 + 1) + 1.
    assert len(fits) == {"consistent": 25, "expert": 7, "expert-no-counts": 10}[voting]
    assert theirs.tolist() == mine.tolist()


def test_students_of_naive_bayes_learn_the_same_labels_in_both_ways(fits):
    work = work_for("consistent", model="naive-bayes")
    ours.play(work)
    of_fedkt = list(fits)
    fits.clear()
    plain.play(work)
    # fedkt also fits two models of half the public rows, to find out how sure the final one may be.
    assert set(fits) <= set(of_fedkt)
    assert (len(fits), len(of_fedkt)) == (25, 27)


@pytest.mark.parametrize("family", ["tree", "forest", "boosting", "naive-bayes"])
def test_a_plain_model_has_the_settings_of_fedkts_own(family):
    if family == "boosting":
        pytest.importorskip("xgboost")
    own, theirs = as_estimator(family).get_params(), learners.MODELS[family](7).get_params()
    assert {name: theirs[name] for name in own if name not in USED_BY_NEITHER} == pytest.approx(
        {name: value for name, value in own.items() if name not in USED_BY_NEITHER}, nan_ok=True
    )
    teacher = type(default_teacher(as_estimator(family)))
    assert isinstance(learners.MODELS[learners.TEACHERS.get(family, family)](7), teacher)


def test_plain_networks_are_fedkts_own():
    pytest.importorskip("torch")
    from fedkt.bench.plain.networks import BATCHES, DECAY, RATE, build
    from fedkt.models.neural.networks import NETWORKS

    for family, image, shape in (("mlp", None, (784,)), ("cnn", (32, 32, 3), (3, 32, 32))):
        mine, theirs = NETWORKS[family](shape, 10), build(family, image, 784, 10)
        assert [each.shape for each in theirs.parameters()] == [each.shape for each in mine.parameters()]
        recipe = as_estimator(family).recipe
        assert (BATCHES[family], RATE, DECAY) == (recipe.batch_size, recipe.learning_rate, recipe.weight_decay)


def test_plain_sums_answer_nearly_as_moments_do(tmp_path):
    work = work_with_features(made_up(voting="moments", parties=4, private_rows=100, public_rows=200))
    agreement = (ours.play(work) == plain.play(work)).mean()
    # Of two classes the heads have one direction; fedkt's is calibrated on public rows, which moves the cut a little.
    assert agreement > 0.97


def work_with_features(work):
    from dataclasses import replace

    from fedkt.bench.rows import feature_arrays

    return replace(work, features=feature_arrays("tree", work.public))


def test_bagging_learns_what_two_clouds_are():
    pytest.importorskip("xgboost")
    work = made_up(parties=4, private_rows=100, public_rows=20)
    assert (plain.play_bagging(work) == work.y_test).mean() > 0.8


def test_a_case_has_the_very_parties_of_a_simulation():
    from fedkt.lab.rows import load_split
    from fedkt.lab.runner import assemble, draw_parties
    from fedkt.lab.setting import Setting

    setting = Setting("digits", algorithm="fedkt", seed=3).with_defaults()
    data = load_split(setting, None)
    parties = assemble(setting, data, draw_parties(setting, data))
    work = work_of(Case("digits", "consistent"), seed=3)
    assert [seed for *_, seed in work.parties] == [party.seed for party in parties]
    for (X, y, _), party in zip(work.parties, parties, strict=True):
        assert np.array_equal(X, party.X)
        assert np.array_equal(y, party.y)
    assert (work.partitions, work.subsets, work.model) == (setting.partitions, setting.subsets, setting.model)


def test_work_comes_back_from_its_folder(tmp_path):
    work = work_with_features(made_up(voting="moments", **SMALL))
    save_work(work, tmp_path)
    again = load_work(tmp_path)
    assert (again.sizes, again.party_seeds, again.image, again.epochs) == (work.sizes, work.party_seeds, None, None)
    assert np.array_equal(again.X, work.X)
    assert np.array_equal(again.features["phases"], work.features["phases"])
