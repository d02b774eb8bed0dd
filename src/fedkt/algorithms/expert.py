"""FedKT with expert voting: a party's vote on a class counts by its share of the rows of that class.

In Algorithm 1 a party that has hardly seen a class votes on it like everybody else. Here each party also says how many
rows of each class it has, and the server weighs it by that (see `fedkt.experts` for the arithmetic and what it
assumes). Students that give probabilities are asked for them: their fixed point is what a model of the pooled rows
would say. A final network learns it as it is, another final model the likeliest class. Where a student only names a
class, everybody's votes are weighed instead.

Without noise subsets buy nothing: one teacher sees all rows of its party, and one student is sent instead of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.fedkt import FedKT, ask, number_of_queries
from fedkt.algorithms.levels import count_noise
from fedkt.algorithms.pate import STUDY, TIES, fingerprint
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, ModelError
from fedkt.experts import (
    TOLERANCE,
    Matrix,
    expert_votes,
    pooled_posterior,
    pulled_back,
    rows_of_one,
    shares_of,
)
from fedkt.federation import Party, Server, Side
from fedkt.models.base import FittedModel, count_rows, one_thread, prepared
from fedkt.models.catalogue import Roles, roles
from fedkt.models.ensemble import is_neural
from fedkt.models.prediction import probabilities_of_all, says_how_sure
from fedkt.privacy import Release
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.ledger import counts_release
from fedkt.votes import count_votes, winners

COUNTS_STREAM = 0xC0417
"""What a party's generator of noise draws with this number: the noise on its class counts."""
HEAVY = 0.5
"""A party with more than this part of all rows outvotes the others together, and the report says so."""


class ExpertFedKT(FedKT):
    """FedKT whose server weighs each party by its class counts, or (`counts=False`) by what its students say.

    The settings are those of `FedKT`; there is one partition, and without noise one subset, unless they are chosen; a
    single teacher is of its student's own family.
    """

    def __init__(
        self,
        model: Any,
        *,
        counts: bool = True,
        partitions: int = 1,
        subsets: int | None = None,
        level: str = "L0",
        **settings: Any,
    ) -> None:
        subsets = (1 if level == "L0" else 5) if subsets is None else subsets
        super().__init__(model, partitions=partitions, subsets=subsets, level=level, **settings)
        self.counts = counts
        self.name = "fedkt-expert" if counts else "fedkt-expert-no-counts"

    def check(self) -> None:
        """Refuse settings that cannot work, before anything is trained."""
        super().check()
        if self.level == "L1":
            raise ConfigurationError(
                "At level L1 one party's vote may move the count by one vote, and the noise hides just that. Expert "
                "voting lets some parties weigh more than others. Choose consistent voting, or level L0."
            )

    def chosen(self, party: Party) -> Roles:
        """Who teaches and who studies at this party."""
        found = super().chosen(party)
        if self.subsets > 1 or self.teacher is not None:
            return found
        # A tree is the usual teacher because many of them disagree usefully; one alone only knows less.
        return roles(found.student, teacher=found.student)

    def releases(self, *, public_rows: int, classes: int, party_rows: Sequence[int]) -> set[tuple[Release, ...]]:
        """What each owner of a budget releases with noise: at L2 every party its class counts as well."""
        found = super().releases(public_rows=public_rows, classes=classes, party_rows=party_rows)
        if self.level != "L2" or not self.counts:
            return found
        beside = counts_release(self.count_noise(public_rows), classes)
        return {(*votes, beside) for votes in found}

    def count_noise(self, public_rows: int) -> GaussianCounts:
        """The noise on a party's class counts at level L2."""
        assert self.noise is not None
        return count_noise(self.noise, self.partitions * number_of_queries(self.queries, public_rows))

    def bundle(self, party: Party) -> Bundle:
        """The party's students, and its class counts; with noise at L2."""
        return replace(super().bundle(party), counts=self.told(party) if self.counts else None, soft=True)

    def told(self, party: Party) -> tuple[int, ...]:
        """How many rows of each class the party says it has."""
        n_classes = len(party.classes)

        def count() -> NDArray[np.int64]:
            return np.bincount(party.y, minlength=n_classes)

        if self.level != "L2":
            return tuple(int(each) for each in count())
        return party.ledger.release_counts(
            count,
            self.count_noise(count_rows(party.public)),
            classes=n_classes,
            rng=party.noise_rng(COUNTS_STREAM),
            noise_key=fingerprint(party.noise_seed, COUNTS_STREAM),
        )

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The final model, trained on the public rows as the parties' experts label them."""
        self.check()
        if not self.counts and len(server.classes) == 2:
            raise ConfigurationError(
                "With two classes, who knows which of them cannot be told from what the students say. Let the parties "
                "send their class counts, or choose consistent voting."
            )
        with one_thread():
            soft = all(says_how_sure(each) for bundle in bundles for each in bundle.models)
            voting, opinions = self.opinions(server, bundles, soft=soft)
            counts = self.counted(voting, opinions)
            scores = self.weigh(server, voting, opinions, counts, soft=soft)
            labels = winners(scores, server.rng(0, TIES))
            final = self.final_model(server)
            if soft and is_neural(final):
                server.diary.figures["labels"] = [(None, labels)]
                return Bundle("server", server.classes, (softly_taught(final, server, scores),))
            return Bundle("server", server.classes, (self.study(server, labels),))

    def opinions(
        self, server: Server, bundles: Sequence[Bundle], *, soft: bool
    ) -> tuple[list[Bundle], list[NDArray[np.float32]]]:
        """Who is heard, and what each says about every public row: a distribution over the classes."""
        voting, said = [], []
        for bundle, answers in self.heard(server, bundles, ask_softly if soft else ask):
            voting.append(bundle)
            if soft:
                said.append(answers.mean(axis=0, dtype=np.float64).astype(np.float32))
            else:
                said.append((count_votes(answers, len(server.classes)) / len(answers)).astype(np.float32))
        return voting, said

    def counted(self, voting: Sequence[Bundle], opinions: Sequence[NDArray[np.float32]]) -> Matrix:
        """Each party's rows of each class, as it says; or how often its students name the class."""
        if not self.counts:
            return np.array([each.sum(axis=0, dtype=np.float64) for each in opinions])
        silent = [bundle.sender for bundle in voting if bundle.counts is None]
        if silent:
            raise ModelError(f"Party {silent[0]!r} did not say how many rows of each class it has.")
        return np.array([bundle.counts for bundle in voting], dtype=np.float64)

    def weigh(
        self,
        server: Server,
        voting: Sequence[Bundle],
        opinions: Sequence[NDArray[np.float32]],
        counts: Matrix,
        *,
        soft: bool,
    ) -> Matrix:
        """What the parties say together about each public row, pulled back where it strays from their prior."""
        shares = shares_of(counts)
        scores = pooled_posterior(opinions, shares) if soft else expert_votes(opinions, shares)
        figures = server.diary.figures
        figures["voters"] = len(voting)
        figures["weights"] = {bundle.sender: float(share.mean()) for bundle, share in zip(voting, shares, strict=True)}
        if self.counts:
            prior = rows_of_one(counts.sum(axis=0, keepdims=True))[0]
            scores, strayed = pulled_back(scores, prior)
            figures["strayed"] = strayed
            if strayed > TOLERANCE:
                server.diary.say(
                    f"The labels' class shares strayed from those of the parties' rows by {strayed:.1%}, and were "
                    f"pulled back to {TOLERANCE:.0%}. This is right where the public rows resemble all parties' rows "
                    "together, and wrong where they do not."
                )
            warn_of_heavy_parties(server, voting, counts)
        return scores


def ask_softly(task: tuple[Sequence[Any], Any, int]) -> list[NDArray[np.float32] | str]:
    """How probable each of one party's students finds each class of each public row, or why it does not say."""
    return probabilities_of_all(*task)


def softly_taught(network: Any, side: Side, labels: Matrix) -> FittedModel:
    """A network that learns the distribution over the classes on each public row."""
    own = prepared(network, side.rng(0, STUDY)).set_params(classes=range(len(side.classes)))
    own.fit_soft(side.public, labels)
    return FittedModel(own, np.arange(len(side.classes)), own.n_features_in_)


def warn_of_heavy_parties(server: Server, voting: Sequence[Bundle], counts: Matrix) -> None:
    """Say who outweighs all others together: nobody can check a count."""
    for bundle, part in zip(voting, counts.sum(axis=1) / max(counts.sum(), 1.0), strict=True):
        if part > HEAVY and len(voting) > 1:
            server.diary.say(
                f"Party {bundle.sender!r} says it has {part:.0%} of all rows, so its word outweighs all others. Make "
                "sure that this is so: nobody can check the counts from here."
            )
