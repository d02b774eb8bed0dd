"""Federations of neural networks: whole runs, mixed families, private levels, pictures."""

from __future__ import annotations

import csv
import io
import struct
from dataclasses import replace

import numpy as np
import pytest

from live_federation import fedkt

pytest.importorskip("torch")

from sklearn.datasets import load_digits
from torch import nn

from fedkt import FedKTClassifier
from fedkt.algorithms import FedKT, Solo
from fedkt.algorithms.lesson import CUT, cut
from fedkt.errors import ConfigurationError, DataError, ModelError
from fedkt.federation import Party, Server, simulate
from fedkt.lab.runner import run
from fedkt.lab.setting import Setting
from fedkt.models.catalogue import family_of, trained_for
from fedkt.models.ensemble import group_tasks
from fedkt.models.neural.classifier import NeuralClassifier
from fedkt.models.training import train_models
from fedkt.privacy import Gaussian

PIXELS, DIGITS = load_digits(return_X_y=True)
PIXELS = (PIXELS / 16).astype(np.float32)
PUBLIC, TEST = slice(1000, 1300), slice(1300, 1797)
CLASSES = tuple(range(10))


def parties(models=(None,) * 4, image=None):
    return [
        Party(
            PIXELS[PUBLIC],
            CLASSES,
            10 + i,
            image=image,
            name=f"party {i}",
            X=PIXELS[i * 250 : i * 250 + 250],
            y=DIGITS[i * 250 : i * 250 + 250],
            model=model,
        )
        for i, model in enumerate(models)
    ]


def server(image=None):
    return Server(PIXELS[PUBLIC], CLASSES, 99, image=image)


def test_a_federation_of_networks_learns_to_read_digits():
    outcome = simulate(FedKT(trained_for("mlp", 30), subsets=3), parties(), server())
    assert np.mean(outcome.final.models[0].predict(PIXELS[TEST]) == DIGITS[TEST]) > 0.8


def test_the_report_says_how_networks_were_trained():
    report = run(Setting("digits", model="mlp", epochs=2))
    assert "50 teachers were trained in 2 stacks." in report.notes
    assert "10 students were trained in 1 stack." in report.notes


def test_every_party_may_bring_another_family():
    families = (trained_for("mlp", 20), "forest", "boosting", "logistic")
    outcome = simulate(FedKT("forest", subsets=3), parties(families), server())
    students = [bundle.models[0].estimator for bundle in outcome.bundles]
    assert isinstance(students[0], NeuralClassifier)
    assert [family_of(each).name for each in students[1:]] == ["forest", "boosting", "logistic"]
    assert np.mean(outcome.final.models[0].predict(PIXELS[TEST]) == DIGITS[TEST]) > 0.75


@pytest.mark.parametrize("level", ["L1", "L2"])
def test_networks_learn_from_noisy_votes(level):
    algorithm = FedKT(trained_for("mlp", 20), subsets=5, level=level, noise=Gaussian(0.5), queries=0.9)
    outcome = simulate(algorithm, parties(), server())
    assert np.mean(outcome.final.models[0].predict(PIXELS[TEST]) == DIGITS[TEST]) > 0.3


def test_at_level_l2_a_teacher_may_not_stop_early_and_a_student_may():
    patient = NeuralClassifier(epochs=30, early_stopping=True)
    private = {"subsets": 3, "level": "L2", "noise": Gaussian(0.5), "queries": 0.5}
    with pytest.raises(ConfigurationError, match="may not stop early"):
        simulate(FedKT(patient, **private), parties(), server())
    brief = trained_for("mlp", 5)
    simulate(FedKT(brief, teacher=brief, student=patient, **private), parties(), server())


def test_early_stopping_is_found_inside_a_pipeline_and_whatever_it_is_set_to():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    private = {"subsets": 3, "level": "L2", "noise": Gaussian(0.5), "queries": 0.5}
    for patient in (
        make_pipeline(StandardScaler(), NeuralClassifier(early_stopping=True)),
        NeuralClassifier(early_stopping=1),
    ):
        with pytest.raises(ConfigurationError, match="may not stop early"):
            simulate(FedKT(patient, **private), parties(), server())


def test_a_record_touches_no_teacher_but_its_own():
    """The promise of level L2. One record makes a subset's labels all alike or not; the others must not notice."""

    def teachers(label):
        y = DIGITS[:250].copy()
        member = Party(PIXELS[PUBLIC], CLASSES, 5, name="a", X=PIXELS[:250], y=y)
        piece = cut(250, 8, member.rng(0, CUT))[3]
        y[piece] = 0
        y[piece[0]] = label
        algorithm = FedKT(NeuralClassifier(epochs=60, batch_size=8), partitions=1, subsets=8)
        problems = algorithm.lessons(member, algorithm.roles_at([member])[0])[0].teachers
        return group_tasks(problems, 10), train_models(problems, 10)

    (groups, before), (same, after) = teachers(0), teachers(1)
    assert groups == same, "a label decides who is trained with whom"
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        alike = [
            (a == b).all() for a, b in zip(one.estimator.get_weights(), other.estimator.get_weights(), strict=True)
        ]
        assert all(alike) == (number != 3)


def test_rows_that_networks_cannot_read_name_the_party():
    broken = parties()
    broken[2] = replace(broken[2], X=np.where(np.arange(64) == 3, np.nan, broken[2].X))
    with pytest.raises(DataError, match=r"Party 'party 2'.*NaN"):
        simulate(FedKT(trained_for("mlp", 1), subsets=3), broken, server())
    gaps = np.where(np.arange(64) == 3, np.inf, PIXELS[PUBLIC])
    with pytest.raises(DataError, match="public rows contain NaN"):
        simulate(Solo("mlp"), [replace(party, public=gaps) for party in parties()], server())


def test_models_that_say_the_same_are_made_whatever_the_number_of_processes():
    algorithm = FedKT(trained_for("mlp", 3), subsets=3)
    one, two = (simulate(algorithm, parties(), server(), jobs=jobs) for jobs in (1, 2))
    assert (one.final.models[0].predict(PIXELS) == two.final.models[0].predict(PIXELS)).all()


def test_networks_are_trained_on_the_scale_of_the_public_rows():
    outcome = simulate(Solo(trained_for("mlp", 1)), parties(), server())
    for model in outcome.final.models:
        np.testing.assert_allclose(model.estimator.scale_.mean, PIXELS[PUBLIC].mean(axis=0), atol=1e-6)


def test_rows_of_pixels_become_pictures_where_a_side_says_so():
    shapes = []

    def looking(shape, n_outputs):
        shapes.append(shape)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, n_outputs))

    simulate(Solo(NeuralClassifier(looking, epochs=1)), parties(image=(8, 8, 1)), server((8, 8, 1)))
    assert set(shapes) == {(1, 8, 8)}


def test_pictures_go_through_the_estimator():
    pictures = PIXELS.reshape(-1, 8, 8)
    model = FedKTClassifier(NeuralClassifier(epochs=20), n_parties=3, subsets=2, random_state=0)
    model.fit(pictures[:1300], DIGITS[:1300])
    assert model.score(pictures[TEST], DIGITS[TEST]) > 0.8
    assert model.final_estimator_.image_ == (8, 8, 1)
    with pytest.raises(ValueError, match=r"images of \(8, 8, 1\), got images of \(4, 16, 1\)"):
        model.predict(PIXELS.reshape(-1, 4, 16))


def test_a_network_that_cannot_be_trained_names_the_party():
    wild = NeuralClassifier(optimiser="sgd", learning_rate=1e30, epochs=30)
    with pytest.raises(ModelError, match=r"Party 'party \d'.*ran away"):
        simulate(Solo(wild), parties(), server())


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">{1 + array.ndim}i", 2048 + array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path):
    """Zeros and ones of 16 × 16 pixels at two clinics, as IDX files."""
    kept = np.flatnonzero(DIGITS < 2)
    pictures = np.kron(PIXELS[kept].reshape(-1, 8, 8) * 255, np.ones((1, 2, 2)))
    for name, rows in (("north", slice(0, 100)), ("south", slice(100, 200)), ("public", slice(200, 300))):
        (tmp_path / f"{name}-images-idx3-ubyte").write_bytes(idx(pictures[rows]))
        if name != "public":
            (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(DIGITS[kept][rows]))
    (tmp_path / "new-images-idx3-ubyte").write_bytes(idx(pictures[300:]))
    (tmp_path / "truth").write_text(" ".join(map(str, DIGITS[kept][300:])))
    return tmp_path


def test_clinics_with_networks_exchange_files_and_a_party_sends_the_same_bytes_twice(folder):
    public = folder / "public-images-idx3-ubyte"
    fedkt(
        *("plan", "new", "--public", public, "--label", "digit", "--classes", "0,1", "--party", "north"),
        *("--party", "south", "--model", "cnn", "--party-model", "south=mlp", "--epochs", "15", "--subsets", "2"),
        *("-o", folder / "plan.toml"),
    )
    assert "networks are trained for 15 epochs" in fedkt("plan", "check", folder / "plan.toml").out

    def send(name, outbox):
        fedkt(
            *("party", folder / "plan.toml", "--name", name, "--data", folder / f"{name}-images-idx3-ubyte"),
            *("--public", public, "-o", outbox, "--work", folder / "work"),
        )
        return (outbox / f"{name}.fedkt").read_bytes()

    for name in ("north", "south"):
        assert send(name, folder / "inbox") == send(name, folder / "again")
    fedkt(
        *("server", folder / "plan.toml", "--public", public, "--bundles", folder / "inbox", "-o", folder / "result"),
    )
    told = fedkt("predict", folder / "result" / "final.onnx", folder / "new-images-idx3-ubyte")
    said = [row["prediction"] for row in csv.DictReader(io.StringIO(told.out))]
    truth = (folder / "truth").read_text().split()
    assert np.mean([one == other for one, other in zip(said, truth, strict=True)]) > 0.9


@pytest.mark.parametrize("role", ["final", "student", "teacher", "estimator"])
def test_a_cnn_in_any_role_is_refused_where_the_rows_are_a_table(role):
    rows = np.random.default_rng(0).normal(size=(120, 3))
    families = {"estimator": "tree", role: "cnn"}
    with pytest.raises(ConfigurationError, match="'cnn' reads images, but these rows are tables of 3 columns"):
        FedKTClassifier(**families, n_parties=2, random_state=0).fit(rows, (rows[:, 0] > 0).astype(int))
