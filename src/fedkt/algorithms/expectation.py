"""What to expect of a final model before anybody has tried it: by the sums, and by rows that parties lay aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.heads import STRENGTHS, Sums, system
from fedkt.bundle import Bundle
from fedkt.errors import ModelError
from fedkt.federation import Diary, Party
from fedkt.models.base import Model, take_rows
from fedkt.models.features.feature_map import Features
from fedkt.models.prediction import probabilities_of_all
from fedkt.pooling import Matrix
from fedkt.system.threads import one_thread
from fedkt.votes import Labels

ASIDE = 0xA51DE
"""What a party's generator draws with this number: the rows that it lays aside."""
SHARE = 4
"""One row in so many is laid aside."""
FEWEST = 40
"""A party of fewer rows lays none aside."""
DOUBT = 1.0
"""The rest of what students say is noise until labels show otherwise: so much precision says that its slope is 0.

By chance alone labels agree with a rest by about √(Σ ‖rest‖² · (1 − Σ shares²)): where students say little that is not
linear in φ, that is more than what they know.
"""
STEEPEST = 2.0
"""The rest is believed so much at most: a hesitant forest's is worth about twice what it says."""
FURTHEST = 2.0**0.5
"""Two distributions over the classes are not further apart; what is left of one is cut off there."""


@dataclass(frozen=True)
class Expectation:
    """What the server expects of both final models, before anybody has tried them."""

    moments: float
    """The Brier score of the head, each row left out."""
    expert: float
    """That of the final model that students teach, were it as sure as it should be."""
    slope: float
    """How much of what is not linear in φ is believed: 1 is as it is said, 0 is noise."""


def rows_aside(party: Party) -> Labels:
    """The rows that a party lays aside, drawn at random; none where too little would be left to learn from."""
    shuffled = party.rng(ASIDE).permutation(len(party.y))
    aside, rest = np.sort(shuffled[: len(shuffled) // SHARE]), shuffled[len(shuffled) // SHARE :]
    if len(shuffled) >= FEWEST and len(np.unique(party.y[rest])) > 1:
        return aside
    party.diary.say(
        f"Party {party.name!r} lays no rows aside, and has no say in which way is served: that takes {FEWEST} rows of "
        "two classes."
    )
    return aside[:0]


def without(party: Party, rows: Labels) -> Party:
    """The party with all its rows but these, about which its students are asked; a diary and a shelf of its own."""
    kept = np.setdiff1d(np.arange(len(party.y)), rows)
    ids = None if party.ids is None else [party.ids[each] for each in kept]
    own = {"X": take_rows(party.X, kept), "y": party.y[kept], "ids": ids, "asked_too": take_rows(party.X, rows)}
    return replace(party, **own, shelf={}, diary=Diary(spared=party.diary.spared))


def score(party: Party, rows: Labels, students: Sequence[Model], features: Features) -> NDArray[np.float64]:
    """A party's two numbers: how the rest of what students say agrees with labels laid aside, and how large it is."""
    n_classes = len(party.classes)
    shares = np.bincount(np.delete(party.y, rows), minlength=n_classes) / (len(party.y) - len(rows))
    with one_thread():
        public = features(party.public)
        weights, _ = linear_part(said_by(students, party.public, n_classes), public)
        own = take_rows(party.X, rows)
        rest = said_by(students, own, n_classes) - features(own) @ weights
    length = np.sqrt((rest**2).sum(axis=1, keepdims=True))
    rest = rest * np.minimum(1.0, FURTHEST / np.maximum(length, FURTHEST))
    labels = np.eye(n_classes)[party.y[rows]]
    return np.array([(rest * (labels - shares)).sum(), (rest**2).sum()])


def said_by(models: Sequence[Model], rows: Any, n_classes: int) -> Matrix:
    """How probable models find the classes, in the mean; one that only names a class is sure of it."""
    answers = probabilities_of_all(models, rows, n_classes)
    reasons = [each for each in answers if isinstance(each, str)]
    if reasons:
        raise ModelError(f"A model cannot be asked how probable it finds the classes: {reasons[0]}")
    return np.asarray(np.mean(np.asarray(answers, dtype=np.float64), axis=0))


def linear_part(said: Matrix, public: Matrix) -> tuple[Matrix, float]:
    """W for which φW is nearest to what is said of public rows, and the mean square of the rest.

    The ridge is that of the least rest when each row is left out, whose own share in its fit is taken to be the mean.
    """
    sums, tries = Sums(public.T @ said, public.T @ public), []
    for strength in STRENGTHS:
        left = system(sums, strength)
        weights = np.asarray(np.linalg.solve(left, sums.moments / sums.rows), dtype=np.float64)
        own = float(np.trace(np.linalg.solve(left, sums.gram))) / sums.rows**2
        rest = float(((said - public @ weights) ** 2).sum(axis=1).mean()) / max(1 - own, 1e-3) ** 2
        tries.append((weights, rest))
    return min(tries, key=lambda each: each[1])


def expected_brier(said: Matrix, sums: Sums, public: Matrix, slope: float) -> float:
    """The Brier score on parties' rows of what is said of public ones, stretched by one number as is best.

    With p for what is said and s for the class shares it is 1 − Σs² − cov(p, y)² / var(p). Of the part of p that is
    linear in φ the sums tell both; of the rest public rows tell the variance, and `slope` how much of it is covariance.
    """
    weights, rest = linear_part(said, public)
    mean = weights.T @ sums.gram[0] / sums.rows
    variance = float((weights * (sums.gram @ weights)).sum() / sums.rows - mean @ mean) + rest
    covariance = float((weights * sums.moments).sum() / sums.rows - sums.shares @ mean) + slope * rest
    constant = 1 - float((sums.shares**2).sum())
    return max(constant - max(covariance, 0.0) ** 2 / variance, 0.0) if variance > 0 else constant


def share_of_others(bundles: Sequence[Bundle], present: Labels) -> float:
    """The share of the parties' rows, as they say, that are of other classes than these."""
    told = [bundle.counts for bundle in bundles if bundle.counts is not None]
    counts = np.array(told, dtype=np.float64).sum(axis=0) if told else np.zeros(1)
    return 1 - float(counts[present].sum() / counts.sum()) if counts.sum() > 0 else 0.0
