"""Heads over public features: solved from sums, trained by nobody, so that no plan or command names them."""

from __future__ import annotations

from fedkt.models.families.family import Family, later

FEATURE_HEAD = Family(
    classes=("FeatureHead",),
    library="fedkt",
    calibrated=True,
    graph=later("fedkt.models.features.head:head_graph"),
    scores=later("fedkt.models.features.head:head_scores"),
    near_ties=later("fedkt.models.features.head:near_ties"),
)
