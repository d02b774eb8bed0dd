"""Setting: everything that decides a result, with the dataset's defaults."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from fedkt.algorithms import known_algorithm, known_algorithms
from fedkt.algorithms.voting import Consistent, Voting
from fedkt.data import KnownDataset, known_dataset
from fedkt.data.own import OwnTable
from fedkt.data.own_rows import load_own
from fedkt.data.partition import PARTITIONERS
from fedkt.errors import ConfigurationError
from fedkt.privacy.ledger import require_level
from fedkt.system.plug_ins import packages_of

OWN_PARTIES = 5
OWN_MODEL = "forest"
"""What a user's own table is simulated with where nobody says, as `digits` is."""


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
    """Of the methods that have rounds; None is the method's default."""
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
    class_shares: tuple[tuple[str, float], ...] | None = None
    """The share of each class that everybody knows, by its name, for moments at level L1; one may be left out."""
    soft_final: bool = False
    """Whether FedKT's final model learns distributions; results from before there was a choice are of labels."""
    copies: bool = False
    """Whether a final network also learns four copies of each public image, shifted by one pixel."""
    own: OwnTable | None = None
    """The user's own table, where `dataset` is its file's name."""
    algorithm_file: str | None = None
    """The SHA-256 of the user's own file that the algorithm was read from."""

    def with_defaults(self) -> Setting:
        """The same with the dataset's defaults written out, or a refusal in words."""
        dataset = dataset_of(self)
        card = known_algorithm(self.algorithm)
        partition = self.partition or dataset.partition
        if partition not in PARTITIONERS:
            raise ConfigurationError(f"There is no partition {partition!r}. Choose one of: {', '.join(PARTITIONERS)}.")
        require_level(self.level)
        if self.level == "L0" and (self.mechanism or self.scale or self.epsilon is not None):
            raise ConfigurationError("Level L0 adds no noise. Choose --level L1 or L2 with a noise or an epsilon.")
        if self.party_models and not card.party_models:
            names = ", ".join(each.name for each in known_algorithms().values() if each.party_models)
            raise ConfigurationError(
                f"Algorithm {self.algorithm!r} uses one model for all; these take --party-models: {names}."
            )
        if self.level != "L0" and "level" not in card.takes:
            names = ", ".join(each.name for each in known_algorithms().values() if self.level in each.levels)
            raise ConfigurationError(f"Algorithm {self.algorithm!r} has no private level; at {self.level}: {names}.")
        if card.one_shot and (self.rounds or 1) != 1:
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
        voting = card.voting or Consistent()

        # What a method does not look at is no part of its setting: it would be run again for nothing.
        idle: dict[str, Any] = {
            "local_epochs": None,
            "distil_epochs": None,
            "mu": None,
            "participation": 1.0,
            "class_shares": None,
            "soft_final": False,
            "copies": False,
        }
        return replace(
            self,
            model=self.model or dataset.model,
            parties=self.parties if self.parties is not None or partition == "column" else dataset.n_parties,
            partition=partition,
            algorithm_file=card.file or None,
            partitions=self._shape("partitions", voting),
            subsets=self._shape("subsets", voting),
            **{name: default for name, default in idle.items() if name not in card.takes},
        )

    def _shape(self, name: str, voting: Voting) -> int:
        """s or t: as chosen, or as the voting has it where nobody chose, or nobody may."""
        value: int | None = None if voting.fixed_shape else getattr(self, name)
        return int(getattr(voting, name)(self.level)) if value is None else value


def dataset_of(setting: Setting) -> KnownDataset:
    """How the rows of a setting are loaded, and what they are simulated with where it does not say."""
    own = setting.own
    if own is not None:
        return KnownDataset(partial(load_own, own), OWN_PARTIES, OWN_MODEL, own.source(), own.partition)
    return known_dataset(setting.dataset)


def packages_in(setting: Setting) -> dict[str, str]:
    """What the run is of besides fedkt: the versions of plug-ins' packages, and the digest of an algorithm's file."""
    families = (setting.model, setting.teacher, setting.student, setting.final, *setting.party_models)
    return {
        **packages_of("fedkt.algorithms", setting.algorithm),
        **packages_of("fedkt.datasets", None if setting.own is not None else setting.dataset),
        **packages_of("fedkt.models", *families),
        **packages_of("fedkt.noises", setting.mechanism),
        **({} if setting.algorithm_file is None else {setting.algorithm: f"sha256 {setting.algorithm_file}"}),
    }


def setting_values(setting: Setting) -> dict[str, Any]:
    """The setting as plain values; of a user's own files their names and digests, so that a changed one is another."""
    return {**asdict(replace(setting, own=None)), "own": None if setting.own is None else setting.own.facts()}


DEFAULTS = {name: json.dumps(value) for name, value in setting_values(Setting("")).items()}
"""In words, because 1 row and a share of 1.0 are equal as numbers."""


def fingerprint(setting: Setting) -> str:
    """What decides whether a stored result is the one asked for."""
    return setting_key(setting_values(setting))


def setting_key(setting: dict[str, Any]) -> str:
    """The part of a setting that is not the default: a field added later does not make old results strangers."""
    plain = json.loads(json.dumps(setting))
    changes = {name: value for name, value in plain.items() if json.dumps(value) != DEFAULTS.get(name, "null")}
    return json.dumps(changes, sort_keys=True)
