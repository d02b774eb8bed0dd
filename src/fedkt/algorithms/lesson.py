"""A lesson: one partition of one party, in which teachers of disjoint subsets vote and a student learns their labels.

This is PATE's transfer of knowledge (Algorithm 1, lines 2 to 12), which FedKT repeats at every party.

Without noise at the party the cut into subsets is a shuffle: they are of nearly equal size. At level L2 a record may
move one teacher of a partition and no other. A shuffle of row numbers cannot promise that: where rows are sorted by
anything a record decides (images in folders by class), one changed record moves every row between its two places. So
the subset of a record is there a keyed hash of the record's own identity, whatever other records there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Party, Server
from fedkt.models.base import FittedModel, count_rows, take_rows, within
from fedkt.models.catalogue import Roles
from fedkt.models.ensemble import TrainingTask, fit_to_rows
from fedkt.models.training import Done, train_and_ask, train_models
from fedkt.privacy import Release
from fedkt.system.parallel import Progress, progress_counter
from fedkt.system.stages import stage
from fedkt.system.threads import one_thread
from fedkt.votes import NO_VOTE, Labels, Votes, count_votes, stand_in_vote

EMPTY = "its subset has no rows"
"""Why a teacher of an empty subset says nothing."""

# What a generator of a party is for: the second number of its path (the first is the partition).
CUT, TEACH, TIES, STUDY = range(4)


@dataclass(frozen=True)
class Lesson:
    """One partition of one party: cut, teach, vote, study."""

    party: Party
    partition: int
    roles: Roles
    subsets: int
    release: Release | None = None
    """What leaves with noise: one of those that the algorithm lists. None where the bare labels leave."""
    queries: Labels | None = None
    """The public rows that are voted on; None for all of them."""

    @cached_property
    def rows(self) -> Any:
        """The public rows that are voted on."""
        return self.party.public if self.queries is None else take_rows(self.party.public, self.queries)

    @cached_property
    def teachers(self) -> list[TrainingTask]:
        """A teacher for each subset; with noise there are always as many, also of subsets without rows."""
        party = self.party
        return [
            TrainingTask(
                self.roles.teacher,
                self.own_rows,
                party.y[subset],
                party.rng(self.partition, TEACH, number),
                subset,
                f"Party {party.name!r}, partition {self.partition + 1}, the teacher of subset {number + 1}",
                may_fail=self.release is not None,
                alone=self.sizes_are_secret,
                weights=None if party.weights is None else party.weights[subset],
                beside=count_rows(self.rows),
            )
            for number, subset in enumerate(self.subset_rows)
        ]

    @property
    def sizes_are_secret(self) -> bool:
        """Whether even the size of a subset is a record's business, and must not reach the other teachers.

        A record that weighs 0 is in no subset.
        """
        return self.release is not None and (
            self.release.adjacency == "add-or-remove" or self.party.weights is not None
        )

    @cached_property
    def own_rows(self) -> Any:
        """The party's rows; where noise protects a record, with no value that public rows could not have.

        What a teacher makes of one absurd value would otherwise be anything, a failure included.
        """
        return self.party.X if self.release is None else within(self.party.X, self.party.public)

    @property
    def subset_rows(self) -> list[Labels]:
        """The row numbers of each subset; a row of weight 0 is in none, and moves no other."""
        party = self.party
        counted = party.counted_rows
        if self.release is None:
            return [counted[piece] for piece in cut(len(counted), self.subsets, party.rng(self.partition, CUT))]
        # Rows without identities of their own have their places in the file.
        identities = list(map(str, range(len(party.y)))) if party.ids is None else party.ids
        subsets = cut_by_identity(identities, self.subsets, cut_key(party.seed, self.partition))
        return subsets if party.weights is None else [each[party.weights[each] > 0] for each in subsets]

    @property
    def student_in_words(self) -> str:
        """What messages call the student."""
        return f"Party {self.party.name!r}, the student of partition {self.partition + 1}"

    def student_task(self, labels: Labels) -> TrainingTask:
        """A student of the labelled rows; rows that got no answer are left out."""
        answered = np.flatnonzero(labels != NO_VOTE)
        if len(answered) == 0:
            raise ModelError(
                f"{self.student_in_words}: no query was answered. Lower the threshold, or ask more queries."
            )
        some = None if len(answered) == len(labels) else answered
        rng = self.party.rng(self.partition, STUDY)
        return TrainingTask(self.roles.student, self.rows, labels[answered], rng, some, self.student_in_words)


def cut(n_rows: int, subsets: int, rng: np.random.Generator) -> list[Labels]:
    """The row numbers of `subsets` nearly equal random subsets; fewer where there are fewer rows than subsets."""
    if subsets < 1:
        raise ConfigurationError(f"A partition needs at least one subset, got {subsets}.")
    return [np.sort(piece) for piece in np.array_split(rng.permutation(n_rows), min(subsets, n_rows))]


def cut_by_identity(identities: Sequence[str], subsets: int, key: bytes) -> list[Labels]:
    """The row numbers of exactly `subsets` subsets, some of them perhaps empty; rows of one identity stay together.

    The rows of a subset stand in the order of their hashes: where a record stood in its file decides nothing.
    """
    hashes = identity_hashes(identities, key)
    # Stable, so that rows of one identity keep their order.
    order = np.argsort(hashes, kind="stable")
    home = (hashes[order] % np.uint64(subsets)).astype(np.int64)
    return [order[home == number].astype(np.int64) for number in range(subsets)]


def identity_hashes(identities: Sequence[str], key: bytes) -> NDArray[np.uint64]:
    """A number of 64 bits for each identity: its remainder by any number of subsets is even to within one in 10¹⁴."""
    digests = (hashlib.blake2b(each.encode(), digest_size=8, key=key).digest() for each in identities)
    return np.array([int.from_bytes(each, "big") for each in digests], dtype=np.uint64)


def cut_key(seed: int, partition: int) -> bytes:
    """The key of one partition's cut: every partition cuts anew."""
    return hashlib.sha256(f"fedkt cut {seed} {partition}".encode()).digest()


def fit_roles_to_rows(roles: Roles, side: Party | Server) -> Roles:
    """The roles as this side's rows ask for."""
    parts = (roles.teacher, roles.student, roles.final)
    # A role that several play is made once.
    once = {id(role): role for role in parts}
    ready = {key: fit_to_rows(role, side.public, side.image) for key, role in once.items()}
    return Roles(*(ready[id(role)] for role in parts))


def learn_students(lessons: Sequence[Lesson], *, jobs: int, progress: Progress | None) -> list[FittedModel]:
    """The student of each lesson; teachers, and then students, of all lessons are trained at once.

    With noise the labels leave a vote through the party's ledger, which refuses before a teacher is trained. A teacher
    is dropped as soon as it has voted.
    """
    if not lessons:
        return []
    n_classes = len(lessons[0].party.classes)
    total = sum(teacher.n_rows > 0 for lesson in lessons for teacher in lesson.teachers) + len(lessons)
    done = progress_counter(progress, total)
    votes = TeacherVotes(lessons, n_classes, jobs, done)
    with one_thread():
        with stage("votes"):
            tasks = [lesson.student_task(release_labels(lesson, votes, place)) for place, lesson in enumerate(lessons)]
        say = lessons[0].party.diary.say
        return train_models(tasks, n_classes, jobs=jobs, done=done, say=say, what="students")


class TeacherVotes:
    """The teachers' votes in every lesson. The first one asked for has all teachers trained."""

    def __init__(self, lessons: Sequence[Lesson], n_classes: int, jobs: int, done: Done) -> None:
        self.lessons = lessons
        self.n_classes = n_classes
        self.jobs = jobs
        self.done = done

    @cached_property
    def counts(self) -> list[Votes]:
        """The votes on each lesson's rows."""
        counts = [np.zeros((count_rows(lesson.rows), self.n_classes), dtype=np.int64) for lesson in self.lessons]
        voters = [(number, place) for number, each in enumerate(self.lessons) for place in range(len(each.teachers))]
        answers = self.answers([voter for voter in voters if self.teacher(*voter).n_rows])
        failures: dict[int, dict[int, str]] = {}
        for number, place in voters:
            answer = answers.get((number, place), EMPTY)
            if isinstance(answer, str):
                failures.setdefault(number, {})[place] = answer
                answer = stand_in_vote(place, len(counts[number]), self.n_classes)
            counts[number] += count_votes(answer[None], self.n_classes)
        for number, reasons in failures.items():
            note_stand_ins(self.lessons[number], reasons)
        return counts

    def answers(self, trained: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Labels | str]:
        """What each of these teachers says of its lesson's rows, or why it says nothing."""
        answers = train_and_ask(
            [self.teacher(*voter) for voter in trained],
            self.n_classes,
            [self.lessons[number].rows for number, _ in trained],
            jobs=self.jobs,
            done=self.done,
            say=self.lessons[0].party.diary.say,
            what="teachers",
        )
        return {trained[place]: answer for place, answer in answers}

    def teacher(self, number: int, place: int) -> TrainingTask:
        """A teacher of a lesson."""
        return self.lessons[number].teachers[place]


def note_stand_ins(lesson: Lesson, reasons: dict[int, str]) -> None:
    """Tell the party, and nobody else, which of its teachers vote by the fixed rule."""
    empty = sum(reason == EMPTY for reason in reasons.values())
    where = f"Party {lesson.party.name!r}, partition {lesson.partition + 1}"
    if empty:
        lesson.party.diary.say(
            f"{where}: {empty} of {lesson.subsets} subsets {'has' if empty == 1 else 'have'} no rows; their votes "
            "follow a fixed rule. With more rows or fewer subsets the student would know more."
        )
    failures = [(place, reason) for place, reason in reasons.items() if reason != EMPTY]
    if failures:
        place, reason = failures[0]
        lesson.party.diary.say(
            f"{where}: {len(failures)} of {lesson.subsets} teachers could not be trained or asked, and their votes "
            f"follow a fixed rule. The teacher of subset {place + 1}: {reason}"
        )


def release_labels(lesson: Lesson, votes: TeacherVotes, number: int) -> Labels:
    """The winning labels of a lesson's rows, through the party's ledger."""
    party, partition, release = lesson.party, lesson.partition, lesson.release

    def count() -> Votes:
        counts = votes.counts[number]
        if party.diagnostic and release is not None:
            party.diary.bare_votes.append(counts)
        return counts

    if release is not None:
        rng = party.noise_rng(release.stream)
        labels = party.ledger.release(count, release, rng=rng, noise_seed=party.noise_seed)
    else:
        labels = party.ledger.release_bare(
            count,
            queries=count_rows(lesson.rows),
            voters=len(lesson.teachers),
            classes=len(party.classes),
            rng=party.rng(partition, TIES),
        )
    party.diary.vote.labels.append((lesson.queries, labels))
    return labels
