"""PATE: Private Aggregation of Teacher Ensembles, without noise.

Papernot, Abadi, Erlingsson, Goodfellow, Talwar: Semi-supervised Knowledge Transfer for Deep Learning from Private
Training Data. ICLR 2017.

The rows are cut into disjoint subsets, a teacher learns from each, the teachers vote on the public rows, and a student
learns the winning labels. FedKT does this at every party, and its server once more with the students as teachers. Run
on the pooled rows with as many teachers as there are parties, it is the upper bound of the paper's Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedkt.algorithms.cut import cut, cut_by_identity, cut_key, positions
from fedkt.algorithms.training import Done, train_and_ask, train_models
from fedkt.bundle import Bundle
from fedkt.errors import ModelError
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.base import FittedModel, count_rows, one_thread, take_rows, within
from fedkt.models.catalogue import Roles, roles
from fedkt.models.ensemble import TrainingTask, fit_to_rows
from fedkt.privacy import Release
from fedkt.system.parallel import Progress, progress_counter
from fedkt.votes import NO_VOTE, Labels, Votes, count_votes, stand_in_vote

EMPTY = "its subset has no rows"
"""Why a teacher of an empty subset says nothing."""

# What a generator of a party is for: the second number of its path (the first is the partition).
CUT, TEACH, TIES, STUDY = range(4)


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
        """A student of the teachers' vote."""
        chosen = roles(self.model, teacher=self.teacher, student=self.student)
        lesson = Lesson(party, 0, fit_roles_to_rows(chosen, party), subsets=self.teachers)
        students = learn_students([lesson], jobs=party.jobs, progress=party.progress)
        return Bundle(party.name, party.classes, tuple(students))

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The student is the final model."""
        return bundles[0]


@dataclass(frozen=True)
class Lesson:
    """One partition of one party: cut, teach, vote, study (Algorithm 1, lines 2 to 12)."""

    party: Party
    partition: int
    chosen: Roles
    subsets: int
    release: Release | None = None
    """What leaves with noise: one of those that the algorithm lists. None where the bare labels leave."""
    queries: Labels | None = None
    """The public rows that are voted on; None for all of them."""

    @cached_property
    def rows(self) -> Any:
        """The public rows that are voted on."""
        return self.party.public if self.queries is None else take_rows(self.party.public, self.queries)

    @cached_property
    def teachers(self) -> list[TrainingTask]:
        """A teacher for each subset; with noise there are always as many, also of subsets without rows."""
        party = self.party
        return [
            TrainingTask(
                self.chosen.teacher,
                self.own_rows,
                party.y[piece],
                party.rng(self.partition, TEACH, number),
                piece,
                f"Party {party.name!r}, partition {self.partition + 1}, the teacher of subset {number + 1}",
                may_fail=self.release is not None,
                # Where even the size of a subset is a record's business, it must not reach the other teachers.
                alone=self.release is not None and self.release.adjacency == "add-or-remove",
            )
            for number, piece in enumerate(self.pieces)
        ]

    @cached_property
    def own_rows(self) -> Any:
        """The party's rows; where noise protects a record, with no value that public rows could not have.

        What a teacher makes of one absurd value would otherwise be anything, a failure included.
        """
        return self.party.X if self.release is None else within(self.party.X, self.party.public)

    @property
    def pieces(self) -> list[Labels]:
        """The rows of each subset."""
        party = self.party
        if self.release is None:
            return cut(len(party.y), self.subsets, party.rng(self.partition, CUT))
        known = positions(len(party.y)) if party.ids is None else party.ids
        return cut_by_identity(known, self.subsets, cut_key(party.seed, self.partition))


def fit_roles_to_rows(chosen: Roles, side: Party | Server) -> Roles:
    """The roles as this side's rows ask for."""
    named = (chosen.teacher, chosen.student, chosen.final)
    once = {id(role): role for role in named}
    made = {key: fit_to_rows(role, side.public, side.image) for key, role in once.items()}
    return Roles(*(made[id(role)] for role in named))


def learn_students(lessons: Sequence[Lesson], *, jobs: int, progress: Progress | None) -> list[FittedModel]:
    """The student of each lesson; teachers, and then students, of all lessons are trained at once.

    With noise the labels leave a vote through the party's ledger, which refuses before a teacher is trained. A teacher
    is dropped as soon as it has voted.
    """
    if not lessons:
        return []
    n_classes = len(lessons[0].party.classes)
    total = sum(teacher.n_rows > 0 for lesson in lessons for teacher in lesson.teachers) + len(lessons)
    done = progress_counter(progress, total)
    teacher_votes = TeacherVotes(lessons, n_classes, jobs, done)
    with one_thread():
        problems = [
            studying(lesson, release_labels(lesson, teacher_votes, number)) for number, lesson in enumerate(lessons)
        ]
        say = lessons[0].party.diary.say
        return train_models(problems, n_classes, jobs=jobs, done=done, say=say, what="students")


class TeacherVotes:
    """The teachers' votes in every lesson. The first one asked for has all teachers trained."""

    def __init__(self, lessons: Sequence[Lesson], n_classes: int, jobs: int, done: Done) -> None:
        self.lessons = lessons
        self.n_classes = n_classes
        self.jobs = jobs
        self.done = done

    @cached_property
    def votes(self) -> list[Votes]:
        """The votes on each lesson's rows."""
        votes = [np.zeros((count_rows(lesson.rows), self.n_classes), dtype=np.int64) for lesson in self.lessons]
        voters = [(number, place) for number, each in enumerate(self.lessons) for place in range(len(each.teachers))]
        trained = [each for each in voters if self.teacher(*each).n_rows]
        answers = train_and_ask(
            [self.teacher(*each) for each in trained],
            self.n_classes,
            [self.lessons[number].rows for number, _ in trained],
            jobs=self.jobs,
            done=self.done,
            say=self.lessons[0].party.diary.say,
            what="teachers",
        )
        heard = {trained[place]: answer for place, answer in answers}
        failed: dict[int, dict[int, str]] = {}
        for number, place in voters:
            answer = heard.get((number, place), EMPTY)
            if isinstance(answer, str):
                failed.setdefault(number, {})[place] = answer
                answer = stand_in_vote(place, len(votes[number]), self.n_classes)
            votes[number] += count_votes(answer[None], self.n_classes)
        for number, reasons in failed.items():
            tell_of_stand_ins(self.lessons[number], reasons)
        return votes

    def teacher(self, number: int, place: int) -> TrainingTask:
        """A teacher of a lesson."""
        return self.lessons[number].teachers[place]


def tell_of_stand_ins(lesson: Lesson, reasons: dict[int, str]) -> None:
    """Tell the party, and nobody else, which of its teachers vote by the fixed rule."""
    empty = sum(reason == EMPTY for reason in reasons.values())
    where = f"Party {lesson.party.name!r}, partition {lesson.partition + 1}"
    if empty:
        lesson.party.diary.say(
            f"{where}: {empty} of {lesson.subsets} subsets {'has' if empty == 1 else 'have'} no rows; their votes "
            "follow a fixed rule. With more rows or fewer subsets the student would know more."
        )
    told = [(place, reason) for place, reason in reasons.items() if reason != EMPTY]
    if told:
        place, reason = told[0]
        lesson.party.diary.say(
            f"{where}: {len(told)} of {lesson.subsets} teachers could not be trained or asked, and their votes follow "
            f"a fixed rule. The teacher of subset {place + 1}: {reason}"
        )


def release_labels(lesson: Lesson, teacher_votes: TeacherVotes, number: int) -> Labels:
    """The winning labels of a lesson's rows, through the party's ledger."""
    party, partition, release = lesson.party, lesson.partition, lesson.release

    def count() -> Votes:
        votes = teacher_votes.votes[number]
        if party.diagnostic and release is not None:
            party.diary.bare_votes.append(votes)
        return votes

    if release is not None:
        rng = party.noise_rng(release.stream)
        labels = party.ledger.release(count, release, rng=rng, noise_seed=party.noise_seed)
    else:
        labels = party.ledger.release_bare(
            count,
            queries=count_rows(lesson.rows),
            voters=len(lesson.teachers),
            classes=len(party.classes),
            rng=party.rng(partition, TIES),
        )
    party.diary.figures.setdefault("labels", []).append((lesson.queries, labels))
    return labels


def studying(lesson: Lesson, labels: Labels) -> TrainingTask:
    """A student of the labelled rows; rows that got no answer are left out."""
    party, partition = lesson.party, lesson.partition
    answered = np.flatnonzero(labels != NO_VOTE)
    who = f"Party {party.name!r}, the student of partition {partition + 1}"
    if len(answered) == 0:
        raise ModelError(f"{who}: no query was answered. Lower the threshold, or ask more queries.")
    some = None if len(answered) == len(labels) else answered
    return TrainingTask(lesson.chosen.student, lesson.rows, labels[answered], party.rng(partition, STUDY), some, who)
