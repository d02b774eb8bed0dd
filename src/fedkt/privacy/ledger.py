"""The only door through which labels leave a vote.

A noisy release is priced and written down before a vote is counted: what the budget does not cover is refused while
nobody has looked at anything yet, and a process that dies in between has spent what it asked for. At level L0 the bare
winners leave and nothing is promised.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.privacy.accountant.together import price_together
from fedkt.privacy.entries import Spending, UnknownNoise
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.ledger_file import LedgerFile, reserve
from fedkt.privacy.noise import Noise
from fedkt.privacy.price import KEY_MARK, Price, Release, Unit
from fedkt.privacy.statement import rounded_up
from fedkt.privacy.stream import Source
from fedkt.privacy.sums import GaussianSums
from fedkt.votes import Labels, winners

LEVELS = ("L0", "L1", "L2")
UNITS: dict[str, Unit] = {"L1": "party", "L2": "record"}
"""Whom a level protects: at L1 a party with all its rows, at L2 one record of one party."""


def require_level(level: str) -> str:
    """The level, refused with the known ones where it is none."""
    if level not in LEVELS:
        raise ConfigurationError(f"There is no privacy level {level!r}. Choose one of: {', '.join(LEVELS)}.")
    return level


def check_level(level: str, noise: Noise | None) -> None:
    """Refuse, in words, a level and a noise that do not fit each other."""
    require_level(level)
    if level == "L0" and noise is not None:
        raise ConfigurationError(
            f"Level L0 adds no noise, but a noise was given ({noise!r}). Leave it out, or choose level L1 (noise at "
            "the server, a party is protected) or L2 (noise at the parties, a record is protected)."
        )
    if isinstance(noise, Noise) and not noise.for_votes:
        raise ConfigurationError(f"{noise.name} is noise for counts that are released, not for votes. Choose gaussian.")
    if level != "L0" and not isinstance(noise, Noise):
        raise ConfigurationError(
            f"Level {level} needs a noise"
            + (", e.g. " if noise is None else f", got {noise!r}. E.g. ")
            + "--noise gaussian:40 or --epsilon 2 on the command line, Gaussian(sigma=40) from fedkt.privacy in "
            "Python. `fedkt privacy calibrate` finds the smallest one for an epsilon."
        )


@dataclass
class Ledger:
    """What one side has released so far, what it costs, and what it may still cost."""

    owner: str = "simulation"
    """Whose budget it is: a party's name, or "server"."""
    delta: float = 1e-5
    budget: float | None = None
    """The largest ε all releases of this owner may cost together; None for no limit."""
    file: LedgerFile | None = None
    """The file in which releases outlive this process; None forgets them with it."""
    plan: str = ""
    releases: list[Release] = field(default_factory=list)
    """What was released through this object."""
    bare: int = 0
    """Labels that left without noise."""
    hold: Callable[[str, str], None] | None = None
    """Told which kept noise has given what (its name, a digest) before anybody sees it; raises where it gave other."""

    def release(
        self, count: Callable[[], ArrayLike], release: Release, *, rng: Source, noise_seed: int | None = None
    ) -> Labels:
        """The noisy winners of a vote that `count` counts, once the release is priced, covered and written down.

        `noise_seed` is a secret whose noise is kept: the same release with the same noise says nothing new, and is not
        charged again.
        """
        self._reserve(release, noise_seed)
        labels = release.noise.labels(self._count(count, release.queries, release.voters, release.classes), rng)
        self._hold(release, noise_seed, labels)
        return labels

    def release_bare(
        self, count: Callable[[], ArrayLike], *, queries: int, voters: int, classes: int, rng: Source
    ) -> Labels:
        """The bare winners of a vote, ties broken at random, NO_VOTE where nobody voted: nothing is promised."""
        self.bare += queries
        return winners(self._count(count, queries, voters, classes), rng)

    def release_counts(
        self, count: Callable[[], ArrayLike], release: Release, *, rng: Source, noise_seed: int | None = None
    ) -> tuple[int, ...]:
        """A party's rows of each class with noise, once the release is priced, covered and written down."""
        noise = release.noise
        if noise.for_votes or not isinstance(noise, GaussianCounts):
            raise PrivacyError(f"{noise.name} is noise for votes, not for released counts. Nothing was counted.")
        self._reserve(release, noise_seed)
        numbers = np.asarray(count())
        if numbers.shape != (release.classes,):
            raise PrivacyError(f"Asked for the counts of {release.classes} classes, counted {numbers.shape}.")
        noisy = noise.counts(numbers, rng)
        self._hold(release, noise_seed, np.array(noisy))
        return noisy

    def release_sums(
        self,
        add_up: Callable[[], ArrayLike],
        release: Release,
        *,
        shape: tuple[int, ...],
        rng: Source,
        noise_seed: int | None = None,
    ) -> NDArray[np.int64]:
        """A party's sums of features by class with noise, in the noise's steps, once the release is written down."""
        noise = release.noise
        if not isinstance(noise, GaussianSums):
            raise PrivacyError(f"{noise.name} is not noise for sums of features. Nothing was summed up.")
        self._reserve(release, noise_seed)
        numbers = np.asarray(add_up())
        if numbers.shape != shape:
            raise PrivacyError(f"Asked for sums of shape {shape}, got {numbers.shape}. Nothing was released.")
        noisy = noise.sums(numbers, rng)
        self._hold(release, noise_seed, noisy)
        return noisy

    def price(self) -> Price | None:
        """What the releases through this object cost together; None where nothing noisy was released."""
        if not self.releases:
            return None
        if self.bare:
            raise PrivacyError("Labels also left without noise: nothing can be promised about this side.")
        return price_together(self.releases, self.delta)

    def _reserve(self, release: Release, noise_seed: int | None) -> None:
        spending = Spending(who=self.owner, release=release.keyed(noise_seed), plan=self.plan)
        limit = math.inf if self.budget is None else self.budget
        if self.file is None:
            cost = price_together([*self.releases, release], self.delta).epsilon
            if cost > limit:
                raise PrivacyError(
                    f"The budget of {self.owner!r} does not cover this release: with it epsilon would be "
                    f"{rounded_up(cost)} at delta {self.delta:g}, the budget is {limit:g}. Nothing was counted. Ask "
                    "fewer queries or add more noise."
                )
        else:
            self.file.refresh()
            before = self.file.spent(who=self.owner, plan=self.plan)
            if noise_seed is None or not any(entry.is_same(spending) for entry in before):
                reserve(self.file, [spending], price=lambda entries: total_of(entries, self.delta), budget=limit)
        self.releases.append(release)

    def _hold(self, release: Release, noise_seed: int | None, output: Labels) -> None:
        if noise_seed is not None and self.hold is not None:
            self.hold(release.noise_key(noise_seed), digest_of(output))

    def _count(self, count: Callable[[], ArrayLike], queries: int, voters: int, classes: int) -> Labels:
        votes = np.asarray(count())
        if votes.shape != (queries, classes):
            raise PrivacyError(f"Asked for votes of shape {(queries, classes)}, counted {votes.shape}.")
        if queries and int(votes.sum(axis=1).max()) > voters:
            raise PrivacyError(f"More votes were counted than there are voters ({voters}). Nothing was released.")
        return votes


def digest_of(output: Labels) -> str:
    """Tells the labels that a kept noise has given from others."""
    return hashlib.sha256(np.ascontiguousarray(output, dtype="<i8").tobytes()).hexdigest()


def total_of(entries: Sequence[Spending], delta: float) -> float:
    """ε of one owner's ledger entries: the least budget, fixed beforehand, at which a filter accepts them all.

    Later releases may have been chosen by what earlier ones said; those of the first run were not. An entry whose noise
    nobody would agree on today makes it infinite.
    """
    if not entries:
        return 0.0
    if any(isinstance(entry.release.noise, UnknownNoise) for entry in entries):
        return math.inf
    releases = [entry.release for entry in entries]
    return price_together(releases, delta, adaptive=True, first=first_run(entries)).epsilon


def first_run(entries: Sequence[Spending]) -> int:
    """How many entries of one owner, from the first on, were fixed together before any label was out.

    What one plan releases in one run has as many purposes, and the plan fixes all of it; a purpose that comes again
    begins the next run. Without a plan nothing is known but that the first release had none before it.
    """
    purposes: set[str] = set()
    for entry in entries:
        purpose = entry.release.purpose.split(KEY_MARK)[0]
        if entry.plan != entries[0].plan or purpose in purposes or (purposes and not entry.plan):
            break
        purposes.add(purpose)
    return len(purposes)
