"""How the scores of a final model are read: as probabilities, and as a label.

What a classifier scores (how probable it finds a class, or how far from a boundary a row lies) orders rows well and may
still be far from how often it is right. Calibration sets that right with one slope for all classes and an offset for
each, found on rows whose distributions are known. Scores far beyond the usual ones, and probabilities beyond what 32
bits tell apart from 1, are drawn together, but not into one: the order of the rows is a model's best part. A label may
be moved towards a class by a factor; probabilities stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ModelError
from fedkt.models.catalogue import family_of

Table = NDArray[np.float64]

LEAST = 1e-30
"""What smaller probabilities count as: float32, in which models travel, has few smaller ones."""
FLOORS = (1e-6, 1e-3)
"""Below which probabilities may differ by their order only. An average of few trees or neighbours says 0 where it only
has not seen a class; naive Bayes means its tiny ones."""
USUAL = (10.0, 3.0)
"""Beyond how many times the middle value of a decision function it may tell rows apart by their order only. A column
that has not been scaled makes it a million times larger on some rows."""
LARGEST = 1e37
"""Of scores; float32 has few larger ones."""
BEND = 0.02
"""Scores beyond a knee grow as slowly as the logarithm does, in units of this part of the knee."""
SUREST, TAIL = 10.0, 0.02
"""How many times less probable than the likeliest class the others together may be, as a logarithm, before it is their
order only that counts, and the unit by which it does: 1e37 comes to 12, and float32 ends next to 1 at 16."""
FLATTEST, STEEPEST = 0.02, 1e4
"""The least and the largest slope, for scores that are about 1 apart. The least one hardly tells classes apart, but
keeps the order of the rows."""
ROUNDING = 1e-3
"""How far a row's probabilities may be above 1 in all."""
AGREEMENT = 0.95
"""On so many rows the largest score must be that of the label; other columns mean something else (one class against
another, say)."""


@dataclass(frozen=True)
class Calibration:
    """Probabilities as the softmax of slope · score + offset."""

    slope: float
    offsets: Table
    """One for each class that the model tells apart."""
    knee: float = np.inf
    """Beyond it scores say no more than their order."""

    def probabilities(self, scores: Table) -> Table:
        """The probability of each class, for rows of scores."""
        logits = np.clip(self.slope * bend(scores, self.knee), -LARGEST, LARGEST)
        return soft_limit(logits + self.offsets)


@dataclass(frozen=True)
class Reading:
    """How scores become probabilities and a label. Classes are those that the model tells apart, in its order."""

    calibration: Calibration | None = None
    """None where the model's own probabilities are taken as they are."""
    factors: Table | None = None
    """The label is the class with the largest product of probability and factor; None for the estimator's own label."""

    def probabilities(self, estimator: Any, X: Any) -> Table:
        """How probable each class is on each row."""
        if self.calibration is None:
            own = np.asarray(estimator.predict_proba(X), dtype=np.float64)
            total = own.sum(axis=1, keepdims=True)
            # On rows far from all it knows, naive Bayes in float32 is sure of several classes at once.
            twice = (total > 1 + ROUNDING) & (own.max(axis=1, keepdims=True, initial=0.0) <= 1 + ROUNDING)
            return np.where(twice, own / np.where(twice, total, 1.0), own)
        return self.calibration.probabilities(class_scores(estimator, X))

    def labels(self, estimator: Any, X: Any) -> NDArray[Any]:
        """The label of each row, as the estimator calls it."""
        if self.factors is None:
            return np.asarray(estimator.predict(X)).reshape(-1)
        weighted = self.probabilities(estimator, X) * self.factors
        return np.asarray(np.asarray(estimator.classes_)[weighted.argmax(axis=1)])


def softmax(logits: Table) -> Table:
    """Each row as a distribution."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def soft_limit(logits: Table) -> Table:
    """The softmax of logits, with no class so probable that float32 could not tell a still more probable one apart."""
    below = logits - logits.max(axis=1, keepdims=True)
    most = least_logit(logits.shape[1])
    return softmax(np.maximum(below, -most) - TAIL * np.log1p(np.maximum(-below - most, 0) / TAIL))


def least_logit(n_classes: int) -> float:
    """How far a class may lie below the likeliest one before it is drawn nearer; all the others together count."""
    return SUREST + float(np.log(max(n_classes - 1, 1)))


def bend(scores: Table, knee: float) -> Table:
    """The scores, those beyond the knee drawn near to it in their order."""
    if not np.isfinite(knee):
        return scores
    inside = np.clip(scores, -knee, knee)
    outside, width = scores - inside, BEND * knee
    return np.asarray(inside + np.sign(outside) * width * np.log1p(np.abs(outside) / width))


def has_scores(estimator: Any) -> bool:
    """Whether a classifier says more than a class: a score for each, not one for each pair of them."""
    if hasattr(estimator, "predict_proba"):
        return True
    return hasattr(estimator, "decision_function") and not scores_pairs(estimator)


def scores_pairs(estimator: Any) -> bool:
    """Whether its decision function compares two of several classes at a time; three classes have as many pairs."""
    last = last_step(estimator)
    return getattr(last, "decision_function_shape", "ovr") == "ovo" and len(getattr(last, "classes_", ())) != 2


def last_step(estimator: Any) -> Any:
    """What classifies: the end of a pipeline, or the estimator itself."""
    return last_step(estimator.steps[-1][1]) if type(estimator).__name__ == "Pipeline" else estimator


def by_decision(estimator: Any) -> bool:
    """Whether its scores are a decision function's: where it has no probabilities, or they hide the scores' order."""
    if not hasattr(estimator, "predict_proba"):
        return True
    return family_of(estimator).scale == "decision" and hasattr(estimator, "decision_function")


def class_scores(estimator: Any, X: Any) -> Table:
    """A score for each class and row: the logarithm of its probability, or its value of the decision function."""
    if by_decision(estimator):
        if not hasattr(estimator, "decision_function"):
            raise ModelError(f"{type(estimator).__name__} only names a class.")
        values = np.asarray(estimator.decision_function(X), dtype=np.float64)
        scores = np.column_stack([np.zeros(len(values)), values]) if values.ndim == 1 else values
    elif family_of(estimator).scale == "logarithm":
        scores = np.asarray(estimator.predict_log_proba(X), dtype=np.float64)
    else:
        scores = np.log(np.maximum(np.asarray(estimator.predict_proba(X), dtype=np.float64), LEAST))
    return np.asarray(np.clip(scores, -LARGEST, LARGEST))


def scores_fit_labels(scores: Table, labels: NDArray[np.int64], n_classes: int) -> bool:
    """Whether there is a score for each class, and the largest one is that of the label."""
    if scores.shape != (len(labels), n_classes) or not np.isfinite(scores).all():
        return False
    return float(np.mean(scores.argmax(axis=1) == labels)) >= AGREEMENT


def fit_calibration(scores: Table, shares: Table, *, logarithms: bool) -> Calibration:
    """The calibration under which `shares`, a distribution for each row of scores, are likeliest.

    Whether there is a knee, and where, is chosen as well: for `logarithms` of probabilities at a floor, else at some
    times the usual score.
    """
    if logarithms:
        knees = [-float(np.log(floor)) for floor in FLOORS]
    else:
        apart = np.abs(scores - scores.mean(axis=1, keepdims=True))
        knees = [float(times * np.median(apart[apart > 0])) for times in USUAL if apart.any()]
    # The first of equals: scores stay as they are where a knee changes none.
    tries = [(fit_slope(bend(scores, knee), shares), knee) for knee in (np.inf, *knees)]
    (_, slope, offsets), knee = min(tries, key=lambda each: each[0][0])
    return Calibration(slope, offsets, knee)


def cross_entropy(probabilities: Table, shares: Table) -> float:
    """How surprising the shares are to whoever holds these probabilities, a row in the mean."""
    return float(-(shares * np.log(np.maximum(probabilities, LEAST))).sum(axis=1).mean())


def fit_slope(scores: Table, shares: Table) -> tuple[float, float, Table]:
    """The least cross entropy, and the slope and the offsets that give it.

    It is convex in slope and offsets, so there is one such least.
    """
    from scipy.optimize import minimize

    n_rows, n_classes = scores.shape
    # Scores of about 1 are what the search expects.
    unit = float(np.abs(scores - scores.mean(axis=1, keepdims=True)).mean()) or 1.0
    scaled = scores / unit

    def entropy(parameters: Table) -> tuple[float, Table]:
        logits = parameters[0] * scaled + parameters[1:]
        top = logits.max(axis=1, keepdims=True)
        log_sum = top + np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        gap = np.exp(logits - log_sum) - shares
        gradient = np.concatenate([[float((gap * scaled).sum())], gap.sum(axis=0)])
        return float((shares * (log_sum - logits)).sum()) / n_rows, gradient / n_rows

    start = np.concatenate([[1.0], np.zeros(n_classes)])
    bounds = [(FLATTEST, STEEPEST)] + [(-STEEPEST, STEEPEST)] * n_classes
    found = minimize(entropy, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.fun), float(found.x[0]) / unit, np.asarray(found.x[1:] - found.x[1:].mean())
