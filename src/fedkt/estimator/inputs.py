"""What a user hands to `fit`, checked and in the shape that parties and server take."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from fedkt.errors import ConfigurationError, DataError
from fedkt.models.base import count_rows
from fedkt.models.catalogue import as_estimator

MOST_PUBLIC_SHARE = 0.9


def class_codes(X: Any, y: ArrayLike, class_labels: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The class labels, declared or found in y, and each row's index into them."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None")
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    check_no_missing_labels(np.asarray(labels))
    check_classification_targets(labels)
    labels = np.asarray(labels)
    if class_labels is None:
        classes, codes = np.unique(labels, return_inverse=True)
        return classes, codes.astype(np.int64)
    declared = np.unique(np.asarray(class_labels))
    places = np.searchsorted(declared, labels)
    unknown = [
        label
        for label, place in zip(labels.tolist(), places, strict=True)
        if place == len(declared) or declared[place] != label
    ]
    if unknown:
        raise DataError(f"y holds the label {unknown[0]!r}, which is not among the classes {declared.tolist()}.")
    return declared, places.astype(np.int64)


def check_no_missing_labels(labels: NDArray[Any]) -> None:
    """Refuse labels that are None, NaN, NaT or pandas' NA: what a row is nobody would know."""
    if labels.dtype.kind in "fmMc":
        rows = np.flatnonzero(labels != labels)
    elif labels.dtype.kind == "O":
        rows = np.flatnonzero([is_no_name(each) for each in labels.tolist()])
    else:
        return
    if len(rows):
        what = "1 label is" if len(rows) == 1 else f"{len(rows):,} labels are"
        where = f"in row {rows[0]}" if len(rows) == 1 else f"the first in row {rows[0]}"
        raise DataError(
            f"Input y contains NaN or None: {what} missing, {where} (counted from 0). "
            "Fill them in or leave the rows out."
        )


def estimator_of(model: Any) -> Any:
    """The estimator behind a name, an estimator or None (the paper's forest)."""
    return as_estimator("forest" if model is None else model)


def class_weights_by_place(model: Any, classes: NDArray[Any]) -> Any:
    """A model whose weights of classes name them by their places in the list of classes, not by the user's labels."""
    if model is None or isinstance(model, str) or not hasattr(model, "get_params"):
        return model
    by_label = {
        name: weights
        for name, weights in model.get_params(deep=True).items()
        if name.rpartition("__")[2] in ("class_weight", "class_weights") and isinstance(weights, Mapping)
    }
    places = {label: place for place, label in enumerate(classes.tolist())}
    for name, weights in by_label.items():
        unknown = [label for label in weights if label not in places]
        if unknown:
            raise ConfigurationError(
                f"{name} of {type(model).__name__} weighs the class {unknown[0]!r}, which is not among the classes "
                f"{list(places)}."
            )
    by_place = {name: {places[label]: each for label, each in weights.items()} for name, weights in by_label.items()}
    return clone(model).set_params(**by_place) if by_place else model


def row_owners(n_rows: int, parties: ArrayLike | None, *, n_parties: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """The name of the party that holds each row: as `parties` says, else dealt at random to `n_parties`."""
    if parties is None:
        if isinstance(n_parties, bool) or not isinstance(n_parties, Integral) or n_parties < 1:
            raise ConfigurationError(f"n_parties is a whole number of at least 1, got {n_parties!r}.")
        return np.array([f"party {number}" for number in rng.permutation(np.arange(n_rows) % n_parties)])
    owners = column_or_1d(np.asarray(parties, dtype=object)).tolist()
    check_owner_count(owners, n_rows)
    if any(is_no_name(owner) for owner in owners):
        raise DataError("`parties` has missing values; every row needs a party.")
    names = {owner: str(owner) for owner in owners}
    if len(set(names.values())) != len(names):
        raise DataError("`parties` mixes kinds of names (1 and '1'); they would be taken for one party.")
    return np.array([names[owner] for owner in owners])


def check_owner_count(parties: Any, n_rows: int) -> None:
    """Refuse names that are not as many as rows."""
    if parties is not None and len(parties) != n_rows:
        raise DataError(f"`parties` names the party of each row: expected {n_rows} names, got {len(parties)}.")


def is_no_name(value: Any) -> bool:
    """Whether a name or a label is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    same = value == value
    return same is not True and not (isinstance(same, (bool, np.bool_)) and bool(same))


def absence_notes(party_estimators: Mapping[Any, Any], names: list[str]) -> list[str]:
    """What to say of parties that were given a classifier and are not there.

    In a cross-validation a small party may be missing from a fold, so this is no reason to stop.
    """
    absent = sorted({str(name) for name in party_estimators} - set(names))
    return [f"party_estimators names {absent}, who hold no rows here; the parties are {names}."] if absent else []


def public_split(
    n_rows: int, share: float, *, level: str, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of the parties, and row numbers that serve as public rows, where nobody gave any."""
    if level != "L0":
        raise ConfigurationError(
            f"Level {level} needs `public` rows: rows set aside from X would be private rows that everybody sees."
        )
    if not isinstance(share, Real) or not 0 < share <= MOST_PUBLIC_SHARE:
        raise ConfigurationError(f"public_share must be above 0 and at most {MOST_PUBLIC_SHARE}, got {share!r}.")
    if n_rows < 2:
        raise DataError("Got 1 sample: FedKT needs at least one row for a party and one public row.")
    order = rng.permutation(n_rows)
    public = min(max(1, round(n_rows * share)), n_rows - 1)
    return np.sort(order[public:]), np.sort(order[:public])


def check_public_rows(public: Any, X: Any) -> None:
    """Refuse public rows that nobody could vote on."""
    if count_rows(public) == 0:
        raise DataError("`public` has no rows. FedKT needs public rows for the parties to vote on.")
    if hasattr(public, "iloc") and not hasattr(X, "iloc"):
        raise DataError(
            "`public` is a data frame and X is not, so its columns cannot be matched by name. Pass both as data "
            "frames, or both as arrays."
        )
