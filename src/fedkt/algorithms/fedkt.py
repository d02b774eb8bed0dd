"""FedKT: one-shot federated learning by transferring knowledge twice.

Li, He, Song: Practical One-Shot Federated Learning for Cross-Silo Setting. IJCAI 2021, Algorithm 1.

A party cuts its rows s times into t subsets, trains a teacher on each subset, lets the teachers of a cut vote on the
public rows, and trains one student per cut on the winning labels. Only the s students travel, once. The server counts
a party's vote only where all its students agree, labels the public rows by these votes and trains the final model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.calibration import check_adjacency, check_records, default_partitions
from fedkt.algorithms.pate import STUDY, TIES, Lesson, fit_roles_to_rows, learn_students
from fedkt.algorithms.teachers import refuse_early_stopping, try_on_public_rows
from fedkt.algorithms.vote_figures import describe, warn_of_lost_classes
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Algorithm, Party, Server
from fedkt.models.base import FittedModel, count_rows, one_thread, take_rows
from fedkt.models.catalogue import Roles, roles
from fedkt.models.ensemble import TrainingTask, fit_group, fit_to_rows, is_neural
from fedkt.models.prediction import predict_all
from fedkt.privacy import UNITS, Ledger, Noise, Price, Release, check_level, price_together
from fedkt.privacy.price import Adjacency
from fedkt.system.parallel import Progress, in_parallel
from fedkt.votes import NO_VOTE, Labels, Votes, consistent_votes, count_votes

Ask = Callable[[tuple[Sequence[Any], Any, int]], list[Any]]
"""From students, rows and the number of classes to what each student says, or a reason why it says nothing."""
Heard = tuple[Bundle, NDArray[Any]]
"""A party's bundle, and what each of its students said about the rows that were asked."""


QUERY_STREAM = 0xFED
"""Which public rows are asked at a private level: the first k of this fixed shuffle, the same for everybody."""


class FedKT(Algorithm):
    """FedKT with `partitions` (s) cuts into `subsets` (t) at every party.

    `model` is studied by every student and by the final model; `teacher`, `student` and `final` override it. An
    ensemble of trees is by default taught by single trees. Models are names from the catalogue or scikit-learn
    compatible classifiers; a party may bring a family of its own.

    `level` L1 adds `noise` at the server and protects a party, L2 adds it at the parties and protects a record; only
    `queries` of the public rows (k, or a fraction of them) are asked where noise is added. `partitions` defaults to 2
    without noise and to 1 with it, as the paper advises: every partition of a party is a release of its own.

    `adjacency` is what level L2 protects a record against: being replaced, its identity kept (its place, where it has
    no other), or being added or removed as well, for which records need identities of their own.
    """

    name = "fedkt"
    counts = False
    """Whether parties also tell how many rows of each class they have."""

    def __init__(
        self,
        model: Any,
        *,
        teacher: Any = None,
        student: Any = None,
        final: Any = None,
        partitions: int | None = None,
        subsets: int = 5,
        level: str = "L0",
        noise: Noise | None = None,
        queries: float = 1.0,
        adjacency: Adjacency = "replace-one",
    ) -> None:
        self.model = model
        self.teacher = teacher
        self.student = student
        self.final = final
        self.partitions = default_partitions(level) if partitions is None else partitions
        self.subsets = subsets
        self.level = level
        self.noise = noise
        self.queries = queries
        self.adjacency = adjacency

    def check(self) -> None:
        """Refuse settings that cannot work, before anything is trained."""
        for what, value in (("partitions (s)", self.partitions), ("subsets (t)", self.subsets)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ConfigurationError(f"The number of {what} must be a whole number of at least 1, got {value!r}.")
        check_level(self.level, self.noise)
        check_adjacency(self.level, self.adjacency)

    def query_rows(self, public_rows: int) -> Labels | None:
        """The public rows that are asked where noise is added, by a rule that looks at nothing; None for all."""
        k = number_of_queries(self.queries, public_rows)
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
        k = number_of_queries(self.queries, public_rows)
        if self.level == "L1":
            return (Release(self.noise, k, parties, classes, UNITS["L1"], abstentions=True, purpose="final model"),)
        # Always as many voters as agreed: a subset without rows votes too, so that nobody's size shows.
        each = Release(self.noise, k, self.subsets, classes, UNITS["L2"], self.adjacency)
        return tuple(replace(each, purpose=f"student {s + 1}", stream=s) for s in range(self.partitions))

    def price(self, *, public_rows: int, classes: int, parties: int, delta: float) -> Price | None:
        """ε of a run before it is run, None without noise; at L2 every party pays the same (Theorem 4)."""
        releases = self.releases(public_rows=public_rows, classes=classes, parties=parties)
        if not releases:
            return None
        # With class counts beside the votes: as a ledger adds up releases of two kinds, a little too much.
        return price_together(releases, delta, adaptive=self.counts, first=len(releases))

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """Networks of many parties train faster as one stack."""
        return any(
            is_neural(each.teacher) or is_neural(each.student)
            for each in (self.chosen(party.model) for party in parties)
        )

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The s students of one party; with noise at L2. Each is kept as soon as it is there."""
        for lesson in self.lessons(party, fit_roles_to_rows(self.chosen(party.model), party)):
            (student,) = self.learn([lesson], jobs=party.jobs, progress=party.progress)
            party.shelf[student_name(lesson.partition)] = student
        return self.bundle(party)

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """The students of all parties, trained at once."""
        chosen = self.suited_to(parties)
        lessons = [lesson for party, own in zip(parties, chosen, strict=True) for lesson in self.lessons(party, own)]
        for lesson, student in zip(lessons, self.learn(lessons, jobs=jobs, progress=progress), strict=True):
            lesson.party.shelf[student_name(lesson.partition)] = student
        return [self.bundle(party) for party in parties]

    def learn(self, lessons: Sequence[Lesson], *, jobs: int, progress: Progress | None) -> list[FittedModel]:
        """The student of each lesson."""
        return learn_students(lessons, jobs=jobs, progress=progress)

    def suited_to(self, parties: Sequence[Party]) -> list[Roles]:
        """Who teaches and who studies at each party, as its rows ask for.

        Parties that share public rows and a model share its scale, which is measured on these rows.
        """
        alike = {(id(party.public), id(party.model)): party for party in parties}
        made = {key: fit_roles_to_rows(self.chosen(party.model), party) for key, party in alike.items()}
        return [made[id(party.public), id(party.model)] for party in parties]

    def chosen(self, own: Any = None) -> Roles:
        """Who teaches and who studies at a party: of the agreed families, or of the party's own one."""
        if own is None:
            return roles(self.model, teacher=self.teacher, student=self.student)
        return roles(own)

    def calibrated(self, own: Any = None) -> bool:
        """Whether the students of such a party say how probable a class is, and are about right."""
        return False

    def lessons(self, party: Party, chosen: Roles) -> list[Lesson]:
        """What this party has yet to teach its students: the partitions whose student is not on its shelf."""
        self.check()
        if self.level == "L2":
            self.check_records(party, chosen.teacher)
        elif len(party.y) < self.subsets:
            party.diary.say(
                f"Party {party.name!r} has {len(party.y)} rows, fewer than {self.subsets} subsets: "
                f"it uses {len(party.y)} subsets of one row."
            )
        # At L1 students see every public row; it is the server that asks only some.
        queries = None if self.level == "L1" else self.query_rows(count_rows(party.public))
        releases: Sequence[Release | None] = [None] * self.partitions
        if self.level == "L2":
            releases = self.releases(public_rows=count_rows(party.public), classes=len(party.classes), parties=1)
        return [
            Lesson(party, partition, chosen, self.subsets, releases[partition], queries)
            for partition in range(self.partitions)
            if student_name(partition) not in party.shelf
        ]

    def check_records(self, party: Party, teacher: Any) -> None:
        """Refuse, before level L2 looks at a row, what would let more than the noise depend on a record."""
        check_records(self.adjacency, party.ids, party.name)
        refuse_early_stopping(teacher)
        try_on_public_rows(teacher, party)

    def bundle(self, party: Party) -> Bundle:
        """What the party sends: its finished students."""
        students = tuple(party.shelf[student_name(partition)] for partition in range(self.partitions))
        return Bundle(party.name, party.classes, students)

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The final model, trained on the public rows as the parties' consistent votes label them; with noise at L1."""
        heard = self.heard(server, bundles)
        if not heard:
            raise ModelError("No party sent students that can all be used; there is nothing to vote with.")
        return self.conclude(server, heard)

    def heard(self, server: Server, bundles: Sequence[Bundle]) -> list[Heard]:
        """What each party's students say about the rows that are asked; one whose student fails is named and left out.

        Every student is run here, once: whoever is heard has voted, and nothing is left that could fail once the vote
        is paid for.
        """
        self.check()
        # At L0 and L2 the students are asked about every public row.
        queries = self.query_rows(count_rows(server.public)) if self.level == "L1" else None
        public = server.public if queries is None else take_rows(server.public, queries)
        tasks = [(bundle.models, public, bundle.n_outputs) for bundle in bundles]
        found: list[Heard] = []
        with one_thread():
            for bundle, answer in zip(bundles, in_parallel(self.asking(), tasks, jobs=server.jobs), strict=True):
                failed = [f"student {place + 1}: {each}" for place, each in enumerate(answer) if isinstance(each, str)]
                if failed:
                    # Fewer students agree more easily: with one left out, it would vote on more rows than others.
                    note = f"Party {bundle.sender!r} does not vote, because of {'; '.join(failed)}"
                    server.diary.say(note)
                    server.diary.figures.setdefault("silent", {})[bundle.sender] = note
                else:
                    found.append((bundle, compact(np.stack(answer), bundle.n_outputs)))
        return found

    def asking(self) -> Ask:
        """How students are asked."""
        return ask

    def conclude(self, server: Server, heard: Sequence[Heard]) -> Bundle:
        """The final model, from what the students have said."""
        with one_thread():
            labels, queries = self.noisy_labels(server, heard) if self.level == "L1" else self.labels(server, heard)
            return Bundle("server", server.classes, (self.study(server, labels, queries),))

    def final_model(self, server: Server) -> Any:
        """Who studies at the server, untrained."""
        return fit_to_rows(roles(self.model, final=self.final).final, server.public, server.image)

    def study(
        self,
        server: Server,
        labels: Labels,
        queries: Labels | None = None,
        known: NDArray[np.float64] | None = None,
    ) -> FittedModel:
        """The final model of the labelled public rows; rows that got no answer are left out.

        It learns the labels or, where they are given, the distributions they were taken from.
        """
        server.diary.figures["labels"] = [(queries, labels)]
        answered = np.flatnonzero(labels != NO_VOTE)
        if len(answered) == 0:
            raise ModelError("No query was answered. Lower the threshold of the noise, or ask more queries.")
        rows = answered if queries is None else queries[answered]
        some = None if len(rows) == count_rows(server.public) else rows
        problem = TrainingTask(
            self.final_model(server),
            server.public,
            labels[answered] if known is None else known[answered],
            server.rng(0, STUDY),
            some,
            "The server's final model",
        )
        return fit_group([problem], len(server.classes))[0]

    def labels(self, server: Server, heard: Sequence[Heard]) -> tuple[Labels, None]:
        """The winners of the consistent votes on all public rows: at L0, and at L2, where the students are private."""
        votes = consistent_votes((said for _, said in heard), len(server.classes))
        voters = len(heard)
        if not votes.any():
            votes = self.plain_votes(server, heard)
            voters = int(votes[0].sum())
        # A ledger of its own: what students say is bare at L0, and costs nothing more at L2 (post-processing).
        labels = Ledger().release_bare(
            lambda: votes, queries=len(votes), voters=voters, classes=len(server.classes), rng=server.rng(0, TIES)
        )
        describe(server, votes, labels, voters)
        warn_of_lost_classes(server, votes, labels)
        return labels, None

    def noisy_labels(self, server: Server, heard: Sequence[Heard]) -> tuple[Labels, Labels]:
        """The noisy winners of the consistent votes on k public rows (L1). Nothing else about the votes is kept."""
        queries = self.query_rows(count_rows(server.public))
        assert queries is not None

        def count() -> Votes:
            votes = consistent_votes((said for _, said in heard), len(server.classes))
            if server.diagnostic:
                server.diary.bare_votes.append(votes)
            return votes

        (release,) = self.releases(
            public_rows=count_rows(server.public), classes=len(server.classes), parties=len(heard)
        )
        labels = server.ledger.release(count, release, rng=server.noise_rng(), noise_seed=server.noise_seed)
        return labels, queries

    def plain_votes(self, server: Server, heard: Sequence[Heard]) -> Votes:
        """Every student's own vote: what is left where no party's students agree on any public row."""
        server.diary.say(
            f"On no public row do all {self.partitions} students of any party agree, so every student's own vote was "
            "counted. Expect a poor model: use more public rows, more rows per party, or fewer partitions."
        )
        return count_votes(np.concatenate([said for _, said in heard]), len(server.classes))


def compact(answers: NDArray[Any], n_outputs: int) -> NDArray[Any]:
    """Classes in no more bytes than they need, since all parties' are here at once; probabilities as they are."""
    return answers.astype(np.min_scalar_type(n_outputs)) if answers.dtype.kind == "i" else answers


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


def ask(task: tuple[Sequence[Any], Any, int]) -> list[Labels | str]:
    """What each of one party's students says about the public rows, or why it cannot."""
    models, public, _ = task
    return predict_all(models, public)
