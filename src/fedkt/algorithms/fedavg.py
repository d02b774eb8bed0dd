"""FedAvg: average what the parties trained.

McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-Efficient Learning of Deep Networks from Decentralized
Data. AISTATS 2017, Algorithm 1.

w_{t+1} = Σ_k (n_k / n) w^k_{t+1}, where w^k_{t+1} is w_t after local epochs on the n_k rows of party k.
"""

from __future__ import annotations

from fedkt.algorithms.averaging import Averaging
from fedkt.algorithms.card import BOTH_WAYS, Card


class FedAvg(Averaging):
    """Local training from common weights, then an average by rows: nothing else."""

    name = "fedavg"
    title = "FedAvg"


CARD = Card(
    name=FedAvg.name,
    title=FedAvg.title,
    summary="averages of weights",
    make=FedAvg,
    traffic=BOTH_WAYS,
    colour="red",
    marker="s",
)
