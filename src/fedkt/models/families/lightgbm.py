"""LightGBM's boosted trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedkt.models.families.family import Family, later
from fedkt.models.families.trees import CLASS_WEIGHT, ROW_WEIGHT, single_tree

if TYPE_CHECKING:
    from fedkt.models.tree_graphs import Forest, Tree


def _lightgbm_trees(estimator: Any) -> Forest | None:
    from fedkt.models.tree_graphs import Forest, one_leaf

    model = estimator.booster_.dump_model()
    objective = model.get("objective", "").partition(" ")[0]
    if model.get("average_output") or objective not in ("binary", "multiclass", "multiclassova"):
        return None
    n_classes = max(2, model["num_class"])
    shift = 1 if n_classes == 2 else 0
    trees = [one_leaf(0.0, 0)] if shift else []
    for number, each in enumerate(model["tree_info"]):
        tree = _lightgbm_tree(each["tree_structure"], number % model["num_tree_per_iteration"] + shift)
        if tree is None:
            return None
        trees.append(tree)
    # One model a class has no common scale; its sums say which class, not how sure.
    return Forest(trees, n_classes, link="" if objective == "multiclassova" else "softmax")


def _lightgbm_tree(root: Any, label: int) -> Tree | None:
    import numpy as np

    from fedkt.models.tree_graphs import one_class_tree

    nodes = [root]
    children: list[tuple[int, int]] = []
    for node in nodes:
        if "split_index" not in node:
            children.append((-1, -1))
            continue
        if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
            return None
        children.append((len(nodes), len(nodes) + 1))
        nodes += [node["left_child"], node["right_child"]]
    left, right = np.array(children, np.int64).T
    threshold = np.array([node.get("threshold", 0.0) for node in nodes], np.float64)
    # Trained without missing values, LightGBM reads a missing one as 0.
    default = [bool(node.get("default_left")) for node in nodes]
    as_zero = [node.get("missing_type") == "None" for node in nodes]
    return one_class_tree(
        feature=np.array([node.get("split_feature", 0) for node in nodes], np.int64),
        threshold=threshold,
        left=left,
        right=right,
        missing_left=np.where(as_zero, threshold >= 0, default).astype(np.int64),
        values=np.array([node.get("leaf_value", 0.0) for node in nodes]),
        label=label,
    )


LIGHTGBM = Family(
    "lightgbm",
    "LightGBM with its own defaults.",
    later("lightgbm:LGBMClassifier", verbose=-1),
    classes=("LGBMClassifier",),
    library="lightgbm",
    needs="lightgbm",
    extra="boosting",
    calibrated=True,
    row_weight=ROW_WEIGHT,
    # The bins of the values.
    training_bytes=1,
    class_weights={**CLASS_WEIGHT, "scale_pos_weight": 1.0, "is_unbalance": False},
    teacher=single_tree,
    trees=_lightgbm_trees,
)
