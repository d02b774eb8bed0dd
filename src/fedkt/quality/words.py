"""The main figures of a model in one line, for reports, tables and pages."""

from __future__ import annotations

from fedkt.quality.figures import Quality
from fedkt.quality.verdict import accuracy_in_words, quote


def main_line(quality: Quality) -> str:
    """How often the model is right, with its interval and the majority beside it."""
    rows = f"{quality.rows:,} {'row' if quality.rows == 1 else 'rows'}"
    named = quote(quality.majority_class)
    return (
        f"Right on {accuracy_in_words(quality)} of {rows}; always naming {named} is right on "
        f"{100 * quality.majority:.1f} %."
    )


def opening_line(quality: Quality) -> str:
    """The first sentence of a page about a model with which nothing is wrong."""
    named = quote(quality.majority_class)
    return (
        f"The model is better than always naming {named}: it is right on {accuracy_in_words(quality)} of the rows, "
        f"always naming {named} on {100 * quality.majority:.1f} %."
    )
