"""The algorithms, one paper a file. Adding one is one file with its card, and one line here."""

from __future__ import annotations

from functools import partial

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
]
