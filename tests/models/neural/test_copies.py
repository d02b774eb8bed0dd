"""A network that also learns every image shifted by one pixel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from fedkt.models.base import FittedModel  # noqa: E402
from fedkt.models.ensemble import TrainingTask, fit_group  # noqa: E402
from fedkt.models.neural.classifier import NeuralClassifier  # noqa: E402
from fedkt.models.neural.rows import shifted  # noqa: E402
from fedkt.models.neural.training import Training, hold_out  # noqa: E402

IMAGE = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
MOVED = [
    IMAGE,
    [[4.0, 5.0, 6.0], [4.0, 5.0, 6.0]],
    [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]],
    [[2.0, 3.0, 3.0], [5.0, 6.0, 6.0]],
    [[1.0, 1.0, 2.0], [4.0, 4.0, 5.0]],
]
"""The image, and moved up, down, left and right."""


def training_of(images, targets, **settings) -> Training:
    return Training(nn.Identity(), torch.tensor(images), torch.tensor(targets), np.random.default_rng(0), **settings)


def test_an_image_moves_by_one_pixel_and_the_edge_it_leaves_is_repeated():
    images = torch.tensor([[IMAGE, (10 * np.array(IMAGE)).tolist()]]).repeat(5, 1, 1, 1)
    moved = shifted(images, torch.arange(5))
    assert moved[:, 0].tolist() == MOVED
    assert (moved[:, 1] == 10 * moved[:, 0]).all()


def test_every_copy_has_the_target_of_its_image():
    images = [[IMAGE], (-np.array([IMAGE])).tolist()]
    training = training_of(images, [[0.9, 0.1], [0.2, 0.8]], copies=True)
    assert training.n_rows == 10
    rows, targets = training.batch(torch.arange(10))
    assert rows[::2, 0].tolist() == MOVED
    assert rows[1::2, 0].tolist() == (-np.array(MOVED)).tolist()
    assert targets.tolist() == torch.tensor([[0.9, 0.1], [0.2, 0.8]]).repeat(5, 1).tolist()


def test_without_copies_a_batch_is_the_rows_themselves():
    training = training_of([[IMAGE], [MOVED[1]], [MOVED[2]]], [3, 4], own=np.array([0, 2]))
    rows, targets = training.batch(torch.tensor([1, 0]))
    assert rows[:, 0].tolist() == [MOVED[2], IMAGE]
    assert targets.tolist() == [4, 3]


def test_rows_that_say_when_to_stop_are_images_and_no_copies():
    training, watch = hold_out(training_of([[IMAGE]] * 10, list(range(10)), copies=True), 0.2, 5)
    assert len(watch.targets) == 2
    assert training.n_rows == 40


def fit(task: TrainingTask) -> FittedModel:
    (model,) = fit_group([task], 2)
    return model


def test_it_learns_where_an_image_may_stand():
    rng = np.random.default_rng(0)
    # A dot in one of two corners of the middle; in what is asked about it stands one pixel further on.
    images, labels = np.zeros((40, 6, 6, 1), dtype=np.float32), np.arange(40) % 2
    images[np.arange(40), 2, 2 + labels, 0] = 1 + rng.random(40)
    fresh = np.zeros((2, 6, 6, 1), dtype=np.float32)
    fresh[[0, 1], [2, 3], [1, 3], 0] = 1.5
    network = NeuralClassifier("mlp", epochs=60, image=(6, 6, 1), normalise=None, random_state=0)
    task = TrainingTask(network, images.reshape(40, -1), np.eye(2)[labels], rng)
    steps = fit(replace(task, rng=np.random.default_rng(1))).estimator.n_steps_
    model = fit(replace(task, rng=np.random.default_rng(1), copies=True))
    assert model.estimator.n_steps_ == 60 * 7  # 200 rows in batches of 32
    assert steps == 60 * 2
    assert model.predict(fresh.reshape(2, -1)).tolist() == [0, 1]
    assert (model.predict_proba(fresh.reshape(2, -1), 2)[[0, 1], [0, 1]] > 0.9).all()
