"""Neural networks: the paper's two, and whatever module a user brings."""

from __future__ import annotations

from dataclasses import replace

from fedkt.models.families.family import Family, later

NETWORK = Family(
    classes=("NeuralClassifier",),
    library="fedkt",
    needs="torch",
    extra="neural",
    lack="needs PyTorch, which is not installed",
    calibrated=True,
    network=True,
    fit_to_public=later("fedkt.models.neural.ensemble:network_for_rows"),
    graph=later("fedkt.models.neural.export:network_graph"),
    scores=later("fedkt.models.neural.export:network_scores"),
    near_ties=later("fedkt.models.neural.export:near_ties"),
)
MLP = replace(
    NETWORK,
    name="mlp",
    summary="The paper's network for MNIST: two hidden layers of 100; Adam in batches of 32.",
    make=later("fedkt.models.neural.classifier:NeuralClassifier", module="mlp", batch_size=32),
    classes=(),
)
CNN = replace(
    NETWORK,
    name="cnn",
    summary="The paper's network for SVHN: two convolutions and two hidden layers; Adam in batches of 64.",
    make=later("fedkt.models.neural.classifier:NeuralClassifier", module="cnn", batch_size=64),
    classes=(),
    only_images=True,
)
