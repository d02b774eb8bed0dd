"""Algorithms as tables and pictures call them: from their cards, also where a page has added settings to a name."""

from __future__ import annotations

from dataclasses import replace

from fedkt.algorithms import known_algorithms
from fedkt.algorithms.card import BOTH_WAYS, Card
from fedkt.federation import Algorithm
from fedkt.lab.svg import GREEN, PALETTE, PURPLE, RED, SKY


def card_of(algorithm: str) -> Card:
    """The algorithm's card; what is not in the catalogue is taken to send a model of some size both ways."""
    name = algorithm.partition(" ")[0]
    return known_algorithms().get(name) or Card(
        name, name, "", Algorithm, traffic=replace(BOTH_WAYS, broadcasts=None), colour=""
    )


def name_of(algorithm: str) -> str:
    """An algorithm as it is written in text, with the settings that a page has added to its name."""
    _, space, settings = algorithm.partition(" ")
    return card_of(algorithm).title + space + settings


def rival_of(algorithm: str) -> str:
    """What a sentence says that a result is better or worse than."""
    return card_of(algorithm).rival or name_of(algorithm)


def colour_of(algorithm: str, place: int) -> str:
    """Its colour; one whose card names none gets one by its place."""
    card = card_of(algorithm)
    return PALETTE.get(card.colour, [SKY, RED, GREEN, PURPLE][place % 4])


def marker_of(algorithm: str) -> str:
    """Its shape, so that lines are told apart without their colours."""
    return card_of(algorithm).marker or "*"
