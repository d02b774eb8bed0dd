"""What a release costs: the smallest of every sound, data-independent answer.

Each accountant is a function of public figures (the noise, the number of queries, voters and classes, and δ) and an
upper bound on its own, so their minimum is one too. None of them reads a vote. One that does not apply says infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from importlib import import_module

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.privacy.accountant import gdp, moments, pld, pure, rdp
from fedkt.privacy.price import Price, Release

Accountant = Callable[[Release, float], float]


def _heavy(module: str, release: Release, delta: float) -> float:
    """That module's ε; infinite where it refuses the noise. Loaded on first use, because it is heavy."""
    try:
        return float(import_module(f"fedkt.privacy.accountant.{module}").epsilon(release, delta))
    except PrivacyError:
        return math.inf


ACCOUNTANTS: dict[str, Accountant] = {
    "pure": pure.epsilon,
    "paper": moments.epsilon,
    "paper-8": moments.epsilon8,
    "rdp": rdp.epsilon,
    "pld": pld.epsilon,
    "gdp": gdp.epsilon,
    "exact": partial(_heavy, "game"),
    "arg-max": partial(_heavy, "argmax"),
}


@lru_cache(maxsize=4096)
def _cached_epsilon(name: str, release: Release, delta: float) -> float:
    return float(ACCOUNTANTS[name](release, delta))


def _epsilon(name: str, release: Release, delta: float) -> float:
    try:
        hash(release)
    except TypeError:  # a noise from elsewhere that cannot be a key is priced anew each time
        return _cached_epsilon.__wrapped__(name, release, delta)
    return _cached_epsilon(name, release, delta)


def check_delta(delta: float) -> float:
    """δ as a float, refused in words unless it lies strictly between 0 and 1."""
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise ConfigurationError(
            f"δ is a probability strictly between 0 and 1, got {delta!r}. Choose one well below 1/(number of units)."
        )
    return float(delta)


def check_accountants(accountants: Iterable[str] | None) -> tuple[str, ...]:
    """The names asked for, all where none are; an unknown one is refused with the known ones."""
    if accountants is None:
        return tuple(ACCOUNTANTS)
    names = (accountants,) if isinstance(accountants, str) else tuple(accountants)
    unknown = [name for name in names if name not in ACCOUNTANTS]
    if unknown or not names:
        raise ConfigurationError(
            f"There is no accountant {', '.join(map(repr, unknown)) or '(none was named)'}. "
            f"Choose from: {', '.join(ACCOUNTANTS)}."
        )
    return names


def price(release: Release, delta: float, *, accountants: Iterable[str] | None = None) -> Price:
    """The ε of a release at δ: the smallest answer of the accountants, which one gave it, and all answers by name."""
    delta = check_delta(delta)
    names = check_accountants(accountants)
    answers = {name: 0.0 if release.queries == 0 else _epsilon(name, release, delta) for name in names}
    for name, answer in answers.items():
        if math.isnan(answer) or answer < 0:
            raise PrivacyError(f"The accountant {name!r} answered {answer!r}, which is no ε. Nothing was priced.")
    best = min(answers, key=lambda name: answers[name])
    return Price(answers[best], delta, best, release, answers, (release,))


__all__ = ["ACCOUNTANTS", "Accountant", "check_accountants", "check_delta", "price"]
