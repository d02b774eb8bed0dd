"""scikit-learn's boosted trees: by histograms, which have a name, and the older ones, which users may bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedkt.models.families.family import Family, later
from fedkt.models.families.trees import CLASS_WEIGHT, ROW_WEIGHT, single_tree

if TYPE_CHECKING:
    from fedkt.models.tree_graphs import Forest


def _hist_trees(estimator: Any) -> Forest | None:
    import numpy as np

    from fedkt.models.tree_graphs import Forest, one_class_tree, one_leaf

    n_classes = len(estimator.classes_)
    # Two classes share one sum: it is the score of class 1, while class 0 keeps 0 and wins the tie.
    shift = 1 if n_classes == 2 else 0
    trees = [one_leaf(0.0, 0)] if shift else []
    trees += [one_leaf(each, k + shift) for k, each in enumerate(np.ravel(estimator._baseline_prediction))]
    for iteration in estimator._predictors:
        for k, predictor in enumerate(iteration):
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                return None
            leaf = nodes["is_leaf"].astype(bool)
            trees.append(
                one_class_tree(
                    feature=nodes["feature_idx"].astype(np.int64),
                    threshold=nodes["num_threshold"],
                    left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
                    right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
                    missing_left=nodes["missing_go_to_left"].astype(np.int64),
                    values=nodes["value"],
                    label=k + shift,
                )
            )
    return Forest(trees, n_classes)


HIST_BOOSTING = Family(
    "hist-boosting",
    "scikit-learn's histogram boosting.",
    later("sklearn.ensemble:HistGradientBoostingClassifier", early_stopping=False),
    classes=("HistGradientBoostingClassifier",),
    calibrated=True,
    row_weight=ROW_WEIGHT,
    # The bins of the values.
    training_bytes=1,
    class_weights=CLASS_WEIGHT,
    teacher=single_tree,
    trees=_hist_trees,
)
GRADIENT_BOOSTING = Family(
    classes=("GradientBoostingClassifier",), calibrated=True, row_weight=ROW_WEIGHT, teacher=single_tree
)
