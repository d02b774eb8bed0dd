"""Algorithms as tables and pictures call them: from their cards, also where a page has added settings to a name."""

from __future__ import annotations

from fedkt.algorithms import ALGORITHMS
from fedkt.algorithms.card import Card


def kind(algorithm: str) -> str:
    """The algorithm without the settings that a page adds to its name."""
    return algorithm.partition(" ")[0]


def card_of(algorithm: str) -> Card | None:
    """The algorithm's card; None for one that is not in the catalogue."""
    return ALGORITHMS.get(kind(algorithm))


def name_of(algorithm: str) -> str:
    """An algorithm as it is written in text."""
    first, space, rest = algorithm.partition(" ")
    card = card_of(algorithm)
    return (first if card is None else card.title) + space + rest


def summary_of(algorithm: str) -> str:
    """What it is, in a line; empty for one that is not in the catalogue."""
    card = card_of(algorithm)
    return "" if card is None else card.summary


def rival_of(algorithm: str) -> str:
    """What a sentence says that a result is better or worse than."""
    card = card_of(algorithm)
    return name_of(algorithm) if card is None or not card.rival else card.rival
