"""FedKT-Prox: FedKT first, then rounds of FedProx from its final model.

Li, He, Song: Practical One-Shot Federated Learning for Cross-Silo Setting. IJCAI 2021, the section on multiple rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedkt.algorithms.averaging import check_rounds, weights_bundle
from fedkt.algorithms.card import Card, Traffic
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.fedprox import MU, FedProx
from fedkt.bundle import Bundle
from fedkt.errors import ModelError, UnsuitedModel
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.base import FittedModel
from fedkt.models.catalogue import as_estimator, roles
from fedkt.models.ensemble import is_neural
from fedkt.system.parallel import Progress


class FedKTProx(Algorithm):
    """One round of FedKT and `rounds` − 1 of FedProx; `settings` are FedKT's.

    `local_epochs` are how often the parties see their rows in FedProx's rounds, where that differs from FedKT's.
    """

    name = "fedkt-prox"

    def __init__(
        self,
        model: Any,
        *,
        mu: float = MU,
        local_epochs: int | None = None,
        rounds: int = 2,
        participation: float = 1.0,
        **settings: Any,
    ) -> None:
        self.model = model
        self.rounds = rounds
        self.participation = participation
        self.first = FedKT(model, **settings)
        self.then = FedProx(
            model, mu=mu, local_epochs=local_epochs, rounds=max(1, rounds - 1), participation=participation
        )

    def check(self) -> None:
        """Refuse what cannot work, before FedKT has trained anything."""
        check_rounds(self.rounds, self.participation)
        self.then.check()
        self.first.check()
        final, local = roles(self.model, final=self.first.final).final, as_estimator(self.then.model)
        if not is_neural(final) or final.module != local.module:
            raise UnsuitedModel(
                "FedKT-Prox goes on with the weights of FedKT's final model, so that must be the same network as the "
                f"one the parties train; got {type(final).__name__}. Leave the final model out."
            )

    def initial_broadcast(self, server: Server) -> Bundle | None:
        """Nothing: FedKT starts at the parties."""
        self.check()
        return None

    def acting(self, side: Party | Server) -> FedKT | FedProx:
        """The method of this round."""
        return self.first if side.round == 0 else self.then

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """The parties' networks are of one kind."""
        return True

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """Students in the first round, weights in the others."""
        return self.acting(party).party_step(party, broadcast)

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """The same for all parties at once."""
        return self.acting(parties[0]).party_steps(parties, broadcast, jobs=jobs, progress=progress)

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The weights of FedKT's final model in the first round, averages in the others."""
        step = self.acting(server).server_step(server, bundles)
        if server.round > 0:
            return step
        final = step.models[0]
        if not isinstance(final, FittedModel) or final.estimator is None:
            raise ModelError("FedKT's final model saw one class only, so there are no weights to go on with.")
        return weights_bundle("server", server, final.estimator.get_weights())

    def finish(self, server: Server, broadcast: Bundle) -> Bundle:
        """The network with the server's weights."""
        return self.then.finish(server, broadcast)


CARD = Card(
    name=FedKTProx.name,
    title="FedKT-Prox",
    summary="FedKT, then rounds of FedProx",
    make=FedKTProx,
    settings_of=(FedKT,),
    fixed=frozenset({"voting", "level", "noise", "queries", "adjacency"}),
    traffic=Traffic("n·M·(s+2·(r−1))", lambda s, r: s + 2 * (r - 1), broadcasts=lambda r: r - 1),
    colour="blue",
    marker="o",
)
