"""PATE with soft labels: the teachers say how sure they are, and a student network learns their mean.

What PATE could do without its vote, on the pooled rows: the bound that expert voting is held to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedkt.algorithms.card import Card
from fedkt.algorithms.lesson import TIES
from fedkt.algorithms.pate import PATE
from fedkt.algorithms.soft_lesson import SoftLesson, learn_distributions
from fedkt.federation import Party
from fedkt.models.base import FittedModel
from fedkt.models.catalogue import Roles
from fedkt.models.ensemble import TrainingTask, is_neural
from fedkt.pooling import Matrix
from fedkt.votes import winners


@dataclass(frozen=True)
class FinalLesson(SoftLesson):
    """A lesson whose student is the final model: of the mean itself if it is a network, else of the likeliest class."""

    def soft_student_task(self, distributions: Matrix) -> TrainingTask:
        """The student of the teachers' distributions."""
        task = super().soft_student_task(distributions)
        if is_neural(task.estimator):
            return task
        return replace(task, y=winners(distributions, self.party.rng(self.partition, TIES)))


class SoftPATE(PATE):
    """PATE whose public rows are labelled by the mean of the teachers' probabilities."""

    name = "pate-soft"

    def learn_student(self, party: Party, own: Roles) -> FittedModel:
        """The student of the teachers' mean."""
        lesson = FinalLesson(party, 0, own, subsets=self.teachers)
        return learn_distributions([lesson], jobs=party.jobs, progress=party.progress)[0]


CARD = Card(
    name=SoftPATE.name,
    title="PATE, soft",
    summary="upper bound: needs all rows in one place",
    make=SoftPATE,
    colour="brown",
    rival="PATE with soft labels on the pooled rows",
)
