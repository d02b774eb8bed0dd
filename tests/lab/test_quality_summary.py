"""Algorithms side by side: not by accuracy alone, and with what stands beside a figure said."""

from typing import Any

import numpy as np

from fedkt.lab.grid import Grid
from fedkt.lab.quality_summary import difference_summary, quality_summary, run_verdicts
from fedkt.lab.results import less_first
from fedkt.quality import measure_quality
from fedkt.report import NO_PRIVACY, Report

RARE = np.array([0] * 6 + [1] * 4)
"""Ten rows, four of them of class "yes"."""


def run(algorithm: str, seed: int, found: int, sure: float = 0.9, **changes: Any) -> Report:
    """A run whose model finds so many of the four "yes" and all of the six "no"."""
    labels = np.array([0] * 6 + [1] * found + [0] * (4 - found))
    probabilities = np.where(labels[:, None] == [0, 1], sure, 1 - sure)
    quality = measure_quality(RARE, labels, ["no", "yes"], probabilities)
    values: dict[str, Any] = {
        "dataset": "wards",
        "algorithm": algorithm,
        "model": "tree",
        "parties": 3,
        "partitions": 1,
        "subsets": 1,
        "level": "L0",
        "seed": seed,
        "accuracy": quality.accuracy.value,
        "balanced_accuracy": quality.balanced_accuracy.value,
        "label_accuracy": None,
        "epsilon": None,
        "privacy": NO_PRIVACY,
        "bytes_sent": None,
        "seconds": 1.0,
        "cpu_seconds": 1.0,
        "versions": {},
        "quality": quality.as_dict(),
    }
    return Report(**{**values, **changes})


def cells(grid: Grid) -> list[list[str]]:
    return [[str(cell) for cell in line] for line in grid.lines]


def test_ranking_and_probabilities_stand_beside_accuracy_with_their_spread_over_the_seeds():
    """Three and one of four found: accuracies .9 and .7, balanced .875 and .625, and an AUC as the balanced accuracy.

    Sure of 90 % throughout, so that probabilities are off by 0 and .2. Mean ± sample standard deviation of each pair.
    """
    grid = quality_summary([run("fedkt", 0, found=3), run("fedkt", 1, found=1)])
    assert grid.head == ["algorithm", "accuracy %", "balanced %", "AUC %", "off %", "log loss"]
    (line,) = cells(grid)
    assert line[:5] == ["fedkt", "80.0 ± 14.1", "75.0 ± 17.7", "75.0 ± 17.7", "10.0 ± 14.1"]
    # −(9 ln .9 + ln .1)/10 and −(7 ln .9 + 3 ln .1)/10.
    assert float(line[5]) == round(float(-(16 * np.log(0.9) + 4 * np.log(0.1)) / 20), 3)
    assert grid.caption.startswith(
        "±: the standard deviation over 2 seeds, which is no interval of 95 %. Always naming"
    )
    assert "Always naming the most frequent class is right on 60.0 %." in grid.caption


def test_a_single_seed_has_the_interval_of_its_test_rows_beside_each_figure():
    grid = quality_summary([run("fedkt", 0, found=3), run("pate", 0, found=4)])
    # Wilson's interval of 9 and 10 of 10.
    assert [line[1] for line in cells(grid)] == ["90.0 (59.6 to 98.2)", "100.0 (72.2 to 100.0)"]
    assert grid.caption.startswith("In brackets: within what a figure lies with 95 %, as far as 10 test rows tell.")


def test_runs_of_earlier_versions_have_accuracies_and_dashes():
    old = run("fedkt", 0, found=3, quality=None)
    (line,) = cells(quality_summary([old]))
    assert line == ["fedkt", "90.0", "87.5", "–", "–", "–"]
    assert quality_summary([run("fedkt", 0, 3, quality=None, accuracy=None, balanced_accuracy=None)]).lines == []


def test_differences_are_told_of_every_figure_and_of_how_far_off_less_is_better():
    runs = [run("fedkt", 0, 3), run("fedkt", 1, 3), run("pate", 0, 4, sure=0.6), run("pate", 1, 2, sure=0.9)]
    grid = difference_summary(runs)
    assert grid.head == ["algorithm", "accuracy", "balanced", "AUC", "off"]
    (line,) = cells(grid)
    # Accuracy 1 and .8 less .9; AUC 1 and .75 less .875; off by .4 and .1 less 0.
    assert line == [
        "pate",
        "+0.0 ± 14.1 (1 of 2)",
        "+0.0 ± 17.7 (1 of 2)",
        "+0.0 ± 17.7 (1 of 2)",
        "+25.0 ± 21.2 (0 of 2)",
    ]
    assert less_first(runs, "auc") == ("fedkt", {"pate": [12.5, -12.5]})
    assert difference_summary(runs[::2]).lines == [], "a single seed tells no difference"


def test_a_verdict_that_holds_in_some_runs_says_in_how_many():
    runs = [run("fedkt", 0, found=1), run("fedkt", 1, found=4), run("fedkt", 2, found=0)]
    said = run_verdicts(runs)
    assert any(each.startswith("fedkt in 1 of 3 runs: Class 'yes' is never predicted") for each in said)
    assert any(each.startswith("fedkt in 3 of 3 runs, for instance: These are only 10 rows") for each in said)
