"""The parameters of an estimator, and an untrained copy of it: cheap where thousands of tiny models are made.

scikit-learn reads a constructor's signature anew for every question. An estimator whose parameters are plain values,
and whose class answers such questions as scikit-learn does, is asked once for its class; every other one as ever.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, cast

import numpy as np

ATOMS = (type(None), bool, int, float, str)
"""What a copy may share with its original."""
SEED = "random_state"


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Every parameter by its name, those of estimators inside it included."""
    own = plain_parameters(estimator)
    return dict(estimator.get_params(deep=True)) if own is None else own


def untrained_copy(estimator: Any, rng: np.random.Generator) -> Any:
    """An untrained copy on one thread, with every unset random state drawn from `rng`."""
    from sklearn.base import clone

    own = plain_parameters(estimator)
    if own is None:
        bare = clone(estimator)
        settings = copy_settings(bare, bare.get_params(deep=True), rng)
        return bare.set_params(**settings) if settings else bare
    return type(estimator)(**own | copy_settings(estimator, own, rng))


def copy_settings(estimator: Any, parameters: dict[str, Any], rng: np.random.Generator) -> dict[str, int]:
    """What a copy is given in the place of what nobody set: random states, and one thread."""
    settings: dict[str, int] = {}
    for name in sorted(name for name, value in parameters.items() if value is None):
        inner, _, last = name.rpartition("__")
        if last in (SEED, "random_seed"):
            settings[name] = int(rng.integers(2**31 - 1))
        elif last in ("n_jobs", "thread_count"):
            # To scikit-learn None means one thread; to the boosting libraries it means all of them.
            owner = parameters[inner] if inner else estimator
            if not type(owner).__module__.startswith("sklearn."):
                settings[name] = 1
    return settings


def plain_parameters(estimator: Any) -> dict[str, Any] | None:
    """The parameters of an estimator of scikit-learn's own where they are plain values; None of any other."""
    names = parameter_names(cast(Hashable, type(estimator)))
    state = vars(estimator) if names else {}
    # What else `clone` takes along.
    if not names or "_metadata_request" in state or "_sklearn_output_config" in state:
        return None
    own = {name: state.get(name, state) for name in names}
    return own if all(type(value) in ATOMS for value in own.values()) else None


def are_valid(estimator: Any) -> bool:
    """Whether its parameters are known to be such as its `fit` takes, so that it need not look at them again."""
    own, kind = plain_parameters(estimator), cast(Hashable, type(estimator))
    if own is None:
        return False
    # 1 and True are equal, and not the same parameter.
    return _are_valid(kind, tuple((name, type(own[name]), own[name]) for name in own if name != SEED))


@lru_cache(maxsize=64)
def _are_valid(kind: Any, parameters: tuple[tuple[str, type, Any], ...]) -> bool:
    try:
        kind(**{name: value for name, _, value in parameters})._validate_params()
    except (AttributeError, ValueError):
        # Refused, or not to be asked: its own `fit` says so better.
        return False
    return True


@lru_cache(maxsize=64)
def parameter_names(kind: Any) -> tuple[str, ...]:
    """The parameters of a class of scikit-learn's own, nothing of any other: who knows what its constructor does."""
    if not kind.__module__.startswith("sklearn."):
        return ()
    from sklearn.base import BaseEstimator

    questions = ("get_params", "set_params", "__sklearn_clone__", "_get_param_names")
    plain = issubclass(kind, BaseEstimator) and all(
        getattr(getattr(kind, each), "__func__", getattr(kind, each))
        is getattr(getattr(BaseEstimator, each), "__func__", getattr(BaseEstimator, each))
        for each in questions
    )
    return tuple(kind._get_param_names()) if plain else ()
