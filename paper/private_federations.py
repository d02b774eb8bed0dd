"""The federations behind the paper's private settings, trained once: every noise is then drawn anew.

L1: 50 parties, t = 5; L2: 20 parties, t = 25; s = 1, δ = 1e-5; het is the balanced Dirichlet partition (β = 0.5), hom
the even one; Adult with forests, cod-rna with XGBoost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedkt.algorithms import FedKT
from fedkt.algorithms.lesson import TIES, Lesson, TeacherVotes
from fedkt.data import Dataset, load
from fedkt.federation import Party, Server, seed_for
from fedkt.lab.runner import assemble, draw_parties
from fedkt.lab.setting import Setting
from fedkt.models.base import fit_model
from fedkt.models.catalogue import Roles, roles
from fedkt.models.ensemble import fit_group
from fedkt.privacy import Laplace, Noise
from fedkt.privacy.diagnostic import diagnose, diagnose_parties
from fedkt.report import accuracies
from fedkt.votes import Labels, Votes, consistent_votes, winners
from paper.private_study import parts_of
from paper.tuning import lay_aside

DELTA = 1e-5
PARTIES = {"L1": 50, "L2": 20}
SUBSETS = {"L1": 5, "L2": 25}
PARTITION = {"het": "balanced", "hom": "even"}


def federation_of(name: str, seed: int, data_dir: Path | None, *, developing: bool = False) -> ServerNoise | PartyNoise:
    """The federation of a group; while developing it is scored on rows that the parties lay aside."""
    dataset, level, partition = parts_of(name)
    setting = Setting(
        dataset, parties=PARTIES[level], partition=PARTITION[partition], subsets=SUBSETS[level], seed=seed
    ).with_defaults()
    data = load(dataset, seed=seed, data_dir=data_dir)
    parties = assemble(setting, data, draw_parties(setting, data))
    if developing:
        parties, X, y = lay_aside(parties)
        data = replace(data, X_test=X, y_test=y)
    side = ServerNoise if level == "L1" else PartyNoise
    return side(parties, data, roles(setting.model))


def accuracy_by_draw(
    federation: ServerNoise | PartyNoise, noise: Noise, rows: Labels, learner: Any, seed: int, *, draws: int
) -> tuple[list[float], list[float]]:
    """Accuracy and balanced accuracy of the final model, for each draw of the noise."""
    models = [federation.run(noise, rows, seed_for(seed, f"draw {draw}"), learner) for draw in range(draws)]
    return accuracies(models, federation.data.X_test, federation.data.y_test)


def query_rows(level: str, noise: Noise, queries: int, federation: ServerNoise | PartyNoise) -> tuple[FedKT, Labels]:
    """The algorithm with this noise, and the public rows it asks."""
    algorithm = FedKT("tree", level=level, noise=noise, queries=queries, subsets=SUBSETS[level])
    rows = algorithm.query_rows(len(federation.data.X_public))
    assert rows is not None
    return algorithm, rows


class ServerNoise:
    """L1: the students are trained once; every run adds its noise to their consistent votes."""

    def __init__(self, parties: list[Party], data: Dataset, families: Roles) -> None:
        self.data, self.roles, self.parties = data, families, parties
        algorithm = FedKT(
            "tree", teacher=families.teacher, student=families.student, partitions=1, subsets=SUBSETS["L1"]
        )
        bundles = [algorithm.party_step(party, None) for party in parties]
        self.votes = consistent_votes(([m.predict(data.X_public) for m in each.models] for each in bundles), 2)

    def run(self, noise: Noise, rows: Labels, seed: int, learner: Any = None) -> Any:
        """The final model of one draw of the noise."""
        server = Server(self.data.X_public, self.data.classes, seed, noise_seed=seed)
        labels = noise.labels(self.votes[rows], server.noise_rng())
        return fit_model(learner or self.roles.final, self.data.X_public[rows], labels, rng=server.rng(0))

    def bare(self) -> Any:
        """The final model without noise."""
        server = Server(self.data.X_public, self.data.classes, 0)
        labels = winners(self.votes, server.rng(0))
        return fit_model(self.roles.final, self.data.X_public, labels, rng=server.rng(1))

    def diagnostic(self, noise: Laplace, rows: Labels) -> float:
        """The paper's data-dependent ε."""
        return diagnose(self.votes[rows], noise, DELTA).epsilon


class PartyNoise:
    """L2: the teachers are trained once; every run adds its noise to their votes and trains new students."""

    def __init__(self, parties: list[Party], data: Dataset, families: Roles) -> None:
        self.data, self.roles, self.parties = data, families, parties
        self.lessons = [Lesson(party, 0, families, SUBSETS["L2"]) for party in parties]
        self.votes = TeacherVotes(self.lessons, 2, 1, lambda _: None).counts

    def run(self, noise: Noise, rows: Labels, seed: int, learner: Any = None) -> Any:
        """The final model of one draw of the noise."""

        def labels_of(party: Party, votes: Votes) -> Labels:
            return noise.labels(votes[rows], replace(party, noise_seed=seed_for(seed, party.name)).noise_rng(0))

        return self.final(rows, labels_of, learner)

    def bare(self) -> Any:
        """The final model without noise."""
        return self.final(None, lambda party, votes: winners(votes, party.rng(0, TIES)))

    def final(self, rows: Labels | None, labels_of: Callable[[Party, Votes], Labels], learner: Any = None) -> Any:
        """Students of the labelled rows, their vote on all public rows, and the final model."""
        public = self.data.X_public
        families = self.roles if learner is None else replace(self.roles, student=learner)
        students = []
        for lesson, votes in zip(self.lessons, self.votes, strict=True):
            private_lesson = replace(lesson, queries=rows, roles=families)
            students += fit_group([private_lesson.student_task(labels_of(lesson.party, votes))], 2)
        server = Server(public, self.data.classes, 0)
        labels = winners(consistent_votes(([each.predict(public)] for each in students), 2), server.rng(0))
        return fit_model(self.roles.final, public, labels, rng=server.rng(1))

    def diagnostic(self, noise: Laplace, rows: Labels) -> float:
        """The paper's data-dependent ε: the largest over the parties."""
        return diagnose_parties([votes[rows] for votes in self.votes], noise, DELTA).epsilon
