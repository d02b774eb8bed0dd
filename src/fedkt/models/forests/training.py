"""A forest grown on bins in place of scikit-learn's, where it is the same forest and the work is large enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.forests.bins import Bins, bin_rows
from fedkt.system.fast import has_fast

NO_LIMIT = 2**62
FIXED: Mapping[str, Any] = {
    "criterion": "gini",
    "bootstrap": True,
    "max_samples": None,
    "max_leaf_nodes": None,
    "min_weight_fraction_leaf": 0.0,
    "min_impurity_decrease": 0.0,
    "ccp_alpha": 0.0,
    "monotonic_cst": None,
    "oob_score": False,
    "warm_start": False,
    "verbose": 0,
}
"""What is not about the trees grown here, and what it must be; anything else is left to scikit-learn."""
FREE = frozenset({"n_estimators", "max_depth", "min_samples_split", "min_samples_leaf", "max_features"})
FREE |= {"class_weight", "random_state", "n_jobs"}
"""What may be set."""
LEAST_WORK = 100_000
"""Rows times trees from which on a forest is grown on bins."""
SUMS = 2**31
"""So many samples can be counted."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Limits:
    """How far a tree grows."""

    depth: int
    split: int
    leaf: int
    tries: int


def fit_forest(
    estimator: Any,
    X: Any,
    labels: Ints,
    *,
    rows: Ints | None = None,
    params: Mapping[str, Any] = MappingProxyType({}),
    bins: Bins | None = None,
) -> Any:
    """A forest of X like the one that `estimator` would become; None where that is left to itself.

    `labels`, 0 … k − 1, are those of the `rows`, of which one may stand under several; None for each row once. `params`
    are what its `fit` would get beside them. Whoever has the bins of X has decided; else the number of its rows does.
    """
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    wanted = grows(estimator, n_rows) if bins is None else is_ours(estimator)
    if not wanted or not {"sample_weight"}.issuperset(params) or len(labels) >= SUMS:
        return None
    from sklearn.utils import compute_sample_weight
    from sklearn.utils.validation import validate_data

    from fedkt.models.forests.forest import BinnedForest

    bins = bins_of(X) if bins is None else bins
    if bins is None:
        return None
    places = np.arange(len(labels)) if rows is None else rows
    weights = params.get("sample_weight")
    chances = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if estimator.class_weight is not None:
        chances = chances * compute_sample_weight(estimator.class_weight, labels)
    forest = BinnedForest(**estimator.get_params(deep=False))
    # What scikit-learn knows of the columns: their number and names.
    validate_data(forest, X, skip_check_array=True)
    forest.n_outputs_ = 1
    forest.n_classes_ = int(labels.max()) + 1
    forest.classes_ = np.arange(forest.n_classes_)
    forest.nodes_ = grow_trees(estimator, bins, places, labels, chances)
    return forest


def grows(estimator: Any, n_rows: int) -> bool:
    """Whether a forest of so many rows is grown on bins. The rows themselves decide nothing."""
    return is_ours(estimator) and n_rows * int(estimator.n_estimators) >= LEAST_WORK


def is_ours(estimator: Any) -> bool:
    """Whether trees can be grown here that are those of this estimator."""
    from sklearn.ensemble import RandomForestClassifier

    plain = type(estimator) is RandomForestClassifier
    return plain and has_fast() and is_supported(estimator.get_params(deep=False))


def is_supported(parameters: Mapping[str, Any]) -> bool:
    """Whether trees grown here are those that scikit-learn would grow with these parameters."""
    if not FREE | set(FIXED) >= set(parameters) or any(parameters[name] != value for name, value in FIXED.items()):
        return False
    depth, features, weight = (parameters[name] for name in ("max_depth", "max_features", "class_weight"))
    share = isinstance(features, float) and 0 < features <= 1
    return (
        is_whole(parameters["n_estimators"], 1)
        and (depth is None or is_whole(depth, 1))
        and is_whole(parameters["min_samples_split"], 2)
        and is_whole(parameters["min_samples_leaf"], 1)
        and (features in (None, "sqrt", "log2") or is_whole(features, 1) or share)
        and (weight is None or weight == "balanced" or isinstance(weight, Mapping))
        and (parameters["random_state"] is None or is_whole(parameters["random_state"], 0))
    )


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number of at least so much."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def bins_of(X: Any) -> Bins | None:
    """The bins of rows as a classifier gets them: an array, a sparse table or a data frame."""
    from sklearn.utils import check_array

    return bin_rows(check_array(X, dtype="numeric", accept_sparse="csc", ensure_all_finite=False))


def limits_of(estimator: Any, n_columns: int) -> Limits:
    """How far its trees grow, in numbers."""
    named = {"sqrt": np.sqrt(n_columns), "log2": np.log2(n_columns), None: n_columns}
    tries = estimator.max_features
    if tries in named:
        tries = named[tries]
    elif isinstance(tries, float):
        tries *= n_columns
    depth = NO_LIMIT if estimator.max_depth is None else int(estimator.max_depth)
    return Limits(depth, int(estimator.min_samples_split), int(estimator.min_samples_leaf), max(1, int(tries)))


def grow_trees(estimator: Any, bins: Bins, rows: Ints, labels: Ints, chances: NDArray[np.float64]) -> Any:
    """The nodes of all trees. Each has random numbers of its own, which the estimator's random state gives.

    Weights are chances to be drawn, as in scikit-learn from 1.9 on.
    """
    from fedkt.models.forests.forest import Nodes
    from fedkt.models.forests.growth import draw_samples, draw_table, grow_tree

    (n_columns, n_rows), n_classes, bits = bins.codes.shape, int(labels.max()) + 1, len(labels).bit_length()
    limits = limits_of(estimator, n_columns)
    table = draw_table(chances)
    counts = np.empty((n_rows, n_classes // (64 // bits) + 1), np.uint64)
    most = min(2 ** (min(limits.depth, 40) + 1), 2 * n_rows)
    forms = (np.int32, np.float32, np.int32, np.bool_, (np.float64, n_classes), np.int64)
    buffer = tuple(np.zeros(most, form) for form in forms)
    edges = (bins.codes, bins.start, bins.low, bins.high, bins.gaps)
    depth = 0
    grown: list[tuple[NDArray[Any], ...]] = []
    for seed in np.random.SeedSequence(estimator.random_state).generate_state(estimator.n_estimators, np.uint64):
        state = np.array([seed])
        counts[:] = 0
        draw_samples(table, rows, labels, counts, n_classes, bits, state)
        used, deepest = grow_tree(*edges, counts, n_classes, bits, astuple(limits), state, buffer)
        depth = max(depth, deepest)
        grown.append(tuple(each[:used].copy() for each in buffer))
    feature, threshold, left, missing_left, value, weight = (np.concatenate(each) for each in zip(*grown, strict=True))
    sizes = [len(each[0]) for each in grown]
    roots = np.cumsum([0, *sizes[:-1]])
    left = (left + np.repeat(roots, sizes)).astype(np.int32)
    return Nodes(roots, depth, feature, threshold, left, missing_left, value, weight)
