"""The studies of expert voting still give what their result files say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paper.expert_counts import suspicions
from paper.expert_labels import dataset_task, right_labels, synthetic_task

RESULTS = Path(__file__).parents[2] / "paper" / "results"


def kept(file: str, problem: str) -> dict[str, float]:
    """What the first seed gave when it was run."""
    entries = json.loads((RESULTS / file).read_text(encoding="utf-8"))
    (found,) = (each for each in entries if (each["problem"], each["seed"]) == (problem, 0))
    return {name: value for name, value in found.items() if name not in ("problem", "seed")}


def test_labels_on_a_made_up_problem_are_as_good_as_they_were():
    # A row in 2,000 may tip on another machine.
    assert right_labels(synthetic_task(0, kind="dirichlet"), 0) == pytest.approx(
        kept("expert-labels.json", "noisy"), abs=0.005
    )


def test_false_counts_on_the_digits_are_noticed_as_they_were():
    task = dataset_task("digits", None, None, 0, "balanced", "logistic")
    assert suspicions(task, 0) == pytest.approx(kept("expert-counts.json", "digits, logistic"), abs=0.01)
