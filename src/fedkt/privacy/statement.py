"""The privacy statement: what is protected, from whom, how well, and what is not, in words and as data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.price import Price
from fedkt.privacy.sums import GaussianSums

PROTECTS = {
    "L0": "nothing",
    "L1": "each party: all rows of one party could be replaced",
    "L2": "each record: one row of one party could be replaced",
}
SATISFIES = {
    "L0": "nothing satisfies differential privacy",
    "L1": "the final model and the labels it was trained on",
    "L2": "every student that leaves a party, and so the final model",
}
TRUSTED = {
    "L0": "everyone who sees a student or the final model",
    "L1": "the server, which sees the students without noise",
    "L2": "nobody outside the party",
}
SUMS_SATISFY = "all numbers that leave a party, and so the final model"
"""At level L2, where sums of features leave and no student does."""
PARTY_SUMS_WORDS = (
    PROTECTS["L1"],
    "the final model and the one noisy total that it is made of",
    "the server, which sees every party's sums without noise",
    "The sums themselves, party names, the number of parties, the class list, class shares that were agreed on and "
    "public rows are not protected. A record is protected no better than its whole party.",
)
"""At level L1, where the noise is on the total of the parties' sums."""
EXACT_SUMS = (
    PROTECTS["L0"],
    SATISFIES["L0"],
    "everyone who sees a party's sums or the final model",
    "Exact sums of features tell each party's class counts and much about its rows: the sum of one row is the row.",
)
"""At level L0, where parties send sums."""
NOT_PROTECTED = {
    "L0": "Students and final model may reveal rows they were taught from.",
    "L1": "Students themselves, party names and sizes, the number of parties and whether a party could vote, the class "
    "list and public rows are not protected. A record is protected no better than its whole party.",
    "L2": "Party names, class list and public rows are not protected. A person with rows at several parties, or "
    "several rows at one, is protected less.",
}

IN_PLACE = (
    "Nor are parties' sizes, or records without identities in a file whose order is decided by what is in its rows."
)
"""What level L2 does not protect besides, where a record is replaced and not also added or removed."""


@dataclass(frozen=True)
class Statement:
    """What a run promises. Nothing in it depends on private rows."""

    level: str
    protects: str
    satisfies: str
    trusted: str
    not_protected: str
    epsilon: float | None
    """None means infinite: no promise."""
    delta: float | None = None
    unit: str | None = None
    adjacency: str | None = None
    queries: int | None = None
    voters: int | None = None
    classes: int | None = None
    mechanism: str | None = None
    scale: dict[str, float] | None = None
    accountant: str | None = None
    reproducible_noise: bool = False
    """The noise came from a seed: whoever knows it can take it off again."""
    total_epsilon: float | None = None
    """The least budget, fixed beforehand, that covers all releases of this owner's ledger; None without a ledger."""
    releases: int | None = None
    counts: bool = False
    """Whether every party also told how many rows of each class it has: as they are at L0, with noise at L2."""
    count_sigma: float | None = None
    """The Gaussian noise on them, in rows; it is in the price."""

    def as_dict(self) -> dict[str, object]:
        """The statement as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        """The statement in plain words."""
        if self.level == "L0":
            counts = "; each party's class counts were sent as they are" if self.counts else ""
            if self.not_protected == EXACT_SUMS[-1]:
                counts = f"; exact sums were sent. {self.not_protected}".rstrip(".")
            return f"none: level L0 adds no noise, so nothing is promised (epsilon is infinite){counts}"
        if self.epsilon is None or self.mechanism is None:
            return f"none: the noise of level {self.level} is too weak for any promise (epsilon is infinite)"
        scale = ", ".join(f"{name} {value:g}" for name, value in (self.scale or {}).items())
        what = f"{self.queries} noisy labels of {self.mechanism} ({scale}) over {self.voters} voters and"
        if self.mechanism == GaussianSums.name:
            what = f"sums of features with {self.mechanism} noise ({scale}) over"
            if self.level == "L1":
                what = f"the total of {self.voters} parties' class means with {self.mechanism} noise ({scale}) over"
        words = (
            f"epsilon {rounded_up(self.epsilon)} at delta {self.delta:g} for one {self.unit} ({self.adjacency}), "
            f"{what} {self.classes} classes, by the accountant '{self.accountant}'. Protected: {self.protects}. "
            f"Private: {self.satisfies}. "
            f"To be trusted: {self.trusted}. {self.not_protected}"
        )
        if self.count_sigma is not None:
            words += f" With it every party's class counts left, with Gaussian noise (sigma {self.count_sigma:g} rows)."
        if self.total_epsilon is not None and self.releases is not None:
            every = "the only one" if self.releases == 1 else f"all {self.releases}"
            words += (
                f" This release alone; a budget of epsilon {rounded_up(self.total_epsilon)} at the same delta, had it "
                f"been fixed before the first, covers {every} in the ledger so far."
            )
        else:
            words += " This run alone: other runs on the same rows add to it."
        if self.reproducible_noise:
            words += (
                " This run drew its noise from a seed: epsilon is what a real run would have; this one protects nobody."
            )
        return words


def rounded_up(epsilon: float) -> str:
    """ε with three decimals, never smaller than it is."""
    return "∞" if math.isinf(epsilon) else f"{math.ceil(epsilon * 1000) / 1000:.3f}"


def statement(
    level: str,
    price: Price | None,
    *,
    reproducible_noise: bool = False,
    total_epsilon: float | None = None,
    releases: int | None = None,
    counts: bool = False,
    sums: bool = False,
) -> Statement:
    """The statement for a level and the price of what was released at it, class counts with their noise included.

    `sums` says that at level L0 parties sent sums of features.
    """
    words = (PROTECTS[level], SATISFIES[level], TRUSTED[level], NOT_PROTECTED[level])
    if level == "L0" and sums:
        words = EXACT_SUMS
    if price is None or not math.isfinite(price.epsilon):
        return Statement(level, *words, epsilon=None, reproducible_noise=reproducible_noise, counts=counts)
    release = price.release
    if isinstance(release.noise, GaussianSums):
        words = PARTY_SUMS_WORDS if level == "L1" else (words[0], SUMS_SATISFY, *words[2:])
    if release.adjacency == "add-or-remove":
        words = (f"{words[0]}, added or removed", *words[1:])
    elif level == "L2":
        words = (*words[:3], f"{words[3]} {IN_PLACE}")
    return Statement(
        level,
        *words,
        epsilon=price.epsilon,
        delta=price.delta,
        unit=release.unit,
        adjacency=release.adjacency,
        queries=release.queries,
        voters=release.voters,
        classes=release.classes,
        mechanism=release.noise.name,
        scale=dict(release.noise.scale),
        accountant=price.accountant,
        reproducible_noise=reproducible_noise,
        total_epsilon=total_epsilon,
        releases=releases,
        counts=counts,
        count_sigma=next(
            (
                each.noise.spread
                for each in price.releases
                if isinstance(each.noise, GaussianCounts) and not each.noise.for_votes
            ),
            None,
        ),
    )
