"""The quality of a model on a terminal."""

import io

import numpy as np
import pytest

from fedkt.cli import grids, output, quality
from fedkt.quality import compare_accuracy, measure_quality, verdicts


@pytest.fixture
def terminal(monkeypatch):
    """What an 80-column terminal shows."""
    screen = output.Screen(file=io.StringIO(), width=80)
    for module in (quality, grids):
        monkeypatch.setattr(module, "stdout", screen)
    return screen.file


def test_tables_of_six_classes_with_long_names_fit_eighty_columns(terminal):
    names = [f"{letter * 30} class" for letter in "abcdef"]
    truth = np.arange(6).repeat(200_000)
    measured = measure_quality(truth, np.roll(truth, 50_000), names, np.full((1_200_000, 6), 1 / 6))
    quality.print_quality(measured, comparisons=[("x" * 60, compare_accuracy(truth, truth, np.roll(truth, 1)))])
    lines = [line for line in terminal.getvalue().splitlines() if not line.startswith(("Better", "Right", "Said"))]
    assert max(map(len, lines)) <= 80
    # Six counts of the diagonal and six beside it, all whole.
    assert terminal.getvalue().count("150,000") == 6
    assert terminal.getvalue().count(" 50,000") == 6


def test_the_verdict_comes_first_and_the_majority_with_the_accuracy(terminal):
    measured = measure_quality([0] * 78 + [1] * 22, [0] * 100, ["no", "yes"])
    quality.print_quality(measured, verdicts=verdicts(measured))
    shown = terminal.getvalue()
    assert shown.startswith("Attention: The model is no better than always naming 'no'")
    assert "always naming 'no' is right on 78.0 %" in shown


def test_names_in_brackets_are_names(terminal):
    quality.print_quality(measure_quality([0, 1], [0, 1], ["[red]a", "[/]b"]))
    assert "[red]a" in terminal.getvalue()
    assert "[/]b" in terminal.getvalue()
