"""One wrapper that owns labels, so that any scikit-learn classifier can be a teacher, a student or a final model.

Estimators disagree about legal but awkward labels: XGBoost refuses {1, 3}, logistic regression refuses a single class,
CatBoost answers with a column. Here every model is trained on local labels 0 … k − 1 and answers with indices into the
class list that all parties agreed on; a model that saw one class is a constant.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError, DataError, ModelError
from fedkt.models.parameters import are_valid, untrained_copy
from fedkt.models.reading import Reading
from fedkt.system.threads import one_thread

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from fedkt.models.forests.bins import Bins

Image = tuple[int, int, int]
"""Height, width and channels of the image in a row of pixels."""
BLOCK_ROWS = 16_384
"""Rows predicted, or brought inside bounds, at once: memory stays bounded, however many there are."""


@runtime_checkable
class Model(Protocol):
    """A trained classifier over the agreed classes."""

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The index of the predicted class for each row."""
        ...


@dataclass(frozen=True)
class FittedModel:
    """A trained estimator and the agreed class behind each of its local labels."""

    estimator: Any
    """The scikit-learn compatible estimator, None for a constant."""
    labels: NDArray[np.int64]
    """labels[j] is the index of the agreed class that the estimator calls j."""
    n_features: int | None = None
    """Columns of the rows it was trained on, where they form a table."""
    reading: Reading | None = None
    """How its scores are read, where not as the estimator itself does: a final model's."""

    @property
    def has_probabilities(self) -> bool:
        """Whether it says how probable each class is."""
        calibrated = self.reading is not None and self.reading.calibration is not None
        return self.estimator is None or calibrated or hasattr(self.estimator, "predict_proba")

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The index of the agreed class predicted for each row, computed block by block."""
        if self.estimator is None:
            return np.full(count_rows(X), self.labels[0], dtype=np.int64)
        reading = self.reading or Reading()
        with one_thread():
            local = [reading.labels(self.estimator, block) for block in blocks(X)]
        if not local:
            return np.empty(0, dtype=np.int64)
        classes: NDArray[np.int64] = self.labels[np.concatenate(local).astype(np.int64)]
        return classes

    def predict_proba(self, X: Any, n_classes: int) -> NDArray[np.float64]:
        """Class probabilities over the agreed classes; a class the model never saw has probability 0."""
        probabilities = np.zeros((count_rows(X), n_classes))
        if self.estimator is None:
            probabilities[:, self.labels[0]] = 1.0
        else:
            reading = self.reading or Reading()
            with one_thread():
                local = [reading.probabilities(self.estimator, block) for block in blocks(X)]
            if local:
                columns = self.labels[np.asarray(self.estimator.classes_, dtype=np.int64)]
                probabilities[:, columns] = np.concatenate(local)
        return probabilities


def fit_model(
    estimator: BaseEstimator,
    X: Any,
    y: ArrayLike,
    *,
    rng: np.random.Generator,
    fit_params: Mapping[str, Any] | None = None,
    weights: NDArray[np.float64] | None = None,
    rows: NDArray[np.int64] | None = None,
    bins: Bins | None = None,
) -> FittedModel:
    """A copy of `estimator` trained on rows X with class indices y, on one thread; `fit` also gets `fit_params`.

    `weights` say how much each row counts, None for all the same. With `rows`, y and the weights are those of these
    rows of X, of which one may stand under several classes. `bins` are those of X, where somebody has them.
    Unset `random_state` parameters, nested ones included, are drawn from `rng`; the estimator passed in is not touched.
    """
    # Weights are the business of families, whose facts stand above this.
    from sklearn import config_context

    from fedkt.models.catalogue import family_of
    from fedkt.models.class_weights import with_local_class_weights
    from fedkt.models.row_weights import row_weights_for_fit

    codes = np.asarray(y, dtype=np.int64)
    if len(codes) == 0:
        raise DataError("A model needs at least one row to be trained on, got none.")
    labels, local = np.unique(codes, return_inverse=True)
    local = local.astype(np.int64)
    n_features = X.shape[1] if getattr(X, "ndim", 0) == 2 else None
    own = with_local_class_weights(untrained_copy(estimator, rng), codes, weights)
    if len(labels) == 1:
        return FittedModel(None, labels, n_features)
    params = {**(fit_params or {}), **row_weights_for_fit(own, weights)}
    grow = family_of(own).grow
    try:
        # Under metadata routing a pipeline takes no weights for its last step, unless its user has asked for them.
        routing = {} if weights is None else {"enable_metadata_routing": False}
        checked = {"skip_parameter_validation": True} if are_valid(own) else {}
        with one_thread(), config_context(**routing, **checked):
            grown = None if grow is None else grow(own, X, local, rows=rows, params=params, bins=bins)
            if grown is None:
                own.fit(X if rows is None else take_rows(X, rows), local, **params)
    except Exception as reason:
        # Whatever an arbitrary estimator raises, its user needs to know what it was given.
        if isinstance(reason, ValueError):
            raise DataError(training_failure(own, codes, reason)) from reason
        raise ModelError(training_failure(own, codes, reason)) from reason
    return FittedModel(own if grown is None else grown, labels, n_features)


def training_failure(estimator: Any, codes: NDArray[np.int64], reason: Exception) -> str:
    """The words for an estimator that would not be trained."""
    return (
        f"{type(estimator).__name__} could not be trained on {len(codes)} rows of {len(np.unique(codes))} classes: "
        f"{type(reason).__name__}: {reason}"
    )


def image_of(X: Any, declared: tuple[int, ...] | None = None) -> Image | None:
    """The image shape of rows: as declared, or the shape of (N, H, W[, C]) arrays; None for a table."""
    shape = getattr(X, "shape", ())
    if declared is None:
        if len(shape) < 3:
            return None
        declared = tuple(shape[1:])
    if len(declared) not in (2, 3) or any(int(each) < 1 for each in declared):
        raise ConfigurationError(f"image is (height, width) or (height, width, channels), got {declared!r}.")
    height, width, channels = (*map(int, declared), 1)[:3]
    if len(shape) >= 2 and prod(shape[1:]) != height * width * channels:
        raise DataError(
            f"An image of {height} × {width} × {channels} has {height * width * channels} values, but a row has "
            f"{prod(shape[1:])}."
        )
    return height, width, channels


def count_rows(X: Any) -> int:
    """Rows of an array, sparse matrix or data frame."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """The given rows of an array, sparse matrix or data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def within(X: Any, public: Any) -> Any:
    """The rows with no number outside the bounds of its public column, and no gap where public rows have none.

    A gap becomes the median of the public rows. Text stays as it is.
    """
    if hasattr(X, "iloc"):
        import pandas

        # By what the public column holds: one odd value of a party's makes its whole column one of objects.
        common = [name for name in X.columns if name in public.columns]
        known = {name: pandas.to_numeric(public[name].astype(object), errors="coerce") for name in common}
        numeric = [name for name, each in known.items() if each.notna().equals(public[name].notna())]
        numbers = {name: pandas.to_numeric(X[name], errors="coerce").to_numpy(dtype=np.float64) for name in numeric}
        bounds = {name: known[name].to_numpy(dtype=np.float64) for name in numeric}
        return X.assign(**{name: _column_within(each, bounds[name]) for name, each in numbers.items()})
    if hasattr(X, "tocsr"):
        return _sparse_within(X.tocsr().copy(), public)
    rows = np.asarray(X)
    return _column_within(rows, np.asarray(public)) if rows.dtype.kind in "iuf" else X


def _column_within(values: NDArray[Any], public: NDArray[Any]) -> NDArray[Any]:
    """Numbers of one column, or of several side by side, inside the bounds of their public ones."""
    low, high, middle, gaps = _bounds(public)
    found = np.empty_like(values)
    # Some rows at a time: each step makes a copy of twice the size.
    for start in range(0, len(values), BLOCK_ROWS):
        some = slice(start, start + BLOCK_ROWS)
        with np.errstate(invalid="ignore"):
            inside = np.clip(values[some].astype(np.float64), low, high)
        complete = np.where(np.isnan(inside) & ~gaps, middle, inside)
        found[some] = (np.rint(complete) if values.dtype.kind in "iu" else complete).astype(values.dtype)
    return found


def _sparse_within(rows: Any, public: Any) -> Any:
    """Sparse rows, of which the stored numbers are brought inside the bounds."""
    low, high, middle, gaps = _bounds(public.toarray() if hasattr(public, "toarray") else np.asarray(public))
    column = rows.indices
    inside = np.clip(rows.data, np.minimum(low, 0)[column], np.maximum(high, 0)[column])
    rows.data = np.where(np.isnan(inside) & ~gaps[column], middle[column], inside).astype(rows.dtype)
    return rows


def _bounds(public: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Smallest, largest and middle number of each column, and whether it has gaps; zeros where it has no number."""
    numbers = public.astype(np.float64)
    gaps = np.asarray(np.isnan(numbers).any(axis=0))
    numbers[~np.isfinite(numbers)] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        figures = [np.nan_to_num(each(numbers, axis=0)) for each in (np.nanmin, np.nanmax, np.nanmedian)]
    return *figures, gaps


def blocks(X: Any) -> Iterator[Any]:
    """The rows of X, BLOCK_ROWS at a time."""
    for start in range(0, count_rows(X), BLOCK_ROWS):
        yield X.iloc[start : start + BLOCK_ROWS] if hasattr(X, "iloc") else X[start : start + BLOCK_ROWS]
