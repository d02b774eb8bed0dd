"""PFNM: Probabilistic Federated Neural Matching, one network from the parties' perceptrons by matching their neurons.

Yurochkin, Agarwal, Ghosh, Greenewald, Hoang, Khazaeni: Bayesian Nonparametric Federated Learning of Neural Networks.
ICML 2019. (The FedKT paper writes PNFM.)

The order of a network's hidden neurons is arbitrary, so averaging weights by position mixes neurons that have nothing
to do with each other. PFNM matches them first: see `matching` for the model and the arithmetic. The result may be wider
than the parties' networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedkt.algorithms.averaging import Averaging, Weights, fitted_network, weights_bundle, weights_in
from fedkt.algorithms.card import BOTH_WAYS, Card
from fedkt.algorithms.lesson import STUDY
from fedkt.algorithms.matching import Prior, match
from fedkt.bundle import Bundle
from fedkt.errors import UnsuitedModel
from fedkt.federation import Party, Server
from fedkt.models.base import FittedModel
from fedkt.models.catalogue import as_estimator

COUNTS = "counts"
"""The array with a party's rows of each class."""


class PFNM(Averaging):
    """One round of local training, then a match of the parties' neurons.

    A party also sends how many rows of each class it has; with them its say about a class's output weights is its share
    of that class's rows, as in the authors' experiments.
    """

    name = "pfnm"
    title = "PFNM"

    def __init__(self, model: Any, *, prior: Prior | None = None, local_epochs: int | None = None) -> None:
        super().__init__(model, local_epochs=local_epochs)
        self.prior = prior or Prior()

    def check(self) -> None:
        """Refuse networks that are not multilayer perceptrons."""
        super().check()
        from fedkt.models.neural.networks import Perceptron, network

        module = as_estimator(self.model).module
        perceptron = network(module)
        if not isinstance(perceptron, Perceptron) or not perceptron.hidden:
            raise UnsuitedModel(
                f"PFNM matches the hidden neurons of perceptrons; the network {module!r} is none, or has none. Choose "
                "mlp, or another method: fedavg, fedprox, scaffold and feddf take any network."
            )

    def message(self, party: Party, broadcast: Bundle, model: FittedModel) -> Bundle:
        """The trained weights, and the party's rows of each class."""
        counts = np.bincount(party.y, minlength=len(party.classes)).astype(np.int64)
        return weights_bundle(party.name, party, model.estimator.get_weights(), {COUNTS: counts})

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The matched network."""
        networks = [list(weights_in(bundle)) for bundle in bundles]
        counts = np.stack([bundle.arrays[COUNTS] for bundle in bundles]).astype(np.float64)
        matched = match(networks, counts, prior=self.prior, rng=server.rng(server.round, STUDY))
        widths = [len(bias) for bias in matched[1:-2:2]]
        server.diary.say(
            f"PFNM: the parties' neurons were matched into hidden layers of {', '.join(map(str, widths))}."
        )
        return weights_bundle("server", server, matched)

    def fitted(self, server: Server, weights: Weights) -> FittedModel:
        """A perceptron with these weights, as wide as they are."""
        from fedkt.models.neural.networks import Perceptron

        widths = tuple(len(bias) for bias in weights[1:-2:2])
        return fitted_network(self.network(server).set_params(module=Perceptron(widths)), server, weights)


CARD = Card(
    name=PFNM.name,
    title=PFNM.title,
    summary="one round, neurons matched",
    make=PFNM,
    traffic=BOTH_WAYS,
    colour="brown",
    marker="X",
)
