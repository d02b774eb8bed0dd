"""Communication: the bytes that went over the wire beside the paper's formulas, and what an accuracy costs in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.card import Traffic
from fedkt.lab.names import card_of
from fedkt.lab.results import by_algorithm
from fedkt.lab.words import megabytes

if TYPE_CHECKING:
    from fedkt.report import Report

OF_THE_BEST = (0.80, 0.85, 0.90)
"""Targets as shares of the best accuracy reached."""
NOTHING = Traffic("0", lambda s, r: 0)
"""Of methods whose card has no traffic."""


@dataclass(frozen=True)
class TrafficRow:
    """The bytes of one algorithm, all parties and rounds together, as a mean over its seeds."""

    algorithm: str
    rounds: int
    sent: float | None
    """By the parties; None where it was not measured."""
    received: float | None
    """By the parties."""
    formula: str
    """In n parties, s students a party, r rounds, and M bytes of one model."""
    formula_bytes: float | None
    """What the formula gives; None where M or s is not known."""

    @property
    def total(self) -> float | None:
        """Both ways."""
        return None if self.sent is None or self.received is None else self.sent + self.received


def traffic(reports: Sequence[Report]) -> list[TrafficRow]:
    """One line for every algorithm that sends something, in the order of the reports."""
    model = model_bytes(reports)
    return [
        TrafficRow(
            algorithm,
            group[0].rounds,
            mean_of([report.bytes_sent for report in group]),
            mean_of([bytes_received(report) for report in group]),
            traffic_of(algorithm).formula,
            mean_of([formula_bytes(report, model) for report in group]),
        )
        for algorithm, group in by_algorithm(reports).items()
        if communicates(algorithm)
    ]


def worth_showing(reports: Sequence[Report]) -> bool:
    """Whether there are measured bytes of several algorithms to set side by side."""
    measured = any(report.bytes_sent or report.bytes_received for report in reports)
    return measured and len({report.algorithm for report in reports}) > 1


def model_bytes(reports: Sequence[Report]) -> float | None:
    """M: one packed model as a server sends it to one party, from the bytes measured; None where none was sent."""
    measured = []
    for report in reports:
        broadcasts = traffic_of(report.algorithm).broadcasts
        if broadcasts is not None and report.bytes_received and broadcasts(report.rounds):
            measured.append(report.bytes_received / (parties_per_round(report) * broadcasts(report.rounds)))
    return mean_of(measured)


def formula_bytes(report: Report, model: float | None) -> float | None:
    """What the formula gives for a run, with M bytes a model."""
    wire = traffic_of(report.algorithm)
    if model is None or "M" not in wire.formula or (report.partitions is None and "s" in wire.formula):
        return None
    return parties_per_round(report) * model * wire.models(report.partitions or 0, report.rounds)


def parties_per_round(report: Report) -> int:
    """How many parties take part in one round."""
    return max(1, round(report.participation * report.parties))


def bytes_received(report: Report) -> int | None:
    """The bytes the parties received: none where the only round begins at the parties."""
    one_way = traffic_of(report.algorithm).one_way
    return 0 if report.bytes_received is None and one_way else report.bytes_received


@dataclass(frozen=True, eq=False)
class Curve:
    """One algorithm, round after round, over its seeds; a method of one round is a curve of one point."""

    algorithm: str
    accuracy: NDArray[np.float64]
    """Seeds down, rounds across."""
    bytes_so_far: NDArray[np.float64] | None
    """Sent and received by the end of each round, mean over the seeds; None where it was not measured."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean accuracy after each round."""
        return np.asarray(self.accuracy.mean(axis=0))

    @property
    def spread(self) -> NDArray[np.float64]:
        """The sample standard deviation after each round, zeros for a single seed."""
        return np.asarray(self.accuracy.std(axis=0, ddof=1) if len(self.accuracy) > 1 else 0 * self.accuracy[0])

    @property
    def one_shot(self) -> bool:
        """Whether there is one point only."""
        return len(self.mean) == 1

    @property
    def millions(self) -> NDArray[np.float64] | None:
        """The same bytes in megabytes, for a picture; None also where nothing travels."""
        return None if self.bytes_so_far is None or not communicates(self.algorithm) else self.bytes_so_far / 1e6

    def reaches(self, target: float) -> tuple[int, float | None] | None:
        """The first round whose mean accuracy is at least the target and the bytes until then; None for never."""
        rounds = np.flatnonzero(self.mean >= target - 1e-9)
        if not len(rounds):
            return None
        first = int(rounds[0])
        return first + 1, None if self.bytes_so_far is None else float(self.bytes_so_far[first])


def curves(reports: Sequence[Report]) -> list[Curve]:
    """The curve of each algorithm, in the order of the reports."""
    series = []
    for algorithm, group in by_algorithm([each for each in reports if each.accuracy is not None]).items():
        histories = [history(report) for report in group]
        # Seeds of different length have as many rounds in common as the shortest has.
        rounds = min(len(each) for each in histories)
        accuracy = np.array([[point["accuracy"] for point in each[:rounds]] for each in histories], dtype=np.float64)
        both_ways = [[total(point) for point in each[:rounds]] for each in histories]
        measured = all(count is not None for each in both_ways for count in each)
        so_far = np.cumsum(np.array(both_ways, dtype=np.float64), axis=1).mean(axis=0) if measured else None
        series.append(Curve(algorithm, accuracy, so_far))
    return series


def history(report: Report) -> Sequence[dict[str, Any]]:
    """The rounds of a run, or its result as those of a single round."""
    return report.history or (
        {"accuracy": report.accuracy, "sent": report.bytes_sent, "received": bytes_received(report)},
    )


def total(point: dict[str, Any]) -> int | None:
    """The bytes of one round both ways."""
    return None if point["sent"] is None or point["received"] is None else point["sent"] + point["received"]


@dataclass(frozen=True)
class Target:
    """An accuracy to be reached, and why this one."""

    accuracy: float
    of: str
    """The algorithm whose best accuracy this is, or is a share of."""
    share: float | None = None

    def why(self, name: Callable[[str], str] = str) -> str:
        """The reason in words."""
        part = "" if self.share is None else f"{100 * self.share:.0f} % of "
        return f"{part}the best of {name(self.of)}"


def targets(series: Sequence[Curve]) -> list[Target]:
    """The best accuracy of the weakest method that communicates, and shares of the best one, from low to high."""
    bests = {curve.algorithm: float(curve.mean.max()) for curve in series if communicates(curve.algorithm)}
    if not bests:
        return []
    weakest, strongest = min(bests, key=bests.__getitem__), max(bests, key=bests.__getitem__)
    shares = [Target(share * bests[strongest], strongest, share) for share in OF_THE_BEST]
    return sorted([Target(bests[weakest], weakest), *shares], key=lambda each: each.accuracy)


def reach_cells(series: Sequence[Curve], columns: Sequence[Target]) -> list[list[str]]:
    """For every method that communicates: its name, its best accuracy in percent, and what each target costs."""
    return [
        [curve.algorithm, f"{100 * curve.mean.max():.1f}", *(cost(curve.reaches(each.accuracy)) for each in columns)]
        for curve in series
        if communicates(curve.algorithm)
    ]


def cost(reach: tuple[int, float | None] | None) -> str:
    """Rounds and megabytes, a dash for never, a question mark where bytes were not measured."""
    if reach is None:
        return "–"
    rounds, count = reach
    return f"{rounds} · {'?' if count is None else megabytes(count)}"


def communicates(algorithm: str) -> bool:
    """Whether anything of it travels."""
    return card_of(algorithm).traffic is not None


def traffic_of(algorithm: str) -> Traffic:
    """What crosses the wire."""
    return card_of(algorithm).traffic or NOTHING


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean, None where one is missing."""
    measured = [value for value in values if value is not None]
    return float(np.mean(measured)) if measured and len(measured) == len(values) else None
