"""The algorithms, one paper a file. Adding one is one file with its card, and one line here."""

from __future__ import annotations

from fedkt.algorithms import (
    centralised,
    fedavg,
    feddf,
    fedkt,
    fedkt_prox,
    fedprox,
    pate,
    pate_soft,
    pfnm,
    scaffold,
    solo,
)
from fedkt.algorithms.card import Card
from fedkt.algorithms.centralised import Centralised
from fedkt.algorithms.fedavg import FedAvg
from fedkt.algorithms.feddf import FedDF
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.fedkt_prox import FedKTProx
from fedkt.algorithms.fedprox import FedProx
from fedkt.algorithms.pate import PATE
from fedkt.algorithms.pate_soft import SoftPATE
from fedkt.algorithms.pfnm import PFNM
from fedkt.algorithms.scaffold import Scaffold
from fedkt.algorithms.solo import Solo
from fedkt.algorithms.voting import VOTINGS

ALGORITHMS: dict[str, Card] = {
    card.name: card
    for card in (
        *(fedkt.card_for(voting()) for voting in VOTINGS.values()),
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
    "Card",
    "Centralised",
    "FedAvg",
    "FedDF",
    "FedKT",
    "FedKTProx",
    "FedProx",
    "Scaffold",
    "SoftPATE",
    "Solo",
]
