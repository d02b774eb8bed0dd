"""SOLO: every party trains alone and nothing is shared; the paper reports the mean accuracy over the parties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedkt.algorithms.pate import STUDY
from fedkt.algorithms.training import train_models
from fedkt.bundle import Bundle
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.catalogue import as_estimator
from fedkt.models.ensemble import Problem, is_neural, suited
from fedkt.parallel import Progress, counted


class Solo(Algorithm):
    """One model per party, trained on all its own rows."""

    name = "solo"
    sends = False

    def __init__(self, model: Any) -> None:
        self.model = model

    def together(self, parties: Sequence[Party]) -> bool:
        """Networks of many parties train faster as one stack."""
        return any(is_neural(self.chosen(party)) for party in parties)

    def chosen(self, party: Party) -> Any:
        """The model this party trains."""
        return as_estimator(self.model if party.model is None else party.model)

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The party's own model."""
        return self.party_steps([party], broadcast, progress=party.progress)[0]

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """Every party's own model, trained at once."""
        problems = [self.problem(party) for party in parties]
        n_classes = len(parties[0].classes)
        done, say = counted(progress, len(problems)), parties[0].diary.say
        models = train_models(problems, n_classes, jobs=jobs, done=done, say=say)
        return [Bundle(party.name, party.classes, (model,)) for party, model in zip(parties, models, strict=True)]

    def problem(self, party: Party) -> Problem:
        """The party's model and all its rows."""
        suiting = suited(self.chosen(party), party.public, party.image)
        return Problem(suiting, party.X, party.y, party.rng(0, STUDY), who=f"Party {party.name!r}")

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """Every party's own model, side by side."""
        return Bundle("server", server.classes, tuple(model for bundle in bundles for model in bundle.models))
