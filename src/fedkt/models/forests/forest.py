"""The forest that was grown on bins: one of scikit-learn's to whoever uses it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from fedkt.models.forests.walks import add_shares

DENSE_BYTES = 2**25
"""So much of a sparse table is made dense at once, to be asked about."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of all trees, one tree after the other. A right child follows its left one."""

    roots: NDArray[np.int64]
    depth: int
    """Of the deepest tree."""
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    """Rows are compared as float32, as in scikit-learn; no float32 lies between this and the middle of two values."""
    left: NDArray[np.int32]
    """The child where `x <= threshold`; a leaf names itself, so that nobody leaves it."""
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    """Nodes × classes: the shares of the classes among a node's samples."""
    weight: NDArray[np.int64]
    """How many samples a node has."""


class BinnedForest(RandomForestClassifier):
    """A trained `RandomForestClassifier` whose trees were grown on bins. A clone of it is a plain one."""

    nodes_: Nodes

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How probable each class is on each row of X."""
        return self.shares(X) / len(self.nodes_.roots)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row of X."""
        return np.asarray(self.classes_[self.shares(X).argmax(axis=1)])

    def shares(self, X: Any) -> NDArray[np.float64]:
        """The sum of what the trees say, from the first one to the last."""
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self)
        rows = validate_data(
            self, X, dtype=np.float32, order="C", accept_sparse="csr", reset=False, ensure_all_finite="allow-nan"
        )
        nodes = self.nodes_
        parts = (nodes.feature, nodes.threshold, nodes.left, nodes.missing_left, nodes.value)
        shares = np.zeros((rows.shape[0], len(self.classes_)))
        step = max(1, DENSE_BYTES // (4 * rows.shape[1])) if hasattr(rows, "toarray") else max(1, len(shares))
        for first in range(0, len(shares), step):
            block = rows[first : first + step]
            dense = np.ascontiguousarray(block.toarray()) if hasattr(block, "toarray") else block
            gaps = bool(np.isnan(dense).any())
            add_shares(dense, nodes.roots, nodes.depth, parts, shares[first : first + step], gaps)
        return shares

    @cached_property
    def estimators_(self) -> list[DecisionTreeClassifier]:
        """The trees as scikit-learn's own, for whoever wants to look into them: importances, paths, plots."""
        ends = np.append(self.nodes_.roots[1:], len(self.nodes_.left))
        return [self._tree(slice(*each)) for each in zip(self.nodes_.roots, ends, strict=True)]

    def _tree(self, own: slice) -> DecisionTreeClassifier:
        from sklearn.tree._tree import NODE_DTYPE, Tree

        nodes, k = self.nodes_, len(self.classes_)
        left = nodes.left[own] - own.start
        leaf = left == np.arange(len(left))
        table = np.zeros(len(left), NODE_DTYPE)
        table["left_child"] = np.where(leaf, -1, left)
        table["right_child"] = np.where(leaf, -1, left + 1)
        table["feature"] = np.where(leaf, -2, nodes.feature[own])
        table["threshold"] = np.where(leaf, -2.0, nodes.threshold[own])
        table["missing_go_to_left"] = nodes.missing_left[own] & ~leaf
        table["impurity"] = 1 - (nodes.value[own] ** 2).sum(axis=1)
        table["n_node_samples"] = table["weighted_n_node_samples"] = nodes.weight[own]
        tree = Tree(self.n_features_in_, np.array([k], np.intp), 1)
        values = np.ascontiguousarray(nodes.value[own][:, None, :])
        tree.__setstate__({"max_depth": nodes.depth, "node_count": len(left), "nodes": table, "values": values})
        one = DecisionTreeClassifier(max_depth=self.max_depth, max_features=self.max_features)
        one.tree_, one.classes_, one.n_classes_, one.n_outputs_ = tree, self.classes_, k, 1
        one.n_features_in_ = self.n_features_in_
        return one

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Who trains this again has a plain forest of scikit-learn's."""
        self.__class__ = RandomForestClassifier
        return self.fit(X, y, sample_weight)

    def __sklearn_clone__(self) -> RandomForestClassifier:
        from sklearn.base import clone

        return clone(RandomForestClassifier(**self.get_params(deep=False)))
