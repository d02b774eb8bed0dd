"""What the methods that average weights have in common: a network goes out, trained copies come back.

Every round the server sends its weights, the parties train them on their own rows, and the server averages what it
gets back by the number of rows. FedAvg is this and nothing more; the others change a step (see their files).

All parties see their rows equally often, LOCAL_EPOCHS times where nobody says how often: a rule by steps, as FedKT's
teachers have it, would let a small party go furthest away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.lesson import STUDY
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, UnsuitedModel
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.base import FittedModel
from fedkt.models.catalogue import as_estimator, trained_for
from fedkt.models.ensemble import TrainingTask, fit_to_rows, is_neural
from fedkt.models.training import train_models
from fedkt.system.parallel import Progress, progress_counter

if TYPE_CHECKING:
    from fedkt.models.neural.recipe import Correction

Weights = tuple[NDArray[Any], ...]
LOCAL_EPOCHS = 10
"""As in the paper's comparison."""
ROWS = "rows"
"""The array that says how many rows a party trained on."""
NO_WEIGHTS = "fedkt, solo, pate and centralised take any classifier"


class Averaging(Algorithm):
    """Local training from common weights, then an average by rows.

    `model` is a neural network; its epochs, batches and learning rate are those of a party's local training, unless
    `local_epochs` are given. A fraction `participation` of the parties is drawn for each of the `rounds`.
    """

    title: str
    """What messages call the method."""

    def __init__(
        self, model: Any, *, local_epochs: int | None = None, rounds: int = 1, participation: float = 1.0
    ) -> None:
        self.model = trained_for(model, epochs=local_epochs)
        self.rounds = rounds
        self.participation = participation

    def check(self) -> None:
        """Refuse a model without weights, and impossible numbers, before anything is trained."""
        model = as_estimator(self.model)
        if not is_neural(model):
            raise UnsuitedModel(
                f"{self.title} needs a model with weights; {type(model).__name__} has none. Choose mlp, cnn or a "
                f"NeuralClassifier, or another method: {NO_WEIGHTS}."
            )
        model.recipe.check()
        check_rounds(self.rounds, self.participation)

    def network(self, side: Party | Server) -> Any:
        """The untrained network, as this side's rows ask for."""
        network = fit_to_rows(as_estimator(self.model), side.public, side.image)
        return network.set_params(epochs=LOCAL_EPOCHS) if network.epochs is None else network

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """The parties' networks are of one kind: a round is trained in stacks."""
        return True

    def initial_broadcast(self, server: Server) -> Bundle | None:
        """The common initial weights."""
        from fedkt.models.neural.ensemble import with_weights

        self.check()
        network = self.network(server)
        network.random_state = int(server.rng(0, STUDY).integers(2**31 - 1))
        return weights_bundle("server", server, with_weights(network, server.public, len(server.classes)).get_weights())

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The party's weights after local training."""
        return self.party_steps([party], broadcast, jobs=party.jobs, progress=party.progress)[0]

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """Every party's weights after local training, all trained at once."""
        if broadcast is None:
            raise ConfigurationError(f"{self.title} starts from weights that the server sends; it has sent none.")
        own = [party.name for party in parties if party.model is not None]
        if own:
            raise ConfigurationError(f"{self.title} trains one model for all; party {own[0]!r} was given its own.")
        start = weights_in(broadcast)
        network = self.network(parties[0])
        tasks = [
            TrainingTask(
                network,
                party.X,
                party.y,
                party.rng(party.round, STUDY),
                who=f"Party {party.name!r}",
                start=start,
                correction=self.correction(party, broadcast),
            )
            for party in parties
        ]
        n_classes = len(parties[0].classes)
        models = train_models(
            tasks,
            n_classes,
            jobs=jobs,
            done=progress_counter(progress, len(tasks)),
            say=parties[0].diary.say if parties[0].round == 0 else None,
            what="local models",
        )
        return [self.message(party, broadcast, model) for party, model in zip(parties, models, strict=True)]

    def correction(self, party: Party, broadcast: Bundle) -> Correction | None:
        """What is added to this party's gradients."""
        return None

    def message(self, party: Party, broadcast: Bundle, model: FittedModel) -> Bundle:
        """What a party sends after local training."""
        return weights_bundle(party.name, party, model.estimator.get_weights(), {ROWS: np.array([len(party.y)])})

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The average of the parties' weights, by their rows."""
        return weights_bundle("server", server, average(bundles))

    def finish(self, server: Server, broadcast: Bundle) -> Bundle:
        """The network with the server's weights."""
        return Bundle("server", server.classes, (self.fitted(server, weights_in(broadcast)),))

    def fitted(self, server: Server, weights: Weights) -> FittedModel:
        """A network with these weights, as a trained model."""
        return fitted_network(self.network(server), server, weights)


def check_rounds(rounds: Any, participation: float) -> None:
    """Refuse impossible numbers."""
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ConfigurationError(f"The number of rounds must be a whole number of at least 1, got {rounds!r}.")
    if not 0 < participation <= 1:
        raise ConfigurationError(f"participation lies above 0 and at most at 1, got {participation!r}.")


def fitted_network(network: Any, server: Server, weights: Weights) -> FittedModel:
    """The network with these weights, as a model of the agreed classes."""
    from fedkt.models.neural.ensemble import with_weights

    n_classes = len(server.classes)
    estimator = with_weights(network, server.public, n_classes, weights)
    return FittedModel(estimator, np.arange(n_classes), estimator.n_features_in_)


def weights_bundle(
    sender: str, side: Party | Server, weights: Sequence[NDArray[Any]], more: Mapping[str, NDArray[Any]] | None = None
) -> Bundle:
    """A message of weights, and whatever else a method sends."""
    arrays = {f"w{place}": np.asarray(each) for place, each in enumerate(weights)}
    return Bundle(sender, side.classes, (), arrays={**arrays, **(more or {})})


def weights_in(bundle: Bundle, letter: str = "w") -> Weights:
    """The weights in a message, in the network's order."""
    arrays = sorted(
        (int(name[1:]), each) for name, each in bundle.arrays.items() if name[0] == letter and name[1:].isdecimal()
    )
    return tuple(each for _, each in arrays)


def average(bundles: Sequence[Bundle], letter: str = "w", *, by_rows: bool = True) -> Weights:
    """The mean of the parties' weights, each counted by its rows (or once)."""
    shares = np.array([float(bundle.arrays[ROWS][0]) if by_rows else 1.0 for bundle in bundles])
    shares /= shares.sum()
    weights = [weights_in(bundle, letter) for bundle in bundles]
    return tuple(
        sum(share * np.asarray(each, dtype=np.float64) for share, each in zip(shares, layer, strict=True)).astype(
            layer[0].dtype
        )
        for layer in zip(*weights, strict=True)
    )
