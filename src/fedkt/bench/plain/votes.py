"""FedKT's Algorithm 1 as one loop: teachers vote, a student learns, students that agree vote."""

from __future__ import annotations

import numpy as np

from fedkt.bench.plain.learners import CUT, STUDY, TEACH, TEACHERS, TIES, learn, normalised, test_answers, winners
from fedkt.bench.work import Array, Work
from fedkt.system.stages import stage


def play(work: Work) -> Array:
    """The class of each test row."""
    public, n_classes, rows = work.public, work.n_classes, np.arange(len(work.public))
    teacher = TEACHERS.get(work.model, work.model)
    votes = np.zeros((len(public), n_classes))
    students = []
    for X, y, seed in work.parties:
        own = []
        for partition in range(work.partitions):
            counts = np.zeros((len(public), n_classes), dtype=np.int64)
            order = np.random.default_rng((seed, partition, CUT)).permutation(len(y))
            for number, piece in enumerate(map(np.sort, np.array_split(order, min(work.subsets, len(y))))):
                with stage("teachers"):
                    model = learn(work, teacher, X[piece], y[piece], (seed, partition, TEACH, number))
                    answers = model.predict(public)
                with stage("votes"):
                    counts[rows, answers] += 1
            with stage("votes"):
                labels = winners(counts, np.random.default_rng((seed, partition, TIES)))
            with stage("students"):
                own.append(learn(work, work.model, public, labels, (seed, partition, STUDY)))
        students.append(own)
    for own in students:
        with stage("asking"):
            answers = np.stack([student.predict(public) for student in own])
        with stage("vote"):
            agreed = (answers == answers[0]).all(axis=0)
            votes[rows[agreed], answers[0][agreed]] += 1
    with stage("vote"):
        labels = winners(votes, np.random.default_rng((work.server_seed, 0, TIES)))
    with stage("final model"):
        answered = labels >= 0
        final = learn(work, work.model, public[answered], normalised(votes)[answered], (work.server_seed, 0, STUDY))
    return test_answers(final, work)
