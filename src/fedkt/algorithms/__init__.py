"""The algorithms, one paper a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedkt.algorithms.centralised import Centralised
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.pate import PATE
from fedkt.algorithms.solo import Solo
from fedkt.federation import Algorithm

Maker = Callable[..., Algorithm]


def make_fedkt(model: Any, **settings: Any) -> FedKT:
    """FedKT with the run's settings."""
    return FedKT(model, **{name: value for name, value in settings.items() if name != "parties"})


def make_pate(model: Any, *, parties: int, teacher: Any = None, student: Any = None, **_: Any) -> PATE:
    """PATE with as many teachers as there are parties."""
    return PATE(model, teachers=parties, teacher=teacher, student=student)


def make_solo(model: Any, **_: Any) -> Solo:
    """Every party alone."""
    return Solo(model)


def make_centralised(model: Any, **_: Any) -> Centralised:
    """All rows pooled."""
    return Centralised(model)


ALGORITHMS: dict[str, Maker] = {
    "fedkt": make_fedkt,
    "solo": make_solo,
    "pate": make_pate,
    "centralised": make_centralised,
}

__all__ = ["ALGORITHMS", "PATE", "Centralised", "FedKT", "Solo"]
