"""SOLO: every party trains alone and nothing is shared; the paper reports the mean accuracy over the parties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedkt.algorithms.card import Card
from fedkt.algorithms.lesson import STUDY
from fedkt.bundle import Bundle
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.catalogue import as_estimator
from fedkt.models.ensemble import TrainingTask, fit_to_rows, is_neural
from fedkt.models.training import train_models
from fedkt.system.parallel import Progress, progress_counter


class Solo(Algorithm):
    """One model per party, trained on all its own rows."""

    name = "solo"
    sends = False

    def __init__(self, model: Any) -> None:
        self.model = model

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """Networks of many parties train faster as one stack."""
        return any(is_neural(self.model_of(party)) for party in parties)

    def model_of(self, party: Party) -> Any:
        """The model this party trains."""
        return as_estimator(self.model if party.model is None else party.model)

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The party's own model."""
        return self.party_steps([party], broadcast, progress=party.progress)[0]

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """Every party's own model, trained at once."""
        tasks = [self.task(party) for party in parties]
        n_classes = len(parties[0].classes)
        done, say = progress_counter(progress, len(tasks)), parties[0].diary.say
        models = train_models(tasks, n_classes, jobs=jobs, done=done, say=say)
        return [Bundle(party.name, party.classes, (model,)) for party, model in zip(parties, models, strict=True)]

    def task(self, party: Party) -> TrainingTask:
        """The party's model and all its rows."""
        model = fit_to_rows(self.model_of(party), party.public, party.image)
        return TrainingTask(model, party.X, party.y, party.rng(0, STUDY), who=f"Party {party.name!r}")

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """Every party's own model, side by side."""
        return Bundle("server", server.classes, tuple(model for bundle in bundles for model in bundle.models))


CARD = Card(
    name=Solo.name,
    title="Solo",
    summary="each party alone; mean over the parties",
    make=Solo,
    colour="orange",
    compared_at=("L0",),
    rival="a party alone on average",
    party_models=True,
)
