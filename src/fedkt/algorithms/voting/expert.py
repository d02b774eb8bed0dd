"""Expert voting: a party's vote on a class counts by its share of the rows of that class.

In Algorithm 1 a party that has hardly seen a class votes on it like everybody else. Here each party also says how many
rows of each class it has, and the server weighs it by that (see `fedkt.pooling` for the arithmetic and what it
assumes). Students that give probabilities are asked for them: their fixed point is what a model of the pooled rows
would say. One that only names a class counts as nearly sure of it. The final model learns the fixed point as it is, if
its family can, else the likeliest class.

Without noise subsets buy nothing: one teacher sees all rows of its party, its student learns how sure it is (see
`soft_lesson`), and one student is sent instead of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.calibration import count_noise
from fedkt.algorithms.lesson import TIES, Lesson
from fedkt.algorithms.soft_lesson import SoftLesson, gives_probabilities
from fedkt.algorithms.voting.answers import StudentAnswers, Students
from fedkt.algorithms.voting.base import LabelledRows, Voting
from fedkt.algorithms.voting.weights import all_calibrated, limit_drift, name_parties, note_weights
from fedkt.bundle import Bundle
from fedkt.errors import ModelError, PrivacyError
from fedkt.federation import Party, Server
from fedkt.models.base import count_rows
from fedkt.models.catalogue import Roles, roles
from fedkt.models.class_weights import can_undo_class_weights, class_weight_settings, without_class_weights
from fedkt.models.ensemble import is_calibrated, is_hesitant, learns_distributions
from fedkt.models.prediction import probabilities_of_all
from fedkt.pooling import (
    MISFIT,
    Matrix,
    expected_shares,
    misfits,
    normalise_rows,
    pooled_posterior,
    row_blocks,
    shares_of,
)
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.votes import NO_VOTE, Labels, winners

if TYPE_CHECKING:
    from fedkt.algorithms.fedkt import FedKT

BELIEF = 0.9
"""How sure a student counts as that only names a class."""


@dataclass(frozen=True)
class Expert(Voting):
    """Parties weighed by their class counts.

    There is one partition, and without noise one subset, unless they are chosen; a single teacher is of its student's
    own family.
    """

    count_sigma: float | None = None
    """The noise on the counts at level L2; None for a little of what the votes' noise costs."""

    name = "expert"
    title = "FedKT, experts"
    summary = "one message, parties weighed by their class counts"
    server_rule = (
        "the server weighs a party's vote on a class by its share of the class's rows, which every party tells"
    )
    choice = "it is weighed by its rows of each class, which it tells"
    assumption = "Parties differ in how often they see a class, not in what a class looks like, and count honestly."
    reveals: ClassVar[tuple[str, ...]] = (
        "  Every party tells the server how many of its rows have each label: whoever reads its bundle knows that much",
        "  about it, exactly.",
    )
    colour = "red"
    levels: ClassVar[tuple[str, ...]] = ("L0", "L2")
    default_at: ClassVar[tuple[str, ...]] = ("L0",)
    compared_at: ClassVar[tuple[str, ...]] = ("L0", "L2")
    class_counts = True
    probabilities = True

    def weighs_labels(self, level: str) -> bool:
        """Where weights of classes act: without noise in the final labels, since counts must fit what students say.

        With noise teachers vote for labels, and those of a rare class would be lost before they reach the server.
        """
        return level == "L0"

    def level_refusal(self, level: str) -> str:
        """Why there is no expert voting at level L1."""
        return (
            "At level L1 one party's vote may move the count by one vote, and the noise hides just that. Expert "
            "voting lets some parties weigh more than others. Choose consistent voting, or level L0."
        )

    def roles_for(self, fedkt: FedKT, own: Any = None) -> Roles:
        """Who teaches and who studies at a party: of the agreed families, or of the party's own one."""
        if fedkt.subsets > 1:
            return super().roles_for(fedkt, own)
        teacher, student = teacher_and_student(fedkt, own)
        return roles(student, teacher=teacher)

    def calibrated(self, fedkt: FedKT, own: Any = None) -> bool:
        """Whether the students of such a party say how probable a class is, and are about right.

        Not those of labels, nor those of several teachers: an average of models that differ is never quite sure.
        """
        return fedkt.level == "L0" and fedkt.subsets == 1 and all(map(is_calibrated, teacher_and_student(fedkt, own)))

    def lessons(self, fedkt: FedKT, plain: Sequence[Lesson]) -> Sequence[Lesson]:
        """Without noise students learn how sure their teachers are, if these can say and they can learn that."""
        if fedkt.level != "L0":
            return plain
        return [
            SoftLesson(each.party, each.partition, soft_roles(each.roles), each.subsets)
            if gives_probabilities(each.roles.teacher) and learns_distributions(each.roles.student)
            else replace(each, roles=plain_roles(each.roles))
            for each in plain
        ]

    def message(self, fedkt: FedKT, party: Party, students: Bundle) -> Bundle:
        """The party's students, and its class counts; with noise at L2."""
        calibrated = self.calibrated(fedkt, party.model)
        weighted = bool(class_weight_settings(self.roles_for(fedkt, party.model).teacher))
        counts = self.count_classes(fedkt, party)
        return replace(students, counts=counts, soft=True, calibrated=calibrated, weighted=weighted)

    def count_noise(self, fedkt: FedKT, public_rows: int) -> GaussianCounts | None:
        """The noise on a party's class counts at level L2: as agreed on, else as the votes' noise suggests."""
        if fedkt.level != "L2" or fedkt.noise is None:
            return None
        if self.count_sigma is not None:
            return GaussianCounts(self.count_sigma)
        return count_noise(fedkt.noise, fedkt.partitions * fedkt.number_of_queries(public_rows))

    def count_classes(self, fedkt: FedKT, party: Party) -> tuple[int, ...]:
        """How many rows of each class the party says it has."""
        n_classes = len(party.classes)

        def count() -> NDArray[np.int64]:
            if party.weights is None or fedkt.level != "L0":
                # With noise a record counts one at most, whatever it weighs: that is what the noise hides.
                return np.bincount(party.y[party.counted_rows], minlength=n_classes)
            weights = np.bincount(party.y, weights=party.weights / party.usual_weight, minlength=n_classes)
            return np.rint(weights).astype(np.int64)

        if fedkt.level == "L0":
            return tuple(int(each) for each in count())
        public_rows = count_rows(party.public)
        if self.count_noise(fedkt, public_rows) is None:
            raise PrivacyError(f"Class counts leave at level {fedkt.level} with noise only, and there is none.")
        *_, release = fedkt.releases(public_rows=public_rows, classes=n_classes, parties=1)
        rng = party.noise_rng(release.stream)
        return party.ledger.release_counts(count, release, rng=rng, noise_seed=party.noise_seed)

    def ask(self, students: Students) -> list[Any]:
        """What each of one party's students says of the rows, as a distribution over the classes; or why not."""
        return probabilities_of_all(*students)

    def label(self, fedkt: FedKT, server: Server, answers: StudentAnswers) -> LabelledRows:
        """What the parties say together, and the likeliest classes of it."""
        scores = self.weigh(fedkt, server, answers)
        labels = winners(limit_drift(server, answers.bundles, scores), server.rng(0, TIES))
        if all_calibrated(answers.bundles):
            return LabelledRows(labels, distributions=scores)
        if is_hesitant(teacher_and_student(fedkt)[1]):
            return LabelledRows(labels, distributions=surer(scores, labels))
        return LabelledRows(labels, distributions=scores, shares=expected_shares(scores[scores.max(axis=1) > 0]))

    def weigh(self, fedkt: FedKT, server: Server, answers: StudentAnswers) -> Matrix:
        """What the parties say together about each public row."""
        voting = answers.bundles
        counts = class_counts(voting)
        shares, totals = shares_of(counts), np.zeros(counts.shape)
        scores = np.empty((answers.n_rows, counts.shape[1]))
        for rows in row_blocks(answers.n_rows, counts.size):
            posteriors = posteriors_of(answers, rows, counts)
            totals += posteriors.sum(axis=1, dtype=np.float64)
            scores[rows] = pooled_posterior(list(posteriors), shares)
        note_bare_classes(server, voting)
        note_weights(server, voting, counts, "says it has")
        if fedkt.level == "L0":
            note_misfits(server, voting, totals / answers.n_rows, counts, scores)
        return scores


def teacher_and_student(fedkt: FedKT, own: Any = None) -> tuple[Any, Any]:
    """The only teacher of a party and its student, as they were named.

    A tree is the usual teacher because many of them disagree usefully; one alone only knows less than its student.
    """
    if own is not None:
        return own, own
    student = fedkt.model if fedkt.student is None else fedkt.student
    return (student if fedkt.teacher is None else fedkt.teacher), student


def soft_roles(own: Roles) -> Roles:
    """Who teaches distributions: a teacher whose weights of classes can be undone in what it says, else have to go."""
    return own if can_undo_class_weights(own.teacher) else plain_roles(own)


def plain_roles(own: Roles) -> Roles:
    """Who teaches labels: no weights, since of a label nothing can be undone, and counts would not fit it."""
    return replace(own, teacher=without_class_weights(own.teacher))


def class_counts(voting: Sequence[Bundle]) -> Matrix:
    """Each party's rows of each class, as it says."""
    silent = [bundle.sender for bundle in voting if bundle.counts is None]
    if silent:
        raise ModelError(f"Party {silent[0]!r} did not say how many rows of each class it has.")
    return np.array([bundle.counts for bundle in voting], dtype=np.float64)


def posteriors_of(answers: StudentAnswers, rows: slice, counts: Matrix) -> NDArray[np.float32]:
    """What every party says of some of the rows, as distributions: parties × rows × classes."""
    posteriors = np.empty((len(answers.voters), rows.stop - rows.start, counts.shape[1]), np.float32)
    for place, ((bundle, said), own) in enumerate(zip(answers.voters, normalise_rows(counts), strict=True)):
        opinion = opinion_of(said.columns(rows.start, rows.stop))
        posteriors[place] = opinion if bundle.has_probabilities else doubt(opinion, own)
    return posteriors


def opinion_of(said: NDArray[Any]) -> NDArray[np.float32]:
    """A distribution over the classes for every row: the mean of a party's students."""
    mean: Matrix = said.mean(axis=0, dtype=np.float64)
    return mean.astype(np.float32)


def doubt(votes: NDArray[np.float32], own: Matrix) -> NDArray[np.float32]:
    """Votes as a distribution: not quite believed, and for the rest the party's class shares."""
    return (BELIEF * votes + (1 - BELIEF) * own).astype(np.float32)


def surer(scores: Matrix, labels: Labels) -> Matrix:
    """What hesitant students say together, half of each row's probability moved to its label.

    Of what they say as it is, a final model learns to hesitate as well; of labels alone it is too sure. Half of each is
    nearest to how often a class occurs (docs/decisions/0013).
    """
    result = scores / 2
    answered = np.flatnonzero(labels != NO_VOTE)
    result[answered, labels[answered]] += 0.5
    return result


def note_bare_classes(server: Server, voting: Sequence[Bundle]) -> None:
    """Say whose students name a class without saying how sure they are."""
    bare = [bundle.sender for bundle in voting if not bundle.has_probabilities]
    if bare:
        server.diary.say(
            f"The students of {name_parties(bare)} only name a class. Their word counts as {BELIEF:.0%} sure."
        )


def note_misfits(server: Server, voting: Sequence[Bundle], means: Matrix, counts: Matrix, pooled: Matrix) -> None:
    """Say whose students do not speak like students of the rows that their party says it has."""
    far = {
        bundle.sender: float(distance)
        for bundle, own, distance in zip(voting, counts, misfits(means, counts, pooled), strict=True)
        # Weights of classes are undone as well as can be; whoever has some need not boast to be off.
        if own.any() and not bundle.weighted
    }
    doubtful = sorted((name for name in far if far[name] > MISFIT), key=lambda name: -far[name])
    if doubtful:
        server.diary.say(
            f"The class counts of {name_parties(doubtful)} do not fit what their students say, those of "
            f"{doubtful[0]!r} by {far[doubtful[0]]:.0%}. Counts may be wrong or boastful, or students far too sure "
            "(naive Bayes): ask before you believe the result."
        )
