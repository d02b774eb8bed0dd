"""PATE with soft labels: the teachers say how sure they are, and a student network learns their mean.

What PATE could do without its vote, on the pooled rows: the bound that expert voting is held to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedkt.algorithms.distil import SoftLesson, learn_distributions
from fedkt.algorithms.pate import PATE, TIES, fit_roles_to_rows
from fedkt.bundle import Bundle
from fedkt.federation import Party
from fedkt.models.catalogue import roles
from fedkt.models.ensemble import TrainingTask, is_neural
from fedkt.pooling import Matrix
from fedkt.votes import winners


@dataclass(frozen=True)
class FinalLesson(SoftLesson):
    """A lesson whose student is the final model: of the mean itself if it is a network, else of the likeliest class."""

    def studying(self, said: Matrix) -> TrainingTask:
        """The student of what the teachers said."""
        problem = super().studying(said)
        if is_neural(problem.estimator):
            return problem
        return replace(problem, y=winners(said, self.party.rng(self.partition, TIES)))


class SoftPATE(PATE):
    """PATE whose public rows are labelled by the mean of the teachers' probabilities."""

    name = "pate-soft"

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """A student of the teachers' mean."""
        chosen = fit_roles_to_rows(roles(self.model, teacher=self.teacher, student=self.student), party)
        lesson = FinalLesson(party, 0, chosen, subsets=self.teachers)
        students = learn_distributions([lesson], jobs=party.jobs, progress=party.progress)
        return Bundle(party.name, party.classes, tuple(students))
