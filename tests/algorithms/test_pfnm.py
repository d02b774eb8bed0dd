"""PFNM as an algorithm; the matching itself is tested in test_matching."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from sklearn.datasets import load_digits

from fedkt.algorithms.averaging import weights_bundle, weights_in
from fedkt.algorithms.fedavg import FedAvg
from fedkt.algorithms.matching import Prior
from fedkt.algorithms.pfnm import PFNM
from fedkt.errors import UnsuitedModel
from fedkt.federation import Party, Server, simulate
from fedkt.models.neural.classifier import NeuralClassifier
from fedkt.models.neural.networks import Perceptron

PIXELS, DIGITS = load_digits(return_X_y=True)
PIXELS = (PIXELS / 16).astype(np.float32)
CLASSES = tuple(range(10))
MODEL = NeuralClassifier(epochs=20, normalise=None, learning_rate=3e-3)
NEARLY_FREE = Prior(sigma0=100.0, sigma=0.01, gamma=1e-3)
"""Atoms may lie anywhere and neurons lie close to them: identical neurons are matched, and hardly shrunk."""


def server():
    return Server(PIXELS[1000:1300], CLASSES, 5)


def parties(count=3):
    return [
        Party(PIXELS[1000:1300], CLASSES, i, name=str(i), X=PIXELS[i * 300 : i * 300 + 300], y=DIGITS[i * 300 :][:300])
        for i in range(count)
    ]


def permuted(weights, rng):
    """The same network with its hidden neurons in another order."""
    w1, b1, w2, b2, w3, b3 = weights
    first, second = rng.permutation(len(b1)), rng.permutation(len(b2))
    return [w1[first], b1[first], w2[second][:, first], b2[second], w3[:, second], b3]


def test_the_match_is_told_each_partys_rows_of_each_class(monkeypatch):
    told = []

    def listen(networks, counts, **options):
        told.append(counts)
        return networks[0]

    monkeypatch.setattr("fedkt.algorithms.pfnm.match", listen)
    simulate(PFNM(MODEL), parties(), server())
    expected = [np.bincount(party.y, minlength=10) for party in parties()]
    np.testing.assert_array_equal(told[0], expected)


def test_perceptrons_of_any_width_are_taken_and_others_refused():
    PFNM(NeuralClassifier(Perceptron((5,)))).check()
    for module in (Perceptron(()), "cnn"):
        with pytest.raises(UnsuitedModel, match="hidden neurons of perceptrons"):
            PFNM(NeuralClassifier(module)).check()


def test_a_network_and_its_permuted_copies_match_into_the_network():
    trained = MODEL.fit(PIXELS[:900], DIGITS[:900]).get_weights()
    rng = np.random.default_rng(0)
    extra = {"rows": np.array([300]), "counts": np.full(10, 30)}
    sent = [weights_bundle(str(i), server(), permuted(trained, rng), extra) for i in range(3)]
    algorithm = PFNM(MODEL, prior=NEARLY_FREE)
    final = algorithm.finish(server(), algorithm.server_step(server(), sent)).models[0]
    assert len(weights_in(sent[0])[1]) == len(final.estimator.get_weights()[1]) == 100
    np.testing.assert_allclose(
        final.estimator.decision_scores(PIXELS), MODEL.decision_scores(PIXELS), rtol=1e-2, atol=1e-2
    )
    averaged = FedAvg(MODEL)
    mixed = averaged.finish(server(), averaged.server_step(server(), sent)).models[0]
    assert np.mean(mixed.predict(PIXELS) == DIGITS) < np.mean(final.predict(PIXELS) == DIGITS) - 0.1


def test_one_round_learns_and_says_how_wide_the_network_became():
    host = server()
    outcome = simulate(PFNM(MODEL), parties(), host)
    assert np.mean(outcome.final.models[0].predict(PIXELS[1300:]) == DIGITS[1300:]) > 0.7
    assert any("matched into hidden layers of" in note for note in host.diary.notes)


def test_a_party_sends_its_class_counts():
    sent = PFNM(MODEL).party_step(parties()[0], PFNM(MODEL).initial_broadcast(server()))
    assert sent.arrays["counts"].tolist() == np.bincount(DIGITS[:300], minlength=10).tolist()


def test_a_wider_result_travels_as_onnx():
    from fedkt.bundle import pack

    # Neurons far apart and cheap new atoms: nothing is matched, the result is as wide as all parties together.
    outcome = simulate(PFNM(MODEL, prior=Prior(sigma0=10.0, sigma=0.01, gamma=50.0)), parties(), server())
    final = outcome.final.models[0]
    assert len(final.estimator.get_weights()[1]) > 100
    assert pack(outcome.final, check_rows=PIXELS[:200])


def test_a_network_that_is_no_perceptron_is_refused():
    with pytest.raises(UnsuitedModel, match=r"'cnn' is none.*fedavg"):
        simulate(PFNM("cnn"), parties(), server())
