"""About how long a party's run takes: a small part of its work done on public rows, and multiplied."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np

from fedkt.algorithms import FedKT
from fedkt.algorithms.lesson import fit_roles_to_rows
from fedkt.federation import Party
from fedkt.models.base import count_rows, fit_model, take_rows
from fedkt.models.catalogue import Roles
from fedkt.models.ensemble import is_neural
from fedkt.models.features.received import map_rows
from fedkt.plan import Plan
from fedkt.system.threads import one_thread
from fedkt.votes import stand_in_vote

TRIAL_ROWS = 1_000
"""Rows that a model is tried on at most; more rows are taken to take as much longer."""
TRIAL_NETWORK = 200
START = 3.0
"""Seconds for reading, loading libraries and writing."""
CONVERT = 1.0
"""Seconds for a student to become ONNX and to be checked."""


def about_seconds(plan: Plan, name: str, public: Any, n_rows: int, *, jobs: int = 1) -> float:
    """About how long this party's run takes on so many rows; nothing of what is tried is kept."""
    algorithm = plan.algorithm()
    if not isinstance(algorithm, FedKT):
        assert plan.feature_map is not None
        rows = np.asarray(public, dtype=np.float32)[:TRIAL_NETWORK]
        started = time.perf_counter()
        map_rows(plan.feature_map.graph, rows, plan.feature_map.width)
        return START + (time.perf_counter() - started) * n_rows / len(rows)
    own = roles_at(plan, public_party(plan, name, public))
    teachers = max(1, min(plan.subsets, n_rows))
    classes = len(plan.classes)
    teacher = fit_seconds(own.teacher, public, max(classes, n_rows // teachers), classes)
    student = fit_seconds(own.student, public, max(classes, count_rows(public)), classes)
    return START + plan.partitions * (plan.subsets * teacher / min(jobs, teachers) + student + CONVERT)


def public_party(plan: Plan, name: str, public: Any) -> Party:
    """A party that has public rows only: whatever is tried on it learns nothing of anybody's."""
    y = np.zeros(count_rows(public), dtype=np.int64)
    return Party(public, plan.classes, 0, image=plan.image, name=name, X=public, y=y)


def roles_at(plan: Plan, party: Party) -> Roles:
    """Who teaches and who studies at a party."""
    algorithm = plan.algorithm()
    assert isinstance(algorithm, FedKT)
    return fit_roles_to_rows(algorithm.voting.roles_for(algorithm, plan.own_model(party.name)), party)


def fit_seconds(estimator: Any, public: Any, n_rows: int, n_classes: int) -> float:
    """How long a model takes to learn so many rows: tried on public rows, labelled with the classes in turn."""
    neural = is_neural(estimator)
    count = min(n_rows, TRIAL_NETWORK if neural else TRIAL_ROWS)
    trial = copy.deepcopy(estimator).set_params(epochs=1) if neural else estimator
    rows = take_rows(public, np.arange(count) % count_rows(public))
    labels = stand_in_vote(0, count, n_classes)
    started = time.perf_counter()
    with one_thread():
        fit_model(trial, rows, labels, rng=np.random.default_rng(0)).predict(public)
    spent = time.perf_counter() - started
    if neural:
        return spent * float(estimator.recipe.steps(n_rows)) / float(estimator.recipe.batches(count))
    return spent * n_rows / count
