"""PATE: Private Aggregation of Teacher Ensembles, without noise.

Papernot, Abadi, Erlingsson, Goodfellow, Talwar: Semi-supervised Knowledge Transfer for Deep Learning from Private
Training Data. ICLR 2017.

The rows are cut into disjoint subsets, a teacher learns from each, the teachers vote on the public rows, and a student
learns the winning labels. FedKT does this at every party, and its server once more with the students as teachers. Run
on the pooled rows with as many teachers as there are parties, it is the upper bound of the paper's Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedkt.algorithms.card import Card
from fedkt.algorithms.lesson import Lesson, fit_roles_to_rows, learn_students
from fedkt.bundle import Bundle
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.base import FittedModel
from fedkt.models.catalogue import Roles, roles


class PATE(Algorithm):
    """One student taught by `teachers` models on disjoint subsets of all rows."""

    name = "pate"
    pooled = True
    sends = False

    def __init__(self, model: Any, *, teachers: int, teacher: Any = None, student: Any = None) -> None:
        self.model = model
        self.teachers = teachers
        self.teacher = teacher
        self.student = student

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """A student of the teachers."""
        own = fit_roles_to_rows(roles(self.model, teacher=self.teacher, student=self.student), party)
        return Bundle(party.name, party.classes, (self.learn_student(party, own),))

    def learn_student(self, party: Party, own: Roles) -> FittedModel:
        """The student of the teachers' vote."""
        lesson = Lesson(party, 0, own, subsets=self.teachers)
        return learn_students([lesson], jobs=party.jobs, progress=party.progress)[0]

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The student is the final model."""
        return bundles[0]


CARD = Card(
    name=PATE.name,
    title="PATE",
    summary="upper bound: needs all rows in one place",
    make=PATE,
    colour="green",
    compared_at=("L0",),
    rival="PATE on the pooled rows",
)
