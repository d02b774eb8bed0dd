"""What the votings that weigh parties share: who weighs how much, and labels that do not stray."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedkt.bundle import Bundle
from fedkt.federation import Server
from fedkt.pooling import Matrix, limit_label_drift, shares_of


def limit_drift(server: Server, voting: Sequence[Bundle], scores: Matrix) -> Matrix:
    """The scores, moved where the class shares of their labels stray too far; the report says so.

    Labels of calibrated students alone stay as they are: if they stray, then because classes can hardly be told apart.
    """
    if all_calibrated(voting):
        return scores
    result, before, after = limit_label_drift(scores)
    server.diary.vote.strayed = before
    if result is not scores:
        server.diary.say(
            f"The labels' class shares strayed by {before:.1%} from how probable the parties find the classes on the "
            f"public rows, and were pulled back to {after:.1%}."
        )
    return result


def all_calibrated(voting: Sequence[Bundle]) -> bool:
    """Whether all students find a class about as probable as it is."""
    return all(bundle.calibrated and bundle.has_probabilities for bundle in voting)


def note_weights(server: Server, voting: Sequence[Bundle], counts: Matrix, says: str) -> None:
    """Write down how much each party weighs and on which class most, and who outweighs all others by far."""
    vote, shares = server.diary.vote, shares_of(counts)
    vote.voters = len(voting)
    # Of a class without rows everybody has an equal share, which says nothing about anybody.
    classes = np.flatnonzero(counts.sum(axis=0) >= min(1.0, counts.sum(axis=0).max()))
    shares = shares[:, classes]
    vote.weights = {bundle.sender: float(share.mean()) for bundle, share in zip(voting, shares, strict=True)}
    vote.largest_shares = {
        bundle.sender: [str(server.classes[int(classes[share.argmax()])]), float(share.max())]
        for bundle, share in zip(voting, shares, strict=True)
    }
    for bundle, part in zip(voting, counts.sum(axis=1) / max(counts.sum(), 1.0), strict=True):
        # That is more than halfway from an equal part to everything.
        if len(voting) > 1 and part > (1 + 1 / len(voting)) / 2:
            server.diary.say(
                f"Party {bundle.sender!r} {says} {part:.0%} of all rows, so its word outweighs all others together. "
                "The server cannot check that: make sure that it is so, or limit it by the rows of a plan."
            )


def name_parties(names: Sequence[str]) -> str:
    """The first of many parties by name."""
    return f"{', '.join(map(repr, names[:20]))}{' and others' * (len(names) > 20)}"
