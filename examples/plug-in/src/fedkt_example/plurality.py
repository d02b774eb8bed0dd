"""Plurality: every party sends one model, and the server's model learns what most of them say of the public rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedkt import Algorithm, Bundle, Party, Server
from fedkt.algorithms.card import ONE_MESSAGE, Card
from fedkt.models.base import fit_model
from fedkt.models.catalogue import as_estimator
from fedkt.models.ensemble import fit_to_rows
from fedkt.votes import count_votes, winners


class Plurality(Algorithm):
    """One model a party, one vote a model, one model that learns the winners."""

    name = "plurality"

    def __init__(self, model: Any, *, final: Any = None) -> None:
        self.model = model
        self.final = final

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The party's own model: all that it sends."""
        estimator = fit_to_rows(as_estimator(self.model), party.public, party.image)
        model = fit_model(estimator, party.X, party.y, rng=party.rng(0))
        return Bundle(party.name, party.classes, (model,))

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The final model, taught by the parties' models on the public rows."""
        answers = [model.predict(server.public) for bundle in bundles for model in bundle.models]
        labels = winners(count_votes(answers, len(server.classes)), server.rng(0))
        estimator = fit_to_rows(as_estimator(self.final or self.model), server.public, server.image)
        return Bundle("server", server.classes, (fit_model(estimator, server.public, labels, rng=server.rng(1)),))


CARD = Card(
    name=Plurality.name,
    title="Plurality",
    summary="one model a party, one vote a model",
    make=Plurality,
    traffic=ONE_MESSAGE,
    colour="brown",
)
