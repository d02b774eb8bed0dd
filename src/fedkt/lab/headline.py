"""The first words of a page: what was run, how good it is, and who is ahead by how much."""

from __future__ import annotations

from collections.abc import Sequence

from fedkt.lab.names import name_of, rival_of
from fedkt.lab.results import Summary, paired_points
from fedkt.lab.words import percent, with_noun, with_spread
from fedkt.report import Report


def headline(first: Report, scores: dict[str, Summary], measured: Sequence[Report]) -> list[str]:
    """What was run, how good it is, and who is ahead by how much."""
    setting = f"{first.dataset} with {with_noun(first.parties, 'party', 'parties')}"
    if not scores:
        return [f"{name_of(first.algorithm)} was run on {setting}. No test rows were given: its accuracy is not known."]
    ranked = sorted(scores.values(), key=lambda each: each.mean_accuracy, reverse=True)
    lead = scores.get("fedkt", ranked[0])
    mean = with_spread(lead.accuracy, len(lead.seeds) > 1)
    over = f"mean of {len(lead.seeds)} seeds" if len(lead.seeds) > 1 else f"seed {lead.seeds[0]}"
    sentences = [f"{name_of(lead.algorithm)} on {setting} reaches a test accuracy of {mean} ({over})."]
    for other in sorted(scores.values(), key=lambda each: each.mean_accuracy):
        if other is not lead:
            sentences.append(compared(lead, other, measured))
    alone = [value for report in measured if report.algorithm == "solo" for value in report.party_accuracy.values()]
    if len(alone) > 1:
        sentences.append(f"Alone, the single parties reach between {percent(min(alone))} and {percent(max(alone))}.")
    if ranked[0] is not lead:
        sentences.append(f"Highest of all: {name_of(ranked[0].algorithm)} with {percent(ranked[0].mean_accuracy)}.")
    if len(lead.seeds) == 1:
        sentences.append("This is a single seed: how much luck there is in it is not known.")
    return sentences


def compared(lead: Summary, other: Summary, measured: Sequence[Report]) -> str:
    """The distance between two algorithms in percentage points, and on how many of their common seeds it holds."""
    points = 100 * (lead.mean_accuracy - other.mean_accuracy)
    with_whom = rival_of(other.algorithm)
    if abs(points) < 0.05:
        return f"That is as much as {with_whom}."
    apart = paired_points(*([each for each in measured if each.algorithm == one.algorithm] for one in (lead, other)))
    ahead = sum(each > 0 if points > 0 else each < 0 for each in apart)
    more, better = ("more", "higher") if points > 0 else ("less", "lower")
    held = f" ({better} on {ahead} of {len(apart)} seeds)" if len(apart) > 1 else ""
    return f"That is {abs(points):.1f} points {more} than {with_whom}{held}."
