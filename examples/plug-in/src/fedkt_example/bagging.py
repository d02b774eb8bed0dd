"""Bagging (Breiman, 1996): trees of depth four, each on a draw of the rows, with all columns at every split."""

from __future__ import annotations

from typing import Any

from fedkt.models.families.family import Family


def bagged_trees() -> Any:
    """The usual estimator, untrained. Its library is imported here: a record never does."""
    from sklearn.ensemble import BaggingClassifier
    from sklearn.tree import DecisionTreeClassifier

    return BaggingClassifier(DecisionTreeClassifier(max_depth=4), n_estimators=15)


def single_tree(bagging: Any) -> Any:
    """Who teaches a student of the family: one tree like those in it, many times as fast."""
    from sklearn.base import clone
    from sklearn.tree import DecisionTreeClassifier

    # The record is asked about every estimator of its classes, also one that a user made without saying of what.
    return DecisionTreeClassifier() if bagging.estimator is None else clone(bagging.estimator)


BAGGING = Family(
    "bagging",
    "Fifteen trees of depth four, each on a draw of the rows.",
    bagged_trees,
    classes=("BaggingClassifier",),
    hesitant=True,
    teacher=single_tree,
)
