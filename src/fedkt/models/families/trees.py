"""Decision trees and averages of them, and the single tree that teaches every ensemble of trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedkt.models.families.family import Family, later

if TYPE_CHECKING:
    from fedkt.models.tree_graphs import Forest

ROW_WEIGHT = 100.0
"""Boosting finds rows of weight 1 too light to be told apart once they are split up; to other trees it is all one."""
CLASS_WEIGHT = {"class_weight": None}


def single_tree(student: Any) -> Any:
    """One tree of the student's depth.

    A teacher sees a fraction of a party's rows. Forests of teachers on so few rows all answer with the majority class
    (Adult falls to it), and they cost a hundred times as much; single trees disagree usefully.
    """
    from sklearn.tree import DecisionTreeClassifier

    depth = student.get_params().get("max_depth", student.get_params().get("depth"))
    weights = tree_class_weight(student.get_params(deep=False))
    return DecisionTreeClassifier(max_depth=depth if depth and depth > 0 else 6, class_weight=weights)


def tree_class_weight(parameters: Mapping[str, Any]) -> Any:
    """What a tree calls the weights of classes that an ensemble has, by whatever name; None for none.

    They belong to whoever learns from a party's rows, and that is the teacher.
    """
    if parameters.get("class_weight") is not None:
        weights = parameters["class_weight"]
        return "balanced" if weights == "balanced_subsample" else weights
    if parameters.get("class_weights") is not None:
        weights = parameters["class_weights"]
        return dict(weights) if isinstance(weights, Mapping) else dict(enumerate(weights))
    if parameters.get("scale_pos_weight") not in (None, 1):
        return {0: 1.0, 1: parameters["scale_pos_weight"]}
    return "balanced" if parameters.get("is_unbalance") or parameters.get("auto_class_weights") == "Balanced" else None


def _sklearn_trees(estimator: Any) -> Forest:
    """A tree, or the trees whose average a forest is."""
    from fedkt.models.tree_graphs import Forest, binned_trees, sklearn_tree

    if hasattr(estimator, "nodes_"):
        return Forest(list(binned_trees(estimator.nodes_)), len(estimator.classes_), link="sum")
    trees = getattr(estimator, "estimators_", [estimator])
    return Forest([sklearn_tree(each.tree_) for each in trees], len(estimator.classes_), link="sum")


TREE = Family(
    "tree",
    "One decision tree of depth 6: the paper's teacher for every tree ensemble.",
    later("sklearn.tree:DecisionTreeClassifier", max_depth=6),
    classes=("DecisionTreeClassifier", "ExtraTreeClassifier"),
    calibrated=True,
    row_weight=ROW_WEIGHT,
    class_weights=CLASS_WEIGHT,
    trees=_sklearn_trees,
)
FOREST = Family(
    "forest",
    "The paper's forest for Adult: 100 trees of depth 6.",
    later("sklearn.ensemble:RandomForestClassifier", n_estimators=100, max_depth=6),
    classes=("RandomForestClassifier", "BinnedForest"),
    hesitant=True,
    row_weight=ROW_WEIGHT,
    class_weights=CLASS_WEIGHT,
    teacher=single_tree,
    grow=later("fedkt.models.forests.training:fit_forest"),
    trees=_sklearn_trees,
)
EXTRA_TREES = replace(
    FOREST,
    name="extra-trees",
    summary="100 extremely randomised trees of depth 6.",
    make=later("sklearn.ensemble:ExtraTreesClassifier", n_estimators=100, max_depth=6),
    classes=("ExtraTreesClassifier",),
    grow=None,
)
