"""What a server has of its parties: the total of their sums, who moves it, and whether public rows resemble it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from fedkt.algorithms.class_sums import ClassSums
from fedkt.algorithms.heads import Sums, plain_labels
from fedkt.algorithms.noisy_heads import distance
from fedkt.algorithms.voting.weights import note_weights
from fedkt.bundle import Bundle
from fedkt.errors import ModelError
from fedkt.federation import Server
from fedkt.models.features.feature_map import Features
from fedkt.pooling import Matrix
from fedkt.votes import Labels

CERTAIN = 4.0
"""A class counts as there where its noisy count is so many standard deviations above 0."""
PLAIN = 1e-2
"""The ridge by which influences are measured where noise is on, and no ridge is served: the same for all parties."""
STRONG = 0.1
"""From this share of changed labels on a party's influence is told in words, and from half an even share on."""
MOST_NAMES = 3
SKEWED = 0.02
"""From this distance between public and parties' rows on, as a share of how far rows are from each other, a warning."""


@dataclass(frozen=True)
class Received:
    """The sums of the parties that count."""

    senders: tuple[Bundle, ...]
    sums: tuple[ClassSums, ...]
    noise: float = 0.0
    """The variance of the noise on each number of one party's sums."""

    @property
    def total(self) -> ClassSums:
        """All of them added up."""
        return reduce(ClassSums.__add__, self.sums)

    @property
    def variance(self) -> float:
        """Of the noise on each number of the total."""
        return self.noise * len(self.sums)

    @property
    def least_seen(self) -> float:
        """More rows than this of a class, at all parties together, are seen through the noise."""
        return float(CERTAIN * np.sqrt(self.variance))

    def classes_present(self) -> Labels:
        """The classes that some party has, as far as the noise lets that be seen."""
        present = np.flatnonzero(self.total.counts > self.least_seen)
        if len(present) == 0:
            through = (
                "through the noise: add rows, or allow a larger epsilon." if self.noise else "in what parties sent."
            )
            raise ModelError(f"No class has rows enough to be seen {through}")
        return present

    def over(self, present: Labels, public: Matrix) -> Sums:
        """The total over these classes, with the Gram matrix of public rows where none was sent."""
        return as_sums(self.total, self.variance, present, public)


@dataclass(frozen=True)
class Heard:
    """What came of the parties' bundles: the sums that count, and who was left out."""

    features: Features
    """The map that was summed up."""
    received: Received
    silent: Mapping[str, str]
    """Each party whose sums cannot be some rows', and why."""
    parties: int
    """How many were agreed on, whether they count or not."""

    @property
    def bundles(self) -> list[Bundle]:
        """The bundles of those that count."""
        return list(self.received.senders)


def as_sums(total: ClassSums, variance: float, present: Labels, public: Matrix) -> Sums:
    """Some sums over these classes, with the Gram matrix of public rows where they have none."""
    moments, gram = total.moments[:, present], total.gram
    if gram is None:
        gram = public.T @ public * (moments[0].sum() / len(public))
    return Sums(moments, gram, variance)


def note_parties(server: Server, received: Received, public: Matrix, strength: float = PLAIN) -> None:
    """Write down what each party weighs, and how many public rows would have another label without it.

    Without a party all sums are what they are less its own, so that this is exact, and one linear system a party.
    `strength` is that of the ridge that was found best: under a stronger one, who ruins it would not be seen.
    """
    counts = np.maximum([each.counts for each in received.sums], 0.0)
    note_weights(server, received.senders, counts, "says it has")
    total, present = received.total, received.classes_present()
    labels = plain_labels(received.over(present, public), public, strength)
    found: dict[str, float] = {}
    for bundle, sums in zip(received.senders, received.sums, strict=True):
        rest, noise = total - sums, received.variance - received.noise
        # Also classes that are there only without it: by false counts a party can make one vanish.
        others = np.flatnonzero(rest.counts > CERTAIN * np.sqrt(noise))
        if len(received.sums) > 1 and len(others):
            without = others[plain_labels(as_sums(rest, noise, others, public), public, strength)]
            found[bundle.sender] = float(np.mean(present[labels] != without))
    server.diary.vote.influence = found
    for name in sorted(found, key=lambda each: -found[each])[:MOST_NAMES]:
        if found[name] >= max(STRONG, 0.5 / len(found)):
            server.diary.say(
                f"Without party {name!r} {found[name]:.0%} of the public rows would have another label. Nobody can "
                "check its sums: ask before you believe the result."
            )
    if received.noise:
        note_skew(server, received, public)


def note_skew(server: Server, received: Received, public: Matrix) -> None:
    """Say where public rows do not resemble the parties', whose place they take in G; the noise is taken off."""
    apart = distance(received.over(received.classes_present(), public), public)
    if apart > SKEWED:
        server.diary.say(
            f"The public rows do not resemble the parties' rows: their mean features differ by {apart:.0%} of how far "
            "rows are from each other. With noise on the sums the head leans on public rows. They were weighed to have "
            "about the class shares of the parties, but the head may still be far worse: take public rows with these "
            "class shares, or level L0."
        )
