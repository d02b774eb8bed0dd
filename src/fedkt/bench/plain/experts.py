"""Expert voting as one loop: a teacher and a student a party, weighed by who has the rows of a class."""

from __future__ import annotations

import numpy as np

from fedkt.bench.plain.learners import CUT, STUDY, TEACH, TIES, learn, normalised, test_answers, winners
from fedkt.bench.work import Array, Work
from fedkt.system.stages import stage

HESITANT = ("forest",)
"""Averages of models, which are less sure than they should be: half of each row goes to its label."""
SUREST, CONVERGED, MOST_ROUNDS, FOLDS = 1e-3, 1e-4, 500, 2


def with_counts(work: Work) -> Array:
    """The class of each test row, parties weighed by how many rows of each class they have."""
    public, n_classes = work.public, work.n_classes
    counts = np.array([np.bincount(y, minlength=n_classes) for _, y, _ in work.parties])
    students = []
    for X, y, seed in work.parties:
        with stage("teachers"):
            teacher = learn(work, work.model, X, y, (seed, 0, TEACH, 0))
        with stage("votes"):
            known = normalised(teacher.predict_proba(public, n_classes))
        with stage("students"):
            students.append(learn(work, work.model, public, known, (seed, 0, STUDY)))
    with stage("asking"):
        opinions = np.stack([student.predict_proba(public, n_classes).astype(np.float32) for student in students])
    with stage("vote"):
        pooled = pooled_opinion(opinions, counts / np.maximum(counts.sum(axis=0), 1))
    return final_answers(work, pooled)


def pooled_opinion(opinions: Array, shares: Array) -> Array:
    """Σ w_i(x) p_i(y|x), where w_i(x) is how probable it is that such a row is party i's; found by iteration."""
    pooled = normalised(opinions.mean(axis=0, dtype=np.float64))
    for _ in range(MOST_ROUNDS):
        before, weights = pooled, normalised(pooled @ shares.T)
        pooled = normalised(np.einsum("mi,imk->mk", weights, opinions))
        if np.abs(pooled - before).max() < CONVERGED:
            break
    return pooled


def without_counts(work: Work) -> Array:
    """The class of each test row, where a model also learns which rows are not its party's."""
    public, n_classes = work.public, work.n_classes
    students = []
    for X, y, seed in work.parties:
        known = np.zeros((len(public), n_classes + 1))
        order = np.random.default_rng((seed, 0, CUT)).permutation(len(public))
        for number, fold in enumerate(np.array_split(order, FOLDS)):
            others = np.setdiff1d(order, fold)
            with stage("teachers"):
                rows = np.concatenate([X, public[others]])
                labels = np.concatenate([y, np.full(len(others), n_classes)])
                teacher = learn(work, work.model, rows, labels, (seed, 0, TEACH, number))
            with stage("votes"):
                answers = teacher.predict_proba(public[fold], n_classes + 1)
                answers[:, -1] *= len(public) / len(others)
                known[fold] = answers
        with stage("students"):
            students.append(learn(work, work.model, public, normalised(known), (seed, 0, STUDY)))
    total = np.zeros((len(public), n_classes))
    for student in students:
        with stage("asking"):
            opinion = student.predict_proba(public, n_classes + 1).astype(np.float32).astype(np.float64)
        with stage("vote"):
            total += opinion[:, :-1] / np.maximum(opinion[:, -1:], SUREST)
    return final_answers(work, total / np.maximum(total.sum(axis=1, keepdims=True), 1e-300))


def final_answers(work: Work, pooled: Array) -> Array:
    """What a final model says that has learned the pooled opinion."""
    with stage("vote"):
        labels = winners(pooled, np.random.default_rng((work.server_seed, 0, TIES)))
        answered = labels >= 0
        if work.model in HESITANT:
            pooled = pooled / 2
            pooled[answered, labels[answered]] += 0.5
    with stage("final model"):
        final = learn(work, work.model, work.public[answered], pooled[answered], (work.server_seed, 0, STUDY))
    return test_answers(final, work)
