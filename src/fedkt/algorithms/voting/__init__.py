"""The votings of FedKT: how its server weighs the parties. Adding one is one file and one line here."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fedkt.algorithms.voting.answers import StudentAnswers, ask_students
from fedkt.algorithms.voting.background import Background
from fedkt.algorithms.voting.base import LabelledRows, Voting
from fedkt.algorithms.voting.consistent import Consistent
from fedkt.algorithms.voting.expert import Expert
from fedkt.errors import ConfigurationError

VOTINGS: dict[str, type[Voting]] = {each.name: each for each in (Consistent, Expert, Background)}


def algorithm_name(voting: Voting | type[Voting]) -> str:
    """What commands and stored results call FedKT with this voting."""
    return "fedkt" if voting.name == Consistent.name else f"fedkt-{voting.name}"


def make_voting(voting: str | Voting, **settings: Any) -> Voting:
    """The voting of this name, with those of the settings that it has; a voting is passed through.

    The name of the algorithm that it makes of FedKT is understood too.
    """
    if isinstance(voting, Voting):
        return voting
    kind = next((each for each in VOTINGS.values() if voting in (each.name, algorithm_name(each))), None)
    if kind is None:
        raise ConfigurationError(f"There is no voting {voting!r}. Choose one of: {', '.join(VOTINGS)}.")
    own = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in settings.items() if name in own and value is not None})


def usual_voting(level: str) -> str:
    """The voting where nobody chose one: by who knows a class, unless noise has to hide single votes."""
    return next((name for name, each in VOTINGS.items() if level in each.default_at), Consistent.name)


__all__ = [
    "VOTINGS",
    "Background",
    "Consistent",
    "Expert",
    "LabelledRows",
    "StudentAnswers",
    "Voting",
    "algorithm_name",
    "ask_students",
    "make_voting",
    "usual_voting",
]
