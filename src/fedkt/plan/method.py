"""What a plan can agree on: how parties pass on what they know, and all that hangs on it. One class a kind.

A method answers for everything that differs between students that vote and sums that are added up; whoever holds a
plan asks it, and never its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from fedkt.bundle import Bundle
from fedkt.privacy import Price

if TYPE_CHECKING:
    from fedkt.algorithms import FedKT, Moments
    from fedkt.plan.agreement import Plan
    from fedkt.plan.features import Features

Table = dict[str, Any]
"""A table of a plan in the making."""


class Method(ABC):
    """How parties pass on what they know under a plan."""

    name: str
    """What plans and commands call it."""
    called: str
    """What sentences call it."""
    server_rule: str
    """In words: what the server does with what it was sent."""
    assumption: str
    """In words: what must hold for it to be right."""
    silent: frozenset[str]
    """Keys that go without saying in such a plan."""
    level_words: ClassVar[dict[str, str]] = {
        "L0": "no noise, no privacy promise beyond that rows do not travel",
        "L1": "noise at the server protects each party; the server sees the students without noise",
        "L2": "noise at the parties protects each record before anything leaves",
    }
    """What each level means, in a line."""
    models_comment: ClassVar[str]
    privacy_comment: ClassVar[str]
    tells_counts: bool
    """Whether parties tell how many rows of each class they have."""
    cuts_rows: ClassVar[bool]
    """Whether a party deals its records to subsets, by what tells them apart."""
    scaled: str
    """What of a party with more rows than the plan lets it tell of is scaled down."""

    # A new plan.

    @abstractmethod
    def shape(self, level: str, partitions: int | None, subsets: int | None) -> dict[str, int]:
        """The partitions and subsets of a plan, by default the usual ones."""

    @abstractmethod
    def check_new(self, level: str, shape: Mapping[str, int], models: Mapping[str, Any]) -> None:
        """Refuse, before anything costs, what a new plan cannot have."""

    @abstractmethod
    def privacy_table(self, table: Table, level: str, figures: dict[str, int], shape: Mapping[str, int]) -> Table:
        """The [privacy] table for what was asked for at a private level."""

    @abstractmethod
    def features(self, public: Any, image: tuple[int, int, int] | None, level: str) -> Features | None:
        """The feature map that everybody is to have, made of the public rows; None where none is needed."""

    # A plan that is there.

    @abstractmethod
    def check(self, plan: Plan) -> None:
        """Refuse values that do not go together."""

    @abstractmethod
    def algorithm(self, plan: Plan) -> FedKT | Moments:
        """The algorithm as agreed."""

    @abstractmethod
    def expected(self, plan: Plan) -> dict[str, Any]:
        """What is particular to a bundle: fields of `Expected`."""

    @abstractmethod
    def weighs_rows(self, level: str) -> bool:
        """Whether a party's rows decide how much it counts, so that the plan may limit them."""

    def calibrated(self, plan: Plan, name: str) -> bool:
        """Whether this party's students are to be of families that find a class about as probable as it is."""
        return False

    def try_on(self, plan: Plan, public: Any) -> None:
        """Refuse a plan that does not work on the public rows, before a private one is read."""
        return

    @abstractmethod
    def within_rows(self, plan: Plan, bundle: Bundle) -> Bundle:
        """The bundle, scaled down to the rows that the plan lets its party tell of: noise may have made them more."""

    @abstractmethod
    def bundle_fault(self, plan: Plan, bundle: Bundle) -> str:
        """Why a bundle of the right form is not believed, or nothing where it is."""

    # In words.

    @abstractmethod
    def queries_words(self, plan: Plan) -> str:
        """What the server decides about at level L1."""

    @abstractmethod
    def party_words(self, plan: Plan) -> str:
        """What each party does before it sends anything."""

    @abstractmethod
    def final_words(self, plan: Plan) -> str:
        """What the server's last step makes."""

    @abstractmethod
    def final_name(self, plan: Plan) -> str:
        """What the final model is: a family's name, mostly."""

    @abstractmethod
    def models_words(self, plan: Plan) -> str:
        """The families that are trained, and by whom."""

    @abstractmethod
    def travel_words(self, plan: Plan) -> tuple[str, ...]:
        """What a party's file holds, and what stays, in lines."""

    @abstractmethod
    def risk_lines(self, plan: Plan) -> tuple[str, ...]:
        """Without noise: what whoever reads a party's file learns of it."""

    @abstractmethod
    def released_words(self, plan: Plan, price: Price) -> str:
        """What leaves with how much noise."""

    @abstractmethod
    def noise_words(self, plan: Plan, price: Price) -> str:
        """What the noise leaves standing."""

    @abstractmethod
    def privacy_words(self, plan: Plan) -> tuple[str, ...]:
        """What else is to be known of the promise, in sentences."""

    def advice(self, plan: Plan) -> str:
        """What whoever agrees on it should know beforehand, in a sentence; empty where there is nothing."""
        return ""
