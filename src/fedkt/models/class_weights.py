"""Weights of classes: by how much an estimator makes a class count for more than its rows, and how that is undone.

An estimator that weighs class y by w_y learns p_w(y|x) ∝ w_y p(y|x) in place of p(y|x). To whoever wants labels of rare
classes that is the point; to whoever reckons with probabilities it is an error of a known size.

A user's weights are in terms of the agreed classes, by their indices, while every model is trained on local labels
0 … k − 1: a party may lack a class. Whatever names single classes is therefore translated for each training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError
from fedkt.models.catalogue import family_of
from fedkt.models.parameters import parameters_of
from fedkt.models.reading import last_step

Factors = NDArray[np.float64]
TRANSPARENT = (
    *("Pipeline", "CalibratedClassifierCV", "BaggingClassifier", "AdaBoostClassifier", "VotingClassifier"),
    *("StackingClassifier", "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"),
)
"""Estimators around an estimator that hand it all classes under the labels they were given."""
NAMES_CLASSES = frozenset({"class_weight", "class_weights", "priors", "class_prior"})
"""Parameters that may name single classes, by their label or by their place."""
TWO_CLASSES = frozenset({"scale_pos_weight", "is_unbalance"})
"""Parameters that say how much the second of two classes weighs."""


def class_factors(estimator: Any, y: ArrayLike, weights: ArrayLike | None = None) -> Factors | None:
    """How much each class of y weighs beyond its rows when `estimator` is trained on the class indices y.

    One number for each class that y holds, in their order; None where the estimator weighs no class. Rows may have
    weights of their own: one of weight 2 is as good as two rows.
    """
    return factors_for(estimator, *count_labels(y, weights))


def count_labels(y: ArrayLike, weights: ArrayLike | None = None) -> tuple[NDArray[np.int64], Factors]:
    """The classes in y, and how many rows, or how much weight, each has."""
    labels, local = np.unique(np.asarray(y, dtype=np.int64), return_inverse=True)
    return labels, np.bincount(local, weights=None if weights is None else np.asarray(weights)).astype(np.float64)


def label_factors(estimator: Any, shares: ArrayLike) -> Factors | None:
    """How much each agreed class should count in the label of a model that learns classes of these shares.

    Shares are those of the classes, or a distribution over them for each row; a class without any has the factor 1.
    None where the estimator weighs no class. Whoever says argmax(probability × factor) does what the weights ask for,
    and its probabilities stay as they are.
    """
    distributions = np.asarray(shares, dtype=np.float64)
    mean = distributions if distributions.ndim == 1 else distributions.mean(axis=0)
    present = np.flatnonzero(mean > 0)
    own = factors_for(estimator, present, mean[present])
    if own is None:
        return None
    factors = np.ones(len(mean))
    factors[present] = own
    return factors


def factors_for(estimator: Any, labels: NDArray[np.int64], counts: Factors) -> Factors | None:
    """The same for these classes, of which there are so many rows each."""
    last = last_step(estimator)
    names = {name for name in class_weight_settings(last) if "__" not in name}
    # Given priors go before equal ones, and complement naive Bayes has no use for either.
    names -= {"fit_prior"} if "class_prior" in names else set()
    if not names or len(labels) < 2 or type(last).__name__ == "ComplementNB":
        return None
    factors = np.ones(len(labels))
    for name in sorted(names):
        factors = factors * PARAMETERS[name](last.get_params(deep=False)[name], labels, counts)
    return None if np.allclose(factors, factors[0]) else factors


def class_weight_settings(estimator: Any) -> dict[str, Any]:
    """The parameters, nested ones included, by which an estimator weighs classes, and what they are without it."""
    parameters = parameters_of(estimator)
    settings: dict[str, Any] = {}
    for name, value in parameters.items():
        inner, _, last = name.rpartition("__")
        if last not in PARAMETERS or value is None:
            continue
        neutral = family_of(parameters[inner] if inner else estimator).class_weights
        if last in neutral and not (np.ndim(value) == 0 and value == neutral[last]):
            settings[name] = neutral[last]
    return settings


def without_class_weights(estimator: Any) -> Any:
    """A copy to which every class weighs as much as its rows, also inside it; itself where that is so already."""
    from sklearn.base import clone

    settings = class_weight_settings(estimator)
    return clone(estimator).set_params(**settings) if settings else estimator


def can_undo_class_weights(estimator: Any) -> bool:
    """Whether what this estimator says of a class is w_y times what it would say without weights, up to a factor.

    That holds where weights of classes act like weights of rows. Of weights inside another estimator, and of families
    that nobody knows, nothing is known.
    """
    settings = class_weight_settings(last_step(estimator))
    return not settings or (family_of(estimator).learns_distributions and not any("__" in name for name in settings))


def with_local_class_weights(estimator: Any, y: NDArray[np.int64], weights: ArrayLike | None = None) -> Any:
    """The estimator, whose weights of single classes are changed to mean the local labels of the class indices y.

    Where rows have weights of their own, "balanced" becomes numbers as well: families disagree about what it means
    then.
    """
    parameters = parameters_of(estimator)
    named = [
        name
        for name, value in parameters.items()
        if name.rpartition("__")[2] in NAMES_CLASSES
        and value is not None
        and (weights is not None or not isinstance(value, str))
    ]
    if not named:
        return estimator
    labels, counts = count_labels(y, weights)
    settings: dict[str, Any] = {}
    for name in named:
        inner, _, last = name.rpartition("__")
        if last not in family_of(parameters[inner] if inner else estimator).class_weights:
            continue
        if last in ("priors", "class_prior"):
            settings[name] = local_priors(parameters[name], labels, counts)
        else:
            local = _class_weight(parameters[name], labels, counts).tolist()
            settings[name] = dict(enumerate(local)) if last == "class_weight" else local
    return estimator.set_params(**settings)


def undo_class_weights(
    probabilities: Factors, labels: NDArray[np.int64], estimator: Any, y: ArrayLike, weights: ArrayLike | None = None
) -> Factors:
    """What a model of `estimator`, trained on y, would have said without weights of classes.

    `labels` are the classes that it tells apart: columns of the probabilities.
    """
    factors = class_factors(estimator, y, weights)
    if factors is None:
        return probabilities
    plain: Factors = probabilities.copy()
    plain[:, labels] /= factors
    return np.asarray(plain / plain.sum(axis=1, keepdims=True))


def check_class_weights(estimator: Any, n_classes: int) -> None:
    """Refuse, in words, weights of classes that do not fit so many agreed classes, before anything is trained."""
    parameters = parameters_of(estimator)
    for name in class_weight_settings(estimator):
        inner, _, last = name.rpartition("__")
        value = parameters[name]
        owner = type(parameters[inner] if inner else estimator).__name__
        if last in TWO_CLASSES and n_classes > 2 and only_transparent(estimator, inner, parameters):
            raise ConfigurationError(
                f"{last}={value!r} of {owner} weighs the second of two classes, and there are {n_classes}. Leave it "
                "out, or weigh rows with sample_weight."
            )
        if last not in NAMES_CLASSES or isinstance(value, str):
            continue
        if not only_transparent(estimator, inner, parameters):
            raise ConfigurationError(
                f"{name}={value!r} names single classes, and what stands around {owner} may hand it others. Give "
                "'balanced', or weigh rows with sample_weight."
            )
        check_named_classes(f"{name} of {type(estimator).__name__}", value, n_classes)


def check_named_classes(what: str, value: Any, n_classes: int) -> None:
    """Refuse a dictionary with a class that is not agreed on, and a list that is too short or too long."""
    if isinstance(value, Mapping):
        strange = [
            key
            for key in value
            if isinstance(key, (bool, np.bool_)) or not isinstance(key, (int, np.integer)) or not 0 <= key < n_classes
        ]
        if strange:
            raise ConfigurationError(
                f"{what} weighs the class {strange[0]!r}. Classes are called here by their places in the agreed list, "
                f"0 to {n_classes - 1}."
            )
        numbers = list(value.values())
    else:
        numbers = list(value)
        if len(numbers) != n_classes:
            raise ConfigurationError(f"{what} has {len(numbers)} numbers, and there are {n_classes} classes.")
    if any(isinstance(each, str) or not np.isfinite(each) or each <= 0 for each in numbers):
        raise ConfigurationError(
            f"{what} must be numbers above 0, got {value!r}. A class that must not count: drop it."
        )


def only_transparent(estimator: Any, inner: str, parameters: Mapping[str, Any]) -> bool:
    """Whether the estimator under this nested name is handed all classes, under the labels they were given."""
    places = inner.split("__") if inner else []
    around = [estimator, *(parameters["__".join(places[:depth])] for depth in range(1, len(places)))]
    return not places or all(type(each).__name__ in TRANSPARENT for each in around)


def weights_by_class(value: Any, labels: NDArray[np.int64]) -> Factors:
    """The weights of these classes from a dictionary by class index, or a list; a class that is not in it has 1."""
    known = dict(value) if isinstance(value, Mapping) else dict(enumerate(value))
    return np.array([float(known.get(int(label), 1.0)) for label in labels])


def local_priors(value: Any, labels: NDArray[np.int64], counts: Factors) -> Factors:
    """The prior probabilities of these classes, which sum to 1 without those that are missing.

    A class beyond the list (a background) stays as common as its rows.
    """
    prior, shares = np.asarray(value, dtype=np.float64), counts / counts.sum()
    inside = labels < len(prior)
    known = prior[labels[inside]]
    result: Factors = shares.copy()
    result[inside] = known / known.sum() * shares[inside].sum()
    return result


def _class_weight(value: Any, labels: NDArray[np.int64], counts: Factors) -> Factors:
    return _balanced(True, labels, counts) if isinstance(value, str) else weights_by_class(value, labels)


def _balanced(value: bool, labels: NDArray[np.int64], counts: Factors) -> Factors:
    return np.asarray(counts.sum() / (len(counts) * counts)) if value else np.ones(len(counts))


def _automatic(value: str, labels: NDArray[np.int64], counts: Factors) -> Factors:
    """CatBoost's: the largest class weighs 1."""
    ratio = counts.max() / counts
    return np.asarray({"Balanced": ratio, "SqrtBalanced": np.sqrt(ratio)}.get(str(value), np.ones(len(counts))))


def _second_class(value: float, labels: NDArray[np.int64], counts: Factors) -> Factors:
    return np.array([1.0, float(value)]) if len(labels) == 2 else np.ones(len(labels))


def _imbalance(value: bool, labels: NDArray[np.int64], counts: Factors) -> Factors:
    """LightGBM's: of two classes both weigh the same; of more it does nothing."""
    return _balanced(bool(value) and len(labels) == 2, labels, counts)


def _priors(value: Any, labels: NDArray[np.int64], counts: Factors) -> Factors:
    return np.asarray(local_priors(value, labels, counts) / (counts / counts.sum()))


def _equal_priors(value: bool, labels: NDArray[np.int64], counts: Factors) -> Factors:
    return _balanced(not value, labels, counts)


PARAMETERS: Mapping[str, Callable[[Any, NDArray[np.int64], Factors], Factors]] = {
    "class_weight": _class_weight,
    "class_weights": lambda value, labels, counts: weights_by_class(value, labels),
    "auto_class_weights": _automatic,
    "scale_pos_weight": _second_class,
    "is_unbalance": _imbalance,
    "priors": _priors,
    "class_prior": _priors,
    "fit_prior": _equal_priors,
}
"""What each parameter that weighs classes makes of them: (value, classes, rows of each) -> factors."""
