"""Voting: what parties' students learn and say, and how the server weighs their words.

A voting has two halves. The party's half decides who teaches, what a student learns and what is sent beside it; the
server's half asks the students and labels the public rows. Adding one is one file here and one line in the catalogue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.lesson import Lesson
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.federation import Party, Server
from fedkt.models.base import count_rows, take_rows
from fedkt.models.catalogue import Roles, roles
from fedkt.models.prediction import predict_all
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.system.parallel import in_parallel
from fedkt.votes import Labels

if TYPE_CHECKING:
    from fedkt.algorithms.fedkt import FedKT

WORTH_SENDING = 50_000
"""Rows from which on asking a student costs more than sending it to a cluster, about 20 milliseconds for a forest."""
Students = tuple[Sequence[Any], Any, int]
"""A party's students, the rows they are asked about, and how many classes they tell apart."""


@dataclass(frozen=True)
class StudentAnswers:
    """What the parties' students say about the rows that were asked: each was run once, and that is its vote."""

    voters: list[tuple[Bundle, NDArray[Any]]] = field(default_factory=list)
    """Each party that votes, with the answers of its students."""
    silent: dict[str, str] = field(default_factory=dict)
    """Each party that does not, and why."""

    @property
    def bundles(self) -> list[Bundle]:
        """The bundles of those that vote."""
        return [bundle for bundle, _ in self.voters]


class LabelledRows(NamedTuple):
    """The public rows as the vote labels them."""

    labels: Labels
    queries: Labels | None = None
    """The rows that were asked; None for all of them."""
    distributions: NDArray[np.float64] | None = None
    """How probable the classes are on each row, where a vote says that."""
    shares: NDArray[np.float64] | None = None
    """The class shares that labels should have, where what students say may have lost rare classes."""


class Voting(ABC):
    """The facts of a voting, its party half and its server half."""

    name: ClassVar[str]
    """What plans, commands and stored results call it."""
    title: ClassVar[str]
    """What tables and pictures call FedKT with it."""
    summary: ClassVar[str]
    """In a line: FedKT with it, beside other methods."""
    server_rule: ClassVar[str]
    """In words, for a plan: what the server does with what it was sent."""
    choice: ClassVar[str]
    """In words, for whoever has to choose one."""
    assumption: ClassVar[str]
    """In words: what must hold for it to be right."""
    reveals: ClassVar[tuple[str, ...]] = ()
    """In lines, for a plan without noise: what a party tells by it besides its students."""
    colour: ClassVar[str] = "ink"
    """By its name in the palette of the pictures."""
    marker: ClassVar[str | None] = None
    """Its shape in curves over rounds."""
    levels: ClassVar[tuple[str, ...]] = ("L0",)
    """Those it has. With L1 its labels leave through the server's ledger, with L2 its lessons keep their releases."""
    default_at: ClassVar[tuple[str, ...]] = ()
    """The levels at which it is taken where nobody chose a voting."""
    compared_at: ClassVar[tuple[str, ...]] = ()
    """The levels at which `compare` shows it where nobody says what to compare."""
    class_counts: ClassVar[bool] = False
    """Whether parties also tell how many rows of each class they have."""
    probabilities: ClassVar[bool] = False
    """Whether students are asked how sure they are."""
    background_class: ClassVar[bool] = False
    """Whether students know one class more: a row that is not their party's."""
    fixed_shape: ClassVar[bool] = False
    """Whether partitions and subsets cannot be chosen."""

    def __init_subclass__(cls) -> None:
        words = ("name", "title", "summary", "server_rule", "choice", "assumption")
        missing = [each for each in words if not hasattr(cls, each)]
        if missing:
            raise TypeError(f"The voting {cls.__name__} does not say its {', '.join(missing)}.")

    def partitions(self, level: str) -> int:
        """s where nobody chose it."""
        return 1

    def subsets(self, level: str) -> int:
        """t where nobody chose it: noise needs many teachers; without it one had better see all rows."""
        return 1 if level == "L0" else 5

    def weighs_labels(self, level: str) -> bool:
        """Where weights of classes act: in the final model's labels, or else in the votes of teachers."""
        return False

    def check(self, *, level: str, partitions: int, subsets: int) -> None:
        """Refuse, in words, settings that do not go with this voting."""
        if level not in self.levels:
            raise ConfigurationError(self.level_refusal(level))

    def advice(self, level: str) -> str:
        """What whoever agrees on it should know beforehand, in a sentence; empty where there is nothing."""
        return ""

    def noise_lost(self, level: str) -> PrivacyError:
        """The refusal of a voting that has forgotten the noise of a level it says it has: no promise would hold."""
        return PrivacyError(f"The voting {self.name!r} went past level {level} without the ledger's noise.")

    def level_refusal(self, level: str) -> str:
        """Why this voting has no such level."""
        return f"The voting {self.name!r} has no level {level}."

    # The party's half.

    def roles_for(self, fedkt: FedKT, own: Any = None) -> Roles:
        """Who teaches and who studies at a party: of the agreed families, or of the party's own one."""
        if own is None:
            return roles(fedkt.model, teacher=fedkt.teacher, student=fedkt.student)
        return roles(own)

    def calibrated(self, fedkt: FedKT, own: Any = None) -> bool:
        """Whether the students of such a party say how probable a class is, and are about right."""
        return False

    def lessons(self, fedkt: FedKT, plain: Sequence[Lesson]) -> Sequence[Lesson]:
        """What students learn in place of plain lessons, that is of the labels that their teachers vote for."""
        return plain

    def message(self, fedkt: FedKT, party: Party, students: Bundle) -> Bundle:
        """What the party sends: its students, and what this voting has it tell beside them."""
        return students

    def count_noise(self, fedkt: FedKT, public_rows: int) -> GaussianCounts | None:
        """The noise on a party's class counts, None where none are sent with noise."""
        return None

    # The server's half.

    def ask(self, students: Students) -> list[Any]:
        """What each of one party's students says about the rows, or a reason why it says nothing."""
        models, rows, _ = students
        return predict_all(models, rows)

    @abstractmethod
    def label(self, fedkt: FedKT, server: Server, answers: StudentAnswers) -> LabelledRows:
        """The public rows, labelled by what the students say; at level L1 with noise, through the server's ledger."""


def ask_students(
    voting: Voting, server: Server, bundles: Sequence[Bundle], queries: Labels | None = None
) -> StudentAnswers:
    """What each party's students say about the rows that are asked; one whose student fails is named and left out."""
    rows = server.public if queries is None else take_rows(server.public, queries)
    tasks = [(bundle.models, rows, bundle.n_outputs) for bundle in bundles]
    result = StudentAnswers()
    replies = in_parallel(voting.ask, tasks, jobs=server.jobs, stay=count_rows(rows) < WORTH_SENDING)
    for bundle, answers in zip(bundles, replies, strict=True):
        failures = [f"student {place + 1}: {each}" for place, each in enumerate(answers) if isinstance(each, str)]
        if failures:
            # Fewer students agree more easily: with one left out, it would vote on more rows than others.
            note = f"Party {bundle.sender!r} does not vote, because of {'; '.join(failures)}"
            server.diary.say(note)
            result.silent[bundle.sender] = note
        else:
            result.voters.append((bundle, compact(np.stack(answers), bundle.n_outputs)))
    server.diary.vote.silent = result.silent
    return result


def compact(answers: NDArray[Any], n_outputs: int) -> NDArray[Any]:
    """Classes in no more bytes than they need, since all parties' are here at once; probabilities as they are."""
    return answers.astype(np.min_scalar_type(n_outputs)) if answers.dtype.kind == "i" else answers
