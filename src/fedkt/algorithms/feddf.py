"""FedDF: average, then distil the ensemble of the parties on public rows.

Lin, Kong, Stich, Jaggi: Ensemble Distillation for Robust Model Fusion in Federated Learning. NeurIPS 2020, Algorithm 1.

The server starts from the average of the parties' weights and trains it on the public rows to say what the parties'
models say together: the softmax of their mean logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.averaging import Averaging, average, fitted_network, weights_bundle, weights_in
from fedkt.algorithms.card import BOTH_WAYS, Card
from fedkt.algorithms.lesson import STUDY
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError
from fedkt.federation import Server


class FedDF(Averaging):
    """FedAvg followed by `distil_epochs` of Adam with steps of `distil_rate` on the public rows.

    What the parties do is set by `model`; the server's part does not follow it.
    """

    name = "feddf"
    title = "FedDF"

    def __init__(
        self,
        model: Any,
        *,
        distil_epochs: int = 10,
        distil_rate: float = 1e-3,
        local_epochs: int | None = None,
        rounds: int = 1,
        participation: float = 1.0,
    ) -> None:
        super().__init__(model, local_epochs=local_epochs, rounds=rounds, participation=participation)
        self.distil_epochs = distil_epochs
        self.distil_rate = distil_rate

    def check(self) -> None:
        """Refuse what cannot work."""
        super().check()
        if isinstance(self.distil_epochs, bool) or not isinstance(self.distil_epochs, int) or self.distil_epochs < 0:
            raise ConfigurationError(f"distil_epochs must be a whole number of at least 0, got {self.distil_epochs!r}.")
        if not self.distil_rate > 0:
            raise ConfigurationError(f"distil_rate must be above 0, got {self.distil_rate!r}.")

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The averaged network, taught by the parties' networks together."""
        from scipy.special import softmax

        student = self.fitted(server, average(bundles)).estimator
        student.set_params(
            epochs=self.distil_epochs,
            learning_rate=self.distil_rate,
            optimiser="adam",
            warm_start=True,
            random_state=int(server.rng(server.round, STUDY).integers(2**31 - 1)),
        )
        student.fit_soft(server.public, softmax(self.mean_logits(server, bundles), axis=1))
        return weights_bundle("server", server, student.get_weights())

    def mean_logits(self, server: Server, bundles: Sequence[Bundle]) -> NDArray[np.float64]:
        """What the parties' networks say about the public rows, on average."""
        total = np.zeros((1, len(server.classes)))
        network = self.network(server)
        for bundle in bundles:
            model = fitted_network(network, server, weights_in(bundle)).estimator
            total = total + model.decision_scores(server.public).astype(np.float64)
        return np.asarray(total / len(bundles))


CARD = Card(
    name=FedDF.name,
    title=FedDF.title,
    summary="averages of weights, distilled on the public rows",
    make=FedDF,
    traffic=BOTH_WAYS,
    colour="green",
    marker="h",
)
