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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.catalogue import family_of
from fedkt.models.graphs import LabelScores, label_model

if TYPE_CHECKING:
    from fedkt.models.forests.forest import Nodes

Ints = NDArray[np.int64]
Floats = NDArray[Any]


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
    def scores(self) -> LabelScores:
        """Where the sums stand in the graph."""
        return LabelScores("scores", self.n_classes + (self.n_classes == 2), self.link, float(len(self.trees)))


def forest_of(estimator: Any) -> Forest | None:
    """The trees of a trained classifier over local labels 0 … k − 1, None where its family has no reader of them."""
    reader = family_of(estimator).trees
    return None if reader is None else reader(estimator)


def forest_graph(forest: Forest, labels: Sequence[int], n_features: int) -> Any:
    """The ONNX model of a forest; `labels[j]` is the agreed class behind its class j."""
    from onnx import TensorProto, helper

    wide = forest.dtype == np.float64
    nodes = [helper.make_node("Cast", ["rows"], ["rows64"], to=TensorProto.DOUBLE)] if wide else []
    nodes.append(_ensemble_node(forest, labels, "rows64" if wide else "rows"))
    return label_model(nodes, n_features)


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


def one_leaf(score: Any, label: int) -> Tree:
    """A tree of one leaf: a value every row starts with."""
    none, zero = np.array([-1]), np.array([0])
    return Tree(zero, np.zeros(1), none, none, zero, zero, np.array([label]), np.array([score]))


def one_class_tree(
    feature: Ints, threshold: Floats, left: Ints, right: Ints, missing_left: Ints, values: Floats, label: int
) -> Tree:
    """A boosted tree: each leaf scores the one class that the tree is about, by its node's value."""
    leaves = np.flatnonzero(left < 0)
    return Tree(feature, threshold, left, right, missing_left, leaves, np.full(len(leaves), label), values[leaves])


def sklearn_tree(tree: Any) -> Tree:
    """A tree of scikit-learn's."""
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


def binned_trees(nodes: Nodes) -> Iterator[Tree]:
    """The trees of a forest that was grown on bins."""
    ends = np.append(nodes.roots[1:], len(nodes.left))
    for first, end in zip(nodes.roots, ends, strict=True):
        own = slice(first, end)
        left = nodes.left[own].astype(np.int64) - first
        leaf = left == np.arange(len(left))
        leaf_nodes, leaf_classes = np.nonzero((nodes.value[own] != 0) & leaf[:, None])
        yield Tree(
            feature=nodes.feature[own].astype(np.int64),
            threshold=nodes.threshold[own].astype(np.float64),
            left=np.where(leaf, -1, left),
            right=np.where(leaf, -1, left + 1),
            missing_left=nodes.missing_left[own].astype(np.int64),
            leaf_nodes=leaf_nodes,
            leaf_classes=leaf_classes,
            leaf_scores=nodes.value[own][leaf_nodes, leaf_classes],
        )
