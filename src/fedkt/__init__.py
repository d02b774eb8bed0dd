"""fedkt: one-shot federated learning across organisations, with any classifier and one message per party.

    from fedkt import FedKTClassifier
    model = FedKTClassifier().fit(X, y, parties=hospital, public=X_public)

Names are loaded when they are first used, so that `import fedkt` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

_HOMES = {
    "FedKT": "fedkt.algorithms",
    "PATE": "fedkt.algorithms",
    "Solo": "fedkt.algorithms",
    "Centralised": "fedkt.algorithms",
    "Algorithm": "fedkt.federation",
    "Party": "fedkt.federation",
    "Server": "fedkt.federation",
    "simulate": "fedkt.federation",
    "Bundle": "fedkt.bundle",
    "FedKTClassifier": "fedkt.estimator",
    "NeuralClassifier": "fedkt.models.neural.classifier",
    "Plan": "fedkt.plan",
    "Report": "fedkt.report",
    "Ledger": "fedkt.privacy",
    "load": "fedkt.data",
    "by_dirichlet": "fedkt.data",
    "by_balanced_dirichlet": "fedkt.data",
    "by_column": "fedkt.data",
    "evenly": "fedkt.data",
    "FedKTError": "fedkt.errors",
}

__all__ = [
    "PATE",
    "Algorithm",
    "Bundle",
    "Centralised",
    "FedKT",
    "FedKTClassifier",
    "FedKTError",
    "Ledger",
    "NeuralClassifier",
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

if TYPE_CHECKING:
    from fedkt.algorithms import PATE, Centralised, FedKT, Solo
    from fedkt.bundle import Bundle
    from fedkt.data import by_balanced_dirichlet, by_column, by_dirichlet, evenly, load
    from fedkt.errors import FedKTError
    from fedkt.estimator import FedKTClassifier
    from fedkt.federation import Algorithm, Party, Server, simulate
    from fedkt.models.neural.classifier import NeuralClassifier
    from fedkt.plan import Plan
    from fedkt.privacy import Ledger
    from fedkt.report import Report


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fedkt' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as missing:
        if missing.name == "torch":
            raise ImportError(f"fedkt.{name} needs PyTorch. Run: pip install 'fedkt[neural]'.") from missing
        raise


def __dir__() -> list[str]:
    return sorted(__all__)
