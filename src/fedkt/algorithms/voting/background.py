"""Expert voting without counts: a student says of a row how likely it is one of its party's, and nothing else is sent.

A party's teacher learns the party's rows by class, and the public rows as one class more: the background, "not mine".
What it then says of a row compares two densities, p(y|x) / p(not mine|x) = n_i p_i(x, y) / (m p_public(x)), where n_i
and m are the numbers of the party's and of the public rows. Summed over the parties this is, up to a factor that is the
same for all classes, the posterior of the pooled rows. It holds whatever the parties' rows look like and whatever
public rows there are: neither class counts nor label shift are needed.

A teacher must not label public rows that it has learned as background, so there are two of them, each of which labels
the half that the other has seen. The student learns what they say as it is: a distribution over classes and background.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.lesson import CUT, TEACH, Lesson
from fedkt.algorithms.soft_lesson import SoftLesson, gives_probabilities
from fedkt.algorithms.voting.answers import StudentAnswers, Students
from fedkt.algorithms.voting.expert import Expert, opinion_of, soft_roles
from fedkt.algorithms.voting.weights import note_weights
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, ModelError, UnsuitedModel
from fedkt.federation import Party, Server, stack_rows
from fedkt.models.base import FittedModel, count_rows, take_rows
from fedkt.models.catalogue import Roles
from fedkt.models.ensemble import TrainingTask, learns_distributions
from fedkt.models.prediction import has_probabilities
from fedkt.models.reading import last_step
from fedkt.pooling import Matrix, normalise_rows
from fedkt.votes import Labels

if TYPE_CHECKING:
    from fedkt.algorithms.fedkt import FedKT

FOLDS = 2
SUREST = 1e-3
"""A student counts as no surer than this that a row is its party's own."""


@dataclass(frozen=True)
class Background(Expert):
    """Students that abstain by themselves. There is one partition and one subset, and no noise."""

    most_rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows a party may have, by name: whoever claims more has its word scaled down."""

    name = "expert-no-counts"
    title = "FedKT, experts, no counts"
    summary = "one message, students say which rows are not their party's"
    server_rule = "the server weighs a party by how likely its student finds a row to be the party's own"
    choice = "by whether its students find that a row looks like its own"
    assumption = "Students can tell their party's rows from public ones; a party does not boast by its student."
    reveals = ("  A student tells by what it finds its party's own about how many rows of each label the party has.",)
    colour = "purple"
    levels = ("L0",)
    default_at = ()
    compared_at = ()
    class_counts = False
    background_class = True
    fixed_shape = True

    def check(self, *, level: str, partitions: int, subsets: int) -> None:
        """Refuse, in words, settings that do not go with this voting."""
        super().check(level=level, partitions=partitions, subsets=subsets)
        if (partitions, subsets) != (1, 1):
            raise ConfigurationError(
                f"Expert voting without counts has one partition and one subset, got {partitions} and {subsets}. "
                "Leave them out, or choose another voting."
            )

    def level_refusal(self, level: str) -> str:
        """Why there is no such voting where noise is on."""
        if level == "L1":
            return super().level_refusal(level)
        return (
            f"Expert voting without counts adds no noise, and level {level} needs it. Choose expert voting with "
            "counts, or consistent voting."
        )

    def lessons(self, fedkt: FedKT, plain: Sequence[Lesson]) -> Sequence[Lesson]:
        """Students learn which rows are whose."""
        for each in plain:
            check_family(each.party, each.roles)
        return [BackgroundLesson(each.party, each.partition, soft_roles(each.roles), each.subsets) for each in plain]

    def message(self, fedkt: FedKT, party: Party, students: Bundle) -> Bundle:
        """What the party sends: its student, which knows one class more."""
        calibrated = self.calibrated(fedkt, party.model)
        return replace(students, soft=True, calibrated=calibrated, background_class=True)

    def ask(self, students: Students) -> list[Any]:
        """What each of one party's students says of the rows; one that only names a class does not vote."""
        if not all(map(has_probabilities, students.models)):
            return ["it does not say how sure it is."] * len(students.models)
        return super().ask(students)

    def weigh(self, fedkt: FedKT, server: Server, answers: StudentAnswers) -> Matrix:
        """What the parties say together about each public row."""
        total = np.zeros((answers.n_rows, len(server.classes)))
        counts = []
        # A party at a time: what it claims of a row hangs on what it claims of all of them.
        for bundle, said in answers.voters:
            claims = self.limit_claims(bundle.sender, claimed_rows(opinion_of(np.asarray(said))))
            # Summed over the public rows, p(y|x) / p(not mine|x) is the number of the party's rows of class y.
            counts.append(claims.sum(axis=0))
            total += claims
        note_weights(server, answers.bundles, np.array(counts), "claims by its student")
        sums = total.sum(axis=1, keepdims=True)
        unclaimed = int(np.sum(sums <= 0))
        if unclaimed == len(total):
            raise ModelError("All students say of every public row that it is not like their party's rows.")
        if unclaimed:
            server.diary.say(f"{unclaimed} public rows are like no party's rows, all students say, and are left out.")
        # A row that nobody claims has no label, rather than any.
        return np.asarray(total / np.where(sums > 0, sums, 1.0))

    def limit_claims(self, name: str, claims: Matrix) -> Matrix:
        """A party's word as far as it counts: what it claims must not come from more rows than it may have."""
        most = self.most_rows.get(name)
        return claims if most is None else claims * min(1.0, most / max(float(claims.sum()), 1.0))


@dataclass(frozen=True)
class BackgroundLesson(SoftLesson):
    """What a party teaches its student without counts: which rows are whose."""

    @property
    def n_outputs(self) -> int:
        """The classes, and the background."""
        return len(self.party.classes) + 1

    @property
    def n_public(self) -> int:
        """How many public rows there are."""
        return count_rows(self.party.public)

    @cached_property
    def folds(self) -> list[Labels]:
        """The public rows in parts, each of which is labelled by the teacher that has not seen it."""
        return np.array_split(self.party.rng(0, CUT).permutation(self.n_public), FOLDS)

    @cached_property
    def teachers(self) -> list[TrainingTask]:
        """A teacher for each fold of the public rows, which has seen the other ones."""
        party, own = self.party, len(self.party.y)
        weights = None
        if party.weights is not None:
            # Public rows weigh as much as usual ones: what a teacher compares is how many there are.
            weights = np.concatenate([party.weights / party.usual_weight, np.ones(self.n_public)])
        rows = stack_rows([party.X, party.public])
        labels = np.concatenate([party.y, np.full(self.n_public, self.n_outputs - 1)])
        tasks = []
        for number in range(FOLDS):
            others = np.sort(np.concatenate([fold for place, fold in enumerate(self.folds) if place != number]))
            some = np.concatenate([party.counted_rows, own + others])
            rng, who = party.rng(0, TEACH, number), f"Party {party.name!r}, teacher {number + 1}"
            task = TrainingTask(self.roles.teacher, rows, labels[some], rng, some, who, beside=self.n_public)
            tasks.append(task if weights is None else replace(task, weights=weights[some]))
        return tasks

    def distributions(self, teachers: Sequence[FittedModel]) -> Matrix:
        """What the teachers say of the public rows, each of those that it has not seen."""
        distributions = np.zeros((self.n_public, self.n_outputs))
        for number, (fold, teacher) in enumerate(zip(self.folds, teachers, strict=True)):
            if len(fold):
                answer = self.ask(number, teacher, take_rows(self.party.public, fold))
                # As if it had learned all public rows as background, not only those of the other folds.
                answer[:, -1] *= self.n_public / max(self.n_public - len(fold), 1)
                distributions[fold] = answer
        return normalise_rows(distributions)


def check_family(party: Party, own: Roles) -> None:
    """Refuse a teacher that cannot say how sure it is, and a student that cannot learn it."""
    lack = None
    if not gives_probabilities(own.teacher):
        lack = f"a teacher of the family {type(last_step(own.teacher)).__name__} does not say how sure it is"
    elif not learns_distributions(own.student):
        student = type(last_step(own.student)).__name__
        lack = f"a student of the family {student} cannot learn how sure its teachers are"
    if lack:
        raise UnsuitedModel(
            f"Party {party.name!r}: {lack}, which expert voting without counts needs. Choose another family or "
            "another voting."
        )


def claimed_rows(opinion: NDArray[np.float32]) -> Matrix:
    """p(y|x) / p(not mine|x) for every class."""
    sure = opinion.astype(np.float64)
    return np.asarray(sure[:, :-1] / np.maximum(sure[:, -1:], SUREST))
