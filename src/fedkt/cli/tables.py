"""Results as tables on the terminal, and the HTML page beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fedkt.cli.grids import print_below, print_grid
from fedkt.cli.output import stderr, stdout
from fedkt.cli.quality import print_verdict
from fedkt.federation import Outcome
from fedkt.lab.curves import accuracy_curves
from fedkt.lab.grid import Grid
from fedkt.lab.page import write_page
from fedkt.lab.partition_figure import partition_bubbles
from fedkt.lab.quality_summary import (
    COLUMNS,
    IN_POINTS,
    difference_summary,
    member_verdicts,
    quality_summary,
    run_alarms,
    run_verdicts,
)
from fedkt.lab.quality_tables import calibration_grid, class_grid, confusion_grid, figures_grid
from fedkt.lab.results import by_algorithm, summarise
from fedkt.lab.runner import data_dependent, draw_parties
from fedkt.lab.setting import Setting, dataset_of
from fedkt.lab.tables import reach_table, traffic_table
from fedkt.lab.traffic import model_bytes
from fedkt.lab.words import distinct, human_bytes, points, points_with_spread
from fedkt.privacy.statement import rounded_up
from fedkt.quality import Quality
from fedkt.quality.words import threshold_advice
from fedkt.report import Report, figure_of, plain_notes, protects_parties, weights_in_words


def print_reports(reports: Sequence[Report]) -> None:
    """One row a run, and what was noted."""
    first = reports[0]
    title = f"{first.dataset}: {first.parties} parties, {first.partition} partition, seed {first.seed}"
    print_attention(reports)
    if len(reports) > 1 or first.quality is None:
        print_grid(quality_summary(reports, title=title))
        print_below(cost_grid(reports))
    else:
        print_run(first, title)
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


def print_run(report: Report, title: str) -> None:
    """A single run on one line, and everything about the quality of its final model, with intervals."""
    quality = Quality.from_dict(report.quality)
    figures = [points(figure_of(report, figure)) for figure in IN_POINTS]
    cost = cost_grid([report])
    head = ["algorithm", *(COLUMNS[figure] for figure in IN_POINTS), *cost.head[1:]]
    print_grid(Grid(head, [[report.algorithm, *figures, *cost.lines[0][1:]]], title, words=cost.words))
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
    figures = quality_summary(reports, title=title)
    empty = [[algorithm, *["–"] * len(COLUMNS)] for algorithm in unsuited]
    print_attention(reports)
    print_grid(replace(figures, lines=[*figures.lines, *empty]))
    print_below(cost_grid(reports))
    print_below(difference_summary(reports))
    print_below(reach_table(reports))
    print_traffic(reports)
    print_data(first)
    for reason in unsuited.values():
        stdout.print(f"Empty: {reason}", markup=False, soft_wrap=True)
    private = [report for report in reports if report.epsilon is not None]
    if private:
        stdout.print(f"Privacy: {max(private, key=lambda each: each.epsilon or 0).privacy}", soft_wrap=True)
    print_notes(private)


def cost_grid(reports: Sequence[Report]) -> Grid:
    """What each algorithm took, and how right the labels were that it learned from."""
    lines = [
        [
            summary.algorithm,
            model,
            points_with_spread(summary.label_accuracy, len(summary.seeds) > 1),
            "∞" if summary.epsilon is None else rounded_up(summary.epsilon),
            human_bytes(summary.bytes_sent),
            f"{summary.seconds:.1f}",
        ]
        for summary, model in zip(summarise(reports), models_of(reports), strict=True)
    ]
    caption = "Labels: the public rows that were labelled right."
    return Grid(["algorithm", "model", "labels %", "ε", "sent", "seconds"], lines, "", caption, words=("model",))


def models_of(reports: Sequence[Report]) -> list[str]:
    """The model of each algorithm."""
    return [distinct(run.model for run in runs) for runs in by_algorithm(reports).values()]


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
        data = dataset_of(setting).loader(seed=setting.seed, data_dir=data_dir)
        bubbles = partition_bubbles(draw_parties(setting, data), data.y, data.classes).svg()
    write_page(path, reports, title=f"fedkt on {setting.dataset}", partition_svg=bubbles)
    if not quiet:
        stdout.print(f"Report: {path}")
