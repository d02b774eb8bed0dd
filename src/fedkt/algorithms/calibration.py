"""FedKT's private levels, planned: how much noise an ε needs, and what to say before it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from fedkt.algorithms.chances import LabelChance, label_chances, whole_percent
from fedkt.algorithms.party_total import is_drowned
from fedkt.errors import ConfigurationError
from fedkt.privacy import Noise, Price
from fedkt.privacy.accountant.together import merge_releases
from fedkt.privacy.calibrate import smallest_noise
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.mechanisms import USUAL, noise_class
from fedkt.privacy.price import Adjacency
from fedkt.privacy.statement import rounded_up
from fedkt.privacy.sums import GaussianSums

if TYPE_CHECKING:
    from fedkt.algorithms.fedkt import FedKT

COUNTS_PART = 0.05
"""What noisy class counts cost beside the votes: this part of their μ²."""
MOST_TRIES = 8
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
DROWNED = 0.75
"""Below this chance that a unanimous vote survives the noise, labels are hardly worth learning."""
WEAK = 0.8
"""The same for a vote of three quarters: voters who saw few rows each agree no more than that on what is hard."""
FEW_LABELS = 5
"""Below so many labels a class nothing is learned, however right they are."""
FEW_PARTIES = 20
"""Below this the noise that protects one vote among so few drowns the others."""
LARGE_DELTA = 1e-3
"""From here on δ is no small chance, however few rows there are."""
USELESS_EPSILON = 10.0
"""Above this an attacker may be e^10 times surer after the release than before: no protection worth its noise."""


def check_adjacency(level: str, adjacency: str) -> None:
    """Refuse, in words, an adjacency that a level does not have."""
    if adjacency not in get_args(Adjacency):
        choices = ", ".join(get_args(Adjacency))
        raise ConfigurationError(f"There is no adjacency {adjacency!r}. Choose one of: {choices}.")
    if level != "L2" and adjacency != "replace-one":
        raise ConfigurationError(
            f"At level {level} a party's rows are replaced (adjacency replace-one): who the parties are, everybody "
            "knows from the plan. A record can be added or removed at level L2."
        )


def check_records(adjacency: str, ids: Sequence[str] | None, party: str) -> None:
    """Refuse, in words, records that an adjacency cannot be promised for."""
    if ids is None and adjacency == "add-or-remove":
        raise ConfigurationError(
            f"Party {party!r}: its records have no identities of their own, and by their places in a file one that is "
            "added or removed moves all behind it. Name a column of identities (--id COLUMN), or agree on adjacency "
            "replace-one."
        )


def noise_for_epsilon(
    fedkt: FedKT, mechanism: str, *, epsilon: float, delta: float, public_rows: int, classes: int, parties: int
) -> Noise:
    """The smallest noise of a mechanism with which a private FedKT, its own noise yet to be found, keeps ε.

    What is kept is the ε of all that it releases: of its votes, and at level L2 of class counts beside them.
    """
    noise = noise_class(mechanism)
    if noise.fixed_parameters():
        *most, last = (f"--{name.replace('_', '-')}" for name in noise.parameters())
        raise ConfigurationError(
            f"{mechanism} has {NUMBERS[len(most) + 1]} parameters and is not calibrated to an epsilon. Give "
            f"{', '.join(most)} and {last}, or take {USUAL}."
        )
    figures: dict[str, int] = {"public_rows": public_rows, "classes": classes, "parties": parties}
    releases = fedkt.with_noise(noise.of_amount(1.0)).releases(**figures)
    (votes,) = merge_releases([each for each in releases if each.noise.for_votes])
    target = epsilon
    for _ in range(MOST_TRIES):
        least = smallest_noise(
            mechanism,
            epsilon=target,
            delta=delta,
            queries=votes.queries,
            voters=votes.voters,
            classes=votes.classes,
            unit=votes.unit,
            abstentions=votes.abstentions,
        )
        price = fedkt.with_noise(least).price(**figures, delta=delta)
        assert price is not None
        if price.epsilon <= epsilon:
            return least
        # Class counts cost a little beside the votes.
        target *= 0.999 * epsilon / price.epsilon
    raise ConfigurationError(f"No noise was found that keeps epsilon {epsilon:g} with class counts. Give its scale.")


def count_noise(noise: Noise, votes: int) -> GaussianCounts:
    """The noise on a party's class counts where `votes` labels leave with `noise`: a small part of what they cost.

    As Gaussian mechanisms, k votes of spread σ have μ² = 2k/σ² and one histogram of spread τ has 2/τ².
    """
    return GaussianCounts(math.sqrt(2 / (COUNTS_PART * noise.squared_mu(votes))))


def cautions(level: str, price: Price | None, party_rows: Sequence[int]) -> tuple[str, ...]:
    """What a user should hear before trusting a price."""
    if price is None:
        return ()
    notes = []
    if price.epsilon > USELESS_EPSILON:
        whom = f"With {len(party_rows)} parties a party" if level == "L1" else "A record"
        remedy = "more parties, " if level == "L1" else "more subsets, "
        notes.append(
            f"{whom} is hardly protected: epsilon is {rounded_up(price.epsilon)}. Useful protection needs {remedy}more "
            "noise or fewer queries."
        )
    notes += label_alarms(level, price)
    units = len(party_rows) if level == "L1" else sum(party_rows)
    if price.delta > 1 / units:
        notes.append(
            f"delta {price.delta:g} is larger than one in {units} {'parties' if level == 'L1' else 'rows'}: it allows "
            "to reveal one of them entirely. Choose a smaller delta."
        )
    elif price.delta >= LARGE_DELTA:
        notes.append(
            f"delta {price.delta:g} is a chance of {price.delta:.2g} that nothing at all is protected. Choose one well "
            "below one in the number of rows of a party, say 1e-5."
        )
    return tuple(notes)


def label_alarms(level: str, price: Price | None) -> tuple[str, ...]:
    """Why no final model of this price will be of much use: too few labels that are right, or labels at all.

    From public figures only. Known before anything is trained, and to be told of whatever came of it.
    """
    if price is not None and level == "L1" and isinstance(price.release.noise, GaussianSums):
        return total_alarms(price)
    if price is None or not price.release.noise.for_votes:
        return ()
    release, notes, weak = price.release, [], weak_chance(price)
    survives = "" if weak is None else whole_percent(weak.right)
    if level == "L1" and (weak is not None or (not label_chances(price) and release.voters < FEW_PARTIES)):
        figure = "" if weak is None else f" (if {_agreeing(weak)} agree, their label survives in {survives})"
        notes.append(
            f"With {release.voters} parties the noise that gives epsilon {rounded_up(price.epsilon)} hides most of "
            f"their votes{figure}: expect labels little better than chance. Party-level privacy needs many parties."
        )
    elif weak is not None:
        notes.append(
            f"The noise drowns the votes: where {_agreeing(weak)} teachers of a party agree, their label survives in "
            f"{survives} of the cases. Expect a model that hardly beats naming the most frequent class; "
            "useful labels need more subsets, fewer queries or a larger epsilon."
        )
    labels = min(release.queries, release.noise.most_answers or release.queries)
    if labels < FEW_LABELS * release.classes:
        notes.append(
            f"All that is learned from are {labels} labels of {release.classes} classes: hardly enough for a model "
            "that knows them all. Ask more public rows, and choose the noise anew."
        )
    return tuple(notes)


def total_alarms(price: Price) -> tuple[str, ...]:
    """The same of a head that is made of one total of parties."""
    if not is_drowned(price.release):
        return ()
    return (
        f"With {price.release.voters} parties the noise that gives epsilon {rounded_up(price.epsilon)} hides most of "
        "what they say together: expect a model that may be no better than naming the most frequent class. Party-level "
        "privacy needs many parties.",
    )


def weak_chance(price: Price) -> LabelChance | None:
    """The agreement at which the noise leaves too few labels standing: all voters, else three quarters of them."""
    for chance in label_chances(price)[:2]:
        least = DROWNED if chance.agree == chance.voters else WEAK
        if chance.right < least and 3 * chance.agree >= 2 * chance.voters:
            return chance
    return None


def _agreeing(chance: LabelChance) -> str:
    return f"all {chance.voters}" if chance.agree == chance.voters else f"{chance.agree} of {chance.voters}"
