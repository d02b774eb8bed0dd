"""Lessons in distributions: a student learns how sure its teachers are, not only which class wins.

Without noise nothing has to be hidden in a vote. A student of labels is as sure as its labels are unmixed; a student of
distributions is as sure as its party's rows allow, which is what expert voting reckons with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedkt.algorithms.lesson import STUDY, Lesson, learn_students
from fedkt.errors import ModelError
from fedkt.models.base import FittedModel
from fedkt.models.class_weights import undo_class_weights
from fedkt.models.ensemble import TrainingTask
from fedkt.models.training import train_models
from fedkt.pooling import Matrix, normalise_rows
from fedkt.system.parallel import Progress, progress_counter, sub_progress
from fedkt.system.stages import stage
from fedkt.system.threads import one_thread


@dataclass(frozen=True)
class SoftLesson(Lesson):
    """One partition of one party whose student learns the mean of its teachers' probabilities."""

    @property
    def n_outputs(self) -> int:
        """What teachers and student tell apart."""
        return len(self.party.classes)

    def distributions(self, teachers: Sequence[FittedModel]) -> Matrix:
        """How probable the teachers find each class of the public rows."""
        answers = [self.ask(number, teacher, self.rows) for number, teacher in enumerate(teachers)]
        return normalise_rows(np.mean(answers, axis=0))

    def ask(self, number: int, teacher: FittedModel, rows: Any) -> Matrix:
        """How probable one teacher finds each class of these rows."""
        try:
            answer = teacher.predict_proba(rows, self.n_outputs)
        except Exception as reason:
            # Whatever an arbitrary estimator raises, its user needs to know whose it is.
            raise self.no_answer(number, f"{type(reason).__name__}: {reason}") from reason
        if not np.isfinite(answer).all():
            raise self.no_answer(number, "some of its probabilities are no numbers")
        # A weighted class seems more common to a teacher than it is, and class counts say otherwise.
        task = self.teachers[number]
        return undo_class_weights(answer, teacher.labels, task.estimator, task.labels, task.weights)

    def no_answer(self, number: int, why: str) -> ModelError:
        """The words for a teacher that does not say how sure it is."""
        return ModelError(
            f"{self.teachers[number].who} was asked how probable it finds the classes of the public rows and gave no "
            f"answer ({why}). Choose another family, or voting='consistent', which only asks for the class."
        )

    def soft_student_task(self, distributions: Matrix) -> TrainingTask:
        """The student of the teachers' distributions."""
        party, partition = self.party, self.partition
        party.diary.vote.labels.append((None, distributions[:, : len(party.classes)].argmax(axis=1)))
        rng = party.rng(partition, STUDY)
        return TrainingTask(self.roles.student, self.rows, distributions, rng, None, self.student_in_words)


def gives_probabilities(estimator: Any) -> bool:
    """Whether a classifier of this kind will give probabilities."""
    return hasattr(estimator, "predict_proba")


def learn_all(lessons: Sequence[Lesson], *, jobs: int, progress: Progress | None) -> list[FittedModel]:
    """The student of each lesson, of distributions or of labels."""
    soft = [each for each in lessons if isinstance(each, SoftLesson)]
    hard = [each for each in lessons if not isinstance(each, SoftLesson)]
    if not soft or not hard:
        one = learn_distributions(soft, jobs=jobs, progress=progress)
        return one or learn_students(hard, jobs=jobs, progress=progress)
    models = [sum(len(each.teachers) + 1 for each in kind) for kind in (soft, hard)]
    of_distributions = iter(learn_distributions(soft, jobs=jobs, progress=sub_progress(progress, 0, sum(models))))
    of_labels = iter(learn_students(hard, jobs=jobs, progress=sub_progress(progress, models[0], sum(models))))
    return [next(of_distributions if isinstance(each, SoftLesson) else of_labels) for each in lessons]


def learn_distributions(lessons: Sequence[SoftLesson], *, jobs: int, progress: Progress | None) -> list[FittedModel]:
    """The student of each lesson; teachers, and then students, of all lessons are trained at once."""
    if not lessons:
        return []
    n_outputs, say = lessons[0].n_outputs, lessons[0].party.diary.say
    teachers = [teacher for lesson in lessons for teacher in lesson.teachers]
    done = progress_counter(progress, len(teachers) + len(lessons))
    with one_thread():
        trained = iter(train_models(teachers, n_outputs, jobs=jobs, done=done, say=say, what="teachers"))
        with stage("votes"):
            students = [
                lesson.soft_student_task(lesson.distributions([next(trained) for _ in lesson.teachers]))
                for lesson in lessons
            ]
        return train_models(students, n_outputs, jobs=jobs, done=done, say=say, what="students")
