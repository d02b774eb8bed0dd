"""The algorithms, one paper a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedkt.algorithms.background_class import NotMineFedKT
from fedkt.algorithms.centralised import Centralised
from fedkt.algorithms.expert import ExpertFedKT
from fedkt.algorithms.fedavg import FedAvg
from fedkt.algorithms.feddf import FedDF
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.fedkt_prox import FedKTProx
from fedkt.algorithms.fedprox import FedProx
from fedkt.algorithms.pate import PATE
from fedkt.algorithms.pate_soft import SoftPATE
from fedkt.algorithms.pfnm import PFNM
from fedkt.algorithms.scaffold import Scaffold
from fedkt.algorithms.solo import Solo
from fedkt.errors import ConfigurationError
from fedkt.federation import Algorithm
from fedkt.models.catalogue import trained_for

Maker = Callable[..., Algorithm]


FEDKT_SETTINGS = ("teacher", "student", "final", "partitions", "subsets", "level", "noise", "queries", "adjacency")
ROUNDS = ("rounds", "participation")


def chosen(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    """Those of the run's settings that a method knows; None leaves a method its own default."""
    return {name: settings[name] for name in names if settings.get(name) is not None}


def local(model: Any, settings: dict[str, Any]) -> Any:
    """The model as a party trains it in a round of an averaging method."""
    return trained_for(model, epochs=settings.get("local_epochs"))


def make_fedkt(model: Any, **settings: Any) -> FedKT:
    """FedKT as in its paper."""
    return fedkt_with("consistent", model, **settings)


VOTING = ("consistent", "expert", "expert-no-counts")
"""How FedKT's server weighs its parties: one vote each where its students agree, or by who knows a class."""


def fedkt_with(voting: str, model: Any, **settings: Any) -> FedKT:
    """FedKT with this voting; None leaves a setting its default, which the voting may decide."""
    if voting not in VOTING:
        raise ConfigurationError(f"There is no voting {voting!r}. Choose one of: {', '.join(VOTING)}.")
    given = chosen(settings, *FEDKT_SETTINGS)
    if voting == "consistent":
        return FedKT(model, **given)
    if voting == "expert":
        return ExpertFedKT(model, count_sigma=settings.get("count_sigma"), **given)
    return NotMineFedKT(model, most_rows=settings.get("most_rows"), **given)


def make_expert(model: Any, **settings: Any) -> FedKT:
    """FedKT whose parties are weighed by their class counts."""
    return fedkt_with("expert", model, **settings)


def make_expert_no_counts(model: Any, **settings: Any) -> FedKT:
    """FedKT whose students say which rows are not their party's; it knows neither partitions nor subsets."""
    return fedkt_with("expert-no-counts", model, **(settings | {"partitions": None, "subsets": None}))


def make_fedkt_prox(model: Any, **settings: Any) -> FedKTProx:
    """FedKT, then rounds of FedProx."""
    return FedKTProx(model, local=local(model, settings), **chosen(settings, "mu", *ROUNDS, *FEDKT_SETTINGS))


def make_fedavg(model: Any, **settings: Any) -> FedAvg:
    """Averages by rows."""
    return FedAvg(local(model, settings), **chosen(settings, *ROUNDS))


def make_fedprox(model: Any, **settings: Any) -> FedProx:
    """Averages by rows, with a proximal term."""
    return FedProx(local(model, settings), **chosen(settings, "mu", *ROUNDS))


def make_scaffold(model: Any, **settings: Any) -> Scaffold:
    """Averages with control variates."""
    return Scaffold(local(model, settings), **chosen(settings, "learning_rate", *ROUNDS))


def make_pfnm(model: Any, **settings: Any) -> PFNM:
    """One round, neurons matched."""
    return PFNM(local(model, settings))


def make_feddf(model: Any, **settings: Any) -> FedDF:
    """Averages, distilled on the public rows."""
    return FedDF(local(model, settings), **chosen(settings, "distil_epochs", *ROUNDS))


def make_pate(model: Any, *, parties: int, teacher: Any = None, student: Any = None, **_: Any) -> PATE:
    """PATE with as many teachers as there are parties."""
    return PATE(model, teachers=parties, teacher=teacher, student=student)


def make_pate_soft(model: Any, *, parties: int, teacher: Any = None, student: Any = None, **_: Any) -> SoftPATE:
    """PATE whose teachers say how sure they are."""
    return SoftPATE(model, teachers=parties, teacher=teacher, student=student)


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
    "fedavg": make_fedavg,
    "fedprox": make_fedprox,
    "scaffold": make_scaffold,
    "feddf": make_feddf,
    "pfnm": make_pfnm,
    "fedkt-prox": make_fedkt_prox,
    "fedkt-expert": make_expert,
    "fedkt-expert-no-counts": make_expert_no_counts,
    "pate-soft": make_pate_soft,
}

__all__ = [
    "ALGORITHMS",
    "PATE",
    "PFNM",
    "VOTING",
    "Centralised",
    "ExpertFedKT",
    "FedAvg",
    "FedDF",
    "FedKT",
    "FedKTProx",
    "FedProx",
    "NotMineFedKT",
    "Scaffold",
    "SoftPATE",
    "Solo",
    "fedkt_with",
]
