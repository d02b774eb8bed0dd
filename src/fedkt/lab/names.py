"""Algorithms as tables and pictures call them: from their cards, also where a page has added settings to a name."""

from __future__ import annotations

from fedkt.algorithms import ALGORITHMS
from fedkt.algorithms.card import Card
from fedkt.lab.svg import GREEN, PALETTE, PURPLE, RED, SKY


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


def colour_of(algorithm: str, place: int) -> str:
    """Its colour; one that is not in the catalogue gets one by its place."""
    card = card_of(algorithm)
    return [SKY, RED, GREEN, PURPLE][place % 4] if card is None else PALETTE[card.colour]


def marker_of(algorithm: str) -> str:
    """Its shape, so that lines are told apart without their colours."""
    card = card_of(algorithm)
    return "*" if card is None or card.marker is None else card.marker
