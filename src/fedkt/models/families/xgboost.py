"""XGBoost's boosted trees, the paper's models for cod-rna."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fedkt.models.families.family import Family, later
from fedkt.models.families.trees import ROW_WEIGHT, single_tree

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fedkt.models.tree_graphs import Forest, Ints, Tree


def _xgboost_trees(estimator: Any) -> Forest | None:
    import numpy as np

    from fedkt.models.tree_graphs import Forest

    learner = json.loads(bytes(estimator.get_booster().save_raw("json")))["learner"]
    booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    objectives = ("binary:logistic", "multi:softprob", "multi:softmax")
    if booster["name"] != "gbtree" or objective not in objectives or not np.isnan(estimator.missing):
        return None
    model = booster["model"]
    if any(any(tree["split_type"]) or int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in model["trees"]):
        return None
    n_classes = max(2, int(learner["learner_model_param"]["num_class"]))
    base = np.atleast_1d(json.loads(learner["learner_model_param"]["base_score"])).astype(np.float32)
    trees = list(_starting_values(base, n_classes))
    shift = 1 if n_classes == 2 else 0
    count = len(model["trees"])
    if getattr(estimator, "early_stopping_rounds", None) is not None:
        count = model["iteration_indptr"][estimator.best_iteration + 1]
    for tree, label in zip(model["trees"][:count], model["tree_info"][:count], strict=True):
        trees.append(_xgboost_tree(tree, label + shift))
    return Forest(trees, n_classes, mode=b"BRANCH_LT", dtype=np.float32)


def _starting_values(base: NDArray[np.float32], n_classes: int) -> Iterator[Tree]:
    """The values that every row starts with."""
    import numpy as np

    from fedkt.models.tree_graphs import one_leaf

    if n_classes == 2:
        # The native label is 1 where the sigmoid, rounded to float32, exceeds one half: from a margin of 2⁻²⁴ on.
        yield one_leaf(np.float32(2.0**-24), 0)
        yield one_leaf(-np.log(np.float32(1) / base[0] - np.float32(1)), 1)
    else:
        for k, each in enumerate(np.broadcast_to(base, n_classes)):
            yield one_leaf(each, k)


def _xgboost_tree(tree: Any, label: int) -> Tree:
    import numpy as np

    from fedkt.models.tree_graphs import one_class_tree

    left = np.asarray(tree["left_children"], np.int64)
    right = np.asarray(tree["right_children"], np.int64)
    conditions = np.asarray(tree["split_conditions"], np.float32)
    keep = _reachable(left, right)
    place = np.cumsum(keep) - 1
    return one_class_tree(
        feature=np.asarray(tree["split_indices"], np.int64)[keep],
        threshold=conditions[keep],
        left=np.where(left[keep] < 0, -1, place[left[keep]]),
        right=np.where(right[keep] < 0, -1, place[right[keep]]),
        missing_left=np.asarray(tree["default_left"], np.int64)[keep],
        values=conditions[keep],
        label=label,
    )


def _reachable(left: Ints, right: Ints) -> NDArray[np.bool_]:
    """Which nodes hang under the root: pruning leaves deleted ones behind."""
    import numpy as np

    reachable = np.zeros(len(left), dtype=bool)
    front = np.array([0])
    while len(front):
        reachable[front] = True
        inner = front[left[front] >= 0]
        front = np.concatenate([left[inner], right[inner]])
    return reachable


BOOSTING = Family(
    "boosting",
    "The paper's boosted trees for cod-rna: XGBoost, 100 rounds of depth 6.",
    later(
        "xgboost:XGBClassifier",
        n_estimators=100,
        max_depth=6,
        learning_rate=0.05,
        gamma=1,
        reg_lambda=1,
        tree_method="hist",
        verbosity=0,
    ),
    classes=("XGBClassifier",),
    library="xgboost",
    # The bins of the values.
    training_bytes=1,
    needs="xgboost",
    extra="boosting",
    lack="is XGBoost, which is not installed",
    instead=" (or choose 'hist-boosting', which needs nothing more)",
    calibrated=True,
    row_weight=ROW_WEIGHT,
    class_weights={"scale_pos_weight": 1.0},
    teacher=single_tree,
    trees=_xgboost_trees,
)
