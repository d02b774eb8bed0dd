"""`build_report` makes every report, and is the one place that knows what a report at level L1 keeps to itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedkt.algorithms.auto import Auto
from fedkt.algorithms.calibration import cautions, label_alarms
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.moments import Moments
from fedkt.federation import Algorithm, Outcome, Party
from fedkt.models.base import count_rows
from fedkt.privacy import UNITS, Statement, statement
from fedkt.quality import Quality, verdicts
from fedkt.report.record import Report
from fedkt.report.scores import label_accuracy
from fedkt.system.versions import versions
from fedkt.votes import Labels


@dataclass(frozen=True)
class RunLog:
    """What the sides of a run wrote down, as far as its level lets everybody read it, and how long it took."""

    label_accuracy: float | None = None
    votes: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    alarms: tuple[str, ...] = ()

    def followed_by(self, later: RunLog) -> RunLog:
        """Both parts of a run that was killed in between."""
        return RunLog(
            self.label_accuracy if later.label_accuracy is None else later.label_accuracy,
            later.votes or self.votes,
            self.notes + later.notes,
            self.seconds + later.seconds,
            self.cpu_seconds + later.cpu_seconds,
            self.alarms + later.alarms,
        )


def run_log(outcome: Outcome, level: str, *, truth: Labels | None = None) -> RunLog:
    """The log of a run; with the `truth` about the public rows, which only a simulation has, its label accuracy."""
    return RunLog(
        None if truth is None else label_accuracy(outcome, truth),
        outcome.server.vote.figures(),
        public_notes(outcome, level),
        outcome.seconds,
        outcome.cpu_seconds,
        tuple(outcome.server.alarms),
    )


def promise_of(
    algorithm: Algorithm, parties: Sequence[Party], *, level: str, delta: float, reproducible_noise: bool
) -> tuple[Statement, tuple[str, ...], tuple[str, ...]]:
    """What a simulated run promises, before it is run; what a user should hear about it, and which of that is alarming.

    See `Report.alarms`.
    """
    price, counts, sizes = None, False, [len(party.y) for party in parties]
    if isinstance(algorithm, FedKT | Moments):
        algorithm.check()
        public_rows, classes = count_rows(parties[0].public), max(len(parties[0].classes), 2)
        price = algorithm.price(public_rows=public_rows, classes=classes, parties=len(parties), delta=delta)
        counts = level == "L0" if isinstance(algorithm, Moments) else algorithm.voting.class_counts
    if isinstance(algorithm, Auto):
        algorithm.check()
        counts = True
    sums = isinstance(algorithm, Moments | Auto)
    promise = statement(level, price, reproducible_noise=reproducible_noise, counts=counts, sums=sums)
    return promise, cautions(level, price, sizes), label_alarms(level, price)


def build_report(
    promise: Statement,
    log: RunLog,
    *,
    quality: Quality | None = None,
    notes: Iterable[str] = (),
    processes: int = 1,
    laboratory: bool = False,
    **facts: Any,
) -> Report:
    """The report of a run that promises `promise` and left `log`; `facts` are the other fields of a `Report`.

    `quality` is that of the final model on labelled rows: its accuracies are the report's, and what is wrong with it is
    said first, at every level. `notes` follow from public figures and come next. CPU seconds are those of this process,
    so that they are left out where there were several. Callers give what they have, at every level; what level L1 hides
    is taken out here, and `laboratory` says that the parties were drawn from a dataset for research (see
    `hide_parties`).
    """
    facts = {"accuracy": None, "balanced_accuracy": None, **facts}
    facts["alarms"] = (*facts.get("alarms", ()), *log.alarms)
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
    if quality is not None:
        report = with_quality(report, quality)
    return hide_parties(report, laboratory=laboratory) if protects_parties(report.level) else report


def with_quality(report: Report, quality: Quality) -> Report:
    """The report with how good its final model is on labelled rows; what is wrong with it is said first."""
    return replace(
        report,
        accuracy=quality.accuracy.value,
        balanced_accuracy=quality.balanced_accuracy.value,
        quality=quality.as_dict(),
        notes=(*verdicts(quality), *report.notes),
    )


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
    silent = replace(report, party_rows={}, party_accuracy={}, alone=None, votes={}, history=())
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
