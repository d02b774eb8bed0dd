"""The methods that average weights, on problems where the right answer is known."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from dataclasses import replace

from scipy.special import softmax
from sklearn.datasets import make_blobs

from fedkt.algorithms import ALGORITHMS
from fedkt.algorithms.averaging import average, weights_bundle, weights_in
from fedkt.algorithms.fedavg import FedAvg
from fedkt.algorithms.feddf import FedDF
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.fedkt_prox import FedKTProx
from fedkt.algorithms.fedprox import FedProx
from fedkt.algorithms.lesson import STUDY
from fedkt.algorithms.scaffold import CONTROL, Scaffold
from fedkt.errors import ConfigurationError
from fedkt.federation import Party, Server, simulate
from fedkt.models.neural.classifier import NeuralClassifier
from fedkt.models.neural.ensemble import with_weights

X, Y = make_blobs(300, centers=3, n_features=4, random_state=0)
X = X.astype(np.float32)
PUBLIC = X[200:]
CLASSES = ("a", "b", "c")
ADAM = NeuralClassifier(epochs=4, normalise=(0.0, 5.0), learning_rate=1e-2, weight_decay=0.0)
SGD = NeuralClassifier(epochs=4, normalise=(0.0, 5.0), optimiser="sgd", learning_rate=1e-2, weight_decay=0.0)
SIZES = ((0, 90), (90, 120), (120, 200))


def parties(spans=SIZES):
    return [
        Party(PUBLIC, CLASSES, 10 + i, name=f"party {i}", X=X[start:end], y=Y[start:end])
        for i, (start, end) in enumerate(spans)
    ]


def server():
    return Server(PUBLIC, CLASSES, 99)


def final_weights(algorithm, spans=SIZES, **options):
    outcome = simulate(algorithm, parties(spans), server(), **options)
    return outcome.final.models[0].estimator.get_weights()


def assert_close(one, other, atol=1e-5):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


def trained_alone(model, party, start, number=0):
    """What the party's own training makes of the weights in a round, by scikit-learn's ways only."""
    seed = int(party.rng(number, STUDY).integers(2**31 - 1))
    twin = with_weights(model, party.X, 3, start).set_params(random_state=seed, warm_start=True)
    return twin.fit(party.X, party.y).get_weights()


def test_fedavg_of_one_party_is_training_alone():
    start = weights_in(FedAvg(ADAM).initial_broadcast(server()))
    assert_close(final_weights(FedAvg(ADAM), SIZES[:1]), trained_alone(ADAM, parties()[0], start))


def test_fedavg_weighs_the_parties_by_their_rows():
    start = weights_in(FedAvg(ADAM).initial_broadcast(server()))
    alone = [trained_alone(ADAM, party, start) for party in parties()]
    expected = [(90 * a + 30 * b + 80 * c) / 200 for a, b, c in zip(*alone, strict=True)]
    assert_close(final_weights(FedAvg(ADAM)), expected)


def test_every_round_shuffles_anew():
    party = parties()[0]
    weights = weights_in(FedAvg(ADAM).initial_broadcast(server()))
    for number in range(2):
        weights = trained_alone(ADAM, party, weights, number)
    assert_close(final_weights(FedAvg(ADAM, rounds=2), SIZES[:1]), weights, atol=1e-4)


def test_all_parties_see_their_rows_equally_often_where_nobody_says_how_often():
    assert FedAvg(NeuralClassifier()).network(server()).epochs == 10
    assert FedAvg(ADAM).network(server()).epochs == 4


def test_a_party_with_a_model_of_its_own_is_refused():
    members = [replace(party, model="forest") for party in parties()]
    with pytest.raises(ConfigurationError, match="one model for all; party 'party 0'"):
        simulate(FedAvg(ADAM), members, server())


def test_an_average_by_hand():
    sent = [
        weights_bundle("p", server(), [np.array([1.0, 3.0])], {"rows": np.array([1])}),
        weights_bundle("q", server(), [np.array([5.0, 7.0])], {"rows": np.array([3])}),
    ]
    assert average(sent)[0].tolist() == [4.0, 6.0]
    assert average(sent, by_rows=False)[0].tolist() == [3.0, 5.0]


def test_weights_keep_their_order_beyond_ten():
    sent = weights_bundle("p", server(), [np.array([place]) for place in range(12)], {"rows": np.array([1])})
    assert [int(each[0]) for each in weights_in(sent)] == list(range(12))


def test_fedprox_without_a_pull_is_fedavg():
    assert_close(final_weights(FedProx(ADAM, mu=0.0)), final_weights(FedAvg(ADAM)), atol=1e-7)


def like(model, **changed):
    return model.__class__(**{**model.get_params(), **changed})


def test_fedprox_with_an_endless_pull_stays_at_the_weights_that_were_sent():
    """With SGD and steps of 1/μ, every step begins anew at what was sent, however many there are."""
    many = like(SGD, learning_rate=1e-3, epochs=50)
    start = weights_in(FedProx(many).initial_broadcast(server()))

    def moved(algorithm):
        return max(np.abs(a - b).max() for a, b in zip(final_weights(algorithm), start, strict=True))

    assert moved(FedProx(many, mu=1e3)) < 1e-3
    assert moved(FedAvg(many)) > 1e-2


@pytest.mark.parametrize("spans", [((0, 50),), ((0, 50), (50, 100))], ids=["alone", "in a stack"])
def test_fedproxs_second_step_by_hand(spans):
    """w₂ = w₁ − η (g(w₁) + μ (w₁ − w₀)), one batch a step."""
    two_steps, rate, mu = like(SGD, epochs=2, batch_size=100), 1e-2, 3.0
    start = weights_in(FedProx(two_steps).initial_broadcast(server()))
    sent = simulate(FedProx(two_steps, mu=mu), parties(spans), server()).bundles
    for party, bundle in zip(parties(spans), sent, strict=True):
        first = [w - rate * step_of(two_steps, party, start, place) for place, w in enumerate(start)]
        for place, (w, before) in enumerate(zip(first, start, strict=True)):
            expected = w - rate * (step_of(two_steps, party, first, place) + mu * (w - before))
            np.testing.assert_allclose(weights_in(bundle)[place], expected, atol=1e-6)


def test_fedprox_pulls_the_parties_together():
    def spread(algorithm):
        sent = simulate(algorithm, parties(), server()).bundles
        return max(np.std([weights_in(bundle)[0] for bundle in sent], axis=0).ravel())

    assert spread(FedProx(ADAM, mu=10.0)) < 0.5 * spread(FedAvg(ADAM))


def test_scaffolds_first_round_is_a_mean_of_sgd_in_which_every_party_counts_once():
    start = weights_in(FedAvg(SGD).initial_broadcast(server()))
    alone = [trained_alone(SGD, party, start) for party in parties()]
    once = [sum(each) / 3 for each in zip(*alone, strict=True)]
    assert_close(final_weights(Scaffold(SGD, learning_rate=1e-2)), once)
    half = [0.5 * (a + b) for a, b in zip(start, once, strict=True)]
    assert_close(final_weights(Scaffold(SGD, learning_rate=1e-2, global_rate=0.5)), half)


@pytest.mark.parametrize("share", [1.0, 0.67], ids=["all take part", "two of three take part"])
def test_scaffolds_control_variates_have_the_servers_as_their_mean(share):
    algorithm, members, host = Scaffold(SGD, learning_rate=1e-2, rounds=3, participation=share), parties(), server()
    after = []
    simulate(algorithm, members, host, on_round=lambda played: after.append(played.after))
    nothing = tuple(np.zeros_like(each) for each in weights_in(after[-1], "c"))
    own = [party.shelf.get(CONTROL, nothing) for party in members]
    for common, each in zip(weights_in(after[-1], "c"), zip(*own, strict=True), strict=True):
        np.testing.assert_allclose(common, np.mean(each, axis=0), atol=1e-5)
        assert np.abs(common).max() > 1e-4


def test_scaffolds_first_control_variate_is_the_mean_gradient_on_the_way():
    algorithm, member = Scaffold(SGD, learning_rate=1e-2), parties()[1]
    start = algorithm.initial_broadcast(server())
    sent = algorithm.party_step(member, start)
    steps = 4 * 1  # thirty rows are one batch of 32, four times
    for moved, control in zip(weights_in(sent), member.shelf[CONTROL], strict=True):
        np.testing.assert_allclose(control, -moved / (steps * 1e-2), rtol=1e-5)


def test_scaffold_in_step_with_the_others_takes_their_mean_gradient():
    """Two parties with one batch each and one step a round: in round two both take g_i − c_i + c by hand."""
    one_step = like(SGD, epochs=1, batch_size=100)
    spans = ((0, 50), (50, 100))
    algorithm, members = Scaffold(one_step, learning_rate=1e-2, rounds=2), parties(spans)
    played = []
    simulate(algorithm, members, server(), on_round=played.append)
    first, second = played
    for place in range(6):
        c_i = [-weights_in(bundle)[place] / 1e-2 for bundle in first.up]
        c = np.mean(c_i, axis=0)
        for number, party in enumerate(parties(spans)):
            gradient = step_of(one_step, party, weights_in(first.after), place)
            expected = -1e-2 * (gradient - c_i[number] + c)
            np.testing.assert_allclose(weights_in(second.up[number])[place], expected, atol=1e-6)
            # After one step (x − y_i) / η is g − c_i + c, so that c_i⁺ = c_i − c + that is the gradient alone.
            np.testing.assert_allclose(members[number].shelf[CONTROL][place], gradient, atol=1e-4)


def step_of(model, party, weights, place):
    """The gradient of the loss over all the party's rows, by torch itself."""
    import torch

    twin = with_weights(model, party.X, 3, weights)
    rows = torch.from_numpy(party.X / 5.0)
    torch.nn.functional.cross_entropy(twin.network_(rows), torch.from_numpy(party.y)).backward()
    return list(twin.network_.parameters())[place].grad.numpy()


def test_feddf_of_one_party_is_a_distillation_of_its_model():
    start = weights_in(FedDF(ADAM).initial_broadcast(server()))
    alone = trained_alone(ADAM, parties()[0], start)
    seed = int(server().rng(0, STUDY).integers(2**31 - 1))
    twin = with_weights(ADAM, X, 3, alone).set_params(random_state=seed, warm_start=True, epochs=3, learning_rate=2e-3)
    twin.fit_soft(PUBLIC, softmax(twin.decision_scores(PUBLIC).astype(np.float64), axis=1))
    distilled = FedDF(ADAM, distil_epochs=3, distil_rate=2e-3)
    assert_close(final_weights(distilled, SIZES[:1]), twin.get_weights(), atol=1e-4)


def test_feddf_teaches_the_softmax_of_the_parties_mean_logits(monkeypatch):
    start = weights_in(FedDF(ADAM).initial_broadcast(server()))
    alone = [with_weights(ADAM, X, 3, trained_alone(ADAM, party, start)) for party in parties()]
    taught = []
    monkeypatch.setattr(NeuralClassifier, "fit_soft", lambda self, X, soft: taught.append(soft) or self)
    simulate(FedDF(ADAM), parties(), server())
    logits = np.mean([each.decision_scores(PUBLIC) for each in alone], axis=0)
    np.testing.assert_allclose(taught[0], softmax(logits, axis=1), atol=1e-4)


def test_feddf_without_distillation_is_fedavg():
    assert_close(final_weights(FedDF(ADAM, distil_epochs=0)), final_weights(FedAvg(ADAM)), atol=1e-7)


def test_fedkt_prox_starts_fedprox_from_fedkts_final_model():
    played = []
    algorithm = FedKTProx(ADAM, rounds=2, subsets=2)
    simulate(algorithm, parties(), server(), on_round=played.append)
    fedkt = simulate(FedKT(ADAM, subsets=2), parties(), server()).final.models[0].estimator.get_weights()
    assert_close(weights_in(played[0].after), fedkt)
    assert played[0].down is None
    assert len(played[0].up[0].models) == 2
    assert played[1].down is played[0].after
    assert not played[1].up[0].models
    assert_close(weights_in(played[1].after), average(played[1].up), atol=0)


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "scaffold", "feddf", "pfnm", "fedkt-prox"])
def test_a_model_without_weights_is_refused_before_anything_is_trained(name):
    with pytest.raises(
        ConfigurationError, match=r"needs a model with weights; RandomForestClassifier has none.*fedkt, solo"
    ):
        simulate(ALGORITHMS[name].build("forest", teachers=3), parties(), server())


@pytest.mark.parametrize(
    "algorithm",
    [
        FedAvg(ADAM, rounds=0),
        FedAvg(ADAM, participation=0.0),
        FedAvg(ADAM, participation=1.5),
        FedProx(ADAM, mu=-1.0),
        Scaffold(ADAM, learning_rate=0.0),
        FedDF(ADAM, distil_epochs=-1),
        FedDF(ADAM, distil_epochs=2.5),
        FedDF(ADAM, distil_rate=0.0),
        Scaffold(ADAM.__class__(epochs=0)),
        FedAvg(ADAM.__class__(epochs=-1)),
        FedKTProx(ADAM, rounds=0),
        FedKTProx(ADAM, final="forest"),
        FedKTProx(ADAM, final="cnn"),
        FedKTProx(ADAM, local_epochs=-1),
    ],
    ids=lambda algorithm: algorithm.name,
)
def test_impossible_settings_are_refused_before_anything_is_trained(algorithm, monkeypatch):
    monkeypatch.setattr("fedkt.models.training.fit_group", None)
    with pytest.raises(ConfigurationError):
        simulate(algorithm, parties(), server())


def test_a_share_of_the_parties_takes_part_and_not_always_the_same():
    seen = []
    algorithm = FedAvg(ADAM, rounds=6, participation=0.34)
    simulate(algorithm, parties(), server(), on_round=lambda played: seen.append([b.sender for b in played.up]))
    assert all(len(each) == 1 for each in seen)
    assert len({each[0] for each in seen}) > 1


@pytest.mark.parametrize("make", [FedAvg, Scaffold, FedDF], ids=lambda make: make.__name__)
def test_a_run_that_is_resumed_ends_like_one_that_was_not(make):
    kept = []
    whole = final_weights(make(SGD, rounds=3), keep=kept.append)
    assert [each.rounds for each in kept] == [1, 2, 3]
    assert_close(final_weights(make(SGD, rounds=3), resume=kept[1]), whole, atol=1e-7)


def test_a_party_with_one_class_trains_like_the_others():
    rows = np.flatnonzero(Y[:200] == 0)
    lonely = [Party(PUBLIC, CLASSES, 1, name="a", X=X[rows], y=Y[rows]), *parties()[1:]]
    final = simulate(FedAvg(ADAM, rounds=2), lonely, server()).final.models[0]
    assert set(final.predict(X)) == {0, 1, 2}


def test_local_epochs_are_those_of_a_round_and_leave_fedkts_own_models_alone():
    for name in ("fedavg", "fedprox", "scaffold", "feddf"):
        assert ALGORITHMS[name].build(ADAM, local_epochs=7).model.epochs == 7
        assert ALGORITHMS[name].build(ADAM).model.epochs == 4
    both = ALGORITHMS["fedkt-prox"].build(ADAM, local_epochs=7)
    assert (both.first.model.epochs, both.then.model.epochs) == (4, 7)


def test_fedkt_prox_hands_its_pull_on():
    assert FedKTProx(ADAM, mu=0.7).then.mu == 0.7


def test_scaffold_counts_the_steps_that_were_taken():
    """Batch normalisation has no use for a batch of one row: thirty-three rows are one step of 32, not two."""
    from torch import nn

    def normalising(shape, n_outputs):
        return nn.Sequential(nn.Linear(shape[0], 4), nn.BatchNorm1d(4), nn.Linear(4, n_outputs))

    model = like(SGD, module=normalising, epochs=2)
    algorithm, member = Scaffold(model, learning_rate=1e-2), parties(((0, 33),))[0]
    start = algorithm.initial_broadcast(server())
    sent = algorithm.party_step(member, start)
    moved, control = weights_in(sent)[0], member.shelf[CONTROL][0]
    np.testing.assert_allclose(control, -moved / (2 * 1e-2), rtol=1e-4)
