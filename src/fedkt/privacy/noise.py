"""A noise: what is added to votes, what it costs, and everything else there is to know about it.

Whoever adds a noise writes one class here below and names it in `mechanisms`. Prices, calibration, the ledger, claims,
statements and the command line read its facts; what it does not state it does not have, and then nothing is promised.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.privacy.stream import Floats, Source

BLOCK = 1 << 18
"""Noisy counts held at a time, so that memory does not grow with the number of queries."""
LARGEST = 1e12
"""No parameter of a noise is larger, nor smaller than one in so many: beyond it doubles no longer tell votes apart."""


@dataclass(frozen=True)
class GaussianAnswers:
    """So many answers about Gaussian counts, each of which moves by `shift` of its σ: what the arg-max accountant asks.

    `yes_or_no` where an answer is one of two whatever the number of classes; else it is the name of the winner.
    """

    times: int
    shift: float
    yes_or_no: bool


class Noise(ABC):
    """A mechanism: its noise and, in the same object, what one noisy vote costs when one voter's vote moves.

    A moved vote lowers one count by one and raises another by one, or does only one of the two where the voter may
    abstain. Subclasses are frozen dataclasses whose fields are the parameters: equal noises have equal prices.
    """

    name: ClassVar[str]
    """The name in the catalogue."""
    about: ClassVar[str]
    """One line for a list of noises."""
    safer_if_larger: ClassVar[tuple[str, ...]] = ()
    """The parameters that a calibration may find, where more of it is more private, as of σ."""
    safer_if_smaller: ClassVar[tuple[str, ...]] = ()
    """The same where less of it is more private, as of γ."""
    digits: ClassVar[int] = 5
    """How many digits of such a parameter are offered to be copied."""
    for_votes: ClassVar[bool] = True
    """Whether it gives labels; else it is for counts that are released themselves."""
    has_win_probability: ClassVar[bool] = False
    """Whether all that leaves is the winner, whose chance hangs on the gap alone: what the exact game needs."""
    diagnosis: ClassVar[Literal["moments", "renyi"] | None] = None
    """In what `cost_of_votes` tells the data-dependent cost; None where nobody has a formula."""
    in_paper: ClassVar[bool] = False
    """Whether the paper's own formula is drawn beside it."""

    @classmethod
    @cache
    def parameters(cls) -> tuple[str, ...]:
        """The names of its parameters, in the order of its command-line word."""
        return tuple(each.name for each in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def fixed_parameters(cls) -> tuple[str, ...]:
        """The parameters that no calibration finds: they have to be chosen."""
        return tuple(name for name in cls.parameters() if name not in (*cls.safer_if_larger, *cls.safer_if_smaller))

    @classmethod
    def of_amount(cls, amount: float, *, queries: int = 1, fixed: Mapping[str, float] | None = None) -> Self:
        """The noise as a function of one number: the more of it, the more private."""
        names = cls.parameters()
        if fixed or len(names) != 1:
            raise ConfigurationError(f"{cls.name} noise has only its scale ({', '.join(names)}): leave `fixed` out.")
        return cls(**{names[0]: 1 / amount if names[0] in cls.safer_if_smaller else amount})

    @property
    def scale(self) -> Mapping[str, float]:
        """The parameters by name, enough to make the same noise again."""
        return {name: getattr(self, name) for name in self.parameters()}

    def rounded(self) -> Self:
        """The same noise or a little more, with parameters that can be copied: rounded to the private side."""

        def short(name: str, value: float) -> float:
            if name in self.fixed_parameters():
                return value
            unit = 10.0 ** (math.floor(math.log10(value)) - self.digits + 1)
            steps = math.floor(value / unit) if name in self.safer_if_smaller else math.ceil(value / unit)
            return float(f"{steps * unit:.{self.digits}g}")

        return type(self)(**{name: short(name, value) for name, value in self.scale.items()})

    @property
    @abstractmethod
    def spread(self) -> float:
        """The standard deviation of the noise on one count, in votes."""

    @property
    def most_answers(self) -> int | None:
        """How many rows of one call of `labels` are answered at most; None for all of them, always."""
        return None

    @abstractmethod
    def labels(self, votes: ArrayLike, rng: Source) -> NDArray[np.int64]:
        """The noisy winner of each row of votes; NO_VOTE where the mechanism gives no answer."""

    def win_probability(self, gap: ArrayLike) -> Floats:
        """Two classes: the probability that class 1 wins when it is `gap` votes ahead (behind, where negative)."""
        raise PrivacyError(f"{self.name} noise has no probability of winning at a gap.")

    def class_probabilities(self, votes: ArrayLike) -> Floats | None:
        """The probability of each class for the counts of one query; None where only drawing tells."""
        return None

    def pure(self) -> float:
        """ε of one query under pure differential privacy; infinite where the mechanism has none."""
        return math.inf

    @abstractmethod
    def rdp(self, orders: ArrayLike) -> Floats:
        """Rényi divergence bound of one query at each order, whatever the votes."""

    def rdp_of(self, queries: int, orders: ArrayLike) -> Floats:
        """The Rényi bound of all queries of one release."""
        return queries * self.rdp(orders)

    def gdp_of(self, queries: int) -> float:
        """μ of Gaussian differential privacy of all queries of one release; infinite where there is none."""
        return math.inf

    def squared_mu(self, queries: int) -> float:
        """μ² of Gaussian noise of the same spread on so many votes: by this a part of the cost is measured out."""
        return 2 * queries / self.spread**2

    def loss_distribution(self, queries: int) -> Any:
        """dp-accounting's privacy loss distribution of a pair at least as telling as so many queries; None without."""
        return None

    def gaussian_answers(self, queries: int) -> tuple[GaussianAnswers, ...]:
        """What is answered about Gaussian counts on the longest path of one release; nothing for other noises."""
        return ()

    def cost_of_votes(self, votes: ArrayLike, orders: ArrayLike) -> Floats:
        """What these votes of one call cost at each order (confidential); `diagnosis` says in what."""
        raise PrivacyError(f"Nobody has a data-dependent ε for {self.name} noise. Use the data-independent price.")


def positive(mechanism: str, name: str, value: object) -> float:
    """The parameter as a float, refused in words unless it is above zero and of a size that noise can have."""
    number = parameter(mechanism, name, value)
    if number <= 0:
        raise ConfigurationError(f"The {name} of {mechanism} noise must be above zero, got {value!r}.")
    if number < 1 / LARGEST:
        raise ConfigurationError(
            f"The {name} of {mechanism} noise must lie between {1 / LARGEST:g} and {LARGEST:g}, got {value!r}."
        )
    return number


def parameter(mechanism: str, name: str, value: object) -> float:
    """The parameter as a float, refused in words unless it is a number of a size that noise can have."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ConfigurationError(f"The {name} of {mechanism} noise is a number, got {value!r}.")
    number = float(value)
    if not math.isfinite(number):
        raise ConfigurationError(f"The {name} of {mechanism} noise must be finite, got {value!r}.")
    if abs(number) > LARGEST:
        raise ConfigurationError(f"The {name} of {mechanism} noise is at most {LARGEST:g}, got {value!r}.")
    return number


def counts(votes: ArrayLike) -> Floats:
    """Votes as an array of shape (queries, classes), refused unless every count is finite and not negative."""
    array = np.asarray(votes, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 2:
        raise PrivacyError(
            f"Votes are counts of shape (queries, classes) with at least two classes, got shape {array.shape}."
        )
    # The message says nothing about the counts themselves: they are confidential.
    if not np.isfinite(array).all() or (array < 0).any():
        raise PrivacyError("Votes are counts: finite numbers, none below zero. Nothing was released.")
    return array


def orders_above_one(orders: ArrayLike) -> Floats:
    """Rényi orders as floats, refused unless every one is above 1."""
    array = np.asarray(orders, dtype=np.float64)
    if not (array > 1).all() or not np.isfinite(array).all():
        raise PrivacyError(f"Rényi orders are finite numbers above 1, got {orders!r}.")
    return array


def noisy_winners(votes: ArrayLike, draw: Callable[[tuple[int, int]], Floats]) -> NDArray[np.int64]:
    """The class with the largest noisy count of every row, also of rows nobody voted on.

    Every row gets its noise whatever its votes: a row left out because nobody voted would tell that nobody voted.
    """
    table = counts(votes)
    rows, classes = table.shape
    step = max(1, BLOCK // classes)
    labels = np.empty(rows, dtype=np.int64)
    for start in range(0, rows, step):
        block = table[start : start + step]
        # Noise is continuous: two noisy counts are equal with probability below 2⁻⁴⁰, so no tie needs breaking.
        labels[start : start + step] = np.argmax(block + draw((len(block), classes)), axis=1)
    return labels


def one_row(votes: ArrayLike) -> Floats:
    """The counts of one query, refused unless they are a plain list of at least two."""
    return np.asarray(counts(np.asarray(votes, dtype=np.float64)[None])[0])
