"""fedkt's own way through the rows of a benchmark."""

from __future__ import annotations

import numpy as np

from fedkt.algorithms import FedKT, Moments
from fedkt.bench.work import Array, Work
from fedkt.federation import Algorithm, Party, Server, simulate
from fedkt.models.catalogue import trained_for
from fedkt.system.stages import stage


def play(work: Work) -> Array:
    """The class that fedkt's final model finds for each test row."""
    classes = tuple(range(work.n_classes))
    parties = [
        Party(work.public, classes, seed, image=work.image, name=f"party {number:03d}", X=X, y=np.asarray(y))
        for number, (X, y, seed) in enumerate(work.parties)
    ]
    server = Server(work.public, classes, work.server_seed, image=work.image)
    (final,) = simulate(algorithm_of(work), parties, server).final.models
    with stage("test"):
        return np.asarray(final.predict(work.test))


def algorithm_of(work: Work) -> Algorithm:
    """FedKT as this work asks for it."""
    if work.voting == Moments.voting:
        return Moments(work.model)
    model = trained_for(work.model, epochs=work.epochs)
    return FedKT(model, voting=work.voting, partitions=work.partitions, subsets=work.subsets)
