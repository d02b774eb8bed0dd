"""FedKT's private levels, planned: how much noise an ε needs, and what to say before it runs."""

from __future__ import annotations

from collections.abc import Sequence

from fedkt.errors import ConfigurationError
from fedkt.privacy import UNITS, Noise, Price, make_noise
from fedkt.privacy.calibrate import smallest_noise
from fedkt.privacy.statement import rounded_up

FEW_PARTIES = 20
"""Below this the noise that protects one vote among so few drowns the others."""
USELESS_EPSILON = 10.0
"""Above this an attacker may be e^10 times surer after the release than before: no protection worth its noise."""


def calibrated(
    mechanism: str,
    *,
    level: str,
    epsilon: float,
    delta: float,
    queries: int,
    partitions: int,
    subsets: int,
    classes: int,
    party_rows: Sequence[int],
) -> Noise:
    """The smallest noise of a mechanism that keeps ε at a level, for every party."""
    if mechanism == "confident-gaussian":
        raise ConfigurationError(
            "confident-gaussian has four parameters and is not calibrated to an epsilon. Give --threshold, "
            "--sigma-test, --sigma and --answers, or take gaussian."
        )
    if level == "L1":
        voters, asked, abstentions = {len(party_rows)}, queries, True
    else:
        voters, asked, abstentions = {min(subsets, rows) for rows in party_rows}, partitions * queries, False
    found = [
        smallest_noise(
            mechanism,
            epsilon=epsilon,
            delta=delta,
            queries=asked,
            voters=each,
            classes=classes,
            unit=UNITS[level],
            abstentions=abstentions,
        )
        for each in sorted(voters)
    ]
    # One noise for all: whatever suffices for the party that needs most suffices for the others.
    largest = mechanism in ("gaussian", "confident-gaussian")
    scales = [float(next(iter(each.scale.values()))) for each in found]
    name = next(iter(found[0].scale))
    return make_noise(mechanism, {name: max(scales) if largest else min(scales)})


def cautions(level: str, price: Price | None, party_rows: Sequence[int]) -> tuple[str, ...]:
    """What a user should hear before trusting a price."""
    if price is None:
        return ()
    told = []
    if price.epsilon > USELESS_EPSILON:
        whom = f"With {len(party_rows)} parties a party" if level == "L1" else "A record"
        remedy = "more parties, " if level == "L1" else "more subsets, "
        told.append(
            f"{whom} is hardly protected: epsilon is {rounded_up(price.epsilon)}. Useful protection needs {remedy}more "
            "noise or fewer queries."
        )
    elif level == "L1" and len(party_rows) < FEW_PARTIES:
        told.append(
            f"With {len(party_rows)} parties the noise that gives epsilon {rounded_up(price.epsilon)} hides most of "
            "their votes: expect labels little better than chance. Party-level privacy needs many parties."
        )
    units = len(party_rows) if level == "L1" else sum(party_rows)
    if price.delta > 1 / units:
        told.append(
            f"delta {price.delta:g} is larger than one in {units} {'parties' if level == 'L1' else 'rows'}: it allows "
            "to reveal one of them entirely. Choose a smaller delta."
        )
    return tuple(told)
