"""The first words of a page: what was run, how good it is, and who is ahead by how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedkt.algorithms.usual import OF_VOTES, usual_algorithm
from fedkt.lab.names import name_of, rival_of
from fedkt.lab.results import Summary, by_algorithm, paired_points
from fedkt.lab.words import percent, with_noun, with_spread
from fedkt.quality import Quality
from fedkt.quality.words import main_line
from fedkt.report import Report

MOST_RIVALS = 3
"""Algorithms that a headline compares with; of more, the weakest and the strongest."""


def headline(first: Report, scores: dict[str, Summary], measured: Sequence[Report]) -> list[str]:
    """What was run, how good it is, and who is ahead by how much."""
    setting = f"{first.dataset} with {with_noun(first.parties, 'party', 'parties')}"
    if not scores:
        return [f"{name_of(first.algorithm)} was run on {setting}. No test rows were given: its accuracy is not known."]
    weakest_first = sorted(scores.values(), key=lambda each: each.mean_accuracy)
    best = max(scores.values(), key=lambda each: each.mean_accuracy)
    lead = lead_of(scores, first.level)
    sentences = list(how_good(lead, setting, measured))
    others = [other for other in weakest_first if other is not lead]
    # Of many only the ends: the tables have all of them.
    shown = others if len(others) <= MOST_RIVALS else [others[0], others[-1]]
    sentences += [comparison(lead, other, measured) for other in shown]
    if len(shown) < len(others):
        sentences.append(f"The other {len(others) - len(shown)} lie in between.")
    alone = [value for report in measured if report.algorithm == "solo" for value in report.party_accuracy.values()]
    if len(alone) > 1:
        sentences.append(f"Alone, the single parties reach between {percent(min(alone))} and {percent(max(alone))}.")
    weighted = next((each.by_rows["accuracy"] for each in scores.values() if each.by_rows), None)
    if weighted is not None:
        sentences.append(f"Weighted by their rows, the parties alone reach {percent(weighted[0])}.")
    if best is not lead:
        sentences.append(f"Highest of all: {name_of(best.algorithm)} with {percent(best.mean_accuracy)}.")
    if len(lead.seeds) == 1:
        sentences.append("This is a single seed: another split of the rows may give other figures.")
    return sentences


def how_good(lead: Summary, setting: str, measured: Sequence[Report]) -> Iterator[str]:
    """How often the algorithm that a page is about is right: a single seed with the interval of its test rows."""
    name = name_of(lead.algorithm)
    runs = [run for run in measured if run.algorithm == lead.algorithm and run.quality is not None]
    if len(lead.seeds) == 1 and runs:
        words = main_line(Quality.from_dict(runs[0].quality))
        yield f"{name} on {setting} (seed {lead.seeds[0]}): {words[:1].lower()}{words[1:]}"
        return
    over = f"mean of {len(lead.seeds)} seeds" if len(lead.seeds) > 1 else f"seed {lead.seeds[0]}"
    yield f"{name} on {setting} reaches a test accuracy of {with_spread(lead.accuracy, len(lead.seeds) > 1)} ({over})."
    if lead.majority is not None:
        yield f"Always naming the most frequent class is right on {percent(lead.majority)}."


def lead_of(scores: dict[str, Summary], level: str) -> Summary:
    """The algorithm that a page is about: what runs where nobody chooses, else FedKT, else the best of what was run."""
    usual = (usual_algorithm(level), usual_algorithm(level, OF_VOTES), "fedkt")
    lead = next((scores[name] for name in usual if name in scores), None)
    return lead or max(scores.values(), key=lambda each: each.mean_accuracy)


def comparison(lead: Summary, other: Summary, measured: Sequence[Report]) -> str:
    """The distance between two algorithms in percentage points, and on how many of their common seeds it holds."""
    points = 100 * (lead.mean_accuracy - other.mean_accuracy)
    if abs(points) < 0.05:
        return f"{name_of(lead.algorithm)} has as much as {rival_of(other.algorithm)}."
    runs = by_algorithm(measured)
    differences = paired_points(runs[lead.algorithm], runs[other.algorithm])
    ahead = sum(each > 0 if points > 0 else each < 0 for each in differences)
    more, better = ("more", "higher") if points > 0 else ("less", "lower")
    seeds = f" ({better} on {ahead} of {len(differences)} seeds)" if len(differences) > 1 else ""
    return f"{name_of(lead.algorithm)} has {abs(points):.1f} points {more} than {rival_of(other.algorithm)}{seeds}."
