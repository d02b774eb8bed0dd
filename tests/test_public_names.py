"""The public names, pinned: a change here is a change for every user."""

import fedkt

NAMES = [
    "Algorithm",
    "Bundle",
    "Centralised",
    "FedKT",
    "FedKTClassifier",
    "FedKTError",
    "Ledger",
    "PATE",
    "Party",
    "Plan",
    "Report",
    "Server",
    "Solo",
    "__version__",
    "by_balanced_dirichlet",
    "by_column",
    "by_dirichlet",
    "evenly",
    "load",
    "simulate",
]


def test_the_public_names_are_these():
    assert sorted(fedkt.__all__) == sorted(NAMES)


def test_every_public_name_can_be_loaded():
    assert all(getattr(fedkt, name) is not None for name in NAMES)
