"""The HTML report: one file with words, numbers and pictures, to be read anywhere, also without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedkt.errors import ConfigurationError
from fedkt.lab.curves import accuracy_curves
from fedkt.lab.figures import figure_bars, vote_histograms, votes_in_words
from fedkt.lab.grid import Grid, GridCell, with_capitals
from fedkt.lab.headline import headline, lead_of
from fedkt.lab.html import page_template, with_contents
from fedkt.lab.names import card_of, name_of
from fedkt.lab.quality_page import quality_part
from fedkt.lab.quality_summary import (
    difference_summary,
    member_verdicts,
    quality_summary,
    run_alarms,
    run_verdicts,
)
from fedkt.lab.results import Summary, by_algorithm, summarise
from fedkt.lab.svg import Picture
from fedkt.lab.tables import reach_table, traffic_table, weights_table
from fedkt.lab.traffic import model_bytes
from fedkt.lab.words import distinct, human_bytes, human_seconds, percent, seeds_in_words, with_noun, with_spread
from fedkt.quality import Quality
from fedkt.report import Report, plain_notes
from fedkt.system.files import write_atomically

MOST_ATTENTION = 4
"""Verdicts that a page opens with; the others follow its headline."""
HEADS = {
    "balanced %": "balanced\naccuracy %",
    "balanced": "balanced\naccuracy",
    "off %": "probabilities\noff by %",
    "off": "probabilities\noff by",
}
"""What a page has room to say of columns that are short on a terminal."""
PARTITIONS_IN_WORDS = {
    "dirichlet": "each class dealt out in Dirichlet(β) shares",
    "balanced": "Dirichlet(β) shares, parties of nearly equal size",
    "even": "rows dealt out evenly at random",
    "column": "by the dataset's column of party names",
}


def write_page(path: Path, reports: Sequence[Report], *, title: str, partition_svg: str | None = None) -> None:
    """Write one self-contained HTML file about the runs: no script, nothing loaded from anywhere.

    `partition_svg` is what `partition_bubbles` gives. The same reports give the same bytes.
    """
    write_atomically(path, render_page(reports, title=title, partition_svg=partition_svg).encode())


def render_page(reports: Sequence[Report], *, title: str, partition_svg: str | None = None) -> str:
    """The page as text."""
    if not reports:
        raise ConfigurationError("A page needs at least one report, got none.")
    if partition_svg is not None and not partition_svg.startswith("<svg"):
        raise ConfigurationError("partition_svg must be the <svg> element that partition_bubbles gives.")
    versions = dict.fromkeys(tuple(report.versions.items()) for report in reports)
    page = page_template("report.html").render(
        title=title,
        chapters=chapters(reports),
        partition_svg=partition_svg,
        partition_seed=reports[0].seed,
        commands=list(dict.fromkeys(report.command for report in reports if report.command)),
        versions=list(versions),
    )
    return with_contents(page)


def chapters(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """The reports grouped by what was learned from: accuracies on different rows are not to be compared."""
    groups: dict[tuple[Any, ...], list[Report]] = {}
    for report in reports:
        arena = (report.dataset, report.model, report.parties, report.partition, report.beta)
        groups.setdefault(arena, []).append(report)
    return [chapter(with_settings_in_names(group), number) for number, group in enumerate(groups.values())]


def chapter(reports: Sequence[Report], number: int) -> dict[str, Any]:
    """What the page shows under heading `number`: everything about the runs on the same rows."""
    measured = [report for report in reports if report.accuracy is not None and report.balanced_accuracy is not None]
    scores = {summary.algorithm: summary for summary in summarise(measured)}
    votes = pooled_votes(reports)
    model = model_bytes(reports)
    first = reports[0]
    attention = [
        *run_alarms(reports, name_of),
        *run_verdicts(measured, name_of),
        *member_verdicts(list(scores.values()), name_of),
    ]
    return {
        "heading": f"{first.dataset}, {with_noun(first.parties, 'party', 'parties')}, model {first.model}",
        "headline": [*attention[:MOST_ATTENTION], *headline(first, scores, measured)],
        "attention": attention[MOST_ATTENTION:],
        "warning": bool(attention),
        "quality_table": quality_table(measured),
        "differences": difference_table(measured),
        "quality": lead_quality(scores, measured, f"c{number}", first.level),
        "table": cost_table(reports),
        "bars": svgs(figure_bars(list(scores.values()), measured), f"c{number}b") if len(measured) > 1 else [],
        "votes": svgs(vote_histograms(votes), f"c{number}v") if votes else [],
        "votes_of": votes.get("of", ""),
        "votes_in_words": votes_in_words(votes) if votes else "",
        "curves": accuracy_curves(measured).svg(f"c{number}") if any(run.history for run in measured) else "",
        "traffic": with_capitals(traffic_table(reports, name_of)),
        "model_size": "" if model is None else human_bytes(model),
        "reach": with_capitals(reach_table(measured, name_of)),
        "settings": settings(reports),
        "privacy": list(dict.fromkeys(report.privacy for report in reports)),
        "weights": [weights_table(report, name_of) for report in reports if "weights" in report.votes],
        "notes": notes_once(reports),
        "runs": runs_table(reports),
        "seeds": len({report.seed for report in reports}),
    }


def lead_quality(
    scores: dict[str, Summary], measured: Sequence[Report], suffix: str, level: str
) -> dict[str, Any] | None:
    """Everything about one final model of the algorithm that the page is about; None where none was measured."""
    if not scores:
        return None
    lead = lead_of(scores, level).algorithm
    # Where every party has a model of its own, there is no final model to look at.
    run = next((each for each in measured if each.algorithm == lead and each.quality is not None), None)
    if run is None:
        return None
    of = name_of(run.algorithm) if run.seed is None else f"{name_of(run.algorithm)}, seed {run.seed}"
    return {"of": of, **quality_part(Quality.from_dict(run.quality), suffix)}


def with_settings_in_names(reports: Sequence[Report]) -> list[Report]:
    """The reports with s, t and level added to an algorithm's name where it was run with several of them."""
    kinds: dict[str, set[tuple[Any, ...]]] = {}
    for report in reports:
        kinds.setdefault(report.algorithm, set()).add((report.partitions, report.subsets, report.level))
    return [
        replace(report, algorithm=f"{report.algorithm} s={report.partitions} t={report.subsets} {report.level}")
        if len(kinds[report.algorithm]) > 1
        else report
        for report in reports
    ]


def quality_table(measured: Sequence[Report]) -> Grid:
    """The figures of the algorithms side by side, headed in words."""
    grid = quality_summary(measured, name_of, title="Is it good enough?") if measured else Grid([], [])
    about = {name_of(algorithm): card_of(algorithm).summary for algorithm in by_algorithm(measured)}
    lines = [[GridCell(str(name), about.get(str(name), "")), *cells] for name, *cells in grid.lines]
    return in_page_words(replace(grid, lines=lines))


def difference_table(measured: Sequence[Report]) -> Grid:
    """How far the algorithms lie from the first one, headed in words."""
    grid = difference_summary(measured, name_of) if measured else Grid([], [])
    return in_page_words(replace(grid, title=grid.title.replace("Less ", "More (+) or less (-) than ", 1)))


def in_page_words(grid: Grid) -> Grid:
    """The table of a terminal with the heads that a page has room for."""
    return with_capitals(replace(grid, head=[HEADS.get(word, word) for word in grid.head]))


def cost_table(reports: Sequence[Report]) -> Grid:
    """What each algorithm took over its seeds, and how right the labels were that it learned from."""
    return Grid(
        ["Algorithm", "Public rows\nlabelled right", "Bytes\nsent", "Time", "Seeds"],
        [
            [
                name_of(each.algorithm),
                with_spread(each.label_accuracy, len(each.seeds) > 1),
                human_bytes(each.bytes_sent),
                human_seconds(each.seconds),
                seeds_in_words(each.seeds),
            ]
            for each in summarise(reports)
        ],
    )


def svgs(pictures: Sequence[Picture], suffix: str) -> list[str]:
    """The pictures as elements of one page."""
    return [picture.svg(f"{suffix}{place}") for place, picture in enumerate(pictures)]


def runs_table(reports: Sequence[Report]) -> Grid:
    """A line for each run."""
    return Grid(
        ["Algorithm", "Seed", "Accuracy", "Balanced", "Labels right", "Bytes sent", "Time", "CPU time"],
        [
            [
                name_of(run.algorithm),
                "–" if run.seed is None else str(run.seed),
                *map(percent, (run.accuracy, run.balanced_accuracy, run.label_accuracy)),
                human_bytes(run.bytes_sent),
                human_seconds(run.seconds),
                human_seconds(run.cpu_seconds),
            ]
            for run in reports
        ],
    )


def pooled_votes(reports: Sequence[Report]) -> dict[str, Any]:
    """The votes of all FedKT runs at L0 added up; empty where there are none.

    At other levels the votes are what the noise protects, so nothing of them is shown.
    """
    runs = [run for run in reports if run.level == "L0" and run.votes.get("agreement_histogram") is not None]
    if not runs:
        return {}
    histograms = ("agreement_histogram", "abstention_histogram")
    return {
        "of": f"{with_noun(len(runs), 'run', 'runs')} of {name_of(runs[0].algorithm)} at level L0",
        **{name: [sum(each) for each in zip(*(run.votes[name] for run in runs), strict=True)] for name in histograms},
        **{name: sum(int(run.votes.get(name, 0)) for run in runs) for name in ("unlabelled", "ties")},
    }


def settings(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """What was agreed on before the runs."""
    first = reports[0]
    rows = ", ".join(
        f"{number:,} {'of the ' if which == 'parties' else ''}{which}" for which, number in first.rows.items()
    )
    partition = first.partition
    if partition in PARTITIONS_IN_WORDS:
        partition = f"{partition}: {PARTITIONS_IN_WORDS[partition]}"
    pairs = [
        ("Dataset", first.dataset),
        ("Data", first.source),
        ("Rows", rows),
        ("Parties", f"{first.parties:,}"),
        ("Partition among the parties", partition),
        ("β of the partition", "" if first.beta is None else f"{first.beta:g}"),
        ("Partitions of a party's rows (s)", distinct(report.partitions for report in reports)),
        ("Subsets of a partition (t)", distinct(report.subsets for report in reports)),
        ("Model", first.model),
        ("Epochs of neural networks", distinct(report.epochs for report in reports)),
        ("Epochs of a party in a round", distinct(report.local_epochs for report in reports)),
        ("Level", distinct(report.level for report in reports)),
        ("Seeds", seeds_in_words(sorted({report.seed for report in reports if report.seed is not None}))),
    ]
    return [(name, value) for name, value in pairs if value]


def notes_once(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """Every note once, with the runs that wrote it; what must not be overlooked stands at the top."""
    runs_by_note: dict[str, dict[str, None]] = {}
    for report in reports:
        run = name_of(report.algorithm) if report.seed is None else f"{name_of(report.algorithm)}, seed {report.seed}"
        for note in plain_notes(report):
            runs_by_note.setdefault(note, {})[run] = None
    return [
        (note, first if not others else f"{1 + len(others)} runs, first {first}")
        for note, (first, *others) in runs_by_note.items()
    ]
