"""Linear models over public features: trained on rows, or solved from sums, which no plan or command names."""

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
LINEAR = Family(
    "linear",
    "Class-balanced logistic regression on the public rows' main directions, half-whitened: for teachers of few rows.",
    later("fedkt.models.features.linear:PublicLogistic", class_weight="balanced"),
    classes=("PublicLogistic",),
    library="fedkt",
    calibrated=True,
    row_weight=1.0,
    class_weights={"class_weight": None},
    fit_to_public=later("fedkt.models.features.linear:fit_to_public"),
    graph=later("fedkt.models.features.linear:linear_graph"),
    scores=later("fedkt.models.features.linear:linear_scores"),
    near_ties=later("fedkt.models.features.linear:near_ties"),
)
