"""Expert voting without counts: a student says of a row how likely it is one of its party's, and nothing else is sent.

A party's teacher learns the party's rows by class, and the public rows as one class more: "not mine". What it then says
of a row compares two densities, p(y|x) / p(not mine|x) = n_i p_i(x, y) / (m p_public(x)), where n_i and m are the
numbers of the party's and of the public rows. Summed over the parties this is, up to a factor that is the same for all
classes, the posterior of the pooled rows. It holds whatever the parties' rows look like and whatever public rows there
are: neither class counts nor label shift are needed.

A teacher must not label public rows that it has learned as "not mine", so there are two of them, each of which labels
the half that the other has seen. The student learns what they say as it is: a distribution over classes and "not mine".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.distil import SoftLesson, gives_probabilities
from fedkt.algorithms.expert import ExpertFedKT, describe, pull_back
from fedkt.algorithms.fedkt import Ask, student_name
from fedkt.algorithms.pate import CUT, TEACH, Lesson
from fedkt.bundle import Bundle
from fedkt.errors import ModelError, UnsuitedModel
from fedkt.federation import Party, Server, stack_rows
from fedkt.models.base import FittedModel, count_rows, take_rows
from fedkt.models.catalogue import Roles
from fedkt.models.ensemble import TrainingTask, learns_distributions
from fedkt.models.prediction import has_probabilities, probabilities_of_all
from fedkt.models.soft import last_step
from fedkt.pooling import Matrix, normalise_rows
from fedkt.votes import Labels

FOLDS = 2
SUREST = 1e-3
"""A student counts as no surer than this that a row is its party's own."""


class NotMineFedKT(ExpertFedKT):
    """FedKT whose students abstain by themselves. There is one partition and one subset, and no noise.

    `most_rows` is how many rows a party may have, by name: whoever claims more has its word scaled down.
    """

    name = "fedkt-expert-no-counts"
    voting = "expert-no-counts"
    counts = False

    def __init__(self, model: Any, *, most_rows: Mapping[str, int] | None = None, **settings: Any) -> None:
        super().__init__(model, **settings)
        self.most_rows = dict(most_rows or {})

    def lessons(self, party: Party, chosen: Roles) -> list[Lesson]:
        """What this party has yet to teach its student."""
        self.check()
        check_family(party, chosen)
        return [] if student_name(0) in party.shelf else [WhoseRows(party, 0, chosen, self.subsets)]

    def bundle(self, party: Party) -> Bundle:
        """What the party sends: its student, which knows one class more."""
        return Bundle(
            party.name,
            party.classes,
            (party.shelf[student_name(0)],),
            soft=True,
            calibrated=self.calibrated(party.model),
            background_class=True,
        )

    def asking(self) -> Ask:
        """How students are asked."""
        return ask_whose

    def weigh(self, server: Server, voting: Sequence[Bundle], opinions: Sequence[NDArray[np.float32]]) -> Matrix:
        """What the parties say together about each public row, pulled back where its labels stray."""
        total = np.zeros((len(opinions[0]), len(server.classes)))
        counts = []
        for bundle, said in zip(voting, opinions, strict=True):
            word = self.believed(bundle.sender, claimed(said))
            # Summed over the public rows, p(y|x) / p(not mine|x) is the number of the party's rows of class y.
            counts.append(word.sum(axis=0))
            total += word
        describe(server, voting, np.array(counts), "claims by its student")
        claims = total.sum(axis=1, keepdims=True)
        unclaimed = int(np.sum(claims <= 0))
        if unclaimed == len(total):
            raise ModelError("All students say of every public row that it is not like their party's rows.")
        if unclaimed:
            server.diary.say(f"{unclaimed} public rows are like no party's rows, all students say, and are left out.")
        # A row that nobody claims has no label, rather than any.
        return pull_back(server, voting, total / np.where(claims > 0, claims, 1.0))

    def believed(self, name: str, claims: Matrix) -> Matrix:
        """A party's word as far as it counts: what it claims must not come from more rows than it may have."""
        most = self.most_rows.get(name)
        return claims if most is None else claims * min(1.0, most / max(float(claims.sum()), 1.0))


@dataclass(frozen=True)
class WhoseRows(SoftLesson):
    """What a party teaches its student without counts: which rows are whose."""

    @property
    def n_outputs(self) -> int:
        """The classes, and "not mine"."""
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
        rows = stack_rows([party.X, party.public])
        labels = np.concatenate([party.y, np.full(self.n_public, self.n_outputs - 1)])
        problems = []
        for number in range(FOLDS):
            seen = np.sort(np.concatenate([fold for place, fold in enumerate(self.folds) if place != number]))
            some = np.concatenate([np.arange(own), own + seen])
            who = f"Party {party.name!r}, teacher {number + 1}"
            problems.append(
                TrainingTask(self.chosen.teacher, rows, labels[some], party.rng(0, TEACH, number), some, who)
            )
        return problems

    def said(self, teachers: Sequence[FittedModel]) -> Matrix:
        """What the teachers say of the public rows, each of those that it has not seen."""
        found = np.zeros((self.n_public, self.n_outputs))
        for number, (fold, teacher) in enumerate(zip(self.folds, teachers, strict=True)):
            if len(fold):
                answer = self.asked(number, teacher, take_rows(self.party.public, fold))
                # As if it had learned all public rows as "not mine", not only those of the other folds.
                answer[:, -1] *= self.n_public / max(self.n_public - len(fold), 1)
                found[fold] = answer
        return normalise_rows(found)


def check_family(party: Party, chosen: Roles) -> None:
    """Refuse a teacher that cannot say how sure it is, and a student that cannot learn it."""
    lack = None
    if not gives_probabilities(chosen.teacher):
        lack = f"a teacher of the family {type(last_step(chosen.teacher)).__name__} does not say how sure it is"
    elif not learns_distributions(chosen.student):
        student = type(last_step(chosen.student)).__name__
        lack = f"a student of the family {student} cannot learn how sure its teachers are"
    if lack:
        raise UnsuitedModel(
            f"Party {party.name!r}: {lack}, which expert voting without counts needs. Choose another family or "
            "another voting."
        )


def claimed(said: NDArray[np.float32]) -> Matrix:
    """p(y|x) / p(not mine|x) for every class."""
    sure = said.astype(np.float64)
    return np.asarray(sure[:, :-1] / np.maximum(sure[:, -1:], SUREST))


def ask_whose(task: tuple[Sequence[Any], Any, int]) -> list[NDArray[np.float32] | str]:
    """What each of one party's students says of the public rows; one that only names a class is not heard."""
    models, public, n_outputs = task
    if not all(map(has_probabilities, models)):
        return ["it does not say how sure it is."] * len(models)
    return probabilities_of_all(models, public, n_outputs)
