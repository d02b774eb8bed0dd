"""FedKT by moments: parties send sums of public features by class instead of students.

Li, He, Song: Practical One-Shot Federated Learning for Cross-Silo Setting. IJCAI 2021, whose one message, public rows
and second transfer of knowledge these are. The message is another: sufficient statistics, as in Foulds, Geumlek,
Welling, Chaudhuri: On the Theory and Practice of Privacy-Preserving Bayesian Data Analysis, UAI 2016; Wang: Revisiting
Differentially Private Linear Regression (AdaSSP), UAI 2018; AFL: Single-Round Analytic Approach for Federated Learning,
CVPR 2025; FedCGS, AAAI 2025; FedPFT, arXiv 2402.01862 (2024).

All sides know a feature map φ, fixed by the public rows and a public seed. A party sends M = Σ φ(x)·onehot(y) and
G = Σ φ(x)φ(x)ᵀ of its rows; the server adds them up and solves a head, which is exactly that of the pooled rows,
however they are dealt out. At level L2 a party sends M alone, with noise, and G is that of the public rows. At level L1
it sends M alone, and the noise is on the total of what parties say (`party_total`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from fedkt.algorithms.card import Card, Traffic
from fedkt.algorithms.class_sums import GRAM, MOMENTS, ClassSums, broken_moments, noisy_fault, packed, sums_of, unpacked
from fedkt.algorithms.final import check_copies, final_lesson
from fedkt.algorithms.heads import CalibratedHead, Sums, solve
from fedkt.algorithms.noisy_heads import solve_noisy
from fedkt.algorithms.party_head import PartyHead
from fedkt.algorithms.party_total import MOST, PartyTotal
from fedkt.algorithms.received_sums import PLAIN, Heard, Received, note_parties
from fedkt.algorithms.sums_alarms import alarm_of_lost_classes, alarm_of_one_class
from fedkt.algorithms.voting.base import LabelledRows
from fedkt.algorithms.voting.lost import note_absent_classes
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Algorithm, Party, Server, Side
from fedkt.models.base import FittedModel, Image, take_rows, within
from fedkt.models.catalogue import as_estimator
from fedkt.models.ensemble import fit_to_rows
from fedkt.models.features.feature_map import FeatureMap, Features
from fedkt.models.features.images import image_map
from fedkt.models.features.tables import table_map
from fedkt.models.features.whitened import whitened_map
from fedkt.pooling import Matrix
from fedkt.privacy import Noise, Price, Release, price_together
from fedkt.privacy.calibrate import smallest_noise
from fedkt.privacy.ledger import check_level, require_level
from fedkt.privacy.price import sums_release
from fedkt.privacy.sums import GaussianSums
from fedkt.system.parallel import Progress, progress_counter
from fedkt.system.stages import stage
from fedkt.system.threads import one_thread
from fedkt.votes import Labels

MAP_SEED = 0xFEA7
"""The public seed of every map."""
SMALLEST_CLASS = 10
"""Of fewer rows the exact sum says too much: that of one row is the row."""


class Moments(Algorithm):
    """FedKT by sums of features.

    The final model is the head itself, unless `final` names a family that learns what it says of all public rows.
    `smallest_class` is how many rows of a class a party needs at level L0 for its sum of them to be sent.
    `class_shares` are those of the classes where everybody knows them, from a census, say: level L1 then has more to
    say of all else.
    `features` is the map that everybody has agreed on; without one everybody makes it of the public rows.
    With `copies` a final network also learns public images shifted by one pixel.
    """

    name = "fedkt-moments"
    voting: ClassVar[str] = "moments"
    """What `FedKTClassifier` calls it, where others say how students are weighed."""

    def __init__(
        self,
        model: Any,
        *,
        final: Any = None,
        level: str = "L0",
        noise: Noise | None = None,
        smallest_class: int = SMALLEST_CLASS,
        class_shares: Sequence[float] | None = None,
        features: Features | None = None,
        copies: bool = False,
    ) -> None:
        self.model = model
        self.final = final
        self.level = level
        self.noise = noise
        self.smallest_class = smallest_class
        self.class_shares = class_shares
        self.features = features
        self.copies = copies
        self._made: tuple[Any, FeatureMap] | None = None

    def with_noise(self, noise: Noise) -> Self:
        """The same with another noise."""
        algorithm = copy(self)
        algorithm.noise = noise
        return algorithm

    def check(self) -> None:
        """Refuse settings that cannot work, before anything is summed up."""
        require_level(self.level)
        if self.level == "L0":
            check_level(self.level, self.noise)
        if self.level != "L0" and not isinstance(self.noise, GaussianSums):
            given = "" if self.noise is None else f", got {self.noise!r}"
            raise ConfigurationError(
                f"Level {self.level} needs a noise for sums of features{given}. Give --epsilon 2 on the command line, "
                "GaussianSums(sigma=10) from fedkt.privacy.sums in Python; or choose votes (--voting), whose noise is "
                "another."
            )
        if self.class_shares is not None and self.level != "L1":
            raise ConfigurationError(
                f"At level {self.level} parties tell the class shares themselves. Leave class_shares out; level L1 has "
                "a use for them."
            )
        if self.copies and self.final is None:
            raise ConfigurationError(
                "Copies are for a final network that learns public images, and the final model of moments is the head "
                "itself. Name a final family, or leave copies out."
            )
        if isinstance(self.smallest_class, bool) or not isinstance(self.smallest_class, int) or self.smallest_class < 1:
            raise ConfigurationError(
                f"smallest_class is a whole number of at least 1, got {self.smallest_class!r}. 1 lets every class out."
            )

    def releases(self, *, public_rows: int, classes: int, parties: int) -> tuple[Release, ...]:
        """All that the server (L1) or every party (L2) releases with noise, from public figures."""
        self.check()
        if not isinstance(self.noise, GaussianSums):
            return ()
        if self.level == "L1":
            return (self.total(classes, parties).release,)
        return (sums_release(self.noise, classes),)

    def price(self, *, public_rows: int, classes: int, parties: int, delta: float) -> Price | None:
        """ε of a run before it is run, None without noise; parties are disjoint, so that it is each one's."""
        releases = self.releases(public_rows=public_rows, classes=classes, parties=parties)
        return price_together(releases, delta) if releases else None

    # The party's half.

    def feature_map(self, side: Side) -> Features:
        """φ, as agreed, or as the public rows have it; of the same rows it is made once a run."""
        if self.features is not None:
            return self.features
        if self._made is None or self._made[0] is not side.public:
            self._made = side.public, self.map_of(side.public, side.image)
        return self._made[1]

    def forget_map(self) -> None:
        """The next map is made anew: a run begins, and rows or level may be others in the same place."""
        self._made = None

    def map_of(self, public: Any, image: Image | None) -> FeatureMap:
        """φ, made of the public rows."""
        private = self.level != "L0"
        if self.level == "L1":
            return whitened_map(public, image, seed=MAP_SEED, width=MOST)
        if image is not None:
            return image_map(public, image, seed=MAP_SEED, private=private)
        return table_map(public, seed=MAP_SEED, private=private)

    def array_shapes(self, width: int, n_classes: int) -> dict[str, tuple[int, ...]]:
        """The arrays that a party sends, by name."""
        shapes: dict[str, tuple[int, ...]] = {MOMENTS: (width, n_classes)}
        if self.level == "L0":
            shapes[GRAM] = (width * (width + 1) // 2,)
        return shapes

    def batches_parties(self, parties: Sequence[Party]) -> bool:
        """Parties with the same public rows have the same map, which is made once."""
        return True

    def party_step(self, party: Party, broadcast: Bundle | None) -> Bundle:
        """The sums of the party's rows; with noise at L2."""
        return self.party_steps([party], broadcast, progress=party.progress)[0]

    def party_steps(
        self, parties: Sequence[Party], broadcast: Bundle | None, *, jobs: int = 1, progress: Progress | None = None
    ) -> list[Bundle]:
        """The sums of every party's rows."""
        self.check()
        self.forget_map()
        if self.copies:
            check_copies(self.final, parties[0])
        done, sent = progress_counter(progress, len(parties)), []
        for party in parties:
            with stage("sums"):
                sent.append(self.message(party, self.feature_map(party)))
            done(1)
        return sent

    def message(self, party: Party, features: Features) -> Bundle:
        """What one party sends."""
        n_classes = len(party.classes)

        def moments() -> Matrix:
            # As the public rows have them: whether a row can be read at all must not show.
            return sums_of(features, within(party.X, party.public), party.y, n_classes, gram=False).moments

        if self.level == "L1":
            return Bundle(party.name, party.classes, (), arrays={MOMENTS: moments()})
        if self.level == "L2":
            (release,) = self.releases(public_rows=1, classes=n_classes, parties=1)
            noisy = party.ledger.release_sums(
                moments,
                release,
                shape=(features.width, n_classes),
                rng=party.noise_rng(release.stream),
                noise_seed=party.noise_seed,
            )
            return Bundle(party.name, party.classes, (), arrays={MOMENTS: noisy})
        rows = self.rows_to_send(party)
        sums = sums_of(features, take_rows(party.X, rows), party.y[rows], n_classes, gram=True)
        return Bundle(party.name, party.classes, (), arrays=packed(sums))

    def rows_to_send(self, party: Party) -> Labels:
        """The rows of the classes that have enough of them; of what is left out the party is told."""
        counts = np.bincount(party.y, minlength=len(party.classes))
        small = [party.classes[label] for label in np.flatnonzero((counts > 0) & (counts < self.smallest_class))]
        rows = np.flatnonzero(counts[party.y] >= self.smallest_class)
        if small:
            party.diary.say(
                f"Party {party.name!r} leaves out its rows of {', '.join(map(repr, small[:5]))}: it has fewer than "
                f"{self.smallest_class} of each, and the exact sum of so few says too much about them."
            )
        return rows

    # The server's half.

    def server_step(self, server: Server, bundles: Sequence[Bundle]) -> Bundle:
        """The final model: the head of all sums, or a model that has learned what it says."""
        with stage("asking"):
            heard = self.hear(server, bundles)
        with stage("final model"):
            return self.train_final(server, heard)

    def hear(self, server: Server, bundles: Sequence[Bundle]) -> Heard:
        """The sums that may be some rows'; who sent others is named and left out.

        At level L1 that is for the server's own eyes: no party that keeps to the rules is ever told of, whatever its
        rows.
        """
        self.check()
        features = self.feature_map(server)
        found, silent = [], {}
        for bundle in bundles:
            try:
                found.append((bundle, self.sums_in(bundle, features)))
            except ModelError as reason:
                silent[bundle.sender] = f"Party {bundle.sender!r} does not count, because {reason}"
                if self.level != "L1":
                    server.diary.say(silent[bundle.sender])
        server.diary.vote.silent |= silent
        noise = self.noise.variance if isinstance(self.noise, GaussianSums) else 0.0
        senders, sums = tuple(bundle for bundle, _ in found), tuple(each for _, each in found)
        return Heard(features, Received(senders, sums, noise), silent, server.parties or len(bundles))

    def train_final(self, server: Server, heard: Heard) -> Bundle:
        """The final model of these sums."""
        # At level L1 such a total has noise like any other, and nothing hangs on who sent what.
        if not heard.received.sums and self.level != "L1":
            raise ModelError("No party sent sums that can be used; there is nothing to solve a head from.")
        with one_thread():
            public = heard.features(server.public)
            make = self.head_of_parties if self.level == "L1" else self.head_of_rows
            model, labelled = make(server, heard, public)
            server.diary.vote.labels = [(None, labelled.labels)]
            if not alarm_of_one_class(server, labelled.labels, noisy=self.level != "L0"):
                note_absent_classes(server, labelled.labels)
            if self.final is not None:
                model = final_lesson(self, server, labelled).fit()
            return Bundle("server", server.classes, (model,))

    def head_of_rows(self, server: Server, heard: Heard, public: Matrix) -> tuple[FittedModel, LabelledRows]:
        """The head of all rows' sums, and what it says of the public rows."""
        received, features = heard.received, heard.features
        present = received.classes_present()
        head = self.solve(received.over(present, public), features, public)
        note_parties(server, received, public, head.strength or PLAIN)
        alarm_of_lost_classes(server, received, self.smallest_class)
        known = np.zeros((len(public), len(server.classes)))
        known[:, present] = head.probabilities(public)
        labels = np.asarray(known.argmax(axis=1), dtype=np.int64)
        return fitted_head(features, head, present), LabelledRows(labels, distributions=known)

    def total(self, classes: int, parties: int) -> PartyTotal:
        """What the server adds up at level L1."""
        assert isinstance(self.noise, GaussianSums)
        shares = None if self.class_shares is None else tuple(self.class_shares)
        return PartyTotal(self.noise, parties, classes, shares)

    def head_of_parties(self, server: Server, heard: Heard, public: Matrix) -> tuple[FittedModel, LabelledRows]:
        """The head of one noisy total, to which every party adds little, and what it says of the public rows."""
        total = self.total(len(server.classes), heard.parties)
        mean = total.mean(server, [each.moments for each in heard.received.sums], public)
        head = PartyHead(total, mean, heard.features, public)
        return head.model(), head.labelled()

    def sums_in(self, bundle: Bundle, features: Features) -> ClassSums:
        """The sums in a bundle, noisy ones in units of one."""
        n_classes = len(bundle.classes)
        if self.level == "L0":
            return unpacked(bundle.arrays, features, n_classes)
        found, shape = bundle.arrays.get(MOMENTS), (features.width, n_classes)
        words, kinds = ("whole numbers", "i") if self.level == "L2" else ("numbers", "fi")
        if set(bundle.arrays) != {MOMENTS} or found is None or found.shape != shape or found.dtype.kind not in kinds:
            raise ModelError(f"it did not send {words} of the shape {shape} as {MOMENTS!r}, and nothing else.")
        if self.level == "L2":
            assert isinstance(self.noise, GaussianSums)
            sums = ClassSums(found * self.noise.step)
            fault = noisy_fault(sums, self.noise.sigma)
        else:
            sums = ClassSums(np.asarray(found, dtype=np.float64))
            fault = broken_moments(sums.moments)
        if fault:
            raise ModelError(fault)
        return sums

    def solve(self, sums: Sums, features: Features, public: Matrix) -> CalibratedHead:
        """The head of these sums; of one class it is a constant."""
        if sums.moments.shape[1] == 1:
            return CalibratedHead("constant", np.zeros_like(sums.moments), np.zeros(1), 0.0)
        if sums.variance:
            return solve_noisy(sums, public)
        return solve(sums, public, [*features.prefixes, features.width])

    def final_model(self, server: Server) -> Any:
        """Who learns what the head says, untrained."""
        return fit_to_rows(as_estimator(self.final), server.public, server.image)


def fitted_head(features: Features, head: CalibratedHead, present: Labels) -> FittedModel:
    """The head as a model of the agreed classes."""
    if len(present) == 1:
        return FittedModel(None, present, features.n_features)
    from fedkt.models.features.head import FeatureHead

    return FittedModel(FeatureHead(features, head.weights, head.offsets), present, features.n_features)


def noise_for_epsilon(*, epsilon: float, delta: float, classes: int) -> Noise:
    """The smallest noise with which a party's sums, or the total of all parties, keep ε: Δ is the same."""
    return smallest_noise(
        GaussianSums.name,
        epsilon=epsilon,
        delta=delta,
        queries=1,
        voters=1,
        classes=max(classes, 2),
        unit="record",
        accountants=("gdp",),
    )


CARD = Card(
    name=Moments.name,
    title="FedKT, moments",
    summary="one message, sums of public features by class",
    make=Moments,
    fixed=frozenset({"features"}),
    traffic=Traffic("n·D·(K + D/2)", lambda s, r: 1, one_way=True),
    colour="sky",
    marker="P",
    compared_at=("L0", "L1", "L2"),
    levels=("L0", "L1", "L2"),
    noise_for_epsilon=noise_for_epsilon,
)
