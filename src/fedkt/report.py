"""Report: what one run gave, with everything needed to give it again.

`build_report` makes every report: of `FedKTClassifier.fit`, of a simulation and of a live server. It is also the one
place that knows what a report at level L1 keeps to itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from fedkt.algorithms.calibration import cautions
from fedkt.algorithms.fedkt import FedKT
from fedkt.errors import DataError
from fedkt.federation import Algorithm, Outcome, Party
from fedkt.models.base import count_rows
from fedkt.models.prediction import predict_all
from fedkt.privacy import UNITS, Statement, statement
from fedkt.system.versions import versions as versions
from fedkt.votes import NO_VOTE, Labels

MOST_WEIGHTS = 10
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


@dataclass(frozen=True)
class RunLog:
    """What the sides of a run wrote down, as far as its level lets everybody read it, and how long it took."""

    label_accuracy: float | None = None
    votes: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def followed_by(self, later: RunLog) -> RunLog:
        """Both parts of a run that was killed in between."""
        return RunLog(
            self.label_accuracy if later.label_accuracy is None else later.label_accuracy,
            later.votes or self.votes,
            self.notes + later.notes,
            self.seconds + later.seconds,
            self.cpu_seconds + later.cpu_seconds,
        )


def run_log(outcome: Outcome, level: str, *, truth: Labels | None = None) -> RunLog:
    """The log of a run; with the `truth` about the public rows, which only a simulation has, its label accuracy."""
    return RunLog(
        None if truth is None else label_accuracy(outcome, truth),
        outcome.server.vote.figures(),
        public_notes(outcome, level),
        outcome.seconds,
        outcome.cpu_seconds,
    )


def promise_of(
    algorithm: Algorithm, parties: Sequence[Party], *, level: str, delta: float, reproducible_noise: bool
) -> tuple[Statement, tuple[str, ...]]:
    """What a simulated run promises, before it is run, and what a user should hear about it."""
    price, counts, sizes = None, False, [len(party.y) for party in parties]
    if isinstance(algorithm, FedKT):
        algorithm.check()
        public_rows, classes = count_rows(parties[0].public), max(len(parties[0].classes), 2)
        price = algorithm.price(public_rows=public_rows, classes=classes, parties=len(parties), delta=delta)
        counts = algorithm.voting.class_counts
    promise = statement(level, price, reproducible_noise=reproducible_noise, counts=counts)
    return promise, cautions(level, price, sizes)


def build_report(
    promise: Statement,
    log: RunLog,
    *,
    notes: Iterable[str] = (),
    processes: int = 1,
    laboratory: bool = False,
    **facts: Any,
) -> Report:
    """The report of a run that promises `promise` and left `log`; `facts` are the other fields of a `Report`.

    `notes` follow from public figures and come first. CPU seconds are those of this process, so that they are left out
    where there were several. Callers give what they have, at every level; what level L1 hides is taken out here, and
    `laboratory` says that the parties were drawn from a dataset for research (see `hide_parties`).
    """
    report = Report(
        level=promise.level,
        label_accuracy=log.label_accuracy,
        epsilon=promise.epsilon,
        delta=promise.delta,
        privacy=str(promise),
        privacy_statement=promise.as_dict(),
        votes=log.votes,
        notes=(*notes, *log.notes),
        seconds=log.seconds,
        cpu_seconds=log.cpu_seconds if processes == 1 else None,
        versions=versions(),
        **facts,
    )
    return hide_parties(report, laboratory=laboratory) if protects_parties(report.level) else report


def protects_parties(level: str) -> bool:
    """Whether a level protects whole parties, so that what depends on one party's rows leaves only through noise."""
    return UNITS.get(level) == "party"


def hide_parties(report: Report, *, laboratory: bool) -> Report:
    """The report without what depends on the rows of single parties and did not pass the noise.

    Hidden are a party's rows and accuracy, votes, the parties' rows together, bytes, and the fractions of seconds. What
    the final model or the noisy labels give (accuracies on rows that are nobody's) has passed the noise and stays, and
    so does what everybody knows beforehand: the plan, the price, the number of parties. Of notes, see `public_notes`.

    In a laboratory the rows are a dataset's and the noise has a seed, so that the report says itself that it protects
    nobody: what is measured there of the run as a whole (bytes, seconds, the number of rows) stays, since that is what
    the run was for. Nothing about a single party does, there as anywhere.
    """
    silent = replace(report, party_rows={}, party_accuracy={}, votes={}, history=())
    if laboratory:
        return silent
    return replace(
        silent,
        rows={of: count for of, count in report.rows.items() if of != "parties"},
        bytes_sent=None,
        bytes_received=None,
        seconds=float(round(report.seconds)),
        cpu_seconds=None if report.cpu_seconds is None else float(round(report.cpu_seconds)),
    )


def public_notes(outcome: Outcome, level: str) -> tuple[str, ...]:
    """What the sides wrote down, the server last, as far as the level lets everybody read it.

    At level L1 what parties wrote stays with them, and of a party that could not vote only this is said. The rest of
    the server's diary stays: at L1 it looks at nothing but the noisy labels, its ledger, and rows that are nobody's.
    """
    parties = () if protects_parties(level) else outcome.parties.values()
    reasons = outcome.server.vote.silent
    public = public_reasons(reasons, level)
    words = {reason: public[party] for party, reason in reasons.items()}
    return (
        *(note for diary in parties for note in diary.notes),
        *(words.get(note, note) for note in outcome.server.notes),
    )


def public_reasons(reasons: Mapping[str, str], level: str) -> dict[str, str]:
    """Why parties could not vote, as everybody may read it.

    At level L1 without the why: an error may quote what a student says about a row.
    """
    if not protects_parties(level):
        return dict(reasons)
    return {party: f"Party {party!r} does not vote: a student could not be run." for party in reasons}


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
    pairs = [pair for diary in diaries for pair in diary.vote.labels]
    if not pairs:
        return None
    answers = np.concatenate([labels for _, labels in pairs])
    truths = np.concatenate([truth if queries is None else truth[queries] for queries, _ in pairs])
    labelled = answers != NO_VOTE
    return float(np.mean(answers[labelled] == truths[labelled])) if labelled.any() else None


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation (0 for a single value)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
