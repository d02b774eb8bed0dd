"""Results as tables on the terminal, and the HTML page beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from fedkt.cli.output import stderr, stdout
from fedkt.data import load
from fedkt.experiments.figures import partition_bubbles
from fedkt.experiments.page import write_page
from fedkt.experiments.results import summarise
from fedkt.experiments.runner import data_dependent, draw_parties
from fedkt.experiments.setting import Setting
from fedkt.federation import Outcome
from fedkt.privacy.statement import rounded_up
from fedkt.report import Report


def percent(value: float | None) -> str:
    """A share as a percentage, a dash where there is none."""
    return "–" if value is None else f"{100 * value:.1f} %"


def spread(pair: tuple[float, float] | None) -> str:
    """Mean ± standard deviation as percentages."""
    return "–" if pair is None else f"{100 * pair[0]:.1f} ± {100 * pair[1]:.1f} %"


def size(count: float | None) -> str:
    """Bytes for a person."""
    if count is None:
        return "–"
    return f"{count / 1e6:.2f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def print_reports(reports: Sequence[Report]) -> None:
    """One row a run, and what was noted."""
    first = reports[0]
    table = Table(title=f"{first.dataset}: {first.parties} parties, {first.partition} partition, seed {first.seed}")
    for column in ("algorithm", "model", "accuracy", "balanced", "labels", "ε", "sent", "seconds"):
        table.add_column(column, justify="left" if column in ("algorithm", "model") else "right", no_wrap=True)
    for report in reports:
        table.add_row(
            report.algorithm,
            report.model,
            percent(report.accuracy),
            percent(report.balanced_accuracy),
            percent(report.label_accuracy),
            "∞" if report.epsilon is None else rounded_up(report.epsilon),
            size(report.bytes_sent),
            f"{report.seconds:.1f}",
        )
    stdout.print(table)
    for report in reports:
        if "unlabelled" in report.votes:
            stdout.print(
                f"Votes: {report.votes['ties']} ties, {report.votes['unlabelled']} of {report.rows['public']} public "
                f"rows without a vote, a party abstains on {100 * report.votes['abstention_rate']:.1f} % of the rows."
            )
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
    """The paper's data-dependent ε, on stderr: it is not part of any result."""
    found = data_dependent(outcome, setting)
    stderr.print(
        "confidential: depends on the private votes, do not publish: the paper's data-dependent epsilon is "
        f"{found.epsilon:.4f} (moments up to 8: {found.epsilon_8:.4f}) at delta {found.delta:g}.",
        soft_wrap=True,
    )


def print_summaries(reports: Sequence[Report], unsuited: Mapping[str, str]) -> None:
    """One row an algorithm: mean ± standard deviation over the seeds; an empty one where it cannot take the model."""
    first = reports[0]
    seeds = sorted({report.seed for report in reports if report.seed is not None})
    table = Table(
        title=f"{first.dataset}: {first.parties} parties, {first.partition} partition, model {first.model}, "
        f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})"
    )
    for column in ("algorithm", "accuracy", "balanced", "labels", "ε", "sent", "seconds"):
        table.add_column(column, justify="left" if column == "algorithm" else "right", no_wrap=True)
    for summary in summarise(reports):
        table.add_row(
            summary.algorithm,
            spread(summary.accuracy),
            spread(summary.balanced_accuracy),
            spread(summary.label_accuracy),
            "∞" if summary.epsilon is None else rounded_up(summary.epsilon),
            size(summary.bytes_sent),
            f"{summary.seconds:.1f}",
        )
    for algorithm in unsuited:
        table.add_row(algorithm, *["–"] * 6)
    stdout.print(table)
    print_data(first)
    for reason in unsuited.values():
        stdout.print(f"Empty: {reason}", markup=False, soft_wrap=True)
    private = [report for report in reports if report.epsilon is not None]
    if private:
        stdout.print(f"Privacy: {max(private, key=lambda each: each.epsilon or 0).privacy}", soft_wrap=True)
    for note in dict.fromkeys(note for report in private for note in report.notes):
        stdout.print(f"Note: {note}", markup=False)


def write_report(
    path: Path | None, setting: Setting, reports: Sequence[Report], *, data_dir: Path | None, quiet: bool
) -> None:
    """The HTML page, with the picture of who holds what."""
    if path is None:
        return
    data = load(setting.dataset, seed=setting.seed, data_dir=data_dir)
    bubbles = partition_bubbles(draw_parties(setting, data), data.y, data.classes)
    write_page(path, reports, title=f"fedkt on {setting.dataset}", partition_svg=bubbles)
    if not quiet:
        stdout.print(f"Report: {path}")
