"""SCAFFOLD: control variates against the drift of the parties.

Karimireddy, Kale, Mohri, Reddi, Stich, Suresh: SCAFFOLD: Stochastic Controlled Averaging for Federated Learning. ICML
2020, Algorithm 1, option II.

A party's gradient g becomes g − c_i + c. After K steps of size η from x to y_i its control variate becomes
c_i⁺ = c_i − c + (x − y_i) / (K η); it keeps c_i and sends y_i − x and c_i⁺ − c_i. The server moves x by the mean of the
first (times η_g) and c by the mean of the second, times the share of the parties that took part. Both means count every
party once, whatever its rows: with one of them by rows, the two would pull towards different optima.

Steps are plain SGD: with Adam, (x − y_i) / (K η) would not be a mean gradient. A method that needs a step size of its
own has a parameter for it; the authors of FedKT ran it with 10⁻³, which hardly moves in one round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedkt.algorithms.averaging import Averaging, Weights, average, weights_bundle, weights_in
from fedkt.algorithms.card import Card, Traffic
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError
from fedkt.federation import Party, Server
from fedkt.models.base import FittedModel
from fedkt.models.catalogue import as_estimator

if TYPE_CHECKING:
    from fedkt.models.neural.recipe import Correction

CONTROL = "control variate"
"""What a party's control variate is called on its shelf."""


class Scaffold(Averaging):
    """Stochastic controlled averaging with local steps of size `learning_rate` (η) and server steps `global_rate`."""

    name = "scaffold"
    title = "SCAFFOLD"

    def __init__(
        self,
        model: Any,
        *,
        learning_rate: float = 1e-3,
        global_rate: float = 1.0,
        local_epochs: int | None = None,
        rounds: int = 1,
        participation: float = 1.0,
    ) -> None:
        super().__init__(model, local_epochs=local_epochs, rounds=rounds, participation=participation)
        self.learning_rate = learning_rate
        self.global_rate = global_rate

    def check(self) -> None:
        """Refuse what cannot work."""
        super().check()
        for what, value in (("learning_rate", self.learning_rate), ("global_rate", self.global_rate)):
            if not value > 0:
                raise ConfigurationError(f"{what} must be above 0, got {value!r}.")
        model = as_estimator(self.model)
        if model.early_stopping or model.epochs == 0:
            raise ConfigurationError("SCAFFOLD needs a step at least: switch early_stopping off, and give epochs.")

    def network(self, side: Party | Server) -> Any:
        """The untrained network with plain SGD and nothing that is not the loss's gradient."""
        return (
            super()
            .network(side)
            .set_params(optimiser="sgd", momentum=0.0, weight_decay=0.0, learning_rate=self.learning_rate)
        )

    def initial_broadcast(self, server: Server) -> Bundle | None:
        """Initial weights, and a control variate of zeros."""
        first = super().initial_broadcast(server)
        assert first is not None
        weights = weights_in(first)
        return weights_bundle("server", server, weights, controls([np.zeros_like(each) for each in weights]))

    def correction(self, party: Party, broadcast: Bundle) -> Correction | None:
        """c − c_i."""
        from fedkt.models.neural.recipe import Correction

        common, own = weights_in(broadcast, "c"), self.own_control(party, broadcast)
        return Correction(push=tuple(c - c_i for c, c_i in zip(common, own, strict=True)))

    def own_control(self, party: Party, broadcast: Bundle) -> Weights:
        """c_i, zeros before the party first took part."""
        control: Weights | None = party.shelf.get(CONTROL)
        return tuple(np.zeros_like(each) for each in weights_in(broadcast, "c")) if control is None else control

    def message(self, party: Party, broadcast: Bundle, model: FittedModel) -> Bundle:
        """y_i − x and c_i⁺ − c_i; the party keeps c_i⁺."""
        trained: Weights = tuple(model.estimator.get_weights())
        x, c, c_i = weights_in(broadcast), weights_in(broadcast, "c"), self.own_control(party, broadcast)
        path = model.estimator.n_steps_ * self.learning_rate
        new = tuple(
            mine - common + (before - after) / path
            for mine, common, before, after in zip(c_i, c, x, trained, strict=True)
        )
        party.shelf[CONTROL] = new
        steps = [after - before for before, after in zip(x, trained, strict=True)]
        changed = controls([after - before for before, after in zip(c_i, new, strict=True)])
        return weights_bundle(party.name, party, steps, changed)

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """x + η_g · mean of what the parties moved; c + |S|/N · mean of what their control variates changed."""
        assert server.last is not None
        x, c = weights_in(server.last), weights_in(server.last, "c")
        steps, changed = average(bundles, by_rows=False), average(bundles, "c", by_rows=False)
        weights = [each + self.global_rate * step for each, step in zip(x, steps, strict=True)]
        share = len(bundles) / (server.parties or len(bundles))
        common = [each + share * step for each, step in zip(c, changed, strict=True)]
        return weights_bundle("server", server, weights, controls(common))


def controls(values: Sequence[Any]) -> dict[str, Any]:
    """A control variate as named arrays."""
    return {f"c{place}": np.asarray(each) for place, each in enumerate(values)}


CARD = Card(
    name=Scaffold.name,
    title=Scaffold.title,
    summary="averages of weights with control variates",
    make=Scaffold,
    # A control variate, as large as the weights, goes with them both ways.
    traffic=Traffic("4·n·M·r", lambda s, r: 4 * r),
    colour="ink",
    marker="v",
)
