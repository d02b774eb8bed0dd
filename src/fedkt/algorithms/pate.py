"""PATE: Private Aggregation of Teacher Ensembles, without noise.

Papernot, Abadi, Erlingsson, Goodfellow, Talwar: Semi-supervised Knowledge Transfer for Deep Learning from Private
Training Data. ICLR 2017.

The rows are cut into disjoint subsets, a teacher learns from each, the teachers vote on the public rows, and a student
learns the winning labels. FedKT does this at every party, and its server once more with the students as teachers. Run
on the pooled rows with as many teachers as there are parties, it is the upper bound of the paper's Table 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, FedKTError, ModelError
from fedkt.federation import Algorithm, Diary, Party, Server, in_parallel
from fedkt.models.base import FittedModel, count_rows, fit_model, one_thread, take_rows
from fedkt.models.catalogue import Roles, roles
from fedkt.privacy import Ledger, Noise
from fedkt.votes import NO_VOTE, Labels, Votes, count_votes

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
        student = learn_student(party, chosen, subsets=self.teachers, partition=0)
        return Bundle(party.name, party.classes, (student,))

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The student is the final model."""
        return bundles[0]


def learn_student(
    party: Party,
    chosen: Roles,
    *,
    subsets: int,
    partition: int,
    noise: Noise | None = None,
    queries: Labels | None = None,
) -> FittedModel:
    """The student of one partition: cut, teach, vote, study (Algorithm 1, lines 2 to 12).

    `queries` are the public rows that are voted on, all of them where it is None. With `noise` the labels leave the
    vote through the party's ledger, which refuses before a teacher is trained. A teacher is dropped as soon as it has
    voted.
    """
    rows = party.public if queries is None else take_rows(party.public, queries)
    pieces = cut(len(party.y), subsets, party.rng(partition, CUT))
    # What a teacher needs of its party: a worker process has no use for shelf, diary, ledger and progress bar.
    pupil = replace(party, public=rows, shelf={}, diary=Diary(), ledger=Ledger(), progress=None)
    tasks = [(pupil, chosen.teacher, partition, number, piece) for number, piece in enumerate(pieces)]

    def count() -> Votes:
        votes = np.zeros((count_rows(rows), len(party.classes)), dtype=np.int64)
        for predictions in in_parallel(teach, tasks, jobs=party.jobs, progress=party.progress):
            votes += count_votes(predictions, len(party.classes))
        if party.diagnostic and noise is not None:
            party.diary.bare_votes.append(votes)
        return votes

    with one_thread():
        labels = party.ledger.release(
            count,
            noise,
            queries=count_rows(rows),
            voters=len(pieces),
            classes=len(party.classes),
            unit="record",
            rng=party.rng(partition, TIES) if noise is None else party.noise_rng(partition),
            purpose=student_purpose(partition),
            noise_key=fingerprint(party.noise_seed, partition),
        )
        party.diary.figures.setdefault("labels", []).append((queries, labels))
        return study(party, chosen.student, rows, labels, partition)


def study(party: Party, student: Any, rows: Any, labels: Labels, partition: int) -> FittedModel:
    """The student of the labelled rows; rows that got no answer are left out."""
    answered = np.flatnonzero(labels != NO_VOTE)
    where = f"Party {party.name!r}, the student of partition {partition + 1}"
    if len(answered) == 0:
        raise ModelError(f"{where}: no query was answered. Lower the threshold, or ask more queries.")
    try:
        return fit_model(student, take_rows(rows, answered), labels[answered], rng=party.rng(partition, STUDY))
    except FedKTError as reason:
        raise type(reason)(f"{where}: {reason}") from reason


def student_purpose(partition: int) -> str:
    """What a student's labels are called in a ledger."""
    return f"student {partition + 1}"


def fingerprint(noise_seed: int | None, partition: int) -> str:
    """Tells one kept draw of secret noise from another, without telling the noise; empty for fresh noise."""
    return "" if noise_seed is None else hashlib.sha256(f"{noise_seed}/{partition}".encode()).hexdigest()[:32]


def teach(task: tuple[Party, Any, int, int, Labels]) -> Labels:
    """Train one teacher on its subset and return its votes on the public rows."""
    party, teacher, partition, number, piece = task
    try:
        model = fit_model(teacher, take_rows(party.X, piece), party.y[piece], rng=party.rng(partition, TEACH, number))
        return model.predict(party.public)
    except FedKTError as reason:
        where = f"Party {party.name!r}, partition {partition + 1}, the teacher of subset {number + 1}"
        raise type(reason)(f"{where}: {reason}") from reason


def cut(n_rows: int, subsets: int, rng: np.random.Generator) -> list[Labels]:
    """The row numbers of `subsets` nearly equal random subsets; fewer where there are fewer rows than subsets."""
    if subsets < 1:
        raise ConfigurationError(f"A partition needs at least one subset, got {subsets}.")
    return [np.sort(piece) for piece in np.array_split(rng.permutation(n_rows), min(subsets, n_rows))]
