"""Eight parties, three classes that overlap. Two know the first well; six have hardly seen it, and outvote them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedkt.algorithms import FedKT
from fedkt.algorithms.voting import Background
from fedkt.bundle import Expected, pack, unpack
from fedkt.federation import Party, Server, simulate

CLASSES = (0, 1, 2)


def skewed_parties():
    """The parties, the server, and the true classes of its public rows."""
    rng = np.random.default_rng(0)

    def rows(y):
        centres = np.array([[0.0, 0.0], [1.6, 0.0], [0.0, 1.6]])
        return (centres[y] + rng.normal(0, 0.7, (len(y), 2))).astype(np.float32), y

    counts = [[400, 20, 20]] * 2 + [[4, 100, 100]] * 6
    prior = np.sum(counts, axis=0) / np.sum(counts)
    public, truth = rows(rng.choice(3, 600, p=prior))
    parties = []
    for number, each in enumerate(counts):
        X, y = rows(np.repeat(np.arange(3), each))
        parties.append(Party(public, CLASSES, number, name=f"p{number}", X=X, y=y))
    return parties, Server(public, CLASSES, 99), truth


def fresh(parties):
    """The same parties before they have done anything."""
    return [Party(p.public, p.classes, p.seed, name=p.name, X=p.X, y=p.y) for p in parties]


def expert(model, **settings):
    """FedKT with expert voting."""
    return FedKT(model, voting="expert", **settings)


def background(model, *, most_rows=None, **settings):
    """FedKT with expert voting without counts."""
    return FedKT(model, voting=Background(most_rows=most_rows or {}), **settings)


def roles_of(algorithm, own=None):
    """Who teaches and who studies at a party with such a model of its own."""
    return algorithm.voting.roles_for(algorithm, own)


def accuracy(algorithm, skewed):
    """How often the final model is right on the public rows, and all that came out."""
    parties, server, truth = skewed
    outcome = simulate(algorithm, fresh(parties), Server(server.public, server.classes, server.seed))
    return np.mean(outcome.final.models[0].predict(server.public) == truth), outcome


def labels_here_and_from_afar(algorithm, skewed, **agreed):
    """How the server labels the public rows with the students as they are, and when they have travelled; and these."""
    parties, server, _ = skewed
    bundles = [algorithm.party_step(party, None) for party in fresh(parties)]
    expected = Expected(plan="", classes=CLASSES, n_features=2, soft=True, **agreed)
    # The plan, not the bundle, tells a server of which family students are.
    travelled = [
        replace(unpack(pack(each, check_rows=server.public), source="x", expected=expected), calibrated=each.calibrated)
        for each in bundles
    ]
    sides = [Server(server.public, CLASSES, 99) for _ in range(2)]
    for side, sent in zip(sides, (bundles, travelled), strict=True):
        algorithm.server_step(side, sent)
    (one,), (two,) = (side.diary.vote.labels for side in sides)
    return one[1], two[1], travelled
