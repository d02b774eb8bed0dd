"""The rows that users bring: tables, images or texts, and who of the models can read them as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from fedkt.algorithms import Auto, Moments
from fedkt.errors import ConfigurationError, DataError
from fedkt.estimator.encoding import encode_rows
from fedkt.estimator.inputs import check_public_rows
from fedkt.federation import Algorithm
from fedkt.models.base import Image, image_of
from fedkt.models.catalogue import family_of

if TYPE_CHECKING:
    from fedkt.estimator import FedKTClassifier

NATIVE = ("lightgbm", "xgboost", "catboost")
"""Libraries that read pandas' categories by themselves."""


@dataclass(frozen=True)
class RowForm:
    """What rows look like, as `fit` has seen them."""

    texts: bool = False
    """A row is one string."""
    strings: bool = False
    """Rows are tables, in which some column holds strings."""
    encoded: bool = False
    """Whether they become numbers by a schema, because some model cannot read them."""
    image: Image | None = None
    """Height, width and channels, where a row is an image."""
    party_column: Any = None
    """The column of a data frame that names the parties, and is no feature."""


def form_of(X: Any, public: Any, models: Iterable[Any], party_column: Any) -> RowForm:
    """The form of rows for these models: of the public rows, where they are given, since no party's row may decide."""
    known = X if public is None else public
    texts = as_texts(X) is not None
    strings = not texts and has_strings(known)
    own = list(models)
    if not strings and not texts:
        # Libraries read categories of numbers differently; only who would fail is helped.
        strings = has_categories(known) and not any(reads_categories(each) for each in own)
    encoded = (texts or strings) and not any(reads_strings(each) for each in own)
    return RowForm(texts, strings, encoded, image_of(X), party_column)


def as_texts(X: Any) -> NDArray[Any] | None:
    """Rows of one string each as an array of objects; None where they are anything else."""
    if getattr(X, "ndim", 1) != 1 or (not isinstance(X, list | tuple | np.ndarray) and not hasattr(X, "iloc")):
        return None
    values = X.tolist() if hasattr(X, "tolist") else list(X)
    found = [each for each in values if isinstance(each, str)]
    # A gap among texts is None or NaN.
    if not found or any(not isinstance(each, str) and each is not None and each == each for each in values):
        return None
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return texts


def has_strings(X: Any) -> bool:
    """Whether some value of a table is a string."""
    if hasattr(X, "iloc"):
        return any(X.iloc[:, place].map(lambda each: isinstance(each, str)).any() for place in object_columns(X))
    try:
        rows = np.asarray(X) if isinstance(X, list | tuple) else X
    except ValueError:
        return False
    kind = getattr(getattr(rows, "dtype", None), "kind", "")
    if kind == "O" and rows.ndim == 2:
        return any(isinstance(each, str) for each in rows.ravel().tolist())
    return kind in "UT" and kind != "" and rows.ndim == 2


def object_columns(X: Any) -> list[int]:
    """The places of a data frame's columns that hold objects or strings, but no categories."""
    return [
        place
        for place, dtype in enumerate(X.dtypes)
        if getattr(dtype, "kind", "O") in "OUT" and not hasattr(dtype, "categories")
    ]


def has_categories(X: Any) -> bool:
    """Whether some column of a data frame is one of pandas' categories."""
    return hasattr(X, "iloc") and any(hasattr(dtype, "categories") for dtype in X.dtypes)


def reads_categories(model: Any) -> bool:
    """Whether a model makes something of pandas' categories by itself."""
    if reads_strings(model):
        return True
    kind = None if model is None or isinstance(model, str) else type(model)
    return kind is not None and (
        kind.__module__.partition(".")[0] in NATIVE or kind.__name__ == "HistGradientBoostingClassifier"
    )


def reads_strings(model: Any) -> bool:
    """Whether a model may read strings: a pipeline that does not begin with a scaler, and whatever we know nothing of.

    None and the names of families stand for estimators that cannot.
    """
    if model is None or isinstance(model, str):
        return False
    if isinstance(model, Pipeline):
        first = next((step for _, step in model.steps if step not in (None, "passthrough")), None)
        return first is None or not type(first).__module__.startswith("sklearn.preprocessing._data")
    if not family_of(model).classes:
        return True
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    named = (parameters.get(name) for name in ("categorical_features", "cat_features"))
    return any(each is not None and not isinstance(each, str) for each in named)


def take_party_column(X: Any, public: Any, parties: Any) -> tuple[Any, Any, Any, Any]:
    """Rows and public rows without the column that `parties` names, its values, and its name; else all as it is."""
    if not isinstance(parties, str):
        return X, public, parties, None
    if not hasattr(X, "iloc") or getattr(X, "ndim", 2) != 2:
        raise DataError(
            f"parties={parties!r} names a column, but X is no data frame. Pass a data frame with that column, or the "
            "party of each row: parties=hospital."
        )
    if parties not in X.columns:
        names = ", ".join(map(repr, list(X.columns)[:20]))
        raise DataError(f"parties={parties!r} is no column of X. It has: {names}.")
    return without_column(X, parties), without_column(public, parties), X[parties].to_numpy(dtype=object), parties


def without_column(X: Any, name: Any) -> Any:
    """A data frame without this column; anything else as it is."""
    return X.drop(columns=[name]) if name is not None and hasattr(X, "columns") and name in X.columns else X


def check_rows(own: FedKTClassifier, X: Any, form: RowForm, *, reset: bool) -> Any:
    """Rows as an array or sparse matrix; a data frame stays one, so that pipelines find columns by name."""
    if form.texts:
        return check_texts(own, X, reset=reset)
    if hasattr(X, "iloc"):
        validate_data(own, X, reset=reset, skip_check_array=True)
        return X
    image = image_of(X)
    if image is not None:
        if not reset and image != form.image:
            raise DataError(f"Trained on images of {form.image}, got images of {image}.")
        X = X.reshape(len(X), -1)
    tags = own.__sklearn_tags__().input_tags
    return validate_data(
        own,
        X,
        reset=reset,
        accept_sparse="csr" if tags.sparse else False,
        ensure_all_finite="allow-nan" if tags.allow_nan else not form.encoded,
        # Only a schema or a pipeline can make something of strings.
        dtype=None
        if form.strings or (isinstance(own.estimator, Pipeline) and reads_strings(own.estimator))
        else "numeric",
    )


def check_texts(own: FedKTClassifier, X: Any, *, reset: bool) -> NDArray[Any]:
    """Texts as an array of objects."""
    texts = as_texts(X)
    if texts is None:
        raise DataError(
            f"Rows are texts here, one string each; got {type(X).__name__} of shape {np.shape(X)}. Pass a list of "
            "strings."
        )
    if reset:
        for name in ("n_features_in_", "feature_names_in_"):
            own.__dict__.pop(name, None)
    return texts


def check_public(own: FedKTClassifier, public: Any, X: Any, form: RowForm) -> Any:
    """Public rows as X has them."""
    if not form.texts:
        check_public_rows(public, X)
    try:
        return check_rows(own, public, form, reset=False)
    except ValueError as reason:
        raise DataError(f"`public` cannot be used: {reason}") from reason


def check_numbers(form: RowForm, algorithm: Algorithm) -> None:
    """Refuse sums of features of rows that stay strings."""
    if (form.texts or form.strings) and not form.encoded and isinstance(algorithm, Moments | Auto):
        raise ConfigurationError(
            f"{algorithm.name} sums up numbers, and these rows hold strings that only your estimator reads. Choose "
            "voting='expert', or name a family, such as 'logistic', for which strings are encoded."
        )


def readable_rows(own: FedKTClassifier, X: Any) -> Any:
    """New rows as the final model reads them."""
    form, schema = own._form, own.schema_
    X = check_rows(own, without_column(X, form.party_column), form, reset=False)
    return X if schema is None else encode_rows(schema, X, "X")
