"""FedKT: one-shot federated learning by transferring knowledge twice.

Li, He, Song: Practical One-Shot Federated Learning for Cross-Silo Setting. IJCAI 2021, Algorithm 1.

A party cuts its rows s times into t subsets, trains a teacher on each subset, lets the teachers of a cut vote on the
public rows, and trains one student per cut on the winning labels. Only the s students travel, once. The server labels
the public rows by what the students say, as its voting has it (`algorithms/voting`), and trains the final model.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from fedkt.algorithms.calibration import check_adjacency, check_records
from fedkt.algorithms.final import check_copies, final_lesson, fit_by_labels
from fedkt.algorithms.kept_students import learn_or_recall
from fedkt.algorithms.lesson import Lesson, fit_roles_to_rows
from fedkt.algorithms.teachers import check_weights, refuse_early_stopping, try_on_public_rows
from fedkt.algorithms.voting import Consistent, Voting, algorithm_name, ask_students, make_voting
from fedkt.algorithms.voting.answers import StudentAnswers
from fedkt.algorithms.voting.lost import note_absent_classes
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.base import count_rows
from fedkt.models.catalogue import Roles, roles
from fedkt.models.class_weights import check_class_weights, without_class_weights
from fedkt.models.ensemble import fit_to_rows, trains_networks
from fedkt.privacy import UNITS, Noise, Price, Release, check_level, price_together
from fedkt.privacy.price import Adjacency, counts_release
from fedkt.system.parallel import Progress
from fedkt.system.stages import stage
from fedkt.system.threads import one_thread
from fedkt.votes import Labels

QUERY_STREAM = 0xFED
"""Which public rows are asked at a private level: the first k of this fixed shuffle, the same for everybody."""


class FedKT(Algorithm):
    """FedKT with `partitions` (s) cuts into `subsets` (t) at every party.

    `model` is studied by every student and by the final model; `teacher`, `student` and `final` override it. An
    ensemble of trees is by default taught by single trees. Models are names from the catalogue or scikit-learn
    compatible classifiers; a party may bring a family of its own.

    `voting` is how the server weighs its parties, a name or a `Voting`; it decides `partitions` and `subsets` where
    nobody does.

    `level` L1 adds `noise` at the server and protects a party, L2 adds it at the parties and protects a record; only
    `queries` of the public rows (k, or a fraction of them) are asked where noise is added. As the paper advises there
    is one partition then: every partition of a party is a release of its own.

    `adjacency` is what level L2 protects a record against: being replaced, its identity kept (its place, where it has
    no other), or being added or removed as well, for which records need identities of their own.

    With `soft_final` the final model learns how probable the parties find the classes, and its probabilities are
    calibrated; without, it learns labels, as in Algorithm 1.

    With `copies` a final network also learns four copies of each public image, shifted by one pixel, under what is said
    of the image itself. Nobody is asked about them, so that they cost no noise.
    """

    def __init__(
        self,
        model: Any,
        *,
        voting: str | Voting = Consistent.name,
        teacher: Any = None,
        student: Any = None,
        final: Any = None,
        partitions: int | None = None,
        subsets: int | None = None,
        level: str = "L0",
        noise: Noise | None = None,
        queries: float = 1.0,
        adjacency: Adjacency = "replace-one",
        soft_final: bool = True,
        copies: bool = False,
    ) -> None:
        self.model = model
        self.voting = make_voting(voting)
        self.teacher = teacher
        self.student = student
        self.final = final
        self.partitions = self.voting.partitions(level) if partitions is None else partitions
        self.subsets = self.voting.subsets(level) if subsets is None else subsets
        self.level = level
        self.noise = noise
        self.queries = queries
        self.adjacency = adjacency
        self.soft_final = soft_final
        self.copies = copies

    takes_weights = True

    @property
    def name(self) -> str:
        """What commands and stored results call it."""
        return algorithm_name(self.voting)

    def with_noise(self, noise: Noise) -> Self:
        """The same with another noise."""
        algorithm = copy(self)
        algorithm.noise = noise
        return algorithm

    def check(self) -> None:
        """Refuse settings that cannot work, before anything is trained."""
        for what, value in (("partitions (s)", self.partitions), ("subsets (t)", self.subsets)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ConfigurationError(f"The number of {what} must be a whole number of at least 1, got {value!r}.")
        check_level(self.level, self.noise)
        check_adjacency(self.level, self.adjacency)
        self.voting.check(level=self.level, partitions=self.partitions, subsets=self.subsets)

    def number_of_queries(self, public_rows: int) -> int:
        """k."""
        return number_of_queries(self.queries, public_rows)

    def query_rows(self, public_rows: int) -> Labels | None:
        """The public rows that are asked where noise is added, by a rule that looks at nothing; None for all."""
        k = self.number_of_queries(public_rows)
        if self.level == "L0":
            if k != public_rows:
                raise ConfigurationError(
                    f"Level L0 asks all {public_rows} public rows, queries={self.queries!r} asks {k}. Leave it out."
                )
            return None
        shuffled = np.random.default_rng(QUERY_STREAM).permutation(public_rows)
        return np.sort(shuffled[:k])

    def releases(self, *, public_rows: int, classes: int, parties: int) -> tuple[Release, ...]:
        """All that an owner of a budget releases with noise, from public figures: the server (L1) or every party (L2).

        The one list of it: prices, plans, claims, ledgers and the releases themselves read it.
        """
        self.check()
        if self.noise is None:
            return ()
        k = self.number_of_queries(public_rows)
        if self.level == "L1":
            return (Release(self.noise, k, parties, classes, UNITS["L1"], abstentions=True, purpose="final model"),)
        # Always as many voters as agreed: a subset without rows votes too, so that nobody's size shows.
        each = Release(self.noise, k, self.subsets, classes, UNITS["L2"], self.adjacency)
        labels = tuple(replace(each, purpose=f"student {s + 1}", stream=s) for s in range(self.partitions))
        noise = self.voting.count_noise(self, public_rows)
        return labels if noise is None else (*labels, counts_release(noise, classes, self.adjacency))

    def price(self, *, public_rows: int, classes: int, parties: int, delta: float) -> Price | None:
        """ε of a run before it is run, None without noise; at L2 every party pays the same (Theorem 4)."""
        releases = self.releases(public_rows=public_rows, classes=classes, parties=parties)
        if not releases:
            return None
        # With class counts beside the votes: as a ledger adds up what one run fixes together.
        return price_together(releases, delta, adaptive=self.voting.class_counts, first=len(releases))

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """Networks of many parties train faster as one stack."""
        return trains_networks(self.voting.roles_for(self, party.model) for party in parties)

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The s students of one party; with noise at L2. Each is kept as soon as it is there."""
        soft = self.voting.probabilities
        for lesson in self.lessons(party, fit_roles_to_rows(self.voting.roles_for(self, party.model), party)):
            (student,) = learn_or_recall([lesson], soft=soft, jobs=party.jobs, progress=party.progress)
            party.shelf[student_name(lesson.partition)] = student
        return self.message(party)

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """The students of all parties, trained at once."""
        every = self.roles_at(parties)
        lessons = [lesson for party, own in zip(parties, every, strict=True) for lesson in self.lessons(party, own)]
        students = learn_or_recall(lessons, soft=self.voting.probabilities, jobs=jobs, progress=progress)
        for lesson, student in zip(lessons, students, strict=True):
            lesson.party.shelf[student_name(lesson.partition)] = student
        return [self.message(party) for party in parties]

    def roles_at(self, parties: Sequence[Party]) -> list[Roles]:
        """Who teaches and who studies at each party, as its rows ask for.

        Parties that share public rows and a model share its scale, which is measured on these rows.
        """
        alike = {(id(party.public), id(party.model)): party for party in parties}
        own = {key: fit_roles_to_rows(self.voting.roles_for(self, party.model), party) for key, party in alike.items()}
        return [own[id(party.public), id(party.model)] for party in parties]

    def lessons(self, party: Party, own: Roles) -> Sequence[Lesson]:
        """What this party has yet to teach its students: the partitions whose student is not on its shelf."""
        check_weights(party, own, noise=self.level == "L2")
        if self.copies:
            check_copies(self.model if self.final is None else self.final, party)
        # Weights of classes belong to whoever learns from a party's rows: a student would weigh them twice.
        members = replace(own, student=without_class_weights(own.student))
        public_rows = count_rows(party.public)
        releases: Sequence[Release | None] = [None] * self.partitions
        if self.level != "L2":
            self.check()
            rows = len(party.counted_rows)
            if rows < self.subsets:
                party.diary.say(
                    f"Party {party.name!r} has {rows} rows, fewer than {self.subsets} subsets: it uses {rows} subsets "
                    "of one row."
                )
        else:
            releases = self.releases(public_rows=public_rows, classes=len(party.classes), parties=1)
            # Before a row is looked at: what would let more than the noise depend on a record.
            check_records(self.adjacency, party.ids, party.name)
            refuse_early_stopping(own.teacher)
            try_on_public_rows(own.teacher, party)
        # At L1 students see every public row; it is the server that asks only some.
        queries = None if self.level == "L1" else self.query_rows(public_rows)
        plain = [
            Lesson(party, partition, members, self.subsets, releases[partition], queries)
            for partition in range(self.partitions)
            if student_name(partition) not in party.shelf
        ]
        lessons = self.voting.lessons(self, plain)
        if self.level == "L2" and any(lesson.release is None for lesson in lessons):
            raise self.voting.noise_lost("L2")
        return lessons

    def message(self, party: Party) -> Bundle:
        """What the party sends: its finished students, and what the voting has it tell."""
        students = tuple(party.shelf[student_name(partition)] for partition in range(self.partitions))
        sent = self.voting.message(self, party, Bundle(party.name, party.classes, students))
        noisy = any(not release.noise.for_votes for release in party.ledger.releases)
        if self.level == "L2" and sent.counts is not None and not noisy:
            raise self.voting.noise_lost("L2")
        return sent

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The final model, trained on the public rows as the parties' students label them; with noise at L1."""
        answers = self.student_answers(server, bundles)
        if not answers.voters:
            raise ModelError("No party sent students that can all be used; there is nothing to vote with.")
        return self.train_final(server, answers)

    def student_answers(self, server: Server, bundles: Sequence[Bundle]) -> StudentAnswers:
        """What each party's students say about the rows that are asked.

        Every student is run here, once: whoever answers has voted, and nothing is left that could fail once the vote
        is paid for.
        """
        self.check()
        # At L0 and L2 the students are asked about every public row.
        queries = self.query_rows(count_rows(server.public)) if self.level == "L1" else None
        with one_thread(), stage("asking"):
            return ask_students(self.voting, server, bundles, queries)

    def train_final(self, server: Server, answers: StudentAnswers) -> Bundle:
        """The final model, from what the students have said."""
        with one_thread():
            released = len(server.ledger.releases)
            with stage("vote"):
                labelled = self.voting.label(self, server, answers)
            if self.level == "L1" and len(server.ledger.releases) == released:
                raise self.voting.noise_lost("L1")
            server.diary.vote.labels = [(labelled.queries, labelled.labels)]
            note_absent_classes(server, labelled.labels)
            with stage("final model"):
                if self.soft_final:
                    model = final_lesson(self, server, labelled).fit()
                else:
                    model = fit_by_labels(self, server, labelled)
            return Bundle("server", server.classes, (model,))

    def final_model(self, server: Server) -> Any:
        """Who studies at the server, untrained."""
        own = roles(self.model, final=self.final).final
        check_class_weights(own, len(server.classes))
        # Where teachers weigh classes, the labels carry it already.
        weighted = own if self.voting.weighs_labels(self.level) else without_class_weights(own)
        return fit_to_rows(weighted, server.public, server.image)


def student_name(partition: int) -> str:
    """What a student is called on its party's shelf."""
    return f"student-{partition}"


def number_of_queries(queries: float, public_rows: int) -> int:
    """k: a whole number of public rows, or a fraction of them (1.0 is all, 1 is one row)."""
    if isinstance(queries, bool) or not isinstance(queries, (int, float, np.integer, np.floating)):
        raise ConfigurationError(f"queries is a number of public rows or a fraction of them, got {queries!r}.")
    if isinstance(queries, (int, np.integer)):
        if not 1 <= queries <= public_rows:
            raise ConfigurationError(f"queries must lie between 1 and the {public_rows} public rows, got {queries}.")
        return int(queries)
    k = int(queries * public_rows) if 0 < queries <= 1 else 0
    if k < 1:
        raise ConfigurationError(
            "queries as a fraction lies above 0 and at most at 1.0, and gives at least one of the "
            f"{public_rows} public rows; got {queries!r}."
        )
    return k
