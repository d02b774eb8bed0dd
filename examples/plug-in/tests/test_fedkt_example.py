"""What the package brings, tried as fedkt finds it: run where it is installed, or by fedkt's own tests."""

import numpy as np
import pytest

from fedkt import load
from fedkt.lab.runner import run
from fedkt.lab.setting import Setting
from fedkt.models.base import fit_model
from fedkt.models.catalogue import as_estimator, family_of, known_models
from fedkt.models.exchange import to_onnx


def test_the_dataset_is_known_by_its_name():
    data = load("wine", seed=0)
    assert (data.X.shape, data.X_public.shape, data.X_test.shape) == ((89, 13), (44, 13), (45, 13))
    assert sorted(set(data.y.tolist())) == [0, 1, 2]


def test_the_family_is_trained_and_travels_by_its_name():
    data = load("wine", seed=0)
    model = fit_model(as_estimator("bagging"), data.X, data.y, rng=np.random.default_rng(0))
    received = to_onnx(model, n_features=13, n_classes=3, check_rows=data.X_public)
    assert received.predict(data.X_test).tolist() == model.predict(data.X_test).tolist()
    assert family_of(model.estimator) is known_models()["bagging"]


@pytest.mark.parametrize("algorithm", ["plurality", "fedkt", "fedkt-expert"])
def test_a_run_is_better_than_a_guess_and_names_the_package(algorithm):
    report = run(Setting("wine", algorithm), measure_bytes=True)
    assert report.accuracy > 0.7
    assert report.bytes_sent > 0
    assert report.versions["fedkt-example"] == "1.0"


def test_the_algorithm_takes_any_family():
    assert run(Setting("wine", "plurality", model="tree", final="forest", parties=2)).accuracy > 0.7
