"""Report: the result of one run, as values, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from fedkt.privacy import statement
from fedkt.quality import Quality, verdicts
from fedkt.quality.words import main_line

MOST_WEIGHTS = 10
"""Parties whose weight is named."""
FIGURES = ("accuracy", "balanced_accuracy", "auc", "log_loss", "calibration_error")
"""Fields of a `Quality` that have a mean over several models."""
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
    alarms: tuple[str, ...] = ()
    """Those notes that say of its noise, from public figures alone, that the final model will hardly be of use."""
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
    quality: dict[str, Any] | None = None
    """The figures of the final model on labelled rows, as `fedkt.quality.Quality.as_dict` gives them."""
    alone: dict[str, dict[str, float | None]] | None = None
    """Where every party has a model of its own: each figure's `mean` over the parties, and `by_rows`, weighted by the
    parties' rows."""

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """The report in a notebook."""
        from fedkt.report.html import to_html

        return to_html(self)

    def __str__(self) -> str:
        """The report in words."""
        lines = [f"{self.algorithm} on {self.dataset}: {self.parties} parties, model {self.model}, level {self.level}"]
        if self.source:
            lines.append(f"  data: {self.source}")
        if self.epochs is not None:
            local = "" if self.local_epochs is None else f", {self.local_epochs} in a party's part of a round"
            lines.append(f"  epochs: {self.epochs}{local}")
        lines += [f"  ATTENTION: {sentence}" for sentence in attention_of(self)]
        lines += [f"  {line}" for line in quality_lines(self)]
        if self.label_accuracy is not None:
            lines.append(f"  public rows labelled right: {self.label_accuracy:.2%}")
        if "unlabelled" in self.votes:
            lines.append(f"  public rows nobody could label: {self.votes['unlabelled']}, ties: {self.votes['ties']}")
        if "weights" in self.votes:
            lines.append(f"  {weights_in_words(self)}")
        if "influence" in self.votes:
            lines.append(f"  {influence_in_words(self)}")
        lines.append(f"  privacy: {self.privacy}")
        if self.bytes_sent is not None:
            lines.append(f"  bytes sent: {self.bytes_sent:,}")
        lines.append(f"  seconds: {self.seconds:.1f}")
        return "\n".join(lines + [f"  note: {note}" for note in plain_notes(self)])


def attention_of(report: Report) -> tuple[str, ...]:
    """What must not be overlooked about the final model: why noise leaves little of it, and what is wrong with it."""
    found = () if report.quality is None else verdicts(Quality.from_dict(report.quality))
    return tuple(dict.fromkeys((*report.alarms, *found)))


def plain_notes(report: Report) -> list[str]:
    """The notes besides."""
    loud = attention_of(report)
    return [note for note in report.notes if note not in loud]


def quality_lines(report: Report) -> Iterator[str]:
    """How good the final model is, in a few lines: with intervals, and with the majority beside it."""
    if report.accuracy is not None:
        yield f"test accuracy: {report.accuracy:.2%}"
    if report.balanced_accuracy is not None:
        yield f"balanced accuracy: {report.balanced_accuracy:.2%}"
    if report.quality is not None:
        quality = Quality.from_dict(report.quality)
        yield f"test rows: {main_line(quality)}"
        if quality.auc is not None:
            yield f"AUC, one class against the rest: {quality.auc}"
        if quality.log_loss is not None and quality.calibration_error is not None:
            yield f"log loss: {quality.log_loss:.3f}, calibration error: {quality.calibration_error:.2%}"
    if report.alone is not None:
        figures = (
            f"{name.replace('_', ' ')} {value:.3f}" for name in FIGURES if (value := figure_of(report, name, True))
        )
        yield f"weighted by the parties' rows: {', '.join(figures)}"


def figure_of(report: Report, name: str, by_rows: bool = False) -> float | None:
    """A figure of the final model; where every party has its own, their mean, or their mean weighted by rows.

    Names are those of the fields of a `Quality`; `majority` is the same for all models, and what was not measured None.
    """
    if report.alone is not None:
        return report.alone.get(name, {}).get("by_rows" if by_rows else "mean")
    value = None if report.quality is None else report.quality.get(name)
    if value is None and name in ("accuracy", "balanced_accuracy"):
        value = getattr(report, name)
    return value["value"] if isinstance(value, dict) else value


def influence_in_words(report: Report) -> str:
    """How many public rows would have another label without a party, the most influential first."""
    found = sorted(report.votes["influence"].items(), key=lambda each: -each[1])
    words = [f"{name} {100 * share:.1f} %" for name, share in found[:MOST_WEIGHTS]]
    more = f" and {len(found) - MOST_WEIGHTS} more" if len(found) > MOST_WEIGHTS else ""
    return f"Influence: {', '.join(words) or 'none'}{more} (public rows with another label without the party)."


def weights_in_words(report: Report) -> str:
    """How much each party weighs in a vote of experts, the heaviest first."""
    weights = sorted(report.votes["weights"].items(), key=lambda each: -each[1])
    most = report.votes.get("largest_shares", {})
    shares = [
        f"{name} {100 * weight:.1f} %"
        + (f" (of class {most[name][0]} {100 * most[name][1]:.0f} %)" if name in most else "")
        for name, weight in weights[:MOST_WEIGHTS]
    ]
    more = f" and {len(weights) - MOST_WEIGHTS} more" if len(weights) > MOST_WEIGHTS else ""
    what = "a party's share of a class's rows, mean over the classes, and its largest"
    return f"Weights: {', '.join(shares)}{more} ({what})."
