"""Answer only where the voters agree: the Confident-GNMax aggregator of Papernot et al. (2018), answers capped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.privacy.gaussian import gaussian_class_probabilities
from fedkt.privacy.noise import (
    BLOCK,
    GaussianAnswers,
    Noise,
    counts,
    one_row,
    orders_above_one,
    parameter,
    positive,
)
from fedkt.privacy.stream import Floats, Source
from fedkt.votes import NO_VOTE


@dataclass(frozen=True)
class ConfidentGaussian(Noise):
    """A row is answered if its largest count + N(0, σ_test²) reaches the threshold, then with N(0, σ²) on each count.

    At most `answers` rows of one call of `labels` are answered, in row order; the cap is fixed before any vote is
    read. Which rows are answered is part of what is released and is paid for by the tests.
    """

    name = "confident-gaussian"
    about = "an answer only where the largest count + N(0, σ_test²) reaches a threshold; N(0, σ²) on it"
    safer_if_larger = ("sigma_test", "sigma")
    diagnosis = "renyi"

    threshold: float
    sigma_test: float
    sigma: float
    answers: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", parameter(self.name, "threshold", self.threshold))
        object.__setattr__(self, "sigma_test", positive(self.name, "sigma_test", self.sigma_test))
        object.__setattr__(self, "sigma", positive(self.name, "sigma", self.sigma))
        cap = positive(self.name, "answers", self.answers)
        if cap != int(cap):
            raise ConfigurationError(f"The answers of {self.name} noise are a whole number, got {self.answers!r}.")
        object.__setattr__(self, "answers", int(cap))

    @classmethod
    def of_amount(
        cls, amount: float, *, queries: int = 1, fixed: Mapping[str, float] | None = None
    ) -> ConfidentGaussian:
        """The noise of a given threshold and cap whose answers have σ = amount, and tests that cost the same in all."""
        values = fixed or {}
        if set(values) != set(cls.fixed_parameters()):
            raise ConfigurationError(
                f"{cls.name} noise is calibrated for a given `threshold` and number of `answers`; "
                f"got {', '.join(sorted(values)) or 'neither'}. Give both (--threshold and --answers)."
            )
        # Tests and answers then cost the same: k/σ_test² = 2·answers/σ².
        ratio = math.sqrt(queries / (2 * min(queries, values["answers"])))
        return cls(**{**values, "sigma": amount, "sigma_test": amount * ratio})  # type: ignore[arg-type]

    @property
    def spread(self) -> float:
        """σ of the answers."""
        return self.sigma

    @property
    def most_answers(self) -> int:
        """The cap on answers."""
        return self.answers

    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """The noisy winner of each answered row, NO_VOTE for the others and for all rows after the last answer."""
        table = counts(votes)
        rows, classes = table.shape
        step = max(1, BLOCK // classes)
        labels = np.full(rows, NO_VOTE, dtype=np.int64)
        answers_left = self.answers
        for start in range(0, rows, step):
            block = table[start : start + step]
            passed = block.max(axis=1) + rng.normal(0.0, self.sigma_test, len(block)) >= self.threshold
            noisy = block + rng.normal(0.0, self.sigma, block.shape)
            # Past the cap a test's outcome is thrown away unseen: the row is not answered whatever it was.
            answered = passed & (np.cumsum(passed) <= answers_left)
            labels[start : start + step][answered] = np.argmax(noisy[answered], axis=1)
            answers_left -= int(answered.sum())
        return labels

    def win_probability(self, gap: ArrayLike) -> Floats:
        """Refused: whether a row is answered depends on the largest count, not on the gap alone."""
        raise PrivacyError(
            "confident-gaussian noise has no probability of winning at a gap: it may not answer at all, and that "
            "depends on the largest count. Use the rdp or gdp accountant."
        )

    def class_probabilities(self, votes: ArrayLike) -> Floats:
        """The probability that a row is answered with each class while answers are left; the rest is NO_VOTE."""
        from scipy.special import ndtr

        passed = ndtr((one_row(votes).max() - self.threshold) / self.sigma_test)
        return np.asarray(passed * gaussian_class_probabilities(votes, self.sigma))

    def rdp(self, orders: ArrayLike) -> Floats:
        """One tested and answered query: α/(2σ_test²) + α/σ².

        A moved vote changes the largest count by at most 1 and the counts by √2 in length (Mironov 2017, Prop. 7).
        """
        a = orders_above_one(orders)
        return a / (2 * self.sigma_test**2) + a / self.sigma**2

    def rdp_of(self, queries: int, orders: ArrayLike) -> Floats:
        """All tests and all answers of one call: k·α/(2σ_test²) + min(k, answers)·α/σ².

        Which queries are answered is decided as one goes, so composition with fixed costs does not apply; on every
        path the costs sum to at most this, which is what a Rényi filter needs (Feldman and Zrnic 2021; the bound holds
        at each order separately).
        """
        a = orders_above_one(orders)
        return queries * a / (2 * self.sigma_test**2) + min(queries, self.answers) * a / self.sigma**2

    def gdp_of(self, queries: int) -> float:
        """μ of all tests and answers of one call: √(k/σ_test² + 2·min(k, answers)/σ²).

        A test is 1/σ_test-GDP, an answer √2/σ-GDP. The squares sum to at most this on every path, which suffices when
        the steps are chosen as one goes (Smith and Thakurta 2022, fully adaptive composition of Gaussian DP).
        """
        return math.sqrt(queries / self.sigma_test**2 + 2 * min(queries, self.answers) / self.sigma**2)

    def squared_mu(self, queries: int) -> float:
        """μ² of all tests and answers: their own, since both are Gaussian."""
        return self.gdp_of(queries) ** 2

    def gaussian_answers(self, queries: int) -> tuple[GaussianAnswers, ...]:
        """A test of every query, and winners up to the cap."""
        return (
            GaussianAnswers(queries, 1 / self.sigma_test, yes_or_no=True),
            GaussianAnswers(min(queries, self.answers), math.sqrt(2) / self.sigma, yes_or_no=False),
        )

    def cost_of_votes(self, votes: ArrayLike, orders: ArrayLike) -> Floats:
        """The Rényi bound of one call on these votes: tests, and answers up to the cap."""
        from fedkt.privacy.gnmax import confident_rdp

        return confident_rdp(votes, self, orders)
