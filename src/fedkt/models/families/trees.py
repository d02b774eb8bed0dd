"""Decision trees and averages of them, and the single tree that teaches every ensemble of trees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedkt.models.families.family import Family

if TYPE_CHECKING:
    from fedkt.models.tree_graphs import Forest

ROW_WEIGHT = 100.0
"""Boosting finds rows of weight 1 too light to be told apart once they are split up; to other trees it is all one."""
CLASS_WEIGHT = {"class_weight": None}


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=6)


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, max_depth=6)


def _extra_trees() -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(n_estimators=100, max_depth=6)


def single_tree(student: Any) -> Any:
    """One tree of the student's depth.

    A teacher sees a fraction of a party's rows. Forests of teachers on so few rows all answer with the majority class
    (Adult falls to it), and they cost a hundred times as much; single trees disagree usefully.
    """
    from sklearn.tree import DecisionTreeClassifier

    depth = student.get_params().get("max_depth", student.get_params().get("depth"))
    return DecisionTreeClassifier(max_depth=depth if depth and depth > 0 else 6)


def _single(estimator: Any) -> Forest:
    from fedkt.models.tree_graphs import Forest, sklearn_tree

    return Forest([sklearn_tree(estimator.tree_)], len(estimator.classes_), link="sum")


def _average(estimator: Any) -> Forest:
    from fedkt.models.tree_graphs import Forest, sklearn_tree

    return Forest([sklearn_tree(each.tree_) for each in estimator.estimators_], len(estimator.classes_), link="sum")


TREE = Family(
    "tree",
    "One decision tree of depth 6: the paper's teacher for every tree ensemble.",
    _tree,
    classes=("DecisionTreeClassifier", "ExtraTreeClassifier"),
    calibrated=True,
    row_weight=ROW_WEIGHT,
    class_weights=CLASS_WEIGHT,
    trees=_single,
)
FOREST = Family(
    "forest",
    "The paper's forest for Adult: 100 trees of depth 6.",
    _forest,
    classes=("RandomForestClassifier",),
    row_weight=ROW_WEIGHT,
    class_weights=CLASS_WEIGHT,
    teacher=single_tree,
    trees=_average,
)
EXTRA_TREES = replace(
    FOREST,
    name="extra-trees",
    summary="100 extremely randomised trees of depth 6.",
    make=_extra_trees,
    classes=("ExtraTreesClassifier",),
)
