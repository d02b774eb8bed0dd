"""Training beside a graphics card, tried without one: on the device that only knows shapes nothing meets the CPU.

Nobody has run this on a real card. What is looked at is every operation that torch carries out inside a training: all
its tensors stand on one device, unless it is the one that copies from one to the other.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from fedkt.cli.options import set_device  # noqa: E402
from fedkt.errors import ConfigurationError  # noqa: E402
from fedkt.models.neural.device import ENVIRONMENT, device_of  # noqa: E402
from fedkt.models.neural.networks import NETWORKS  # noqa: E402
from fedkt.models.neural.recipe import Correction, Recipe  # noqa: E402
from fedkt.models.neural.stack import train_stack  # noqa: E402
from fedkt.models.neural.training import Training, hold_out, train  # noqa: E402

COPIES = {"aten::_to_copy", "aten::copy_"}
SHAPES = {"mlp": (5,), "cnn": (1, 16, 16), "dropout": (5,), "gelu": (5,)}


def network(kind):
    if kind in NETWORKS:
        return NETWORKS[kind](SHAPES[kind], 3)
    middle = nn.Dropout() if kind == "dropout" else nn.GELU()
    return nn.Sequential(nn.Linear(5, 4), middle, nn.Linear(4, 3))


class OneDevice(TorchDispatchMode):
    """Remembers the operations whose tensors stand on several devices, and how many saw the other one at all."""

    def __init__(self):
        super().__init__()
        self.mixed, self.there = set(), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        devices = {each.device.type for each in tree_leaves((args, kwargs, result)) if isinstance(each, torch.Tensor)}
        self.there += "meta" in devices
        if len(devices) > 1 and function._schema.name not in COPIES:
            self.mixed.add(function._schema.name)
        return result


def elsewhere(kind, rows=11, *, soft=False, own=None, copies=False, corrected=False):
    """A training whose network, rows and targets stand on the other device."""
    module = network(kind)
    parts = tuple(np.zeros(tuple(each.shape), np.float32) for each in module.parameters())
    targets = torch.zeros((rows if own is None else len(own), 3)) if soft else torch.zeros(rows, dtype=torch.int64)
    return Training(
        module.to("meta"),
        torch.zeros((rows, *SHAPES[kind])).to("meta"),
        targets.to("meta"),
        np.random.default_rng(0),
        own=own,
        copies=copies,
        correction=Correction(0.1, parts, parts) if corrected else None,
    )


def recipe(optimiser="adam", momentum=0.0):
    return Recipe(2, 4, 1e-3, 1e-6, optimiser, momentum)


@pytest.mark.parametrize(
    ("kind", "options", "how"),
    [
        ("mlp", {}, recipe()),
        ("mlp", {"soft": True, "own": np.arange(3, 9)}, recipe("adamw")),
        ("mlp", {"corrected": True}, recipe("sgd", 0.9)),
        ("cnn", {}, recipe()),
        ("dropout", {}, recipe()),
    ],
    ids=["labels", "shares", "corrected", "images", "dropout"],
)
def test_a_network_trains_where_its_rows_are(kind, options, how):
    training = elsewhere(kind, **options)
    with OneDevice() as seen:
        train(training, how)
    assert seen.mixed == set()
    assert seen.there > 20


@pytest.mark.parametrize("kind", ["mlp", "gelu"], ids=["written out", "traced"])
@pytest.mark.parametrize("options", [{}, {"soft": True}, {"corrected": True}], ids=["labels", "shares", "corrected"])
def test_a_stack_trains_where_its_rows_are(kind, options):
    trainings = [elsewhere(kind, rows, **options) for rows in (11, 7)]
    with OneDevice() as seen:
        train_stack(trainings, recipe())
    assert seen.mixed == set()
    assert seen.there > 20


@pytest.fixture
def without_cards(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.delenv(ENVIRONMENT, raising=False)


def test_a_device_is_the_one_that_was_named_else_that_of_the_environment_else_the_processor(without_cards, monkeypatch):
    assert device_of(None) == device_of("auto") == torch.device("cpu")
    monkeypatch.setenv(ENVIRONMENT, "cuda")
    assert device_of("cpu") == torch.device("cpu")
    with pytest.raises(ConfigurationError, match=r"no device 'cuda' here: PyTorch .* finds 0 graphics cards"):
        device_of(None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device_of("auto") == torch.device("cuda")
    assert device_of("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ConfigurationError, match="no device 'cuda:2' here"):
        device_of("cuda:2")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "meta", "mps:9:9"])
def test_a_device_that_is_none_is_refused_in_words(name, without_cards):
    with pytest.raises(ConfigurationError, match=f"no device '{name}'.*Choose cpu, cuda"):
        device_of(name)


def test_the_option_is_for_this_process_and_refused_before_anything_is_trained(without_cards, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, "cpu")
    assert set_device("auto") == "auto"
    assert os.environ[ENVIRONMENT] == "auto"
    with pytest.raises(ConfigurationError, match="no device 'cuda' here"):
        set_device("cuda")
    assert os.environ[ENVIRONMENT] == "auto"


def test_rows_that_are_held_out_stay_where_they_are():
    with OneDevice() as seen:
        training, watch = hold_out(elsewhere("mlp"), 0.2, 3)
    assert seen.mixed == set()
    assert {each.device.type for each in (training.rows, training.targets, watch.rows, watch.targets)} == {"meta"}
