"""Neural networks: the paper's two, and whatever module a user brings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fedkt.models.families.family import Family

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fedkt.models.base import FittedModel
    from fedkt.models.graphs import LabelScores


def _classifier(module: str, *, batch_size: int) -> Any:
    from fedkt.models.neural.classifier import NeuralClassifier

    return NeuralClassifier(module, batch_size=batch_size)


def _network_graph(estimator: Any, *, double: bool) -> Any:
    from fedkt.models.neural.export import network_graph

    return network_graph(estimator, double=double)


def _network_scores(estimator: Any) -> LabelScores:
    from fedkt.models.neural.export import network_scores

    return network_scores(estimator)


def _near_ties(model: FittedModel, rows: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    from fedkt.models.neural.export import near_ties

    return near_ties(model, rows, labels)


NETWORK = Family(
    classes=("NeuralClassifier",),
    library="fedkt",
    needs="torch",
    extra="neural",
    lack="needs PyTorch, which is not installed",
    calibrated=True,
    network=True,
    graph=_network_graph,
    scores=_network_scores,
    near_ties=_near_ties,
)
MLP = replace(
    NETWORK,
    name="mlp",
    summary="The paper's network for MNIST: two hidden layers of 100; Adam in batches of 32.",
    make=partial(_classifier, "mlp", batch_size=32),
    classes=(),
)
CNN = replace(
    NETWORK,
    name="cnn",
    summary="The paper's network for SVHN: two convolutions and two hidden layers; Adam in batches of 64.",
    make=partial(_classifier, "cnn", batch_size=64),
    classes=(),
    only_images=True,
)
