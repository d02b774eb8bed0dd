"""Results as tables on the terminal, and the HTML page beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from fedkt.cli.output import stderr, stdout
from fedkt.data import load
from fedkt.federation import Outcome
from fedkt.lab.curves import save_curves
from fedkt.lab.figures import partition_bubbles
from fedkt.lab.page import write_page
from fedkt.lab.results import less_first, summarise
from fedkt.lab.runner import data_dependent, draw_parties
from fedkt.lab.setting import Setting
from fedkt.lab.traffic import (
    TRAFFIC_HEAD,
    curves,
    model_bytes,
    reach_cells,
    targets,
    traffic,
    traffic_cells,
    worth_showing,
)
from fedkt.lab.words import difference_in_words, human_bytes
from fedkt.privacy.statement import rounded_up
from fedkt.report import Report, protects_parties, weights_in_words


def percent(value: float | None) -> str:
    """A share as a percentage, a dash where there is none."""
    return "–" if value is None else f"{100 * value:.1f} %"


def points(value: float | None) -> str:
    """The same without its sign, for a column that has it in its head."""
    return "–" if value is None else f"{100 * value:.1f}"


def spread(pair: tuple[float, float] | None, several: bool) -> str:
    """Mean ± standard deviation in percent, the mean alone of a single seed."""
    return "–" if pair is None else f"{100 * pair[0]:.1f} ± {100 * pair[1]:.1f}" if several else points(pair[0])


def ruled(title: str, *columns: str) -> Table:
    """An empty table whose first column is words and the others numbers; it has no edges, to fit 80 columns."""
    table = Table(title=title, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(
            column, justify="left" if column in ("algorithm", "model", "formula") else "right", no_wrap=True
        )
    return table


def print_reports(reports: Sequence[Report]) -> None:
    """One row a run, and what was noted."""
    first = reports[0]
    title = f"{first.dataset}: {first.parties} parties, {first.partition} partition, seed {first.seed}"
    table = ruled(title, "algorithm", "model", "accuracy %", "balanced %", "labels %", "ε", "sent", "seconds")
    for report in reports:
        table.add_row(
            report.algorithm,
            report.model,
            points(report.accuracy),
            points(report.balanced_accuracy),
            points(report.label_accuracy),
            "∞" if report.epsilon is None else rounded_up(report.epsilon),
            human_bytes(report.bytes_sent),
            f"{report.seconds:.1f}",
        )
    stdout.print(table)
    for report in reports:
        if "unlabelled" in report.votes:
            stdout.print(
                f"Votes: {report.votes['ties']} ties, {report.votes['unlabelled']} of {report.rows['public']} public "
                f"rows without a vote, a party abstains on {100 * report.votes['abstention_rate']:.1f} % of the rows."
            )
        if "weights" in report.votes:
            stdout.print(weights_in_words(report), markup=False, highlight=False)
    stdout.print(f"Privacy: {first.privacy}", soft_wrap=True)
    print_data(first)
    for note in dict.fromkeys(note for report in reports for note in report.notes):
        stdout.print(f"Note: {note}", markup=False)


def print_data(report: Report) -> None:
    """Where the rows came from, and how long networks saw them."""
    if report.source:
        stdout.print(f"Data: {report.source}", markup=False, highlight=False, soft_wrap=True)
    if report.epochs == "auto":
        stdout.print(
            "Networks were trained for 10 epochs, and for more where that is under 1,000 steps.", highlight=False
        )
    elif report.epochs is not None:
        stdout.print(f"Networks were trained for {report.epochs} epochs.", highlight=False)


def print_diagnostic(outcome: Outcome, setting: Setting) -> None:
    """The data-dependent ε, on stderr: it is not part of any result."""
    found = data_dependent(outcome, setting)
    whose, eight = "the data-dependent epsilon of PATE (2018)", ""
    if found.epsilon_8 is not None:
        whose, eight = "the paper's data-dependent epsilon", f" (moments up to 8: {found.epsilon_8:.4f})"
    stderr.print(
        f"{found.warning}: {whose} is {found.epsilon:.4f}{eight} at delta {found.delta:g}.",
        soft_wrap=True,
    )


def print_summaries(reports: Sequence[Report], unsuited: Mapping[str, str]) -> None:
    """One row an algorithm: mean ± standard deviation over the seeds; an empty one where it cannot take the model."""
    first = reports[0]
    seeds = sorted({report.seed for report in reports if report.seed is not None})
    table = ruled(
        f"{first.dataset}: {first.parties} parties, {first.partition} partition, model {first.model}, "
        + (f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})" if len(seeds) > 1 else f"seed {seeds[0]}"),
        *("algorithm", "accuracy %", "balanced %", "labels %", "ε", "sent", "seconds"),
    )
    for summary in summarise(reports):
        table.add_row(
            summary.algorithm,
            spread(summary.accuracy, len(summary.seeds) > 1),
            spread(summary.balanced_accuracy, len(summary.seeds) > 1),
            spread(summary.label_accuracy, len(summary.seeds) > 1),
            "∞" if summary.epsilon is None else rounded_up(summary.epsilon),
            human_bytes(summary.bytes_sent),
            f"{summary.seconds:.1f}",
        )
    for algorithm in unsuited:
        table.add_row(algorithm, *["–"] * 6)
    stdout.print(table)
    print_differences(reports)
    print_reach(reports)
    print_traffic(reports)
    print_data(first)
    for reason in unsuited.values():
        stdout.print(f"Empty: {reason}", markup=False, soft_wrap=True)
    private = [report for report in reports if report.epsilon is not None]
    if private:
        stdout.print(f"Privacy: {max(private, key=lambda each: each.epsilon or 0).privacy}", soft_wrap=True)
    for note in dict.fromkeys(note for report in private for note in report.notes):
        stdout.print(f"Note: {note}", markup=False)


def print_differences(reports: Sequence[Report]) -> None:
    """How far algorithms lie from the first one seed by seed, where there are several: their spreads do not tell."""
    first, apart = less_first(reports)
    shown = {name: points for name, points in apart.items() if len(points) > 1}
    if not shown:
        return
    stdout.print()
    table = ruled(f"Less {first} on the same seeds, in points", "algorithm", "difference")
    for name, points_apart in shown.items():
        table.add_row(name, difference_in_words(points_apart))
    stdout.print(table)


def print_reach(reports: Sequence[Report]) -> None:
    """Rounds and megabytes to the same accuracies, where a method has rounds."""
    if not any(report.history for report in reports):
        return
    found = curves(reports)
    wanted = targets(found)
    title = "First round to reach an accuracy · megabytes until then (–: never, ?: not measured)"
    stdout.print()
    table = ruled(title, "algorithm", "best %", *(f"{100 * each.accuracy:.1f} %" for each in wanted))
    for cells in reach_cells(found, wanted):
        table.add_row(*cells)
    stdout.print(table)
    stdout.print(
        "; ".join(f"{100 * each.accuracy:.1f} % is {each.why()}" for each in wanted) + ".",
        highlight=False,
        markup=False,
    )


def print_traffic(reports: Sequence[Report]) -> None:
    """Bytes measured beside the formulas, where several algorithms can be compared."""
    if not worth_showing(reports):
        return
    stdout.print()
    table = ruled("Bytes of all parties and rounds, measured on the packed messages", *TRAFFIC_HEAD)
    for cells in traffic_cells(traffic(reports)):
        table.add_row(*cells)
    stdout.print(table)
    model = model_bytes(reports)
    size = "not known: no method sends one from the server" if model is None else human_bytes(model)
    stdout.print(
        f"n parties, s students a party, r rounds, M bytes of one model ({size}).", highlight=False, markup=False
    )


def write_curve(path: Path | None, reports: Sequence[Report], *, quiet: bool) -> None:
    """Accuracy against rounds and bytes as a picture."""
    if path is None:
        return
    save_curves(path, reports)
    if not quiet:
        stdout.print(f"Curve: {path}", markup=False, highlight=False)


def write_report(
    path: Path | None, setting: Setting, reports: Sequence[Report], *, data_dir: Path | None, quiet: bool
) -> None:
    """The HTML page, with the picture of who holds what where that may be told."""
    if path is None:
        return
    bubbles = None
    if not protects_parties(setting.level):
        data = load(setting.dataset, seed=setting.seed, data_dir=data_dir)
        bubbles = partition_bubbles(draw_parties(setting, data), data.y, data.classes)
    write_page(path, reports, title=f"fedkt on {setting.dataset}", partition_svg=bubbles)
    if not quiet:
        stdout.print(f"Report: {path}")
