"""The catalogue of noises: adding one is one file and one line here, and it inherits the contract tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields

from fedkt.errors import ConfigurationError
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian, GaussianCounts
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Noise

NOISES: dict[str, Callable[..., Noise]] = {
    "laplace": Laplace,
    "gaussian": Gaussian,
    "gumbel": Gumbel,
    "confident-gaussian": ConfidentGaussian,
}


COUNTS: dict[str, Callable[..., Noise]] = {"gaussian-counts": GaussianCounts}
"""Noise on counts that are released themselves, beside a vote: a plan's or a ledger's, nobody's choice for votes."""


def parameters(name: str, *, counts: bool = False) -> tuple[str, ...]:
    """The names of a mechanism's parameters, in order; an unknown mechanism is refused with the known ones."""
    known = NOISES | COUNTS if counts else NOISES
    if name not in known:
        raise ConfigurationError(f"There is no noise {name!r}. Choose one of: {', '.join(NOISES)}.")
    return tuple(field.name for field in fields(known[name]))  # type: ignore[arg-type]


def make_noise(name: str, scale: Mapping[str, float], *, counts: bool = False) -> Noise:
    """The noise with these parameters, as they stand in a plan, a bundle's claim or a ledger.

    `counts` also knows the noises of counts that are released themselves, which only a ledger holds.
    """
    wanted = parameters(name, counts=counts)
    unknown, missing = set(scale) - set(wanted), set(wanted) - set(scale)
    if unknown or missing:
        raise ConfigurationError(
            f"{name} noise takes {', '.join(wanted)}"
            + (f"; it has no {', '.join(sorted(map(str, unknown)))}" if unknown else "")
            + (f"; {', '.join(sorted(missing))} is missing" if missing else "")
            + "."
        )
    return (NOISES | COUNTS)[name](**scale)


def parse_noise(text: str) -> Noise:
    """The noise that a command-line word names, its parameters after a colon in their order: gaussian:40."""
    name, colon, rest = text.strip().partition(":")
    names = parameters(name)
    form = f"{name}:{','.join(names).upper()}"
    parts = [part.strip() for part in rest.split(",")] if colon else []
    if len(parts) != len(names):
        wanted = f"{len(names)} number{'s' * (len(names) > 1)} ({', '.join(names)})"
        raise ConfigurationError(f"{name} noise takes {wanted}, got {len(parts)} in {text!r}. Write {form}.")
    try:
        scale = dict(zip(names, map(float, parts), strict=True))
    except ValueError:
        raise ConfigurationError(f"{name} noise takes numbers, got {text!r}. Write {form}.") from None
    return NOISES[name](**scale)
