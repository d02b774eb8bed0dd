"""The catalogue of noises: adding one is one file and one line here, and it inherits the contract tests."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isabstract

from fedkt.errors import ConfigurationError
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian, GaussianCounts
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.noise import Noise
from fedkt.privacy.sums import GaussianSums
from fedkt.system.plug_ins import add_plug_ins, packages_of, why_left_out

NOISES: dict[str, type[Noise]] = {
    Laplace.name: Laplace,
    Gaussian.name: Gaussian,
    Gumbel.name: Gumbel,
    ConfidentGaussian.name: ConfidentGaussian,
}
COUNTS: dict[str, type[Noise]] = {GaussianCounts.name: GaussianCounts, GaussianSums.name: GaussianSums}
"""Noise on counts or sums that are released themselves: a plan's or a ledger's, nobody's choice for votes."""
USUAL = Gaussian.name
"""The noise that an ε is kept with where nobody chose another."""


def known_noises() -> dict[str, type[Noise]]:
    """The catalogue with the noises of installed plug-ins."""
    return add_plug_ins(NOISES, "fedkt.noises", read_plug_in)


def read_plug_in(found: object, name: str) -> type[Noise]:
    """What a plug-in holds, as an entry of the catalogue."""
    if not (isinstance(found, type) and issubclass(found, Noise)):
        raise TypeError(f"a noise is a class derived from fedkt.privacy.Noise, got {str(found)[:80]}")
    if name in COUNTS:
        raise ValueError("fedkt has a noise on counts or sums of this name, which nobody may take the place of")
    if found.name != name:
        raise ValueError(f"its class calls it {found.name!r}, its entry {name!r}; give both one name")
    if isabstract(found):
        raise TypeError(f"{found.__name__} lacks {', '.join(sorted(found.__abstractmethods__))}")
    return found


def noise_class(name: str, *, counts: bool = False) -> type[Noise]:
    """The noise of this name, its parameters yet to be given; an unknown one is refused with the known ones.

    `counts` also knows the noises of counts that are released themselves, which only a ledger holds.
    """
    known = known_noises()
    noises = known | COUNTS if counts else known
    if name not in noises:
        raise ConfigurationError(
            f"There is no noise {name!r}. Choose one of: {', '.join(known)}.{why_left_out('fedkt.noises', name)}"
        )
    return noises[name]


def noise_cautions(name: str | None) -> tuple[str, ...]:
    """What to know of a noise that a plug-in brings; nothing of fedkt's own, nor where there is none."""
    return tuple(
        f"The noise {name!r} is from the package {package} {version}: what it costs, and so the promise, is that "
        "package's word."
        for package, version in packages_of("fedkt.noises", name).items()
    )


def parameters(name: str, *, counts: bool = False) -> tuple[str, ...]:
    """The names of a mechanism's parameters, in order."""
    return noise_class(name, counts=counts).parameters()


def make_noise(name: str, scale: Mapping[str, float], *, counts: bool = False) -> Noise:
    """The noise with these parameters, as they stand in a plan, a bundle's claim or a ledger."""
    names = parameters(name, counts=counts)
    unknown, missing = set(scale) - set(names), set(names) - set(scale)
    if unknown or missing:
        raise ConfigurationError(
            f"{name} noise takes {', '.join(names)}"
            + (f"; it has no {', '.join(sorted(map(str, unknown)))}" if unknown else "")
            + (f"; {', '.join(sorted(missing))} is missing" if missing else "")
            + "."
        )
    return noise_class(name, counts=counts)(**scale)


def calibrated_alone() -> tuple[str, ...]:
    """The noises that an ε fixes entirely: nothing about them has to be chosen first."""
    return tuple(name for name, noise in known_noises().items() if not noise.fixed_parameters())


def noise_of_fixed() -> dict[str, str]:
    """The noise of each parameter that no calibration finds, a threshold, say: enough to tell which noise is meant."""
    # The noises of fedkt itself last: a plug-in's parameter of the same name means no other noise than before.
    return {each: name for name, noise in reversed(known_noises().items()) for each in noise.fixed_parameters()}


def noise_of_scale() -> dict[str, str]:
    """The noise that each parameter is the only one of: enough to tell it too."""
    single = {name: noise.parameters() for name, noise in reversed(known_noises().items())}
    return {names[0]: name for name, names in single.items() if len(names) == 1}


def parse_noise(text: str, *, counts: bool = False) -> Noise:
    """The noise that a command-line word names, its parameters after a colon in their order: gaussian:40.

    `counts` also knows the noises of counts and sums that are released themselves.
    """
    name, colon, rest = text.strip().partition(":")
    noise = noise_class(name, counts=counts)
    names = noise.parameters()
    form = f"{name}:{','.join(names).upper()}"
    parts = [part.strip() for part in rest.split(",")] if colon else []
    if len(parts) != len(names):
        need = f"{len(names)} number{'s' * (len(names) > 1)} ({', '.join(names)})"
        raise ConfigurationError(f"{name} noise takes {need}, got {len(parts)} in {text!r}. Write {form}.")
    scale = {}
    for each, part in zip(names, parts, strict=True):
        try:
            scale[each] = float(part)
        except ValueError:
            raise ConfigurationError(
                f"The {each} of {name} noise is a number, got {part!r} in {text!r}. Write {form}."
            ) from None
    return noise(**scale)
