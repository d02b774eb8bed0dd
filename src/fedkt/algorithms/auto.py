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
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.card import Card, Traffic
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.heads import STRENGTHS, Sums, best_ridge, ridge_head, system
from fedkt.algorithms.moments import SMALLEST_CLASS, Moments
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Algorithm, Diary, Party, Server
from fedkt.models.base import Model, one_thread, take_rows
from fedkt.models.features.feature_map import Features
from fedkt.models.prediction import probabilities_of_all
from fedkt.pooling import Matrix
from fedkt.system.parallel import Progress
from fedkt.votes import Labels

REST = "rest"
"""The array with a party's two numbers; it is left out where the party has none."""
ASIDE = 0xA51DE
"""What a party's generator draws with this number: the rows that it lays aside."""
SHARE = 4
"""One row in so many is laid aside."""
FEWEST = 40
"""A party of fewer rows lays none aside."""
DOUBT = 1.0
"""The rest of what students say is noise until labels show otherwise: so much precision says that its slope is 0.

By chance alone labels agree with a rest by about √(Σ ‖rest‖² · (1 − Σ shares²)): where students say little that is not
linear in φ, that is more than what they know.
"""
FURTHEST = 2.0**0.5
"""Two distributions over the classes are not further apart; what is left of one is cut off there."""


@dataclass(frozen=True)
class Expectation:
    """What the server expects of both final models, before anybody has tried them."""

    moments: float
    """The Brier score of the head, each row left out."""
    expert: float
    """That of the final model that students teach, were it as sure as it should be."""
    slope: float
    """How much of what is not linear in φ is believed: 1 is as it is said, 0 is noise."""


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
        aside = [rows_aside(party) for party in parties]
        trials = [without(party, rows) for party, rows in zip(parties, aside, strict=True) if len(rows)]
        sent = self.expert.party_steps([*parties, *trials], broadcast, jobs=jobs, progress=progress)
        tried = iter(sent[len(parties) :])
        maps: dict[int, Features] = {}
        result = []
        for party, students, rows in zip(parties, sent[: len(parties)], aside, strict=True):
            features = maps.get(id(party.public)) or maps.setdefault(id(party.public), self.moments.feature_map(party))
            arrays = dict(self.moments.message(party, features).arrays)
            if len(rows):
                arrays[REST] = score(party, rows, next(tried).models, features)
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
            except ModelError as reason:
                diaries[algorithm.name].say(f"{algorithm.name} has no final model: {reason}")
        if not finals:
            raise ModelError(" ".join(note for diary in diaries.values() for note in diary.notes))
        name = self.choose(server, bundles, finals)
        for other in set(diaries) - set(finals) - {name}:
            server.diary.notes += diaries[other].notes
        server.diary.notes += diaries[name].notes
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
            server.diary.say(
                f"Served is {self.moments.name}: no party could lay rows aside to say what its student knows."
            )
            return self.moments.name
        better = self.expert if found.expert < found.moments else self.moments
        judges = sum(REST in bundle.arrays for bundle in bundles)
        server.diary.say(
            f"Served is {better.name}, which should have the smaller Brier score: {found.moments:.3f} the head of "
            f"moments, {found.expert:.3f} the {family_name(finals[self.expert.name].models[0])} of expert voting. By "
            f"the rows that {judges} of {len(bundles)} parties laid aside, {found.slope:.0%} of what students say "
            "beyond the features is to be believed."
        )
        return better.name

    def expect(self, server: Server, bundles: Sequence[Bundle], final: Model) -> Expectation | None:
        """What to expect of both final models; None where no party has two numbers."""
        numbers = [each for bundle in bundles if (each := self.numbers_of(server, bundle)) is not None]
        if not numbers:
            return None
        heard = self.moments.hear(replace(server, diary=Diary()), [sums_alone(each) for each in bundles])
        features, received = heard.features, heard.received
        public, present = features(server.public), received.classes_present()
        sums = received.over(present, public)
        agreement, size = np.sum(numbers, axis=0)
        evidence = float(size + DOUBT * (1 - (sums.shares**2).sum()))
        slope = max(float(agreement), 0.0) / evidence if evidence > 0 else 0.0
        _, strength, width = best_ridge(sums, [*features.prefixes, features.width])
        said = said_by([final], server.public, len(server.classes))[:, present]
        return Expectation(ridge_head(sums.first(width), strength)[1], expected_brier(said, sums, public, slope), slope)

    def numbers_of(self, server: Server, bundle: Bundle) -> NDArray[np.float64] | None:
        """A party's two numbers, None where it has none; of numbers that no rows have the report tells."""
        found = bundle.arrays.get(REST)
        if found is None:
            return None
        rows = sum(bundle.counts or ())
        if found.shape == (2,) and np.isfinite(found).all() and 0 <= found[1] <= FURTHEST**2 * rows:
            agreement, size = np.asarray(found, dtype=np.float64)
            # By Cauchy and Schwarz, since labels and shares are no further apart than FURTHEST.
            if abs(agreement) <= FURTHEST * np.sqrt(rows * size):
                return np.array([agreement, size])
        server.diary.say(
            f"What party {bundle.sender!r} says of the rows it laid aside is not true of any rows, and does not count."
        )
        return None


def rows_aside(party: Party) -> Labels:
    """The rows that a party lays aside, drawn at random; none where too little would be left to learn from."""
    shuffled = party.rng(ASIDE).permutation(len(party.y))
    aside, rest = np.sort(shuffled[: len(shuffled) // SHARE]), shuffled[len(shuffled) // SHARE :]
    if len(shuffled) >= FEWEST and len(np.unique(party.y[rest])) > 1:
        return aside
    party.diary.say(
        f"Party {party.name!r} lays no rows aside, and has no say in which way is served: that takes {FEWEST} rows of "
        "two classes."
    )
    return aside[:0]


def without(party: Party, rows: Labels) -> Party:
    """The party with all its rows but these, a diary and a shelf of its own."""
    kept = np.setdiff1d(np.arange(len(party.y)), rows)
    ids = None if party.ids is None else [party.ids[each] for each in kept]
    return replace(party, X=take_rows(party.X, kept), y=party.y[kept], ids=ids, shelf={}, diary=Diary())


def score(party: Party, rows: Labels, students: Sequence[Model], features: Features) -> NDArray[np.float64]:
    """A party's two numbers: how the rest of what students say agrees with labels laid aside, and how large it is."""
    n_classes = len(party.classes)
    shares = np.bincount(np.delete(party.y, rows), minlength=n_classes) / (len(party.y) - len(rows))
    with one_thread():
        public = features(party.public)
        weights, _ = linear_part(said_by(students, party.public, n_classes), public)
        own = take_rows(party.X, rows)
        rest = said_by(students, own, n_classes) - features(own) @ weights
    length = np.sqrt((rest**2).sum(axis=1, keepdims=True))
    rest = rest * np.minimum(1.0, FURTHEST / np.maximum(length, FURTHEST))
    labels = np.eye(n_classes)[party.y[rows]]
    return np.array([(rest * (labels - shares)).sum(), (rest**2).sum()])


def said_by(models: Sequence[Model], rows: Any, n_classes: int) -> Matrix:
    """How probable models find the classes, in the mean; one that only names a class is sure of it."""
    answers = probabilities_of_all(models, rows, n_classes)
    reasons = [each for each in answers if isinstance(each, str)]
    if reasons:
        raise ModelError(f"A model cannot be asked how probable it finds the classes: {reasons[0]}")
    return np.asarray(np.mean(np.asarray(answers, dtype=np.float64), axis=0))


def linear_part(said: Matrix, public: Matrix) -> tuple[Matrix, float]:
    """W for which φW is nearest to what is said of public rows, and the mean square of the rest.

    The ridge is that of the least rest when each row is left out, whose own share in its fit is taken to be the mean.
    """
    sums, tries = Sums(public.T @ said, public.T @ public), []
    for strength in STRENGTHS:
        left = system(sums, strength)
        weights = np.asarray(np.linalg.solve(left, sums.moments / sums.rows), dtype=np.float64)
        own = float(np.trace(np.linalg.solve(left, sums.gram))) / sums.rows**2
        rest = float(((said - public @ weights) ** 2).sum(axis=1).mean()) / max(1 - own, 1e-3) ** 2
        tries.append((weights, rest))
    return min(tries, key=lambda each: each[1])


def expected_brier(said: Matrix, sums: Sums, public: Matrix, slope: float) -> float:
    """The Brier score on parties' rows of what is said of public ones, stretched by one number as is best.

    With p for what is said and s for the class shares it is 1 − Σs² − cov(p, y)² / var(p). Of the part of p that is
    linear in φ the sums tell both; of the rest public rows tell the variance, and `slope` how much of it is covariance.
    """
    weights, rest = linear_part(said, public)
    mean = weights.T @ sums.gram[0] / sums.rows
    variance = float((weights * (sums.gram @ weights)).sum() / sums.rows - mean @ mean) + rest
    covariance = float((weights * sums.moments).sum() / sums.rows - sums.shares @ mean) + slope * rest
    constant = 1 - float((sums.shares**2).sum())
    return constant - max(covariance, 0.0) ** 2 / variance if variance > 0 else constant


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
