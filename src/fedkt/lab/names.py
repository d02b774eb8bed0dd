"""What readers see of an algorithm: its name, what it is in a line, its colour and its shape."""

from __future__ import annotations

from fedkt.lab.svg import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SKY

COLOURS = {
    "fedkt": BLUE,
    "solo": ORANGE,
    "pate": GREEN,
    "centralised": PURPLE,
    "fedavg": RED,
    "fedprox": SKY,
    "scaffold": INK,
    # What has rounds is a line, what has none a dashed one: these two may share a colour with the latter.
    "feddf": GREEN,
    "fedkt-prox": BLUE,
    "pfnm": "#8C564B",
    "fedkt-expert": RED,
    "fedkt-expert-no-counts": PURPLE,
    "pate-soft": "#8C564B",
}
NAMES = {
    "fedkt": "FedKT",
    "solo": "Solo",
    "pate": "PATE",
    "centralised": "Centralised",
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "scaffold": "SCAFFOLD",
    "feddf": "FedDF",
    "fedkt-prox": "FedKT-Prox",
    "pfnm": "PFNM",
    "fedkt-expert": "FedKT, experts",
    "fedkt-expert-no-counts": "FedKT, experts, no counts",
    "pate-soft": "PATE, soft",
}
MARKERS = {"fedkt": "D", "fedkt-prox": "o", "fedavg": "s", "fedprox": "^", "scaffold": "v", "feddf": "h", "pfnm": "X"}
"""Shapes, so that lines are told apart without their colours."""
WHAT_IT_IS = {
    "fedkt": "one message from each party",
    "solo": "each party alone; mean over the parties",
    "pate": "upper bound: needs all rows in one place",
    "centralised": "upper bound: needs all rows in one place",
    "fedavg": "averages of weights",
    "fedprox": "averages of weights held near the last ones",
    "scaffold": "averages of weights with control variates",
    "feddf": "averages of weights, distilled on the public rows",
    "pfnm": "one round, neurons matched",
    "fedkt-prox": "FedKT, then rounds of FedProx",
    "fedkt-expert": "one message, parties weighed by their class counts",
    "fedkt-expert-no-counts": "one message, students say which rows are not their party's",
    "pate-soft": "upper bound: needs all rows in one place",
}
COMPARED_WITH = {
    "solo": "a party alone on average",
    "pate": "PATE on the pooled rows",
    "pate-soft": "PATE with soft labels on the pooled rows",
    "centralised": "training on the pooled rows",
}


def name_of(algorithm: str) -> str:
    """An algorithm as it is written in text."""
    first, space, rest = algorithm.partition(" ")
    return NAMES.get(first, first) + space + rest


def colour_of(algorithm: str, place: int) -> str:
    """An algorithm's colour; one that is not known gets one by its place."""
    return COLOURS.get(algorithm.partition(" ")[0], [SKY, RED, GREEN, PURPLE][place % 4])


def marker_of(algorithm: str) -> str:
    """An algorithm's shape."""
    return MARKERS.get(algorithm.partition(" ")[0], "*")


def summary_of(algorithm: str) -> str:
    """What an algorithm is, in a line; empty where it is not known."""
    return WHAT_IT_IS.get(algorithm.partition(" ")[0], "")
