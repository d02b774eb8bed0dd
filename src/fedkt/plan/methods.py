"""The catalogue of what a plan can agree on: every voting of FedKT, and sums."""

from __future__ import annotations

from collections.abc import Mapping

from fedkt.algorithms.moments import Moments
from fedkt.algorithms.voting import VOTINGS, make_voting
from fedkt.errors import ConfigurationError
from fedkt.plan.method import Method

MOMENTS_CHOICE = "there are no students: parties send sums of public features by class, which are solved for one model"


def method_names() -> tuple[str, ...]:
    """What can be agreed on, by name."""
    return (*VOTINGS, Moments.voting)


def method_choices() -> dict[str, str]:
    """In words, for whoever has to choose one."""
    return {**{name: each.choice for name, each in VOTINGS.items()}, Moments.voting: MOMENTS_CHOICE}


def make_method(name: str, *, count_sigma: float | None = None, most_rows: Mapping[str, int] | None = None) -> Method:
    """The method of this name, or of the algorithm of this name."""
    from fedkt.plan.summed import SumsMethod
    from fedkt.plan.voted import VotingMethod

    if name in (Moments.voting, Moments.name):
        return SumsMethod()
    try:
        return VotingMethod(make_voting(name, count_sigma=count_sigma, most_rows=most_rows or {}))
    except ConfigurationError as reason:
        known = ", ".join(method_names())
        raise ConfigurationError(f"There is no voting {name!r}. Choose one of: {known}.") from reason
