"""Rivals are what their names say: boosting where there is one party, and the least of parties' quadratics."""

import numpy as np
import pytest

from fedkt.bench.plain.bagging import DEPTH, ROUNDS
from fedkt.lab.runner import assemble, draw_parties
from fedkt.lab.setting import Setting
from paper.moments_rivals import bagging
from paper.quality_tables import breast_cancer


def test_bagging_with_one_party_is_plain_boosting():
    xgboost = pytest.importorskip("xgboost")
    data = breast_cancer(1)
    setting = Setting("digits", parties=1, partition="even", seed=1).with_defaults()
    found = bagging(data, assemble(setting, data, draw_parties(setting, data)), 1, 0.3)
    options = {"objective": "binary:logistic", "max_depth": DEPTH, "eta": 0.3, "base_score": 0.5, "nthread": 1}
    plain = xgboost.train(options, xgboost.DMatrix(data.X, label=data.y), num_boost_round=ROUNDS)
    right = plain.predict(xgboost.DMatrix(data.X_test))
    expected = -np.mean(np.log(np.where(data.y_test == 1, right, 1 - right)))
    assert found["log_loss"] == pytest.approx(expected, abs=1e-4)
    assert found["after one round"]["log_loss"] > found["log_loss"]
    assert found["bytes_received"] == found["bytes_sent"] * (ROUNDS - 1) // ROUNDS


def test_the_server_of_fedfisher_walks_to_the_weights_that_parties_are_sure_of():
    torch = pytest.importorskip("torch")
    from paper.fisher import descend

    network = torch.nn.Linear(1, 2, bias=False)
    # One party is sure of its first weight, -1, the other of its second, +1; their mean is (0, 0).
    weights = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
    information = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    stiffness, pull = information.sum(dim=0), (information * weights).sum(dim=0)
    # The larger score of a positive number is the second's, so that class 1 is right and a tie is not.
    rows, labels = torch.ones(4, 1), torch.ones(4, dtype=torch.int64)
    first, second = descend(network, weights.mean(dim=0), stiffness, pull, rows, labels)
    assert first < 0 < second
    kept = descend(network, torch.tensor([-5.0, 5.0]), stiffness, pull, rows, labels)
    assert kept.tolist() == [-5.0, 5.0], "no later step is better on the labelled rows"
