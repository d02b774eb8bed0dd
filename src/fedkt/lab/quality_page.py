"""The page about one model on labelled rows: the verdict first, then figures and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedkt.lab.grid import with_capitals
from fedkt.lab.html import page_template
from fedkt.lab.quality_figures import quality_pictures
from fedkt.lab.quality_tables import (
    class_grid,
    comparison_words,
    confusion_grid,
    explained_grid,
    narrow_comparison_grid,
)
from fedkt.quality import Difference, Quality
from fedkt.quality import verdicts as verdicts_of
from fedkt.quality.words import main_line, opening_line, threshold_advice

MOST_BESIDE = 2
"""Other models that have a sentence of their own; of more a reader of a phone would see nothing else."""


def render_quality_page(
    title: str,
    quality: Quality,
    *,
    comparisons: Sequence[tuple[str, Difference]] = (),
    verdicts: Sequence[str] = (),
    facts: Sequence[tuple[str, str]] = (),
) -> str:
    """One self-contained HTML page, without scripts and with nothing loaded from anywhere.

    `comparisons` are other models by name, our accuracy less theirs; `verdicts` are added to those that the figures
    call for; `facts` say what was measured: file, rows, date of the model, and the like.
    """
    return page_template("quality.html").render(
        title=title,
        opening=quality_opening(quality, comparisons, verdicts),
        part=quality_part(quality),
        comparisons=narrow_comparison_grid(comparisons),
        facts=list(facts),
    )


def quality_opening(
    quality: Quality, comparisons: Sequence[tuple[str, Difference]] = (), more: Sequence[str] = ()
) -> dict[str, Any]:
    """The sentences a page opens with, and whether they are a warning."""
    found = list(dict.fromkeys((*verdicts_of(quality), *more)))
    advice = threshold_advice(quality)
    sentences = [*(found or [opening_line(quality)]), *([] if advice is None else [advice])]
    # The other openings have the accuracy in them.
    if found and quality.accuracy.low > quality.majority:
        sentences.append(main_line(quality))
    sentences += beside_in_words(comparisons)
    return {"sentences": sentences, "warning": bool(found) or any(each.worse for _, each in comparisons)}


def beside_in_words(comparisons: Sequence[tuple[str, Difference]]) -> list[str]:
    """How a model stands beside others: a sentence each, and of many only how many it beats."""
    if len(comparisons) <= MOST_BESIDE:
        return [comparison_words(name, each) for name, each in comparisons]
    better, worse = (sum(getattr(each, what) for _, each in comparisons) for what in ("better", "worse"))
    return [
        f"The model is better than {better:,} of {len(comparisons):,} other models on these rows and worse than "
        f"{worse:,}; the other {len(comparisons) - better - worse:,} cannot be told apart from it."
    ]


def quality_part(quality: Quality, suffix: str = "") -> dict[str, Any]:
    """What the template of this part of a page needs; `suffix` makes the ids of its pictures its own."""
    return {
        "figures": explained_grid(quality),
        "classes": with_capitals(class_grid(quality)),
        "confusion": confusion_grid(quality),
        "pictures": [picture.svg(f"{suffix}q{place}") for place, picture in enumerate(quality_pictures(quality))],
        "calibrated": bool(quality.calibration_curve),
    }
