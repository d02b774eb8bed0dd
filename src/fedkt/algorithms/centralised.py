"""Centralised training on the pooled rows: what would be possible if the rows could be shared."""

from __future__ import annotations

from collections.abc import Sequence

from fedkt.algorithms.card import Card
from fedkt.algorithms.solo import Solo
from fedkt.bundle import Bundle
from fedkt.federation import Server


class Centralised(Solo):
    """One model trained on all rows: an upper bound, possible only in a simulation."""

    name = "centralised"
    pooled = True

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The one model is the final model."""
        return bundles[0]


CARD = Card(
    name=Centralised.name,
    title="Centralised",
    summary="upper bound: needs all rows in one place",
    make=Centralised,
    colour="purple",
    compared_at=("L0",),
    rival="training on the pooled rows",
)
