"""How a vote went, for the server's own report at level L0."""

from __future__ import annotations

import numpy as np

from fedkt.federation import Server
from fedkt.votes import NO_VOTE, Labels, Votes

LOST = 5
"""A class whose share of the votes is this many times its share of the labels is called lost in the report."""


def describe(server: Server, votes: Votes, labels: Labels, voters: int) -> None:
    """Write down, for the server's own report at level L0, how the vote went."""
    cast = votes.sum(axis=1)
    top = votes.max(axis=1)
    ties = (votes == top[:, None]).sum(axis=1) > 1
    figures = server.diary.figures
    figures["voters"] = voters
    figures["unlabelled"] = int((labels == NO_VOTE).sum())
    figures["ties"] = int((ties & (top > 0)).sum())
    figures["abstention_rate"] = float(np.mean(voters - cast) / voters)
    figures["agreement_histogram"] = twentieths(top, voters)
    figures["abstention_histogram"] = twentieths(voters - cast, voters)


def warn_of_lost_classes(server: Server, votes: Votes, labels: Labels) -> None:
    """Say which classes many votes are for but hardly any row is labelled with.

    A row's label follows the party in the middle. Where parties' class shares differ a lot, a class that fewer than
    half of them know well can lose every row, however many votes it has.
    """
    cast = votes.sum(axis=0) / max(votes.sum(), 1)
    given = np.bincount(labels[labels != NO_VOTE], minlength=len(server.classes)) / max(len(labels), 1)
    for label, name in enumerate(server.classes):
        if cast[label] > LOST * given[label] and cast[label] >= 0.01:
            server.diary.say(
                f"Class {name!r} has {cast[label]:.1%} of the votes but is the label of only {given[label]:.1%} of the "
                "public rows: most parties hardly know it and outvote the others. The final model may not know it."
            )


def twentieths(count: Labels, of: int) -> list[int]:
    """How many queries fall into each twentieth of 0 … `of`, in whole numbers so that 3 of 5 is exactly 60 %."""
    bins: list[int] = np.bincount(np.minimum(count * 20 // of, 19), minlength=20).tolist()
    return bins
