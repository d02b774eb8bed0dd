"""Tables of runs that stand beside each other: what they send, and what an accuracy costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedkt.lab.grid import Grid, GridCell
from fedkt.lab.traffic import curves, reach_cells, targets, traffic, worth_showing
from fedkt.lab.words import human_bytes, percent
from fedkt.report import Report, mean_and_spread
from fedkt.report.record import MOST_WEIGHTS


def traffic_table(reports: Sequence[Report], name: Callable[[str], str] = str) -> Grid:
    """Bytes measured beside the formulas; without lines where there is nothing to set side by side."""
    return Grid(
        ("algorithm", "rounds", "sent", "received", "total", "formula", "gives"),
        [
            [
                name(each.algorithm),
                str(each.rounds),
                *(human_bytes(count) for count in (each.sent, each.received, each.total)),
                each.formula,
                human_bytes(each.formula_bytes),
            ]
            for each in (traffic(reports) if worth_showing(reports) else ())
        ],
        "Bytes of all parties and rounds, measured on the packed messages",
        words=("formula",),
    )


def reach_table(reports: Sequence[Report], name: Callable[[str], str] = str) -> Grid:
    """First round · megabytes to the same accuracies; without lines where no method has rounds."""
    if not any(report.history for report in reports):
        return Grid([], [])
    series = curves(reports)
    columns = targets(series)
    return Grid(
        ["algorithm", "best %", *(f"{100 * each.accuracy:.1f} %" for each in columns)],
        [[name(algorithm), *cells] for algorithm, *cells in reach_cells(series, columns)],
        "First round to reach an accuracy · megabytes until then (–: never, ?: not measured)",
        "; ".join(f"{100 * each.accuracy:.1f} % is {each.why(name)}" for each in columns) + ".",
    )


def weights_table(report: Report, name: Callable[[str], str] = str) -> Grid:
    """How much each party weighs in a vote of experts, the heaviest first."""
    weights = sorted(report.votes["weights"].items(), key=lambda each: -each[1])
    most = report.votes.get("largest_shares", {})
    lines = [
        [party, percent(weight), f"{most[party][0]}: {percent(most[party][1])}" if party in most else "–"]
        for party, weight in weights[:MOST_WEIGHTS]
    ]
    more = f" {len(weights) - MOST_WEIGHTS} more parties weigh less." if len(weights) > MOST_WEIGHTS else ""
    run = name(report.algorithm) if report.seed is None else f"{name(report.algorithm)}, seed {report.seed}"
    caption = (
        f"Weight: a party's share of a class's rows, mean over the classes; beside it where that is largest.{more}"
    )
    return Grid(["Party", "Weight", "Largest share"], lines, run, caption)


def difference(points: Sequence[float] | None) -> GridCell:
    """Mean and spread of paired differences, and in how many of them ours is ahead; empty where there are none."""
    if not points:
        return GridCell("")
    mean, spread = mean_and_spread(points)
    ahead = f"{sum(each > 0 for each in points)} of {len(points)} ahead"
    return GridCell(f"{mean:+.1f} ± {spread:.1f}", ahead) if len(points) > 1 else GridCell(f"{mean:+.1f}")
