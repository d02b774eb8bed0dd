"""What the privacy commands share: their options, a noise from the command line, and what an ε means in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.privacy import Noise, Price, Release
    from fedkt.privacy.price import Unit

Voters = Annotated[int, typer.Option(min=1, help="Who votes on a query: parties at L1, teachers of one cut at L2 (t).")]
Classes = Annotated[int, typer.Option(min=2, help="Number of classes.")]
Queries = Annotated[
    int, typer.Option(min=1, help="Labels released that one unit can move: k at L1, partitions × k at L2 (s·k).")
]
UnitOption = Annotated[
    str, typer.Option("--unit", help="Who is protected: record (level L2) or party, with all its rows (level L1).")
]
Abstentions = Annotated[
    bool | None,
    typer.Option(
        help="Whether a voter may cast no vote, as in consistent voting. Default: yes for parties, no for records."
    ),
]
Margin = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Winner's lead in votes at which the chance of the right label is told. Default: 40 % of the voters.",
    ),
]

ABOUT = {
    "pure": "every query at its worst, added up",
    "paper": "the paper's formula (moments), all moments",
    "paper-8": "the paper's formula (moments), eight moments",
    "rdp": "Rényi curves, modern conversion",
    "pld": "privacy loss distributions",
    "gdp": "Gaussian privacy, exact for noisy counts",
    "zcdp": "one number for the whole Rényi curve, as a ledger adds up",
    "exact": "the exact game of the winner, two classes",
    "arg-max": "the winner under gaussian noise, any number of classes",
}


def mechanism_of(mechanism: str | None, scale: dict[str, float]) -> str:
    """The mechanism named, or the one that has the scale given; refused where neither says."""
    from fedkt.privacy.mechanisms import noise_of_fixed, noise_of_scale

    if mechanism is not None:
        return mechanism
    by_threshold = [noise for name, noise in noise_of_fixed().items() if name in scale]
    if by_threshold:
        return by_threshold[0]
    single = noise_of_scale()
    mechanisms = [single[name] for name in scale if name in single]
    if len(mechanisms) != 1:
        *most, last = (f"--noise {noise}:{name.upper()}" for name, noise in single.items())
        raise ConfigurationError(
            f"Which noise? Give one with its scale: {', '.join(most)} or {last}."
            if not mechanisms
            else f"One noise at a time: got the scales of {' and '.join(mechanisms)}."
        )
    return mechanisms[0]


def noise_of(mechanism: str | None, scale: dict[str, float]) -> Noise:
    """The noise given on the command line."""
    from fedkt.privacy import make_noise

    return make_noise(mechanism_of(mechanism, scale), scale, counts=True)


def unit_of(unit: str) -> Unit:
    """The unit, refused in words where it is none."""
    if unit == "party":
        return "party"
    if unit == "record":
        return "record"
    raise ConfigurationError(f"--unit is party (level L1) or record (level L2), got {unit!r}.")


def abstain(choice: bool | None, unit: Unit) -> bool:
    """Whether voters may abstain: parties whose students disagree do, teachers always vote."""
    return unit == "party" if choice is None else choice


def margin_of(margin: int | None, voters: int) -> int:
    """The lead at which chances are told: 40 % of the voters where nothing else was asked for."""
    if margin is None:
        return max(1, round(0.4 * voters))
    if margin > voters:
        raise ConfigurationError(f"--margin is a lead in votes, at most the {voters} voters, got {margin}.")
    return margin


def counts_at(margin: int, voters: int, classes: int) -> list[int]:
    """The hardest counts with this lead: all other classes are equally close behind the winner."""
    behind = max(0, (voters - margin) // classes)
    return [behind + margin] + [behind] * (classes - 1)


def noise_in_words(noise: Noise) -> str:
    """A noise with its parameters."""
    return f"{noise.name}, {scale_in_words(noise)}"


def scale_in_words(noise: Noise) -> str:
    """A noise's parameters alone."""
    return ", ".join(f"{name.replace('_', ' ')} {value:.5g}" for name, value in noise.scale.items())


def chance_in_percent(chance: float) -> str:
    """A chance as a percentage, never larger than it is: nearly certain is not 100 %."""
    return f"{math.floor(chance * 1000 + 1e-9) / 10:.1f} %"


def meaning(price: Price) -> str:
    """What an ε says, for somebody who has never seen one."""
    from fedkt.algorithms.calibration import USELESS_EPSILON
    from fedkt.privacy.statement import rounded_up

    if not math.isfinite(price.epsilon):
        return "No accountant that was asked has an answer for this noise: nothing can be promised."
    whom = "one party's whole data" if price.release.unit == "party" else "one record of one party"
    factor = math.exp(min(price.epsilon, 700.0))
    times = f"{math.ceil(factor * 10) / 10:,.1f}" if factor < 1e6 else f"e^{rounded_up(price.epsilon)}"
    words = (
        f"epsilon {rounded_up(price.epsilon)} at delta {price.delta:g}: whoever sees all {price.release.queries} "
        f"labels, and knows everything else, can shift the odds between any two guesses about {whom} by at most a "
        f"factor of {times}, but for a chance of {price.delta:g}."
    )
    return words + (" That is hardly a protection." if price.epsilon > USELESS_EPSILON else "")


def figures(release: Release, delta: float) -> dict[str, Any]:
    """What gives an ε its meaning, as JSON."""
    return {
        "delta": delta,
        "unit": release.unit,
        "adjacency": release.adjacency,
        "queries": release.queries,
        "voters": release.voters,
        "classes": release.classes,
        "abstentions": release.abstentions,
        "mechanism": release.noise.name,
        "scale": dict(release.noise.scale),
    }
