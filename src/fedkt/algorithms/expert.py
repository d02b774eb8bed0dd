"""FedKT with expert voting: a party's vote on a class counts by its share of the rows of that class.

In Algorithm 1 a party that has hardly seen a class votes on it like everybody else. Here each party also says how many
rows of each class it has, and the server weighs it by that (see `fedkt.pooling` for the arithmetic and what it
assumes). Students that give probabilities are asked for them: their fixed point is what a model of the pooled rows
would say. One that only names a class counts as nearly sure of it. A final network learns the fixed point as it is,
another final model the likeliest class.

Without noise subsets buy nothing: one teacher sees all rows of its party, its student learns how sure it is (see
`distil`), and one student is sent instead of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.calibration import check_voting, count_noise, default_subsets
from fedkt.algorithms.distil import SoftLesson, gives_probabilities, learn_distributions
from fedkt.algorithms.fedkt import Ask, FedKT, Heard, number_of_queries
from fedkt.algorithms.pate import TIES, Lesson, learn_students
from fedkt.bundle import Bundle
from fedkt.errors import ModelError, PrivacyError
from fedkt.federation import Party, Server
from fedkt.models.base import FittedModel, count_rows, one_thread
from fedkt.models.catalogue import Roles, roles
from fedkt.models.ensemble import is_calibrated, is_neural, learns_distributions
from fedkt.models.prediction import has_probabilities, probabilities_of_all
from fedkt.pooling import (
    MISFIT,
    Matrix,
    limit_label_drift,
    misfit,
    normalise_rows,
    pooled_posterior,
    shares_of,
)
from fedkt.privacy import Release
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.price import counts_release
from fedkt.system.parallel import Progress, sub_progress
from fedkt.votes import winners

BELIEF = 0.9
"""How sure a student counts as that only names a class."""


class ExpertFedKT(FedKT):
    """FedKT whose server weighs each party by its class counts.

    `count_sigma` is the noise on the counts at level L2, by default a little of what the votes' noise costs.

    The settings are those of `FedKT`; there is one partition, and without noise one subset, unless they are chosen; a
    single teacher is of its student's own family.
    """

    name = "fedkt-expert"
    voting = "expert"
    counts = True

    def __init__(
        self,
        model: Any,
        *,
        count_sigma: float | None = None,
        partitions: int = 1,
        subsets: int | None = None,
        level: str = "L0",
        **settings: Any,
    ) -> None:
        subsets = default_subsets(level, self.voting) if subsets is None else subsets
        super().__init__(model, partitions=partitions, subsets=subsets, level=level, **settings)
        self.count_sigma = count_sigma

    def check(self) -> None:
        """Refuse settings that cannot work, before anything is trained."""
        super().check()
        check_voting(self.voting, level=self.level, partitions=self.partitions, subsets=self.subsets)

    def chosen(self, own: Any = None) -> Roles:
        """Who teaches and who studies at a party: of the agreed families, or of the party's own one."""
        if self.subsets > 1:
            return super().chosen(own)
        teacher, student = self.single(own)
        return roles(student, teacher=teacher)

    def single(self, own: Any) -> tuple[Any, Any]:
        """The only teacher of a party and its student, as they were named.

        A tree is the usual teacher because many of them disagree usefully; one alone only knows less than its student.
        """
        if own is not None:
            return own, own
        student = self.model if self.student is None else self.student
        return (student if self.teacher is None else self.teacher), student

    def calibrated(self, own: Any = None) -> bool:
        """Whether the students of such a party say how probable a class is, and are about right.

        Not those of labels, nor those of several teachers: an average of models that differ is never quite sure.
        """
        return self.level == "L0" and self.subsets == 1 and all(map(is_calibrated, self.single(own)))

    def lessons(self, party: Party, chosen: Roles) -> list[Lesson]:
        """What this party has yet to teach: without noise how sure its teachers are, if they can say."""
        lessons = super().lessons(party, chosen)
        soft = gives_probabilities(chosen.teacher) and learns_distributions(chosen.student)
        if self.level != "L0" or not soft:
            return lessons
        return [SoftLesson(party, each.partition, chosen, self.subsets) for each in lessons]

    def learn(self, lessons: Sequence[Lesson], *, jobs: int, progress: Progress | None) -> list[FittedModel]:
        """The student of each lesson: of distributions or of labels."""
        soft = [each for each in lessons if isinstance(each, SoftLesson)]
        hard = [each for each in lessons if not isinstance(each, SoftLesson)]
        models = [sum(len(each.teachers) + 1 for each in kind) for kind in (soft, hard)]
        sure = iter(learn_distributions(soft, jobs=jobs, progress=sub_progress(progress, 0, sum(models))))
        named = iter(learn_students(hard, jobs=jobs, progress=sub_progress(progress, models[0], sum(models))))
        return [next(sure if isinstance(each, SoftLesson) else named) for each in lessons]

    def releases(self, *, public_rows: int, classes: int, parties: int) -> tuple[Release, ...]:
        """What an owner of a budget releases with noise: at L2 every party its class counts as well."""
        found = super().releases(public_rows=public_rows, classes=classes, parties=parties)
        noise = self.count_noise(public_rows)
        if noise is None:
            return found
        return (*found, counts_release(noise, classes, self.adjacency))

    def count_noise(self, public_rows: int) -> GaussianCounts | None:
        """The noise on a party's class counts at level L2: as agreed on, else as the votes' noise suggests."""
        if self.level != "L2" or self.noise is None:
            return None
        if self.count_sigma is not None:
            return GaussianCounts(self.count_sigma)
        return count_noise(self.noise, self.partitions * number_of_queries(self.queries, public_rows))

    def bundle(self, party: Party) -> Bundle:
        """The party's students, and its class counts; with noise at L2."""
        calibrated = self.calibrated(party.model)
        return replace(super().bundle(party), counts=self.told(party), soft=True, calibrated=calibrated)

    def told(self, party: Party) -> tuple[int, ...]:
        """How many rows of each class the party says it has."""
        n_classes = len(party.classes)

        def count() -> NDArray[np.int64]:
            return np.bincount(party.y, minlength=n_classes)

        if self.level == "L0":
            return tuple(int(each) for each in count())
        public_rows = count_rows(party.public)
        if self.count_noise(public_rows) is None:
            raise PrivacyError(f"Class counts leave at level {self.level} with noise only, and there is none.")
        *_, release = self.releases(public_rows=public_rows, classes=n_classes, parties=1)
        rng = party.noise_rng(release.stream)
        return party.ledger.release_counts(count, release, rng=rng, noise_seed=party.noise_seed)

    def conclude(self, server: Server, heard: Sequence[Heard]) -> Bundle:
        """The final model, trained on the public rows as the parties' experts label them."""
        with one_thread():
            voting = [bundle for bundle, _ in heard]
            # A distribution over the classes for every public row: the mean of a party's students.
            opinions = [said.mean(axis=0, dtype=np.float64).astype(np.float32) for _, said in heard]
            scores = self.weigh(server, voting, opinions)
            labels = winners(scores, server.rng(0, TIES))
            soft = any(map(all_have_probabilities, voting)) and is_neural(self.final_model(server))
            final = self.study(server, labels, known=scores if soft else None)
            return Bundle("server", server.classes, (final,))

    def asking(self) -> Ask:
        """How students are asked."""
        return ask_opinions

    def weigh(self, server: Server, voting: Sequence[Bundle], opinions: Sequence[NDArray[np.float32]]) -> Matrix:
        """What the parties say together about each public row, pulled back where its labels stray."""
        counts = counted(voting)
        soft = [all_have_probabilities(bundle) for bundle in voting]
        heard = [
            said if sure else doubted(said, own)
            for said, sure, own in zip(opinions, soft, normalise_rows(counts), strict=True)
        ]
        scores = pooled_posterior(heard, shares_of(counts))
        tell_who_only_votes(server, voting, soft)
        describe(server, voting, counts, "says it has")
        if self.level == "L0":
            tell_who_does_not_fit(server, voting, heard, counts, scores)
        return pull_back(server, voting, scores)


def pull_back(server: Server, voting: Sequence[Bundle], scores: Matrix) -> Matrix:
    """The scores, pulled back where the class shares of their labels stray too far; the report says so.

    Labels of calibrated students alone stay as they are: if they stray, then because classes can hardly be told apart.
    """
    if all(bundle.calibrated and all_have_probabilities(bundle) for bundle in voting):
        return scores
    moved, strayed, left = limit_label_drift(scores)
    server.diary.figures["strayed"] = strayed
    if moved is not scores:
        server.diary.say(
            f"The labels' class shares strayed by {strayed:.1%} from how probable the parties find the classes on the "
            f"public rows, and were pulled back to {left:.1%}."
        )
    return moved


def counted(voting: Sequence[Bundle]) -> Matrix:
    """Each party's rows of each class, as it says."""
    silent = [bundle.sender for bundle in voting if bundle.counts is None]
    if silent:
        raise ModelError(f"Party {silent[0]!r} did not say how many rows of each class it has.")
    return np.array([bundle.counts for bundle in voting], dtype=np.float64)


def all_have_probabilities(bundle: Bundle) -> bool:
    """Whether all of a party's students give probabilities."""
    return all(has_probabilities(model) for model in bundle.models)


def doubted(votes: NDArray[np.float32], own: Matrix) -> NDArray[np.float32]:
    """Votes as a distribution: not quite believed, and for the rest the party's class shares."""
    return (BELIEF * votes + (1 - BELIEF) * own).astype(np.float32)


def tell_who_only_votes(server: Server, voting: Sequence[Bundle], soft: Sequence[bool]) -> None:
    """Say whose students name a class without saying how sure they are."""
    quiet = [bundle.sender for bundle, sure in zip(voting, soft, strict=True) if not sure]
    if quiet:
        server.diary.say(f"The students of {listed(quiet)} only name a class. Their word counts as {BELIEF:.0%} sure.")


def listed(names: Sequence[str]) -> str:
    """The first of many parties by name."""
    return f"{', '.join(map(repr, names[:20]))}{' and others' * (len(names) > 20)}"


def tell_who_does_not_fit(
    server: Server, voting: Sequence[Bundle], heard: Sequence[NDArray[np.float32]], counts: Matrix, pooled: Matrix
) -> None:
    """Say whose students do not speak like students of the rows that their party says it has."""
    everybody = counts.sum(axis=0)
    far = {
        bundle.sender: misfit(said, own, pooled, everybody)
        for bundle, said, own in zip(voting, heard, counts, strict=True)
        if own.any()
    }
    doubtful = sorted((name for name in far if far[name] > MISFIT), key=lambda name: -far[name])
    if doubtful:
        server.diary.say(
            f"The class counts of {listed(doubtful)} do not fit what their students say, those of "
            f"{doubtful[0]!r} by {far[doubtful[0]]:.0%}. Counts may be wrong or boastful, or students far too sure "
            "(naive Bayes): ask before you believe the result."
        )


def describe(server: Server, voting: Sequence[Bundle], counts: Matrix, says: str) -> None:
    """Write down how much each party weighs and on which class most, and who outweighs all others by far.

    That is, who has more than halfway from an equal part to everything.
    """
    figures, shares = server.diary.figures, shares_of(counts)
    figures["voters"] = len(voting)
    # Of a class without rows everybody has an equal share, which says nothing about anybody.
    known = np.flatnonzero(counts.sum(axis=0) >= min(1.0, counts.sum(axis=0).max()))
    shares = shares[:, known]
    figures["weights"] = {bundle.sender: float(share.mean()) for bundle, share in zip(voting, shares, strict=True)}
    figures["largest_shares"] = {
        bundle.sender: [str(server.classes[int(known[share.argmax()])]), float(share.max())]
        for bundle, share in zip(voting, shares, strict=True)
    }
    for bundle, part in zip(voting, counts.sum(axis=1) / max(counts.sum(), 1.0), strict=True):
        if len(voting) > 1 and part > (1 + 1 / len(voting)) / 2:
            server.diary.say(
                f"Party {bundle.sender!r} {says} {part:.0%} of all rows, so its word outweighs all others together. "
                "The server cannot check that: make sure that it is so, or limit it by the rows of a plan."
            )


def ask_opinions(task: tuple[Sequence[Any], Any, int]) -> list[NDArray[np.float32] | str]:
    """What each of one party's students says about the public rows, as a distribution over the classes; or why not."""
    models, public, n_classes = task
    return probabilities_of_all(models, public, n_classes)
