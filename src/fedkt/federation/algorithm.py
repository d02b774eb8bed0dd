"""Algorithm: what a party does with its data, and what the server does with what it is sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from fedkt.bundle import Bundle
from fedkt.federation.sides import Party, Server
from fedkt.system.parallel import Progress


class Algorithm(ABC):
    """Two functions. Nothing else differs between FedKT and the methods it is compared with."""

    rounds: int = 1
    pooled: bool = False
    """An upper bound: only a simulation may pool the parties' rows."""
    sends: bool = True
    """Whether the bundles would travel in a live federation."""
    takes_weights: bool = False
    """Whether rows may have weights."""
    participation: float = 1.0
    """The share of the parties that take part in a round, drawn anew each time."""

    def initial_broadcast(self, server: Server) -> Bundle | None:
        """What the server sends before the first round, None for nothing."""
        return None

    @property
    @abstractmethod
    def name(self) -> str:
        """What commands and stored results call it."""

    @abstractmethod
    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """What one party does with its data; the result is all it sends."""

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """Whether a simulation does better to play all parties at once (`party_steps`) than one after the other."""
        return False

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """What each party would send, played at once: the same as `party_step` of each, up to round-off."""
        return [self.party_step(party, broadcast) for party in parties]

    @abstractmethod
    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """What the server does with what it was sent: the bundle it would send back, or the final model."""

    def finish(self, server: Server, broadcast: Bundle) -> Bundle:
        """The final model (or, for SOLO, every party's own) behind what the server would send after a round."""
        return broadcast
