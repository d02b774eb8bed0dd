"""Tree ensembles as one ONNX node each, built from the library's own arrays in milliseconds.

The labels agree with the native model also on exact ties, which general converters lose:

* The node is a TreeEnsembleClassifier in float64 (float32 for XGBoost, which adds in float32). It picks the label from
  its sums before they are rounded to float32 and adds the trees in order, so it repeats scikit-learn's additions bit by
  bit; the first of several equal sums wins, as in np.argmax.
* With exactly two classes onnxruntime compares with 0 or 0.5 instead of comparing the two sums. A third class label
  that no leaf ever scores keeps it on the general path.
* A starting value (histogram boosting, XGBoost) is a tree of one leaf, so that it is added first and not last.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.graphs import Scores

Ints = NDArray[np.int64]
Floats = NDArray[Any]

ML_OPSET = 3
"""The version of ai.onnx.ml in which TreeEnsembleClassifier takes float64 values."""


@dataclass(frozen=True)
class Tree:
    """One tree: for each node its feature, threshold and children, and the scores its leaves give to classes."""

    feature: Ints
    threshold: Floats
    left: Ints
    """The child where `x <= threshold` (or `<`) holds; −1 marks a leaf."""
    right: Ints
    missing_left: Ints
    leaf_nodes: Ints
    """The node behind each score; a leaf may score several classes."""
    leaf_classes: Ints
    leaf_scores: Floats


@dataclass(frozen=True)
class Forest:
    """Trees whose scores are added class by class; the largest sum wins, the first class on a tie."""

    trees: Sequence[Tree]
    n_classes: int
    mode: bytes = b"BRANCH_LEQ"
    dtype: Any = field(default=np.float64)
    link: str = "softmax"
    """How sums become probabilities: by a softmax, or ("sum") because they add up to the number of trees."""

    @property
    def scores(self) -> Scores:
        """Where the sums stand in the graph."""
        return Scores("scores", self.n_classes + (self.n_classes == 2), self.link, float(len(self.trees)))


def forest_of(estimator: Any) -> Forest | None:
    """The trees of a scikit-learn, XGBoost or LightGBM classifier over local labels 0 … k − 1, None for others."""
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    if isinstance(estimator, DecisionTreeClassifier):
        return Forest([_sklearn_tree(estimator.tree_)], len(estimator.classes_), link="sum")
    if isinstance(estimator, RandomForestClassifier | ExtraTreesClassifier):
        trees = [_sklearn_tree(each.tree_) for each in estimator.estimators_]
        return Forest(trees, len(estimator.classes_), link="sum")
    if isinstance(estimator, HistGradientBoostingClassifier):
        return _hist_boosting(estimator)
    xgboost = sys.modules.get("xgboost")
    if xgboost is not None and isinstance(estimator, xgboost.XGBClassifier):
        return _xgboost(estimator)
    lightgbm = sys.modules.get("lightgbm")
    if lightgbm is not None and isinstance(estimator, lightgbm.LGBMClassifier):
        return _lightgbm(estimator)
    return None


def forest_graph(forest: Forest, labels: Sequence[int], n_features: int) -> Any:
    """The ONNX model of a forest; `labels[j]` is the agreed class behind its class j."""
    from onnx import TensorProto, helper

    wide = forest.dtype == np.float64
    nodes = [helper.make_node("Cast", ["rows"], ["rows64"], to=TensorProto.DOUBLE)] if wide else []
    nodes.append(_ensemble_node(forest, labels, "rows64" if wide else "rows"))
    graph = helper.make_graph(
        nodes,
        "fedkt",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, n_features])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, [None])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _ensemble_node(forest: Forest, labels: Sequence[int], source: str) -> Any:
    from onnx import NodeProto, numpy_helper

    node = NodeProto(op_type="TreeEnsembleClassifier", domain="ai.onnx.ml", input=[source], output=["label", "scores"])
    trees = forest.trees
    sizes = [len(tree.feature) for tree in trees]
    left = np.concatenate([tree.left for tree in trees])
    leaf = left < 0
    integers = {
        "nodes_treeids": np.repeat(np.arange(len(trees)), sizes),
        "nodes_nodeids": np.concatenate([np.arange(size) for size in sizes]),
        "nodes_featureids": np.where(leaf, 0, np.concatenate([tree.feature for tree in trees])),
        "nodes_truenodeids": np.where(leaf, 0, left),
        "nodes_falsenodeids": np.where(leaf, 0, np.concatenate([tree.right for tree in trees])),
        "nodes_missing_value_tracks_true": np.where(leaf, 0, np.concatenate([tree.missing_left for tree in trees])),
        "class_treeids": np.repeat(np.arange(len(trees)), [len(tree.leaf_nodes) for tree in trees]),
        "class_nodeids": np.concatenate([tree.leaf_nodes for tree in trees]),
        "class_ids": np.concatenate([tree.leaf_classes for tree in trees]),
        # The third label of a two-class model is never scored; see the top of this file.
        "classlabels_int64s": np.asarray([*labels, labels[0]] if len(labels) == 2 else labels, dtype=np.int64),
    }
    for name, values in integers.items():
        attribute = node.attribute.add(name=name, type=7)
        attribute.ints.extend(values.tolist())
    modes = node.attribute.add(name="nodes_modes", type=8)
    modes.strings.extend([b"LEAF" if each else forest.mode for each in leaf.tolist()])
    node.attribute.add(name="post_transform", type=3).s = b"NONE"
    thresholds = np.where(leaf, 0, np.concatenate([tree.threshold for tree in trees])).astype(forest.dtype)
    scores = np.concatenate([tree.leaf_scores for tree in trees]).astype(forest.dtype)
    if forest.dtype == np.float64:
        for name, values in (("nodes_values_as_tensor", thresholds), ("class_weights_as_tensor", scores)):
            node.attribute.add(name=name, type=4).t.CopyFrom(numpy_helper.from_array(values, name))
    else:
        for name, values in (("nodes_values", thresholds), ("class_weights", scores)):
            node.attribute.add(name=name, type=6).floats.extend(values.tolist())
    return node


def _constant(score: Any, label: int) -> Tree:
    """A tree of one leaf: a value every row starts with."""
    none, zero = np.array([-1]), np.array([0])
    return Tree(zero, np.zeros(1), none, none, zero, zero, np.array([label]), np.array([score]))


def _sklearn_tree(tree: Any) -> Tree:
    left, right = np.asarray(tree.children_left, np.int64), np.asarray(tree.children_right, np.int64)
    values = tree.value[:, 0, :]
    # A score of 0 changes no sum; leaving it out makes pure leaves cheap.
    leaf_nodes, leaf_classes = np.nonzero((values != 0) & (left < 0)[:, None])
    missing = getattr(tree, "missing_go_to_left", None)
    return Tree(
        feature=np.asarray(tree.feature, np.int64),
        threshold=tree.threshold,
        left=left,
        right=right,
        missing_left=np.zeros(len(left), np.int64) if missing is None else np.asarray(missing, np.int64),
        leaf_nodes=leaf_nodes,
        leaf_classes=leaf_classes,
        leaf_scores=values[leaf_nodes, leaf_classes],
    )


def _hist_boosting(estimator: Any) -> Forest | None:
    n_classes = len(estimator.classes_)
    # Two classes share one sum: it is the score of class 1, while class 0 keeps 0 and wins the tie.
    shift = 1 if n_classes == 2 else 0
    trees = [_constant(0.0, 0)] if shift else []
    trees += [_constant(each, k + shift) for k, each in enumerate(np.ravel(estimator._baseline_prediction))]
    for iteration in estimator._predictors:
        for k, predictor in enumerate(iteration):
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                return None
            leaf = nodes["is_leaf"].astype(bool)
            leaves = np.flatnonzero(leaf)
            trees.append(
                Tree(
                    feature=nodes["feature_idx"].astype(np.int64),
                    threshold=nodes["num_threshold"],
                    left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
                    right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
                    missing_left=nodes["missing_go_to_left"].astype(np.int64),
                    leaf_nodes=leaves,
                    leaf_classes=np.full(len(leaves), k + shift),
                    leaf_scores=nodes["value"][leaves],
                )
            )
    return Forest(trees, n_classes)


def _xgboost(estimator: Any) -> Forest | None:
    learner = json.loads(bytes(estimator.get_booster().save_raw("json")))["learner"]
    booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    known = ("binary:logistic", "multi:softprob", "multi:softmax")
    if booster["name"] != "gbtree" or objective not in known or not np.isnan(estimator.missing):
        return None
    model = booster["model"]
    if any(any(tree["split_type"]) or int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in model["trees"]):
        return None
    n_classes = max(2, int(learner["learner_model_param"]["num_class"]))
    base = np.atleast_1d(json.loads(learner["learner_model_param"]["base_score"])).astype(np.float32)
    trees = list(_xgboost_start(base, n_classes))
    shift = 1 if n_classes == 2 else 0
    used = len(model["trees"])
    if getattr(estimator, "early_stopping_rounds", None) is not None:
        used = model["iteration_indptr"][estimator.best_iteration + 1]
    for tree, label in zip(model["trees"][:used], model["tree_info"][:used], strict=True):
        trees.append(_xgboost_tree(tree, label + shift))
    return Forest(trees, n_classes, mode=b"BRANCH_LT", dtype=np.float32)


def _xgboost_start(base: NDArray[np.float32], n_classes: int) -> Iterator[Tree]:
    if n_classes == 2:
        # The native label is 1 where the sigmoid, rounded to float32, exceeds one half: from a margin of 2⁻²⁴ on.
        yield _constant(np.float32(2.0**-24), 0)
        yield _constant(-np.log(np.float32(1) / base[0] - np.float32(1)), 1)
    else:
        for k, each in enumerate(np.broadcast_to(base, n_classes)):
            yield _constant(each, k)


def _xgboost_tree(tree: Any, label: int) -> Tree:
    left = np.asarray(tree["left_children"], np.int64)
    right = np.asarray(tree["right_children"], np.int64)
    conditions = np.asarray(tree["split_conditions"], np.float32)
    keep = _reachable(left, right)
    place = np.cumsum(keep) - 1
    kept_left = np.where(left[keep] < 0, -1, place[left[keep]])
    leaves = np.flatnonzero(kept_left < 0)
    return Tree(
        feature=np.asarray(tree["split_indices"], np.int64)[keep],
        threshold=conditions[keep],
        left=kept_left,
        right=np.where(right[keep] < 0, -1, place[right[keep]]),
        missing_left=np.asarray(tree["default_left"], np.int64)[keep],
        leaf_nodes=leaves,
        leaf_classes=np.full(len(leaves), label),
        leaf_scores=conditions[keep][leaves],
    )


def _reachable(left: Ints, right: Ints) -> NDArray[np.bool_]:
    """Which nodes hang under the root: pruning leaves deleted ones behind."""
    found = np.zeros(len(left), dtype=bool)
    front = np.array([0])
    while len(front):
        found[front] = True
        inner = front[left[front] >= 0]
        front = np.concatenate([left[inner], right[inner]])
    return found


def _lightgbm(estimator: Any) -> Forest | None:
    dumped = estimator.booster_.dump_model()
    objective = dumped.get("objective", "").partition(" ")[0]
    if dumped.get("average_output") or objective not in ("binary", "multiclass", "multiclassova"):
        return None
    n_classes = max(2, dumped["num_class"])
    shift = 1 if n_classes == 2 else 0
    trees = [_constant(0.0, 0)] if shift else []
    for number, each in enumerate(dumped["tree_info"]):
        tree = _lightgbm_tree(each["tree_structure"], number % dumped["num_tree_per_iteration"] + shift)
        if tree is None:
            return None
        trees.append(tree)
    # One model a class has no common scale; its sums say which class, not how sure.
    return Forest(trees, n_classes, link="" if objective == "multiclassova" else "softmax")


def _lightgbm_tree(root: Any, label: int) -> Tree | None:
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
    leaves = np.flatnonzero(left < 0)
    threshold = np.array([node.get("threshold", 0.0) for node in nodes], np.float64)
    # Trained without missing values, LightGBM reads a missing one as 0.
    default = [bool(node.get("default_left")) for node in nodes]
    as_zero = [node.get("missing_type") == "None" for node in nodes]
    return Tree(
        feature=np.array([node.get("split_feature", 0) for node in nodes], np.int64),
        threshold=threshold,
        left=left,
        right=right,
        missing_left=np.where(as_zero, threshold >= 0, default).astype(np.int64),
        leaf_nodes=leaves,
        leaf_classes=np.full(len(leaves), label),
        leaf_scores=np.array([nodes[each]["leaf_value"] for each in leaves]),
    )
