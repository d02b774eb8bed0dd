"""FedKT by expert voting or by moments, whichever should serve better: parties send what both need, once.

Li, He, Song: Practical One-Shot Federated Learning for Cross-Silo Setting. IJCAI 2021, for the students; Golub, Heath,
Wahba: Generalized Cross-Validation as a Method for Choosing a Good Ridge Parameter. Technometrics 1979, for the choice.

Sums tell how well a head fits labels that nobody shows (`heads`). Of any other model they tell it only for the part of
what it says that is linear in the features φ: Σ p·y = tr WᵀM for p = φW. Whether the rest is knowledge or noise, only
those know who have labels. So a party lays rows aside, trains its student without them, and sends two numbers: how well
the rest of what this student says agrees with their labels, Σ rest·(y − class shares), and how large it is, Σ ‖rest‖².
Their quotient over all parties says how much of the rest to believe, and with it the server knows what to expect of the
final model that the students teach, as it does of the head. docs/decisions/0016-auto.md has what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.card import Card, Traffic
from fedkt.algorithms.expectation import (
    DOUBT,
    FURTHEST,
    SHARE,
    STEEPEST,
    Expectation,
    expected_brier,
    rows_aside,
    said_by,
    score,
    share_of_others,
    without,
)
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.heads import best_ridge, ridge_head
from fedkt.algorithms.moments import SMALLEST_CLASS, Moments
from fedkt.algorithms.received_sums import Heard
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, DataError, ModelError
from fedkt.federation import Algorithm, Diary, Party, Server
from fedkt.models.base import Model
from fedkt.system.parallel import Progress
from fedkt.system.threads import one_thread

REST = "rest"
"""The array with a party's two numbers; it is left out where the party has none."""


class Auto(Algorithm):
    """Both of FedKT's ways in one message, of which the server serves one.

    `teacher`, `student`, `final`, `soft_final` and `copies` are for expert voting; what moments serve is the head.
    """

    name = "fedkt-auto"
    voting: ClassVar[str] = "auto"
    """What `FedKTClassifier` calls it."""

    def __init__(
        self,
        model: Any,
        *,
        teacher: Any = None,
        student: Any = None,
        final: Any = None,
        level: str = "L0",
        soft_final: bool = True,
        smallest_class: int = SMALLEST_CLASS,
        copies: bool = False,
    ) -> None:
        self.model = model
        self.level = level
        roles = {"teacher": teacher, "student": student, "final": final}
        self.expert = FedKT(model, voting="expert", **roles, soft_final=soft_final, copies=copies)
        self.moments = Moments(model, smallest_class=smallest_class)

    def check(self) -> None:
        """Refuse settings that cannot work, before anything is trained."""
        if self.level != "L0":
            raise ConfigurationError(
                f"At level {self.level} whatever is compared has a price. Choose moments at level L2, which was better "
                "wherever both were measured, and consistent voting at level L1."
            )
        self.expert.check()
        self.moments.check()

    # The party's half.

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """Parties with the same public rows have the same map, which is made once."""
        return True

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The student and the sums of the party's rows, and two numbers about another student."""
        return self.party_steps([party], broadcast, jobs=party.jobs, progress=party.progress)[0]

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """The same for all parties at once."""
        self.check()
        self.moments.forget_map()
        aside = [rows_aside(party) for party in parties]
        trials = [without(party, rows) for party, rows in zip(parties, aside, strict=True) if len(rows)]
        sent = self.expert.party_steps([*parties, *trials], broadcast, jobs=jobs, progress=progress)
        tried = iter(sent[len(parties) :])
        result = []
        for party, students, rows in zip(parties, sent[: len(parties)], aside, strict=True):
            trial = next(tried) if len(rows) else None
            try:
                features = self.moments.feature_map(party)
            except DataError as reason:
                party.diary.say(f"Party {party.name!r} sends no sums, because no features can be made: {reason}")
                result.append(students)
                continue
            arrays = dict(self.moments.message(party, features).arrays)
            if trial is not None:
                arrays[REST] = score(party, rows, trial.models, features)
            result.append(replace(students, arrays=arrays))
        return result

    # The server's half.

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The final model of expert voting or the head of all sums, and in the report which and why."""
        self.check()
        finals: dict[str, Bundle] = {}
        diaries = {each: Diary() for each in (self.expert.name, self.moments.name)}
        for algorithm, received in ((self.expert, bundles), (self.moments, [sums_alone(each) for each in bundles])):
            try:
                finals[algorithm.name] = algorithm.server_step(replace(server, diary=diaries[algorithm.name]), received)
            except (DataError, ModelError) as reason:
                diaries[algorithm.name].say(f"{algorithm.name} has no final model: {reason}")
        if not finals:
            raise ModelError(" ".join(note for diary in diaries.values() for note in diary.notes))
        name = self.choose(server, bundles, finals)
        for other in set(diaries) - set(finals) - {name}:
            server.diary.notes += diaries[other].notes
        server.diary.notes += diaries[name].notes
        server.diary.alarms += diaries[name].alarms
        server.diary.vote = diaries[name].vote
        return finals[name]

    def choose(self, server: Server, bundles: Sequence[Bundle], finals: Mapping[str, Bundle]) -> str:
        """The name of the way whose final model is served; the report says which, and why."""
        (only, *more) = finals
        if not more:
            server.diary.say(f"Served is {only}, the only way that has a final model.")
            return only
        with one_thread():
            found = self.expect(server, bundles, finals[self.expert.name].models[0])
        if found is None:
            return self.choose_unheard(server, bundles)
        better = self.expert if found.expert < found.moments else self.moments
        judges = sum(REST in bundle.arrays for bundle in bundles)
        server.diary.say(
            f"Served is {better.name}, which should have the smaller Brier score: {found.moments:.3f} the head of "
            f"moments, {found.expert:.3f} the {family_name(finals[self.expert.name].models[0])} of expert voting. By "
            f"the rows that {judges} of {len(bundles)} parties laid aside, {found.slope:.0%} of what students say "
            "beyond the features is to be believed."
        )
        return better.name

    def choose_unheard(self, server: Server, bundles: Sequence[Bundle]) -> str:
        """The name of the way that is served where no party could lay rows aside."""
        lost = share_of_others(bundles, self.hear_sums(server, bundles).received.classes_present())
        better, why = self.moments.name, ""
        if lost > 0:
            better, why = self.expert.name, f", and {lost:.0%} of their rows are of classes that no sums tell of"
        server.diary.say(f"Served is {better}: no party could lay rows aside to say what its student knows{why}.")
        return better

    def expect(self, server: Server, bundles: Sequence[Bundle], final: Model) -> Expectation | None:
        """What to expect of both final models; None where no party has two numbers."""
        numbers = [each for bundle in bundles if (each := self.numbers_of(server, bundle)) is not None]
        if not numbers:
            return None
        heard = self.hear_sums(server, bundles)
        features, received = heard.features, heard.received
        public, present = features(server.public), received.classes_present()
        sums = received.over(present, public)
        agreement, size = np.sum(numbers, axis=0)
        evidence = float(size + DOUBT * (1 - (sums.shares**2).sum()))
        slope = min(max(float(agreement), 0.0) / evidence, STEEPEST) if evidence > 0 else 0.0
        _, strength, width = best_ridge(sums, [*features.prefixes, features.width])
        said = said_by([final], server.public, len(server.classes))[:, present]
        head = max(ridge_head(sums.first(width), strength)[1], 0.0)
        # On rows of a class that no sums tell of the head is wrong: that costs 1 at least, and more if it is sure.
        lost = share_of_others(bundles, present)
        head = (1 - lost) * head + lost * (1 + 1 / len(present))
        return Expectation(head, expected_brier(said, sums, public, slope), slope)

    def hear_sums(self, server: Server, bundles: Sequence[Bundle]) -> Heard:
        """What came of the parties' sums, of which the report has been told."""
        return self.moments.hear(replace(server, diary=Diary()), [sums_alone(each) for each in bundles])

    def numbers_of(self, server: Server, bundle: Bundle) -> NDArray[np.float64] | None:
        """A party's two numbers, None where it has none; of numbers that no rows have the report tells."""
        found = bundle.arrays.get(REST)
        if found is None:
            return None
        # No more than were laid aside of the rows that it has.
        rows = sum(bundle.counts or ()) // SHARE
        if found.shape == (2,) and np.isfinite(found).all() and 0 <= found[1] <= FURTHEST**2 * rows:
            agreement, size = np.asarray(found, dtype=np.float64)
            # By Cauchy and Schwarz, since labels and shares are no further apart than FURTHEST.
            if abs(agreement) <= FURTHEST * np.sqrt(rows * size):
                return np.array([agreement, size])
        server.diary.say(
            f"What party {bundle.sender!r} says of the rows it laid aside is not true of any rows, and does not count."
        )
        return None


def sums_alone(bundle: Bundle) -> Bundle:
    """What moments make use of."""
    return replace(bundle, models=(), arrays={name: each for name, each in bundle.arrays.items() if name != REST})


def family_name(model: Model) -> str:
    """What a final model is called in words."""
    estimator = getattr(model, "estimator", model)
    return "constant" if estimator is None else type(estimator).__name__


CARD = Card(
    name=Auto.name,
    title="FedKT, auto",
    summary="one message, experts or moments, whichever should be better",
    make=Auto,
    fixed=frozenset({"level"}),
    traffic=Traffic("n·(M + D·(K + D/2))", lambda s, r: 1, one_way=True),
    colour="purple",
    marker="D",
    party_models=True,
)
