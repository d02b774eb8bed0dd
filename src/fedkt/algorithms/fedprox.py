"""FedProx: FedAvg whose parties are held back by a spring.

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated Optimization in Heterogeneous Networks. MLSys 2020, Algorithm 2.

A party minimises F_k(w) + μ/2 ‖w − w_t‖², where w_t are the weights that were sent: μ (w − w_t) is added to every
gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedkt.algorithms.averaging import Averaging, weights_in
from fedkt.algorithms.card import BOTH_WAYS, Card
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError
from fedkt.federation import Party

if TYPE_CHECKING:
    from fedkt.models.neural.recipe import Correction

MU = 0.1
"""As in the FedKT paper's comparison."""


class FedProx(Averaging):
    """FedAvg with a proximal term of strength `mu`."""

    name = "fedprox"
    title = "FedProx"

    def __init__(
        self,
        model: Any,
        *,
        mu: float = MU,
        local_epochs: int | None = None,
        rounds: int = 1,
        participation: float = 1.0,
    ) -> None:
        super().__init__(model, local_epochs=local_epochs, rounds=rounds, participation=participation)
        self.mu = mu

    def check(self) -> None:
        """Refuse what cannot work."""
        super().check()
        if not self.mu >= 0:
            raise ConfigurationError(f"mu must be at least 0, got {self.mu!r}.")

    def correction(self, party: Party, broadcast: Bundle) -> Correction | None:
        """μ (w − w_t)."""
        from fedkt.models.neural.recipe import Correction

        return Correction(self.mu, weights_in(broadcast))


CARD = Card(
    name=FedProx.name,
    title=FedProx.title,
    summary="averages of weights held near the last ones",
    make=FedProx,
    traffic=BOTH_WAYS,
    colour="sky",
    marker="^",
)
