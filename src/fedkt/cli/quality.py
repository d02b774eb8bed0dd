"""The quality of one model on the terminal: verdicts first, then tables."""

from __future__ import annotations

from collections.abc import Sequence

from fedkt.cli.grids import print_below
from fedkt.cli.output import stdout
from fedkt.lab.quality_tables import (
    calibration_grid,
    class_grid,
    comparison_grid,
    comparison_words,
    confusion_grid,
    figures_grid,
)
from fedkt.quality import Difference, Quality
from fedkt.quality.words import main_line, threshold_advice


def print_quality(
    quality: Quality,
    *,
    verdicts: Sequence[str] = (),
    comparisons: Sequence[tuple[str, Difference]] = (),
    final: str = "final.onnx",
) -> None:
    """Everything that is known of the quality of the model in a file; `verdicts` are said as they are given."""
    for sentence in verdicts:
        print_verdict(sentence)
    print_advice(quality, final)
    for name, each in comparisons:
        print_verdict(comparison_words(name, each)) if each.worse else stdout.say(comparison_words(name, each))
    stdout.say(main_line(quality))
    print_below(figures_grid(quality))
    print_classes(quality)
    print_below(calibration_grid(quality))
    print_below(comparison_grid(comparisons))


def print_classes(quality: Quality) -> None:
    """What is found of each class, and what is taken for what."""
    print_below(class_grid(quality))
    print_below(confusion_grid(quality))


def print_advice(quality: Quality, final: str) -> None:
    """How labels can be moved, where they overlook a class."""
    advice = threshold_advice(quality, final)
    if advice is not None:
        stdout.say(advice)


def print_verdict(sentence: str) -> None:
    """Something that must not be overlooked."""
    stdout.print("[bold red]Attention:[/bold red]", end=" ")
    stdout.say(sentence)
