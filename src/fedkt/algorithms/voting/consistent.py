"""Consistent voting, the paper's own: a party has one vote on a row where all its students agree, and none elsewhere.

Li, He, Song: Practical One-Shot Federated Learning for Cross-Silo Setting. IJCAI 2021, Algorithm 1, lines 14 to 22.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedkt.algorithms.lesson import TIES
from fedkt.algorithms.voting.answers import StudentAnswers
from fedkt.algorithms.voting.base import LabelledRows, Voting
from fedkt.federation import Server
from fedkt.models.base import count_rows
from fedkt.pooling import normalise_rows
from fedkt.privacy import Ledger
from fedkt.votes import NO_VOTE, Labels, Votes, consistent_votes, sum_votes

if TYPE_CHECKING:
    from fedkt.algorithms.fedkt import FedKT

LOST = 5
"""A class whose share of the votes is this many times its share of the labels is called lost in the report."""


@dataclass(frozen=True)
class Consistent(Voting):
    """One vote a party, where its students agree."""

    name = "consistent"
    title = "FedKT"
    summary = "one message from each party"
    server_rule = "the server counts a party's vote where all its students agree"
    choice = "a party has one vote where its students agree"
    assumption = "Most parties know every class about equally well: a class that few know is outvoted."
    colour = "blue"
    marker = "D"
    levels = ("L0", "L1", "L2")
    default_at = ("L1", "L2")
    compared_at = ("L0", "L1", "L2")

    def partitions(self, level: str) -> int:
        """s where nobody chose it: with noise a partition is a release of its own."""
        return 2 if level == "L0" else 1

    def subsets(self, level: str) -> int:
        """t where nobody chose it."""
        return 5

    def advice(self, level: str) -> str:
        """That classes get lost, and which voting keeps them where there is one."""
        remedy = "level L1 has no other voting" if level == "L1" else "`fedkt plan new --voting expert` keeps them"
        return (
            f"Where the parties see different classes, consistent voting loses those that few of them know; {remedy}."
        )

    def label(self, fedkt: FedKT, server: Server, answers: StudentAnswers) -> LabelledRows:
        """The winners of the consistent votes; at level L1 of k rows, with noise."""
        if fedkt.level == "L1":
            return self.noisy_winners(fedkt, server, answers)
        # At L2 the students are private, and what is made of them costs nothing more (post-processing).
        return self.winners(fedkt, server, answers)

    def winners(self, fedkt: FedKT, server: Server, answers: StudentAnswers) -> LabelledRows:
        """The winners of the consistent votes on all public rows, and each class's share of the votes."""
        n_classes = len(server.classes)
        votes = consistent_votes((each for _, each in answers.voters), n_classes)
        voters = len(answers.voters)
        if not votes.any():
            votes = plain_votes(fedkt, server, answers)
            voters = int(votes[0].sum())
        labels = Ledger().release_bare(
            lambda: votes, queries=len(votes), voters=voters, classes=n_classes, rng=server.rng(0, TIES)
        )
        note_figures(server, votes, labels, voters)
        note_lost_classes(server, votes, labels)
        return LabelledRows(labels, distributions=normalise_rows(votes.astype(np.float64)))

    def noisy_winners(self, fedkt: FedKT, server: Server, answers: StudentAnswers) -> LabelledRows:
        """The noisy winners of the consistent votes on k public rows. Nothing else about the votes is kept."""
        queries = fedkt.query_rows(count_rows(server.public))
        assert queries is not None

        def count() -> Votes:
            votes = consistent_votes((each for _, each in answers.voters), len(server.classes))
            if server.diagnostic:
                server.diary.bare_votes.append(votes)
            return votes

        (release,) = fedkt.releases(
            public_rows=count_rows(server.public), classes=len(server.classes), parties=len(answers.voters)
        )
        labels = server.ledger.release(count, release, rng=server.noise_rng(), noise_seed=server.noise_seed)
        return LabelledRows(labels, queries)


def plain_votes(fedkt: FedKT, server: Server, answers: StudentAnswers) -> Votes:
    """Every student's own vote: what is left where no party's students agree on any public row."""
    server.diary.say(
        f"On no public row do all {fedkt.partitions} students of any party agree, so every student's own vote was "
        "counted. Expect a poor model: use more public rows, more rows per party, or fewer partitions."
    )
    return sum_votes((np.asarray(each) for _, each in answers.voters), len(server.classes))


def note_figures(server: Server, votes: Votes, labels: Labels, voters: int) -> None:
    """Write down, for the server's own report, how the vote went."""
    cast = votes.sum(axis=1)
    top = votes.max(axis=1)
    ties = (votes == top[:, None]).sum(axis=1) > 1
    vote = server.diary.vote
    vote.voters = voters
    vote.unlabelled = int((labels == NO_VOTE).sum())
    vote.ties = int((ties & (top > 0)).sum())
    vote.abstention_rate = float(np.mean(voters - cast) / voters)
    vote.agreement_histogram = twentieths(top, voters)
    vote.abstention_histogram = twentieths(voters - cast, voters)


def note_lost_classes(server: Server, votes: Votes, labels: Labels) -> None:
    """Say which classes many votes are for but hardly any row is labelled with.

    A row's label follows the party in the middle. Where parties' class shares differ a lot, a class that fewer than
    half of them know well can lose every row, however many votes it has.
    """
    cast = votes.sum(axis=0) / max(votes.sum(), 1)
    share = np.bincount(labels[labels != NO_VOTE], minlength=len(server.classes)) / max(len(labels), 1)
    for label, name in enumerate(server.classes):
        if cast[label] > LOST * share[label] and cast[label] >= 0.01:
            server.diary.say(
                f"Class {name!r} has {cast[label]:.1%} of the votes but is the label of only {share[label]:.1%} of the "
                "public rows: most parties hardly know it and outvote the others. The final model may not know it."
            )


def twentieths(count: Labels, of: int) -> list[int]:
    """How many queries fall into each twentieth of 0 … `of`, in whole numbers so that 3 of 5 is exactly 60 %."""
    bins: list[int] = np.bincount(np.minimum(count * 20 // of, 19), minlength=20).tolist()
    return bins
