"""Report: what one run gave, with everything needed to give it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fedkt.errors import DataError
from fedkt.federation import Outcome
from fedkt.models.prediction import predict_all
from fedkt.privacy import statement
from fedkt.system.versions import versions as versions
from fedkt.votes import NO_VOTE, Labels

SHOWN_WEIGHTS = 10
"""Parties whose weight is named."""
NO_PRIVACY = str(statement("L0", None))


@dataclass(frozen=True)
class Report:
    """The result of one run. Fields that do not apply are None."""

    dataset: str
    algorithm: str
    model: str
    parties: int
    partitions: int | None
    subsets: int | None
    level: str
    seed: int | None
    accuracy: float | None
    balanced_accuracy: float | None
    label_accuracy: float | None
    epsilon: float | None
    privacy: str
    bytes_sent: int | None
    seconds: float
    cpu_seconds: float | None
    versions: dict[str, str]
    delta: float | None = None
    privacy_statement: dict[str, Any] = field(default_factory=lambda: statement("L0", None).as_dict())
    """What is protected, from whom, how well, and what is not."""
    command: str = ""
    partition: str = ""
    beta: float | None = None
    rows: dict[str, int] = field(default_factory=dict)
    party_rows: dict[str, int] = field(default_factory=dict)
    votes: dict[str, Any] = field(default_factory=dict)
    party_accuracy: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = ""
    """Where the rows came from, in words: a dataset may have parts that not everybody has."""
    epochs: int | str | None = None
    """How often neural networks saw their rows; "auto" is 10, and more where that is under 1,000 steps."""
    local_epochs: int | None = None
    """The same in a party's part of a round, where it was chosen."""
    learning_rate: float | None = None
    """Of neural networks, where it was chosen."""
    mu: float | None = None
    """The proximal term of FedProx and FedKT-Prox, where it was chosen."""
    distil_epochs: int | None = None
    """Of FedDF's server, where it was chosen."""
    rounds: int = 1
    participation: float = 1.0
    """The share of the parties that took part in each round."""
    bytes_received: int | None = None
    """By the parties, in all rounds."""
    history: tuple[dict[str, Any], ...] = ()
    """Accuracy and bytes after each round, where there are several."""

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        """The report in words."""
        lines = [f"{self.algorithm} on {self.dataset}: {self.parties} parties, model {self.model}, level {self.level}"]
        if self.source:
            lines.append(f"  data: {self.source}")
        if self.epochs is not None:
            local = "" if self.local_epochs is None else f", {self.local_epochs} in a party's part of a round"
            lines.append(f"  epochs: {self.epochs}{local}")
        for name, value in (
            ("test accuracy", self.accuracy),
            ("balanced accuracy", self.balanced_accuracy),
            ("public rows labelled right", self.label_accuracy),
        ):
            if value is not None:
                lines.append(f"  {name}: {value:.2%}")
        if "unlabelled" in self.votes:
            lines.append(f"  public rows nobody could label: {self.votes['unlabelled']}, ties: {self.votes['ties']}")
        if "weights" in self.votes:
            lines.append(f"  {weights_in_words(self)}")
        lines.append(f"  privacy: {self.privacy}")
        if self.bytes_sent is not None:
            lines.append(f"  bytes sent: {self.bytes_sent:,}")
        lines.append(f"  seconds: {self.seconds:.1f}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


def weights_in_words(report: Report) -> str:
    """How much each party weighs in a vote of experts, the heaviest first."""
    weights = sorted(report.votes["weights"].items(), key=lambda each: -each[1])
    most = report.votes.get("largest_shares", {})
    said = [
        f"{name} {100 * weight:.1f} %"
        + (f" (of class {most[name][0]} {100 * most[name][1]:.0f} %)" if name in most else "")
        for name, weight in weights[:SHOWN_WEIGHTS]
    ]
    more = f" and {len(weights) - SHOWN_WEIGHTS} more" if len(weights) > SHOWN_WEIGHTS else ""
    return (
        f"Weights: {', '.join(said)}{more} (a party's share of a class's rows, mean over the classes, and its largest)."
    )


def accuracies(models: Sequence[Any], X: Any, y: Labels) -> tuple[list[float], list[float]]:
    """Accuracy and balanced accuracy of each model."""
    from sklearn.metrics import recall_score

    plain, balanced = [], []
    present = np.unique(y)
    for predictions in predict_all(models, X):
        if isinstance(predictions, str):
            raise DataError(f"A model could not be run on the test rows: {predictions}")
        plain.append(float(np.mean(predictions == y)))
        recalls = recall_score(y, predictions, labels=present, average=None, zero_division=0)
        balanced.append(float(np.mean(recalls)))
    return plain, balanced


def label_accuracy(outcome: Outcome, truth: Labels) -> float | None:
    """The share of the labelled public rows whose label is right; None where an algorithm labels none.

    Only a simulation knows the truth about public rows; nothing is trained or chosen with it.
    """
    diaries = [outcome.server] if outcome.server.vote.labels else list(outcome.parties.values())
    pairs = [given for diary in diaries for given in diary.vote.labels]
    if not pairs:
        return None
    given = np.concatenate([labels for _, labels in pairs])
    right = np.concatenate([truth if queries is None else truth[queries] for queries, _ in pairs])
    labelled = given != NO_VOTE
    return float(np.mean(given[labelled] == right[labelled])) if labelled.any() else None


def vote_figures(outcome: Outcome) -> dict[str, Any]:
    """How the server's vote went, without the labels themselves."""
    return outcome.server.vote.figures()


def notes(outcome: Outcome) -> tuple[str, ...]:
    """What the sides wrote down, the server last."""
    told = [note for diary in outcome.parties.values() for note in diary.notes]
    return (*told, *outcome.server.notes)


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation (0 for a single value)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
