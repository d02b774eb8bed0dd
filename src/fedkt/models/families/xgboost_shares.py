"""XGBoost on shares of two classes: each row once, with the second class's share in place of a label.

A row that is given under both classes, weighed by their shares s and 1 − s, pulls a tree by
s (p − 1) + (1 − s) p = p − s and bends it by p (1 − p): what `reg:logistic` makes of one row with the label s. So the
trees are those of the copies, from half the rows, up to rounding. That may show where an edge of a column's bins falls
exactly between two values: it is put on one side or the other, and the trees differ as with other bins. Without copies
edges do not hang on the shares. More classes have nothing as exact: no such objective of XGBoost takes shares.

As no row is copied, students of the same rows can have them in bins together, and only labels of their own.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOGISTIC = (None, "binary:logistic")
SAME_TREES = frozenset(
    {
        *("base_score", "gamma", "grow_policy", "interaction_constraints", "learning_rate", "max_bin"),
        *(
            "max_delta_step",
            "max_depth",
            "max_leaves",
            "min_child_weight",
            "missing",
            "monotone_constraints",
            "n_estimators",
            "n_jobs",
        ),
        *("colsample_bylevel", "colsample_bynode", "colsample_bytree", "num_parallel_tree", "random_state"),
        *("reg_alpha", "reg_lambda", "verbosity", "importance_type", "validate_parameters"),
    }
)
"""Parameters that may have any value: to what they ask, one row with a share is as good as two with weights."""
FIXED: dict[str, tuple[Any, ...]] = {
    "objective": LOGISTIC,
    "booster": (None, "gbtree"),
    "tree_method": (None, "auto", "hist"),
    "device": (None, "cpu"),
    "scale_pos_weight": (None, 1, 1.0),
    "subsample": (None, 1, 1.0),  # less would draw among copies
    "enable_categorical": (False,),
}
"""Parameters that may have these values; all others must be unset."""

_held = threading.local()
"""The rows that this thread trained on last, in bins of a byte a value. Others have their own: labels are put in."""


def fit_shares(estimator: Any, X: Any, shares: NDArray[np.float64], weight: float) -> Any:
    """The estimator trained on each row's share of the second class; None where only copies of rows mean the same."""
    if not (_same_trees(estimator) and isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"):
        return None
    import xgboost

    params = {**estimator.get_xgb_params(), "objective": "reg:logistic"}
    before = {name: getattr(estimator, name) for name in ("base_score", "booster", "objective")}
    with xgboost.config_context(verbosity=estimator.verbosity):
        try:
            rows = _binned(X, estimator, weight)
            rows.set_label(shares)
            booster = xgboost.train(params, rows, estimator.get_num_boosting_rounds())
        except ValueError:
            return None  # refused, an infinite value say: the usual way has the words for it
        # It answers with the same sigmoid under either name, and by this one classifiers are read.
        booster.set_param({"objective": "binary:logistic"})
        estimator.load_model(booster.save_raw("ubj"))
    # What loading wrote over is what the user had set.
    return estimator.set_params(**before)


def _same_trees(estimator: Any) -> bool:
    """Whether nothing is asked for to which a copy of a row is not a row."""
    return type(estimator).__name__ == "XGBClassifier" and all(
        name in SAME_TREES or (value in FIXED[name] if name in FIXED else value is None)
        for name, value in estimator.get_params().items()
    )


def _binned(X: NDArray[Any], estimator: Any, weight: float) -> Any:
    """The rows in bins. Those trained on last are kept, and known again by all that their bins depend on."""
    from xgboost import QuantileDMatrix

    content = hashlib.blake2b(np.ascontiguousarray(X).data, digest_size=32).digest()
    key = (content, X.shape, X.dtype.str, repr(estimator.missing), estimator.max_bin, estimator.n_jobs, weight)
    if getattr(_held, "key", None) != key:
        _held.key = _held.rows = None  # not both at once
        weights = np.full(len(X), weight)
        options = {"missing": estimator.missing, "max_bin": estimator.max_bin, "nthread": estimator.n_jobs}
        _held.rows = QuantileDMatrix(X, weight=weights, **options)
        _held.key = key
    return _held.rows
