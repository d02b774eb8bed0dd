"""The arithmetic of votes: counting them, and letting a party speak with one voice.

Predictions are class indices 0 … n_classes − 1; votes are counts of shape (queries, n_classes).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Votes = NDArray[np.int64]
Labels = NDArray[np.int64]

NO_VOTE = -1
"""The label of a query on which nobody voted."""


@dataclass
class Vote:
    """What happened in a vote, for whoever held it. Figures that a voting does not have are None."""

    labels: list[tuple[Labels | None, Labels]] = field(default_factory=list, repr=False)
    """The rows that were labelled (None for all of them) and their labels, once for each release."""
    silent: dict[str, str] = field(default_factory=dict)
    """The parties that could not vote, and why."""
    voters: int | None = None
    unlabelled: int | None = None
    ties: int | None = None
    abstention_rate: float | None = None
    agreement_histogram: list[int] | None = None
    abstention_histogram: list[int] | None = None
    weights: dict[str, float] | None = None
    """Each party's share of a class's rows, mean over the classes."""
    largest_shares: dict[str, list[Any]] | None = None
    """The class that each party has the largest share of, and that share."""
    influence: dict[str, float] | None = None
    """The share of the public rows that would have another label without a party."""
    strayed: float | None = None
    """How far the labels' class shares lay from the expected ones, before they were moved."""

    def figures(self) -> dict[str, Any]:
        """What a report tells of the vote, as plain values: neither labels nor who was silent."""
        facts = {name: value for name, value in asdict(self).items() if name not in ("labels", "silent")}
        return {name: value for name, value in facts.items() if value is not None}


def count_votes(predictions: ArrayLike, n_classes: int) -> Votes:
    """How many models chose each class: v_m(x) = |{k : T_k(x) = m}| (Algorithm 1, line 8).

    `predictions` has one row per model and one column per query. Anything outside 0 … n_classes − 1 is an abstention.
    """
    classes = np.atleast_2d(np.asarray(predictions))
    votes = np.empty((classes.shape[1], n_classes), dtype=np.int64)
    for label in range(n_classes):
        votes[:, label] = (classes == label).sum(axis=0)
    return votes


def stand_in_vote(voter: int, queries: int, n_classes: int) -> Labels:
    """The vote of a voter that has none of its own, by a rule that looks at nothing: the classes in turn.

    Several of them begin with different classes, so that together they favour none.
    """
    return (np.arange(queries, dtype=np.int64) + voter) % n_classes


def consistent_choice(predictions: ArrayLike) -> Labels:
    """The class on which all students of one party agree, NO_VOTE where they do not."""
    classes = np.atleast_2d(np.asarray(predictions, dtype=np.int64))
    return np.where((classes == classes[0]).all(axis=0), classes[0], NO_VOTE)


def consistent_votes(predictions_by_party: Iterable[ArrayLike], n_classes: int) -> Votes:
    """One vote a party, or none: |{i : v_m^i(x) = s}| (Algorithm 1, line 19, without its factor s).

    The factor s is the same for every class and moves no arg max; with noise it would only rescale the noise.
    """
    return sum_votes(map(consistent_choice, predictions_by_party), n_classes)


def sum_votes(predictions_by_party: Iterable[ArrayLike], n_classes: int) -> Votes:
    """The votes of all parties, as `count_votes` has those of one.

    Parties are read one at a time, so memory does not grow with their number.
    """
    votes: NDArray[np.int32] | None = None
    for predictions in predictions_by_party:
        classes = np.atleast_2d(np.asarray(predictions))
        if votes is None:
            votes = np.zeros((n_classes, classes.shape[1]), dtype=np.int32)
        for each in classes:
            for label, count in enumerate(votes):
                count += each == label
    if votes is None:
        raise ValueError("Votes need at least one party, got none.")
    return np.ascontiguousarray(votes.T, dtype=np.int64)


class Coins(Protocol):
    """Where ties are broken from: uniform draws from [0, 1)."""

    def random(self, size: int, /) -> NDArray[np.float64]:
        """So many of them."""
        ...


def winners(votes: ArrayLike, rng: Coins) -> Labels:
    """The class with most votes, ties broken at random, NO_VOTE where no class has any.

    A plain arg max would hand every tie, and every query nobody voted on, to class 0.
    """
    counts = np.asarray(votes)
    best = counts.max(axis=1, keepdims=True)
    tied = counts == best
    # One draw for every query, also where there is no tie: the draws then do not depend on the votes.
    position = np.floor(rng.random(len(counts)) * tied.sum(axis=1)).astype(np.int64)
    classes = np.argmax(np.cumsum(tied, axis=1) > position[:, None], axis=1)
    return np.where(best[:, 0] > 0, classes, NO_VOTE).astype(np.int64)
