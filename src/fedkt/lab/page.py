"""The HTML report: one file with words, numbers and pictures, to be read anywhere, also without a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkt.errors import ConfigurationError
from fedkt.lab.curves import accuracy_curves
from fedkt.lab.figures import accuracy_bars, vote_histograms
from fedkt.lab.names import name_of, rival_of, summary_of
from fedkt.lab.svg import made_unique
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
from fedkt.lab.words import (
    counted,
    distinct,
    human_bytes,
    human_seconds,
    percent,
    seeds_in_words,
    with_spread,
)
from fedkt.system.files import write_atomically

if TYPE_CHECKING:
    import jinja2

    from fedkt.lab.results import Summary
    from fedkt.report import Report

PARTITIONS_IN_WORDS = {
    "dirichlet": "each class dealt out in Dirichlet(β) shares",
    "balanced": "Dirichlet(β) shares, parties of nearly equal size",
    "even": "rows dealt out evenly at random",
    "column": "by the dataset's column of party names",
}


@dataclass(frozen=True)
class Row:
    """A line of the table: one algorithm over its seeds, in words."""

    name: str
    what: str
    accuracy: str
    balanced: str
    labels: str
    sent: str
    seconds: str
    seeds: str


@dataclass(frozen=True)
class Grid:
    """A table in words; without lines it is not shown."""

    head: list[str]
    lines: list[list[str]]
    caption: str = ""


@dataclass(frozen=True)
class Chapter:
    """Everything about the runs on the same rows: what a page shows under one heading."""

    heading: str
    headline: list[str]
    rows: list[Row]
    bars: str
    votes: str
    votes_of: str
    curves: str
    traffic: Grid
    model_size: str
    """M in words, empty where it is not known."""
    reach: Grid
    settings: list[tuple[str, str]]
    privacy: list[str]
    weights: list[str]
    """Of the parties in a vote of experts, by run."""
    notes: list[tuple[str, str]]
    runs: list[Report]
    seeds: int


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
    environment = page_environment()
    versions = dict.fromkeys(tuple(report.versions.items()) for report in reports)
    return environment.get_template("report.html").render(
        title=title,
        chapters=chapters(reports),
        partition_svg=partition_svg,
        partition_seed=reports[0].seed,
        commands=list(dict.fromkeys(report.command for report in reports if report.command)),
        versions=list(versions),
    )


def page_environment() -> jinja2.Environment:
    """The templates, or a refusal in words where what they need is not installed."""
    try:
        import jinja2
        import matplotlib  # noqa: F401
        from markupsafe import Markup
    except ImportError as reason:
        raise ConfigurationError(
            "The HTML report needs matplotlib and jinja2. Run: pip install 'fedkt[report]'"
        ) from reason
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fedkt.lab", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=percent, size=human_bytes, seconds=human_seconds, trusted=Markup, name=name_of)
    return environment


def chapters(reports: Sequence[Report]) -> list[Chapter]:
    """The reports grouped by what was learned from: accuracies on different rows are not to be compared."""
    groups: dict[tuple[Any, ...], list[Report]] = {}
    for report in reports:
        arena = (report.dataset, report.model, report.parties, report.partition, report.beta)
        groups.setdefault(arena, []).append(report)
    return [chapter(told_apart(group), number) for number, group in enumerate(groups.values())]


def chapter(reports: Sequence[Report], number: int) -> Chapter:
    """Chapter `number` of the page."""
    from fedkt.lab.results import summarise
    from fedkt.report import weights_in_words

    measured = [report for report in reports if report.accuracy is not None and report.balanced_accuracy is not None]
    scores = {summary.algorithm: summary for summary in summarise(measured)}
    votes = pooled_votes(reports)
    first = reports[0]
    return Chapter(
        heading=f"{first.dataset}, {counted(first.parties, 'party', 'parties')}, model {first.model}",
        headline=headline(first, scores, measured),
        rows=[table_row(summary) for summary in summarise(reports)],
        bars=made_unique(accuracy_bars(list(scores.values()), measured), f"c{number}") if len(measured) > 1 else "",
        votes=made_unique(vote_histograms(votes), f"c{number}") if votes else "",
        votes_of=str(votes.get("of", "")),
        curves=made_unique(accuracy_curves(measured), f"c{number}") if any(run.history for run in measured) else "",
        traffic=traffic_grid(reports),
        model_size="" if (one := model_bytes(reports)) is None else human_bytes(one),
        reach=reach_grid(measured),
        settings=settings(reports),
        privacy=list(dict.fromkeys(report.privacy for report in reports)),
        weights=[
            f"{name_of(report.algorithm)}, seed {report.seed}. {weights_in_words(report)}"
            for report in reports
            if "weights" in report.votes
        ],
        notes=gathered_notes(reports),
        runs=list(reports),
        seeds=len({report.seed for report in reports}),
    )


def traffic_grid(reports: Sequence[Report]) -> Grid:
    """Bytes measured beside the formulas; empty where there is nothing to set side by side."""
    lines = traffic_cells(traffic(reports), name_of) if worth_showing(reports) else []
    return Grid([word.capitalize() for word in TRAFFIC_HEAD], lines)


def reach_grid(measured: Sequence[Report]) -> Grid:
    """Rounds and megabytes to the same accuracies; empty where no method has rounds."""
    if not any(report.history for report in measured):
        return Grid([], [])
    found = curves(measured)
    wanted = targets(found)
    return Grid(
        ["Algorithm", "Best %", *(f"{100 * each.accuracy:.1f} %" for each in wanted)],
        [[name_of(name), *cells] for name, *cells in reach_cells(found, wanted)],
        "; ".join(f"{100 * each.accuracy:.1f} % is {each.why(name_of)}" for each in wanted) + ".",
    )


def told_apart(reports: Sequence[Report]) -> list[Report]:
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


def headline(first: Report, scores: dict[str, Summary], measured: Sequence[Report]) -> list[str]:
    """What was run, how good it is, and who is ahead by how much."""
    setting = f"{first.dataset} with {counted(first.parties, 'party', 'parties')}"
    if not scores:
        return [f"{name_of(first.algorithm)} was run on {setting}. No test rows were given: its accuracy is not known."]
    ranked = sorted(scores.values(), key=lambda each: each.mean_accuracy, reverse=True)
    lead = scores.get("fedkt", ranked[0])
    mean = with_spread(lead.accuracy, len(lead.seeds) > 1)
    over = f"mean of {len(lead.seeds)} seeds" if len(lead.seeds) > 1 else f"seed {lead.seeds[0]}"
    told = [f"{name_of(lead.algorithm)} on {setting} reaches a test accuracy of {mean} ({over})."]
    for other in sorted(scores.values(), key=lambda each: each.mean_accuracy):
        if other is not lead:
            told.append(compared(lead, other, measured))
    alone = [value for report in measured if report.algorithm == "solo" for value in report.party_accuracy.values()]
    if len(alone) > 1:
        told.append(f"Alone, the single parties reach between {percent(min(alone))} and {percent(max(alone))}.")
    if ranked[0] is not lead:
        told.append(f"Highest of all: {name_of(ranked[0].algorithm)} with {percent(ranked[0].mean_accuracy)}.")
    if len(lead.seeds) == 1:
        told.append("This is a single seed: how much luck there is in it is not known.")
    return told


def compared(lead: Summary, other: Summary, measured: Sequence[Report]) -> str:
    """The distance between two algorithms in percentage points, and on how many of their common seeds it holds."""
    from fedkt.lab.results import paired_points

    points = 100 * (lead.mean_accuracy - other.mean_accuracy)
    with_whom = rival_of(other.algorithm)
    if abs(points) < 0.05:
        return f"That is as much as {with_whom}."
    apart = paired_points(*([each for each in measured if each.algorithm == one.algorithm] for one in (lead, other)))
    ahead = sum(each > 0 if points > 0 else each < 0 for each in apart)
    more, better = ("more", "higher") if points > 0 else ("less", "lower")
    held = f" ({better} on {ahead} of {len(apart)} seeds)" if len(apart) > 1 else ""
    return f"That is {abs(points):.1f} points {more} than {with_whom}{held}."


def table_row(summary: Summary) -> Row:
    """An algorithm's line."""
    several = len(summary.seeds) > 1
    return Row(
        name=name_of(summary.algorithm),
        what=summary_of(summary.algorithm),
        accuracy=with_spread(summary.accuracy, several),
        balanced=with_spread(summary.balanced_accuracy, several),
        labels=with_spread(summary.label_accuracy, several),
        sent=human_bytes(summary.bytes_sent),
        seconds=human_seconds(summary.seconds),
        seeds=seeds_in_words(summary.seeds),
    )


def pooled_votes(reports: Sequence[Report]) -> dict[str, Any]:
    """The votes of all FedKT runs at L0 added up; empty where there are none.

    At other levels the votes are what the noise protects, so nothing of them is shown.
    """
    shown = [
        report for report in reports if report.level == "L0" and report.votes.get("agreement_histogram") is not None
    ]
    if not shown:
        return {}
    total: dict[str, Any] = {"of": f"{counted(len(shown), 'run', 'runs')} of {name_of(shown[0].algorithm)} at level L0"}
    for name in ("agreement_histogram", "abstention_histogram"):
        total[name] = [sum(heights) for heights in zip(*(report.votes[name] for report in shown), strict=True)]
    for name in ("unlabelled", "ties"):
        total[name] = sum(int(report.votes.get(name, 0)) for report in shown)
    return total


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


def gathered_notes(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """Every note once, with the runs that wrote it."""
    found: dict[str, Counter[str]] = {}
    for report in reports:
        run = name_of(report.algorithm) if report.seed is None else f"{name_of(report.algorithm)}, seed {report.seed}"
        for note in report.notes:
            found.setdefault(note, Counter())[run] += 1
    return [
        (note, next(iter(runs)) if len(runs) == 1 else f"{len(runs)} runs, first {next(iter(runs))}")
        for note, runs in found.items()
    ]
