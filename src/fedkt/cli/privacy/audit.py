"""`fedkt privacy audit`: an attack on the noise, beside the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import options
from fedkt.cli.groups import NoiseOptions
from fedkt.cli.panels import with_groups
from fedkt.cli.privacy import words
from fedkt.cli.runs import noise_choice
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.privacy import Noise
    from fedkt.privacy.audit import Audit
    from fedkt.privacy.price import Unit


@with_groups
def run_audit(
    *,
    noise: NoiseOptions,
    epsilon: options.Epsilon = None,
    delta: options.Delta = 1e-5,
    queries: words.Queries = 20,
    voters: words.Voters = 51,
    classes: words.Classes = 2,
    unit: words.UnitOption = "record",
    trials: Annotated[int, typer.Option(help="Releases of each of the two votes.")] = 60_000,
    fault: Annotated[
        str, typer.Option(help="A planted mistake the audit has to catch: none or double-sensitivity.")
    ] = "none",
    bare: Annotated[bool, typer.Option("--bare", help="Leave the noise out, as level L0 does.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Makes the audit repeatable. Default: the operating system's entropy.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Attack a noisy vote with two votes that differ in one voter; exit code 1 if it gives away more than claimed.

    With gaussian-sums, the noise of moments, two sums are told apart that differ by what one unit can move. Without a
    scale, the smallest noise for --epsilon (2 where it is not given) is audited.

    [bold]Examples[/bold]

      fedkt privacy audit --noise gaussian --epsilon 2

      fedkt privacy audit --noise laplace:0.1 --trials 200000

      fedkt privacy audit --noise gaussian --epsilon 2 --fault double-sensitivity

      fedkt privacy audit --noise gaussian-sums --epsilon 1 --unit party

      fedkt privacy audit --bare
    """
    from fedkt.privacy import Release
    from fedkt.privacy.accountant import price
    from fedkt.privacy.audit import attack
    from fedkt.privacy.stream import Stream

    whom = words.unit_of(unit)
    audited = sums_noise(noise.noise or "", epsilon, delta, whom)
    if audited is not None:
        queries = 1  # one vector leaves, whatever its length
    else:
        mechanism, scale = noise_choice(noise, calibrated=True)
        audited = audited_noise(mechanism, dict(scale), epsilon, delta, queries, voters, classes, whom)
    audit = attack(
        price(Release(audited, queries, voters, classes, whom), delta),
        rng=Stream.fresh() if seed is None else Stream.of(seed),
        trials=trials,
        fault=fault,  # type: ignore[arg-type]
        bare=bare,
    )
    print_audit(audit, as_json=as_json)
    raise typer.Exit(int(audit.broken))


def sums_noise(text: str, epsilon: float | None, delta: float, unit: Unit) -> Noise | None:
    """The noise on sums of features that --noise names, of its σ or the least for the ε; None for other noises."""
    from fedkt.privacy.calibrate import smallest_noise
    from fedkt.privacy.mechanisms import parse_noise
    from fedkt.privacy.sums import GaussianSums

    name, colon, _ = text.partition(":")
    if name != GaussianSums.name:
        return None
    if colon and epsilon is not None:
        raise ConfigurationError(f"Give either --epsilon or a scale, got both (--noise {text}).")
    if colon:
        return parse_noise(text, counts=True)
    least = 2.0 if epsilon is None else epsilon
    return smallest_noise(
        name, epsilon=least, delta=delta, queries=1, voters=1, classes=2, unit=unit, accountants=("gdp",)
    )


def audited_noise(
    mechanism: str | None,
    scale: dict[str, float],
    epsilon: float | None,
    delta: float,
    queries: int,
    voters: int,
    classes: int,
    unit: Unit,
) -> Noise:
    """The noise of a given scale, or the smallest one for the ε."""
    from fedkt.privacy.calibrate import smallest_noise
    from fedkt.privacy.mechanisms import USUAL, noise_of_fixed

    scaled = [name for name in scale if name not in noise_of_fixed()]
    if epsilon is not None and scaled:
        raise ConfigurationError(f"Give either --epsilon or a scale, got both (--{', --'.join(scaled)}).")
    if scaled:
        return words.noise_of(mechanism, scale)
    return smallest_noise(
        mechanism or (words.mechanism_of(None, scale) if scale else USUAL),
        epsilon=2.0 if epsilon is None else epsilon,
        delta=delta,
        queries=queries,
        voters=voters,
        classes=classes,
        unit=unit,
        fixed=scale,
    )


def audit_figures(audit: Audit) -> dict[str, object]:
    """The audit as JSON."""
    return {
        "holds": not audit.broken,
        "claim": audit.claim.epsilon,
        "empirical": audit.empirical,
        "confidence": 0.95,
        "trials": audit.trials,
        "true_positives": audit.true_positives,
        "false_positives": audit.false_positives,
        "fault": audit.fault,
        "bare": audit.bare,
        "accountant": audit.claim.accountant,
        **words.figures(audit.claim.release, audit.claim.delta),
    }


def print_audit(audit: Audit, *, as_json: bool) -> None:
    """The audit in words, or as JSON."""
    from fedkt.cli.output import print_json, stdout
    from fedkt.privacy.statement import rounded_up

    if as_json:
        print_json(audit_figures(audit))
        return
    claim, trials = audit.claim, audit.trials
    release = claim.release
    noise = words.noise_in_words(release.noise)
    what = "no noise at all (level L0)" if audit.bare else noise
    if audit.fault != "none":
        what += f", with a planted fault: every {'vote' if release.noise.for_votes else release.unit} counted twice"
    half = f"{trials - trials // 2:,}"
    label = "Claimed with noise:" if audit.bare else "Claimed:"
    worlds = f"two sums that differ by as much as one {release.unit} can move them"
    if release.noise.for_votes:
        what = f"{what}; {release.queries} labels of {release.voters} voters"
        worlds = "two votes that differ in one voter"
    stdout.say(f"Audited: {what}, {trials:,} releases of each of {worlds}.")
    stdout.say(
        f"{label} epsilon {rounded_up(claim.epsilon)} at delta {claim.delta:g} for one {release.unit} "
        f"({release.adjacency}), {noise}, by the accountant '{claim.accountant}'."
    )
    stdout.say(
        f"Found:   epsilon is at least {audit.empirical:.3f} with 95 % confidence: the test said 'the one vote' "
        f"on {audit.true_positives:,} of {half} releases of it, and on {audit.false_positives:,} of {half} of "
        "the other."
    )
    stdout.say(
        "BROKEN: an attacker learns more than the claim allows. Do not release anything with it."
        if audit.broken
        else "Holds: the attack stays below the claim. That is no proof; a broken claim would be a bug."
    )
