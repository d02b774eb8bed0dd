"""A card: what people and commands need to know of an algorithm, written once, beside the algorithm itself."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fedkt.errors import ConfigurationError
from fedkt.federation import Algorithm
from fedkt.privacy import Noise

if TYPE_CHECKING:
    from fedkt.algorithms.voting import Voting

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
"""Parameters that can be given by name."""
YEAR = re.compile(r"\b(19|20)\d\d\b")


@dataclass(frozen=True)
class Traffic:
    """What crosses the wire, in n parties, s students a party, r rounds, and M bytes of one model."""

    formula: str
    """In these letters, as the paper counts."""
    models: Callable[[int, int], int]
    """From s and r: how many models a party sends and receives in all."""
    broadcasts: Callable[[int], int] | None = None
    """From r: how often a party is sent exactly one model; None where it is sent nothing, or more than a model."""
    one_way: bool = False
    """Whether parties are sent nothing at all."""


ONE_MESSAGE = Traffic("n·s·M", lambda s, r: s, one_way=True)
"""Students travel once, and nothing comes back."""
BOTH_WAYS = Traffic("2·n·M·r", lambda s, r: 2 * r, broadcasts=lambda r: r)
"""A model goes out and comes back in every round."""


@dataclass(frozen=True)
class Card:
    """An algorithm in a catalogue."""

    name: str
    """What commands and stored results call it."""
    title: str
    """What tables and pictures call it."""
    summary: str
    """In a line: what it is beside the others."""
    make: Callable[..., Algorithm]
    """The algorithm for a model; its keyword arguments are the settings it takes."""
    settings_of: tuple[Callable[..., Any], ...] = ()
    """Whose settings it takes besides its own."""
    fixed: frozenset[str] = frozenset()
    """Settings of `make` that are not for a run to choose."""
    traffic: Traffic | None = None
    """None where nothing travels: a party alone, or rows that nobody may pool."""
    colour: str = "ink"
    """By its name in the palette of the pictures."""
    marker: str | None = None
    """Its shape in curves over rounds."""
    compared_at: tuple[str, ...] = ()
    """The levels at which it is compared where nobody says with what."""
    rival: str = ""
    """What a sentence says that a result is better or worse than; empty where it is no measure."""
    voting: Voting | None = None
    """How FedKT's server weighs the parties, where it is FedKT."""
    levels: tuple[str, ...] = ("L0",)
    """The privacy levels that it has."""
    noise_for_epsilon: Callable[..., Noise] | None = None
    """From epsilon, delta and classes: the smallest noise of its own that keeps ε; None for the noise of votes."""
    party_models: bool = False
    """Whether a party may bring a model of its own."""
    file: str = ""
    """The SHA-256 of the file of the user's own that it was read from; empty where it was installed."""

    @cached_property
    def takes(self) -> frozenset[str]:
        """The settings that it looks at."""
        makers = (self.make, *self.settings_of)
        parameters = [each for maker in makers for each in inspect.signature(maker).parameters.values()]
        return frozenset(each.name for each in parameters if each.kind is each.KEYWORD_ONLY) - self.fixed

    @property
    def one_shot(self) -> bool:
        """Whether it has no rounds."""
        return "rounds" not in self.takes

    @property
    def default_rounds(self) -> int:
        """Its rounds where nobody says how many."""
        return 1 if self.one_shot else int(inspect.signature(self.make).parameters["rounds"].default)

    @property
    def citation(self) -> str:
        """Whose method it is: the paragraph with a year in the docstring of its file; empty where it is nobody's."""
        module = sys.modules.get(inspect.unwrap(getattr(self.make, "func", self.make)).__module__)
        for paragraph in (getattr(module, "__doc__", None) or "").split("\n\n"):
            if YEAR.search(paragraph):
                return " ".join(paragraph.split())
        return ""

    def build(self, model: Any, **settings: Any) -> Algorithm:
        """The algorithm with those of a run's settings that it takes; None leaves it its own default."""
        own = {name: value for name, value in settings.items() if name in self.takes and value is not None}
        _, *more = inspect.signature(self.make).parameters.values()
        needs = [each.name for each in more if each.default is each.empty and each.kind in NAMED]
        if missing := [name for name in needs if name not in own]:
            raise ConfigurationError(f"{self.name} takes {missing[0]!r}, which no option sets: give it a default.")
        return self.make(model, **own)
