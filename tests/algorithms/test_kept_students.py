"""Kept students: a run that recalls them ends as one that trains them, to the bit, and nothing else recalls them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fedkt.algorithms import Auto, FedKT, kept_students
from fedkt.federation import Diary, Party, Server, simulate
from fedkt.models.base import FittedModel
from fedkt.privacy import Gaussian, Ledger
from fedkt.system.cache import Cache

RNG = np.random.default_rng(5)
PUBLIC, TEST = RNG.normal(size=(120, 4)), RNG.normal(size=(300, 4))
ROWS = RNG.normal(size=(3, 80, 4))
LABELS = (ROWS[..., 0] + ROWS[..., 1] ** 2 > 0.5).astype(np.int64)
FOREST = RandomForestClassifier(n_estimators=3, max_depth=4)
LINEAR = make_pipeline(StandardScaler(), LogisticRegression())
NOISE = Gaussian(sigma=3.0)


def parties(cache=None, **changes):
    return [
        replace(
            Party(
                PUBLIC, ("no", "yes"), number, name=f"p{number}", X=ROWS[number], y=LABELS[number], noise_seed=number
            ),
            cache=cache,
            diary=Diary(),
            ledger=Ledger(),
            shelf={},
            **changes,
        )
        for number in range(3)
    ]


def play(algorithm, cache=None, **options):
    server = Server(PUBLIC, ("no", "yes"), 9, noise_seed=7)
    return simulate(algorithm, parties(cache), server, **options)


def facts(outcome):
    """All that a report could tell of an outcome, and what its final model says of rows that nobody has seen."""
    final = outcome.final.models[0]
    return (
        final.predict_proba(TEST, 2).tobytes() if isinstance(final, FittedModel) else None,
        [(diary.notes, [each.tolist() for _, each in diary.vote.labels]) for diary in outcome.parties.values()],
        outcome.server.notes,
        outcome.server.vote.figures(),
        [(each.sender, each.counts, each.has_probabilities, each.calibrated) for each in outcome.bundles],
    )


@pytest.fixture
def training(monkeypatch):
    """How many students were trained."""
    counted, learn = [], kept_students.learn_all

    def count(lessons, **options):
        counted.extend(lessons)
        return learn(lessons, **options)

    monkeypatch.setattr(kept_students, "learn_all", count)
    return counted


@pytest.mark.parametrize(
    "make",
    [
        lambda: FedKT(FOREST),
        lambda: FedKT(LINEAR),
        lambda: FedKT(FOREST, voting="expert"),
        lambda: FedKT(LINEAR, voting="expert", subsets=2),
        lambda: FedKT(FOREST, voting="expert-no-counts"),
        lambda: FedKT(LINEAR, level="L1", noise=NOISE, queries=50),
        lambda: FedKT(LINEAR, level="L2", noise=NOISE, queries=50),
        lambda: FedKT(FOREST, voting="expert", level="L2", noise=NOISE, queries=50),
        lambda: Auto(LINEAR),
    ],
    ids=["forest", "linear", "expert", "several", "background", "L1", "L2", "expert L2", "auto"],
)
def test_a_run_that_recalls_its_students_ends_as_one_that_trains_them(tmp_path, training, make):
    plain = facts(play(make()))
    trained = len(training)
    assert facts(play(make(), Cache(tmp_path))) == plain
    assert len(training) == 2 * trained
    recalled = play(make(), Cache(tmp_path))
    assert facts(recalled) == plain
    assert len(training) == 2 * trained
    assert sum(each.spared.students for each in recalled.parties.values()) == trained
    assert sum(each.spared.seconds for each in recalled.parties.values()) > 0


def test_networks_of_one_stack_are_kept_and_recalled_as_one(tmp_path, training):
    pytest.importorskip("torch")
    from fedkt.models.neural.classifier import NeuralClassifier

    algorithm = FedKT(NeuralClassifier("mlp", epochs=1), partitions=1, subsets=2)
    plain = facts(play(algorithm))
    assert facts(play(algorithm, Cache(tmp_path))) == plain
    assert len(list(tmp_path.iterdir())) == 1
    assert facts(play(algorithm, Cache(tmp_path))) == plain
    assert len(training) == 2 * 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FedKT(FOREST), FedKT(FOREST, final=LINEAR)),
        (FedKT(FOREST), FedKT(FOREST, soft_final=False)),
        (FedKT(LINEAR, partitions=1), FedKT(LINEAR, level="L1", noise=NOISE, queries=50)),
        (
            FedKT(LINEAR, level="L1", noise=NOISE, queries=50),
            FedKT(LINEAR, level="L1", noise=Gaussian(sigma=9.0), queries=77),
        ),
        (
            FedKT(FOREST, level="L2", noise=NOISE, queries=50),
            FedKT(FOREST, voting="expert", level="L2", noise=NOISE, queries=50),
        ),
        (Auto(FOREST), FedKT(FOREST, voting="expert", final=LINEAR)),
    ],
    ids=["final model", "final labels", "level L1", "noise and queries", "voting", "voting of auto"],
)
def test_what_only_the_server_does_otherwise_trains_nothing_at_the_parties(tmp_path, training, first, second):
    expected = facts(play(second))
    play(first, Cache(tmp_path))
    training.clear()
    assert facts(play(second, Cache(tmp_path))) == expected
    assert training == []


def lesson(algorithm=None, **changes):
    algorithm = algorithm or FedKT(LINEAR)
    party = parties(**changes)[0]
    return algorithm.lessons(party, algorithm.roles_at([party])[0])


OTHER_CELL = ROWS[0].copy()
OTHER_CELL[3, 2] = np.nextafter(OTHER_CELL[3, 2], 9)
NOISY = {"level": "L2", "noise": NOISE, "queries": 50}
LESSONS = {
    "as it is": lesson()[:1],
    "another partition": lesson()[1:],
    "both": lesson(),
    "one cell": lesson(X=OTHER_CELL)[:1],
    "one label": lesson(y=np.concatenate([1 - LABELS[0][:1], LABELS[0][1:]]))[:1],
    "other public rows": lesson(public=PUBLIC[1:])[:1],
    "float32": lesson(X=ROWS[0].astype(np.float32))[:1],
    "a seed": lesson(seed=99)[:1],
    "a name": lesson(name="q")[:1],
    "classes": lesson(classes=("yes", "no"))[:1],
    "weights": lesson(weights=np.ones(80))[:1],
    "subsets": lesson(FedKT(LINEAR, subsets=4))[:1],
    "a parameter of a step": lesson(FedKT(make_pipeline(StandardScaler(), LogisticRegression(C=0.5))))[:1],
    "a teacher": lesson(FedKT(LINEAR, teacher=FOREST))[:1],
    "expert": lesson(FedKT(LINEAR, voting="expert", subsets=5))[:1],
    "no counts": lesson(FedKT(LINEAR, voting="expert-no-counts"))[:1],
    "L2": lesson(FedKT(LINEAR, **NOISY)),
    "more noise": lesson(FedKT(LINEAR, **{**NOISY, "noise": Gaussian(sigma=3.5)})),
    "fewer queries": lesson(FedKT(LINEAR, **{**NOISY, "queries": 49})),
    "other noise": lesson(FedKT(LINEAR, **NOISY), noise_seed=99),
}


def key_of(lessons, soft=False):
    return kept_students.key_of(lessons, soft=soft)


def test_no_two_different_lessons_share_a_key():
    keys = {name: key_of(each) for name, each in LESSONS.items()}
    assert len(set(keys.values())) == len(keys)
    assert keys["as it is"] == key_of(lesson()[:1])
    assert key_of(lesson()[:1], soft=True) not in keys.values()


def test_another_version_of_anything_has_other_keys(monkeypatch):
    before, made_by = key_of(LESSONS["as it is"]), kept_students.made_by()
    for name in ("fedkt", "numpy", "scikit-learn", "source", "machine"):
        monkeypatch.setattr(kept_students, "made_by", lambda name=name: made_by | {name: "another"})
        assert key_of(LESSONS["as it is"]) != before
    monkeypatch.setattr(kept_students, "made_by", lambda: made_by)
    monkeypatch.setattr(kept_students, "FORMAT", 0)
    assert key_of(LESSONS["as it is"]) != before


class Own(LogisticRegression):
    """A stranger's class."""


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        (FedKT(LINEAR, level="L2", noise=NOISE, queries=50), {"noise_seed": None}),
        (FedKT(LINEAR, level="L2", noise=NOISE, queries=50), {"ledger": Ledger(budget=100.0)}),
        (FedKT(LINEAR), {"diagnostic": True}),
        (FedKT(Own()), {}),
    ],
    ids=["noise drawn once", "a budget", "votes that are kept", "a stranger's model"],
)
def test_what_must_be_done_anew_is_not_kept(tmp_path, training, algorithm, changes):
    for _ in range(2):
        every = [replace(each, **changes) for each in parties(Cache(tmp_path / "none"))]
        simulate(algorithm, every, Server(PUBLIC, ("no", "yes"), 9))
    assert len(training) == 2 * 3 * algorithm.partitions
    assert not (tmp_path / "none").exists()


def test_a_damaged_entry_is_trained_again_and_told(tmp_path, training):
    plain = play(FedKT(FOREST), Cache(tmp_path)).final.models[0].predict_proba(TEST, 2)
    damaged = sorted(tmp_path.iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    training.clear()
    again = play(FedKT(FOREST), Cache(tmp_path))
    assert len(training) == 1
    assert np.array_equal(again.final.models[0].predict_proba(TEST, 2), plain)
    notes = [note for diary in again.parties.values() for note in diary.notes]
    assert [note for note in notes if "damaged (its digest does not fit)" in note] == notes
    assert len(notes) == 1
    assert not [note for diary in play(FedKT(FOREST), Cache(tmp_path)).parties.values() for note in diary.notes]


def test_a_full_disk_costs_the_cache_and_not_the_run(tmp_path, monkeypatch):
    def full(self, key, content):
        raise OSError(28, "No space left on device")

    plain = play(FedKT(FOREST)).final.models[0].predict_proba(TEST, 2)
    monkeypatch.setattr(Cache, "write", full)
    outcome = play(FedKT(FOREST), Cache(tmp_path))
    assert np.array_equal(outcome.final.models[0].predict_proba(TEST, 2), plain)
    assert "could not be kept: No space left on device" in outcome.parties["p0"].notes[0]


def test_a_folder_in_which_nothing_can_be_made_costs_the_cache_and_not_the_run(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    plain = play(FedKT(FOREST)).final.models[0].predict_proba(TEST, 2)
    outcome = play(FedKT(FOREST), Cache(tmp_path / "file" / "new"))
    assert np.array_equal(outcome.final.models[0].predict_proba(TEST, 2), plain)
    assert any("could not be kept" in note for note in outcome.parties["p0"].notes)


def test_networks_on_another_device_have_other_keys(monkeypatch):
    pytest.importorskip("torch")
    from fedkt.models.neural import device
    from fedkt.models.neural.classifier import NeuralClassifier

    networks, trees = lesson(FedKT(NeuralClassifier("mlp", epochs=1))), LESSONS["as it is"]
    before = key_of(networks), key_of(trees)
    monkeypatch.setattr(device, "device_of", lambda name: "cuda:0")
    assert key_of(networks) != before[0]
    assert key_of(trees) == before[1]
