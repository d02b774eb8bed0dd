"""Yes and no, in the words that people and programs have for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

TRUE = frozenset(["true", "yes", "ja", "oui", "si", "sí", "sim", "wahr", "vrai", "verdadero", "y", "j", "t", "1"])
FALSE = frozenset(["false", "no", "nein", "non", "não", "falsch", "faux", "falso", "n", "f", "0"])
FALSE_TRUE = ("false", "true")
"""The two as the agreed categories of a column, and as keys."""


def truth_of(text: str) -> str | None:
    """ "true" or "false" for what means that, in upper or lower case; None for anything else."""
    folded = text.strip().casefold()
    return "true" if folded in TRUE else "false" if folded in FALSE else None


def are_truths(texts: Collection[str]) -> bool:
    """Whether texts are words for yes and no, both of them among them and more than the numbers 0 and 1."""
    return {truth_of(each) for each in texts} == {"true", "false"} and not set(texts) <= {"0", "1"}


def truth_number(text: str) -> float | None:
    """1 or 0 for a word that means yes or no, None for anything else; a value is read by itself, not by its column.

    One letter is no word here: n may stand for what is not known.
    """
    truth = truth_of(text) if len(text) > 1 else None
    return None if truth is None else float(truth == "true")


def truth_places(classes: Sequence[str | int]) -> dict[str, int]:
    """For two classes that mean yes and no, the place of each by its meaning; empty for any others."""
    found = {truth: place for place, each in enumerate(classes) if (truth := truth_of(str(each))) is not None}
    return found if len(found) == len(classes) == 2 else {}
