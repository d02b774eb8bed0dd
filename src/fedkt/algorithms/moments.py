"""FedKT by moments: parties send sums of public features by class instead of students.

Li, He, Song: Practical One-Shot Federated Learning for Cross-Silo Setting. IJCAI 2021, whose one message, public rows
and second transfer of knowledge these are. The message is another: sufficient statistics, as in Foulds, Geumlek,
Welling, Chaudhuri: On the Theory and Practice of Privacy-Preserving Bayesian Data Analysis, UAI 2016; Wang: Revisiting
Differentially Private Linear Regression (AdaSSP), UAI 2018; AFL: Single-Round Analytic Approach for Federated Learning,
CVPR 2025; FedCGS, AAAI 2025; FedPFT, arXiv 2402.01862 (2024).

All sides know a feature map φ, fixed by the public rows and a public seed. A party sends M = Σ φ(x)·onehot(y) and
G = Σ φ(x)φ(x)ᵀ of its rows; the server adds them up and solves a head, which is exactly that of the pooled rows,
however they are dealt out. At level L2 a party sends M alone, with noise, and G is that of the public rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from fedkt.algorithms.card import Card, Traffic
from fedkt.algorithms.class_sums import MOMENTS, ClassSums, packed, sums_of, unpacked
from fedkt.algorithms.final import check_copies, final_lesson
from fedkt.algorithms.heads import CalibratedHead, Sums, solve
from fedkt.algorithms.received_sums import Received, note_parties
from fedkt.algorithms.voting.base import LabelledRows
from fedkt.algorithms.voting.lost import note_absent_classes
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Algorithm, Party, Server, Side
from fedkt.models.base import FittedModel, one_thread, take_rows, within
from fedkt.models.catalogue import as_estimator
from fedkt.models.ensemble import fit_to_rows
from fedkt.models.features.feature_map import FeatureMap
from fedkt.models.features.images import image_map
from fedkt.models.features.tables import table_map
from fedkt.pooling import Matrix
from fedkt.privacy import Noise, Price, Release, price_together
from fedkt.privacy.calibrate import smallest_noise
from fedkt.privacy.ledger import require_level
from fedkt.privacy.price import sums_release
from fedkt.privacy.sums import GaussianSums
from fedkt.system.parallel import Progress, progress_counter
from fedkt.votes import Labels

MAP_SEED = 0xFEA7
"""The public seed of every map."""
SMALLEST_CLASS = 10
"""Of fewer rows the exact sum says too much: that of one row is the row."""


class Moments(Algorithm):
    """FedKT by sums of features.

    The final model is the head itself, unless `final` names a family that learns what it says of all public rows.
    `smallest_class` is how many rows of a class a party needs at level L0 for its sum of them to be sent. With `copies`
    a final network also learns public images shifted by one pixel.
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
        copies: bool = False,
    ) -> None:
        self.model = model
        self.final = final
        self.level = level
        self.noise = noise
        self.smallest_class = smallest_class
        self.copies = copies

    def with_noise(self, noise: Noise) -> Self:
        """The same with another noise."""
        algorithm = copy(self)
        algorithm.noise = noise
        return algorithm

    def check(self) -> None:
        """Refuse settings that cannot work, before anything is summed up."""
        require_level(self.level)
        if self.level == "L1":
            raise ConfigurationError(
                "At level L1 one party may move the final model by little, and a sum of its rows moves it by as much "
                "as it likes. Choose level L2, which protects every record, or consistent voting at level L1."
            )
        if self.level == "L0" and self.noise is not None:
            raise ConfigurationError(f"Level L0 adds no noise, but a noise was given ({self.noise!r}). Leave it out.")
        if self.level == "L2" and not isinstance(self.noise, GaussianSums):
            raise ConfigurationError(
                f"Sums of features leave at level L2 with noise of their own ({GaussianSums.name}), got "
                f"{self.noise!r}. Give --epsilon on the command line, GaussianSums(sigma=10) from fedkt.privacy.sums "
                "in Python."
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
        """All that a party releases with noise, from public figures."""
        self.check()
        return (sums_release(self.noise, classes),) if isinstance(self.noise, GaussianSums) else ()

    def price(self, *, public_rows: int, classes: int, parties: int, delta: float) -> Price | None:
        """ε of a run before it is run, None without noise; parties are disjoint, so that it is each one's."""
        releases = self.releases(public_rows=public_rows, classes=classes, parties=parties)
        return price_together(releases, delta) if releases else None

    # The party's half.

    def feature_map(self, side: Side) -> FeatureMap:
        """φ, as the public rows have it."""
        private = self.level != "L0"
        if side.image is not None:
            return image_map(side.public, side.image, seed=MAP_SEED, private=private)
        return table_map(side.public, seed=MAP_SEED, private=private)

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
        if self.copies:
            check_copies(self.final, parties[0])
        maps: dict[int, FeatureMap] = {}
        done, sent = progress_counter(progress, len(parties)), []
        for party in parties:
            features = maps.get(id(party.public)) or maps.setdefault(id(party.public), self.feature_map(party))
            sent.append(self.message(party, features))
            done(1)
        return sent

    def message(self, party: Party, features: FeatureMap) -> Bundle:
        """What one party sends."""
        n_classes = len(party.classes)
        if self.level == "L2":
            (release,) = self.releases(public_rows=1, classes=n_classes, parties=1)
            noisy = party.ledger.release_sums(
                # As the public rows have them: whether a row can be read at all must not show.
                lambda: sums_of(features, within(party.X, party.public), party.y, n_classes, gram=False).moments,
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
        self.check()
        with one_thread():
            features = self.feature_map(server)
            received = self.receive(server, bundles, features)
            public = features(server.public)
            present = received.classes_present()
            head = self.solve(received.over(present, public), features, public)
            note_parties(server, received, public)
            known = np.zeros((len(public), len(server.classes)))
            known[:, present] = head.probabilities(public)
            labels = np.asarray(known.argmax(axis=1), dtype=np.int64)
            server.diary.vote.labels = [(None, labels)]
            note_absent_classes(server, labels)
            if self.final is not None:
                labelled = LabelledRows(labels, distributions=known)
                return Bundle("server", server.classes, (final_lesson(self, server, labelled).fit(),))
            return Bundle("server", server.classes, (fitted_head(features, head, present),))

    def receive(self, server: Server, bundles: Sequence[Bundle], features: FeatureMap) -> Received:
        """The sums that may be some rows'; who sent others is named and left out."""
        found = []
        for bundle in bundles:
            try:
                found.append((bundle, self.sums_in(bundle, features)))
            except ModelError as reason:
                note = f"Party {bundle.sender!r} does not count, because {reason}"
                server.diary.say(note)
                server.diary.vote.silent[bundle.sender] = note
        if not found:
            raise ModelError("No party sent sums that can be used; there is nothing to solve a head from.")
        noise = self.noise.variance if isinstance(self.noise, GaussianSums) else 0.0
        return Received(tuple(bundle for bundle, _ in found), tuple(sums for _, sums in found), noise)

    def sums_in(self, bundle: Bundle, features: FeatureMap) -> ClassSums:
        """The sums in a bundle, noisy ones in units of one."""
        n_classes = len(bundle.classes)
        if not isinstance(self.noise, GaussianSums):
            return unpacked(bundle.arrays, features, n_classes)
        noisy = bundle.arrays.get(MOMENTS)
        shape = (features.width, n_classes)
        if set(bundle.arrays) != {MOMENTS} or noisy is None or noisy.shape != shape or noisy.dtype.kind != "i":
            raise ModelError(f"it did not send whole numbers of the shape {shape} as {MOMENTS!r}, and nothing else.")
        return ClassSums(noisy * self.noise.step)

    def solve(self, sums: Sums, features: FeatureMap, public: Matrix) -> CalibratedHead:
        """The head of these sums; of one class it is a constant."""
        if sums.moments.shape[1] == 1:
            return CalibratedHead("constant", np.zeros_like(sums.moments), np.zeros(1), 0.0)
        return solve(sums, public, [*features.prefixes, features.width])

    def final_model(self, server: Server) -> Any:
        """Who learns what the head says, untrained."""
        return fit_to_rows(as_estimator(self.final), server.public, server.image)


def fitted_head(features: FeatureMap, head: CalibratedHead, present: Labels) -> FittedModel:
    """The head as a model of the agreed classes."""
    if len(present) == 1:
        return FittedModel(None, present, features.n_features)
    from fedkt.models.features.head import FeatureHead

    return FittedModel(FeatureHead(features, head.weights, head.offsets), present, features.n_features)


def noise_for_epsilon(*, epsilon: float, delta: float, classes: int) -> Noise:
    """The smallest noise with which a party's sums keep ε."""
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
    traffic=Traffic("n·D·(K + D/2)", lambda s, r: 1, one_way=True),
    colour="sky",
    marker="P",
    levels=("L0", "L2"),
    noise_for_epsilon=noise_for_epsilon,
)
