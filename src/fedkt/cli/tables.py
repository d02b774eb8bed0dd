"""Results as tables on the terminal, and the HTML page beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fedkt.cli.grids import print_below, print_grid
from fedkt.cli.output import stderr, stdout
from fedkt.cli.quality import print_verdict
from fedkt.data import load
from fedkt.federation import Outcome
from fedkt.lab.curves import accuracy_curves
from fedkt.lab.grid import Grid
from fedkt.lab.page import write_page
from fedkt.lab.partition_figure import partition_bubbles
from fedkt.lab.quality_summary import member_verdicts, quality_summary, run_alarms, run_verdicts
from fedkt.lab.quality_tables import calibration_grid, class_grid, confusion_grid, figures_grid
from fedkt.lab.results import less_first, summarise
from fedkt.lab.runner import data_dependent, draw_parties
from fedkt.lab.setting import Setting
from fedkt.lab.tables import difference, reach_table, traffic_table
from fedkt.lab.traffic import model_bytes
from fedkt.lab.words import human_bytes, points, points_with_spread
from fedkt.privacy.statement import rounded_up
from fedkt.quality import Quality
from fedkt.quality.words import threshold_advice
from fedkt.report import Report, plain_notes, protects_parties, weights_in_words


def print_reports(reports: Sequence[Report]) -> None:
    """One row a run, and what was noted."""
    first = reports[0]
    title = f"{first.dataset}: {first.parties} parties, {first.partition} partition, seed {first.seed}"
    head = ["algorithm", "model", "accuracy %", "balanced %", "labels %", "ε", "sent", "seconds"]
    lines = [
        [
            report.algorithm,
            report.model,
            points(report.accuracy),
            points(report.balanced_accuracy),
            points(report.label_accuracy),
            *cost_cells(report.epsilon, report.bytes_sent, report.seconds),
        ]
        for report in reports
    ]
    print_attention(reports)
    print_grid(Grid(head, lines, title, words=("model",)))
    print_run_quality(reports)
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
    print_notes(reports)


def print_attention(reports: Sequence[Report]) -> None:
    """What must not be overlooked, before any figure: models of little use, and federations that make members worse."""
    for sentence in (*run_alarms(reports), *run_verdicts(reports), *member_verdicts(summarise(reports))):
        print_verdict(sentence)
    measured = (Quality.from_dict(report.quality) for report in reports if report.quality is not None)
    advice = next((words for each in measured if (words := threshold_advice(each)) is not None), None)
    if advice is not None:
        # A simulation keeps no final model; whoever has one moves its labels so.
        stdout.say(f"With a final model that `fedkt server` has written: {advice}")


def print_run_quality(reports: Sequence[Report]) -> None:
    """Everything about the quality of a single run; of several, their main figures side by side."""
    if len(reports) > 1 or reports[0].quality is None:
        print_below(quality_summary(reports))
        return
    quality = Quality.from_dict(reports[0].quality)
    for grid in (figures_grid(quality), class_grid(quality), confusion_grid(quality), calibration_grid(quality)):
        print_below(grid)
    stdout.print()


def print_notes(reports: Sequence[Report]) -> None:
    """Every note once; what must not be overlooked has been said at the top."""
    for note in dict.fromkeys(note for report in reports for note in plain_notes(report)):
        stdout.print(f"Note: {note}", markup=False)


def print_data(report: Report) -> None:
    """Where the rows came from, and how long networks saw them."""
    if report.source:
        stdout.say(f"Data: {report.source}")
    if report.epochs == "auto":
        stdout.print(
            "Networks were trained for 10 epochs, and for more where that is under 1,000 steps.", highlight=False
        )
    elif report.epochs is not None:
        stdout.print(f"Networks were trained for {report.epochs} epochs.", highlight=False)


def print_diagnostic(outcome: Outcome, setting: Setting) -> None:
    """The data-dependent ε, on stderr: it is not part of any result."""
    diagnostic = data_dependent(outcome, setting)
    whose, eight = "the data-dependent epsilon of PATE (2018)", ""
    if diagnostic.epsilon_8 is not None:
        whose, eight = "the paper's data-dependent epsilon", f" (moments up to 8: {diagnostic.epsilon_8:.4f})"
    stderr.print(
        f"{diagnostic.warning}: {whose} is {diagnostic.epsilon:.4f}{eight} at delta {diagnostic.delta:g}.",
        soft_wrap=True,
    )


def print_summaries(reports: Sequence[Report], unsuited: Mapping[str, str]) -> None:
    """One row an algorithm: mean ± standard deviation over the seeds; an empty one where it cannot take the model."""
    first = reports[0]
    seeds = sorted({report.seed for report in reports if report.seed is not None})
    title = f"{first.dataset}: {first.parties} parties, {first.partition} partition, model {first.model}, " + (
        f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})" if len(seeds) > 1 else f"seed {seeds[0]}"
    )
    head = ["algorithm", "accuracy %", "balanced %", "labels %", "ε", "sent", "seconds"]
    lines = [
        [
            summary.algorithm,
            points_with_spread(summary.accuracy, len(summary.seeds) > 1),
            points_with_spread(summary.balanced_accuracy, len(summary.seeds) > 1),
            points_with_spread(summary.label_accuracy, len(summary.seeds) > 1),
            *cost_cells(summary.epsilon, summary.bytes_sent, summary.seconds),
        ]
        for summary in summarise(reports)
    ]
    lines += [[algorithm, *["–"] * (len(head) - 1)] for algorithm in unsuited]
    print_attention(reports)
    print_grid(Grid(head, lines, title))
    print_differences(reports)
    print_below(quality_summary(reports))
    print_below(reach_table(reports))
    print_traffic(reports)
    print_data(first)
    for reason in unsuited.values():
        stdout.print(f"Empty: {reason}", markup=False, soft_wrap=True)
    private = [report for report in reports if report.epsilon is not None]
    if private:
        stdout.print(f"Privacy: {max(private, key=lambda each: each.epsilon or 0).privacy}", soft_wrap=True)
    print_notes(private)


def cost_cells(epsilon: float | None, bytes_sent: float | None, seconds: float) -> list[str]:
    """What a run costs: privacy, bytes and time."""
    return ["∞" if epsilon is None else rounded_up(epsilon), human_bytes(bytes_sent), f"{seconds:.1f}"]


def print_differences(reports: Sequence[Report]) -> None:
    """How far algorithms lie from the first one seed by seed, where there are several: their spreads do not tell."""
    first, apart = less_first(reports)
    lines = [[name, str(difference(each))] for name, each in apart.items() if len(each) > 1]
    print_below(Grid(["algorithm", "difference"], lines, f"Less {first} on the same seeds, in points"))


def print_traffic(reports: Sequence[Report]) -> None:
    """Bytes measured beside the formulas, where several algorithms can be compared."""
    model = model_bytes(reports)
    size = "not known: no method sends one from the server" if model is None else human_bytes(model)
    caption = f"n parties, s students a party, r rounds, M bytes of one model ({size})."
    print_below(replace(traffic_table(reports), caption=caption))


def write_curve(path: Path | None, reports: Sequence[Report], *, quiet: bool) -> None:
    """Accuracy against rounds and bytes as a picture."""
    if path is None:
        return
    accuracy_curves(reports).save(path)
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
        bubbles = partition_bubbles(draw_parties(setting, data), data.y, data.classes).svg()
    write_page(path, reports, title=f"fedkt on {setting.dataset}", partition_svg=bubbles)
    if not quiet:
        stdout.print(f"Report: {path}")
