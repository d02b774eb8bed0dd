"""PATE with soft labels: the teachers say how sure they are, and a student network learns their mean.

What PATE could do without its vote, on the pooled rows: the bound that expert voting is held to.
"""

from __future__ import annotations

from dataclasses import replace

from fedkt.algorithms.distil import SoftLesson
from fedkt.algorithms.pate import PATE, suited_roles
from fedkt.algorithms.training import train_models
from fedkt.bundle import Bundle
from fedkt.federation import Party
from fedkt.models.base import one_thread
from fedkt.models.catalogue import roles
from fedkt.models.ensemble import fit_group, is_neural
from fedkt.parallel import counted


class SoftPATE(PATE):
    """PATE whose public rows are labelled by the mean of the teachers' probabilities."""

    name = "pate-soft"

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """A student of the teachers' mean: of the mean itself if it is a network, else of the likeliest class."""
        chosen = suited_roles(roles(self.model, teacher=self.teacher, student=self.student), party)
        lesson = SoftLesson(party, 0, chosen, subsets=self.teachers)
        n_classes = len(party.classes)
        with one_thread():
            done = counted(party.progress, len(lesson.teachers) + 1)
            teachers = train_models(
                lesson.teachers,
                n_classes,
                jobs=party.jobs,
                done=done,
                say=party.diary.say,
                what="teachers",
            )
            problem = lesson.studying(lesson.said(teachers))
            if not is_neural(chosen.student):
                problem = replace(problem, y=problem.y.argmax(axis=1))
            (student,) = fit_group([problem], n_classes)
        done(1)
        return Bundle(party.name, party.classes, (student,))
