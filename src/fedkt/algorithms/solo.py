"""SOLO: every party trains alone and nothing is shared; the paper reports the mean accuracy over the parties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedkt.algorithms.pate import STUDY
from fedkt.bundle import Bundle
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.base import fit_model
from fedkt.models.catalogue import as_estimator


class Solo(Algorithm):
    """One model per party, trained on all its own rows."""

    name = "solo"
    sends = False

    def __init__(self, model: Any) -> None:
        self.model = model

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The party's own model."""
        own = as_estimator(self.model if party.model is None else party.model)
        return Bundle(party.name, party.classes, (fit_model(own, party.X, party.y, rng=party.rng(0, STUDY)),))

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """Every party's own model, side by side."""
        return Bundle("server", server.classes, tuple(model for bundle in bundles for model in bundle.models))
