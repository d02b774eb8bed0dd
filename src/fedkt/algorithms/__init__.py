"""The algorithms, one paper a file. Adding one is one file with its card, and one line here."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import Any

from fedkt.algorithms import (
    auto,
    centralised,
    fedavg,
    feddf,
    fedkt_prox,
    fedprox,
    moments,
    pate,
    pate_soft,
    pfnm,
    scaffold,
    solo,
)
from fedkt.algorithms.auto import Auto
from fedkt.algorithms.card import ONE_MESSAGE, Card
from fedkt.algorithms.centralised import Centralised
from fedkt.algorithms.fedavg import FedAvg
from fedkt.algorithms.feddf import FedDF
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.fedkt_prox import FedKTProx
from fedkt.algorithms.fedprox import FedProx
from fedkt.algorithms.moments import Moments
from fedkt.algorithms.pate import PATE
from fedkt.algorithms.pate_soft import SoftPATE
from fedkt.algorithms.pfnm import PFNM
from fedkt.algorithms.scaffold import Scaffold
from fedkt.algorithms.solo import Solo
from fedkt.algorithms.voting import VOTINGS, Voting, algorithm_name
from fedkt.errors import ConfigurationError
from fedkt.federation import Algorithm
from fedkt.system.plug_ins import add_plug_ins, why_left_out


def card_for(voting: Voting) -> Card:
    """The card of FedKT with a voting."""
    return Card(
        name=algorithm_name(voting),
        title=voting.title,
        summary=voting.summary,
        make=partial(FedKT, voting=voting),
        fixed=frozenset({"voting", *(("partitions", "subsets") if voting.fixed_shape else ())}),
        traffic=ONE_MESSAGE,
        colour=voting.colour,
        marker=voting.marker,
        compared_at=voting.compared_at,
        voting=voting,
        levels=voting.levels,
        party_models=True,
    )


ALGORITHMS: dict[str, Card] = {
    card.name: card
    for card in (
        *(card_for(voting()) for voting in VOTINGS.values()),
        moments.CARD,
        auto.CARD,
        solo.CARD,
        pate.CARD,
        pate_soft.CARD,
        centralised.CARD,
        fedavg.CARD,
        fedprox.CARD,
        scaffold.CARD,
        feddf.CARD,
        pfnm.CARD,
        fedkt_prox.CARD,
    )
}


def known_algorithms() -> dict[str, Card]:
    """The catalogue with the algorithms of installed plug-ins."""
    return add_plug_ins(ALGORITHMS, "fedkt.algorithms", card_of_found)


def known_algorithm(name: str) -> Card:
    """The card of this name, or a refusal with the known ones."""
    known = known_algorithms()
    if name not in known:
        raise ConfigurationError(
            f"There is no algorithm {name!r}. Choose one of: {', '.join(known)}."
            f"{why_left_out('fedkt.algorithms', name)}"
        )
    return known[name]


def card_of_found(found: Any, name: str) -> Card:
    """The card of what others wrote: a card, or a class whose docstring says the rest."""
    if isinstance(found, Card):
        if found.name != name:
            raise ValueError(f"its card calls it {found.name!r}, its entry {name!r}; give both one name")
        # What is compared where nobody says does not hang on what is installed.
        return replace(found, compared_at=())
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise TypeError(f"an algorithm is a Card, or a class derived from fedkt.Algorithm, got {str(found)[:80]}")
    if inspect.isabstract(found):
        raise TypeError(f"{found.__name__} lacks {', '.join(sorted(found.__abstractmethods__))}")
    first = next(iter(inspect.signature(found).parameters.values()), None)
    if first is None or first.kind is first.KEYWORD_ONLY:
        raise TypeError(f"{found.__name__} has to take the model as the first argument of its constructor")
    about = (inspect.getdoc(found) or "").partition("\n")[0] or "an algorithm of the user's own"
    # What it sends is measured (--bytes); a formula is a matter of a card.
    return Card(name, name, about, found, colour="")


__all__ = [
    "ALGORITHMS",
    "PATE",
    "PFNM",
    "Auto",
    "Card",
    "Centralised",
    "FedAvg",
    "FedDF",
    "FedKT",
    "FedKTProx",
    "FedProx",
    "Moments",
    "Scaffold",
    "SoftPATE",
    "Solo",
    "known_algorithm",
    "known_algorithms",
]
