"""Setting: everything that decides a result, with the dataset's defaults."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from fedkt.algorithms import ALGORITHMS
from fedkt.algorithms.calibration import default_partitions, default_subsets
from fedkt.data import DATASETS
from fedkt.data.partition import PARTITIONERS
from fedkt.errors import ConfigurationError

EXPERT = ("fedkt-expert", "fedkt-expert-no-counts")
"""FedKT with expert voting."""
ONE_SHOT = ("fedkt", *EXPERT, "solo", "pate", "pate-soft", "centralised", "pfnm")
"""Methods without rounds."""
LOCAL = ("fedavg", "fedprox", "scaffold", "feddf", "pfnm", "fedkt-prox")
"""Methods whose parties train weights that the server sent."""
PULLED = ("fedprox", "fedkt-prox")
"""Methods with a proximal term."""


@dataclass(frozen=True)
class Setting:
    """Everything that decides a result. Whatever is None follows the dataset's default."""

    dataset: str
    algorithm: str = "fedkt"
    model: str | None = None
    parties: int | None = None
    partition: str | None = None
    beta: float = 0.5
    partitions: int | None = None
    """s; None is 2 at L0 and 1 where noise is on, and for expert voting."""
    subsets: int | None = None
    """t; None is 5, and 1 for expert voting without noise."""
    level: str = "L0"
    seed: int = 0
    teacher: str | None = None
    student: str | None = None
    final: str | None = None
    party_models: tuple[str, ...] = ()
    """Families given to the parties in turn: a federation of different models."""
    mechanism: str | None = None
    """Noise at L1 and L2, with `scale`, or with `epsilon` to find the smallest scale."""
    scale: tuple[tuple[str, float], ...] = ()
    epsilon: float | None = None
    delta: float = 1e-5
    queries: float = 1.0
    """Public rows asked where noise is on: a number of rows, or a fraction of them."""
    epochs: int | None = None
    """How long neural networks are trained; None is 10 epochs, and more where that is under 1,000 steps."""
    local_epochs: int | None = None
    """How long a party trains in each round of an averaging method; None is `epochs`, or 10."""
    learning_rate: float | None = None
    """Of neural networks, and of SCAFFOLD's own steps; None is the method's default."""
    rounds: int | None = None
    """Of the methods that have rounds; None is one (fedkt-prox: two)."""
    participation: float = 1.0
    """The share of the parties drawn for each round."""
    distil_epochs: int | None = None
    """How long FedDF's server distils; None is 10."""
    public_share: float = 1.0
    """The share of the public rows that is used."""
    public_beta: float | None = None
    """Draws the class shares of the public rows from Dirichlet(β): they then do not resemble the parties' rows."""
    mu: float | None = None
    """The proximal term of FedProx and FedKT-Prox."""

    def filled(self) -> Setting:
        """The same with the dataset's defaults written out, or a refusal in words."""
        if self.dataset not in DATASETS:
            raise ConfigurationError(f"There is no dataset {self.dataset!r}. Choose one of: {', '.join(DATASETS)}.")
        if self.algorithm not in ALGORITHMS:
            raise ConfigurationError(
                f"There is no algorithm {self.algorithm!r}. Choose one of: {', '.join(ALGORITHMS)}."
            )
        about = DATASETS[self.dataset]
        partition = self.partition or about.partition
        if partition not in PARTITIONERS:
            raise ConfigurationError(f"There is no partition {partition!r}. Choose one of: {', '.join(PARTITIONERS)}.")
        if self.level == "L0" and (self.mechanism or self.scale or self.epsilon is not None):
            raise ConfigurationError("Level L0 adds no noise. Choose --level L1 or L2 with a mechanism or an epsilon.")
        if self.party_models and self.algorithm not in ("fedkt", *EXPERT, "solo"):
            raise ConfigurationError(
                f"Algorithm {self.algorithm!r} uses one model for all; only fedkt (with any voting) and solo take "
                "--party-models."
            )
        if self.level != "L0" and self.algorithm not in ("fedkt", *EXPERT):
            raise ConfigurationError(
                f"Algorithm {self.algorithm!r} has no private level; only fedkt and fedkt-expert have."
            )
        if self.algorithm in ONE_SHOT and (self.rounds or 1) != 1:
            raise ConfigurationError(f"Algorithm {self.algorithm!r} has one round. Leave --rounds out.")
        if not 0 < self.public_share <= 1:
            raise ConfigurationError(
                f"The share of the public rows lies above 0 and at most at 1, got {self.public_share!r}."
            )
        if self.public_beta is not None and not self.public_beta > 0:
            raise ConfigurationError(f"The beta of the public rows must be above 0, got {self.public_beta!r}.")
        if partition == "column" and self.parties is not None:
            raise ConfigurationError(
                "With the partition 'column' the data says who the parties are; leave the number of parties out, or "
                "choose another partition."
            )
        shape = self.level, "expert" if self.algorithm in EXPERT else "consistent"
        whole = self.algorithm == "fedkt-expert-no-counts"
        return replace(
            self,
            model=self.model or about.model,
            parties=self.parties if self.parties is not None or partition == "column" else about.n_parties,
            partition=partition,
            # What a method does not look at is no part of its setting: it would be run again for nothing.
            local_epochs=self.local_epochs if self.algorithm in LOCAL else None,
            distil_epochs=self.distil_epochs if self.algorithm == "feddf" else None,
            mu=self.mu if self.algorithm in PULLED else None,
            participation=1.0 if self.algorithm in ONE_SHOT else self.participation,
            partitions=default_partitions(*shape) if self.partitions is None or whole else self.partitions,
            subsets=default_subsets(*shape) if self.subsets is None or whole else self.subsets,
        )


DEFAULTS = json.loads(json.dumps(asdict(Setting(""))))


def fingerprint(setting: Setting) -> str:
    """What decides whether a stored result is the one asked for."""
    return said(asdict(setting))


def said(setting: dict[str, Any]) -> str:
    """The part of a setting that is not the default: a field added later does not make old results strangers."""
    plain = json.loads(json.dumps(setting))
    # In words, because 1 row and a share of 1.0 are equal as numbers.
    changed = {name: value for name, value in plain.items() if json.dumps(value) != json.dumps(DEFAULTS.get(name))}
    return json.dumps(changed, sort_keys=True)
