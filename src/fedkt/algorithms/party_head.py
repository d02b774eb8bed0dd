"""The head of moments at level L1: made of one noisy mean table, public rows and public figures, and so free.

Stein: Estimation of the Mean of a Multivariate Normal Distribution. Annals of Statistics 1981.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedkt.algorithms.heads import CalibratedHead, Head, Sums, calibrate, centred
from fedkt.algorithms.party_total import PartyTotal, scales, whitened
from fedkt.algorithms.voting.base import LabelledRows
from fedkt.models.base import FittedModel
from fedkt.models.features.feature_map import Features
from fedkt.models.reading import Reading
from fedkt.pooling import Matrix, factors_to

RAREST = 0.01
"""No class is taken for rarer than that where the shares come out of the noise."""
TOWARDS_FREQUENT = 1.1
"""Labels have the public class shares to this power: scores that tell little are right more often on frequent
classes."""


@dataclass(frozen=True)
class PartyHead:
    """The head that a noisy mean table gives. All of it is made of noisy numbers, public rows and public figures."""

    total: PartyTotal
    mean: Matrix
    features: Features
    public: Matrix
    """φ of the public rows."""

    @cached_property
    def rows(self) -> Matrix:
        """The public rows' whitened features that are looked at."""
        width = self.total.directions(self.features.width - 1)
        return np.asarray(whitened(self.public.T, self.public, width).T)

    @cached_property
    def shares(self) -> Matrix:
        """The class shares: the public ones, or what the noise lets be seen of the parties' mean."""
        if self.total.class_shares is not None:
            return np.array(self.total.class_shares)
        first = self.mean[0]
        likely = np.maximum(first**3 / (first**2 + self.total.deviation**2) + 1 / self.total.classes, RAREST)
        return np.asarray(likely / likely.sum())

    @cached_property
    def calibrated(self) -> CalibratedHead:
        """Scores along the mean table, and the slope and offsets that make probabilities of them.

        A number m of it that the noise could have made counts for less: for m²/(m² + τ²) of itself. What scores agree
        with rows' own classes by is ⟨weights, mean⟩, less what the noise adds to that in the mean (Stein 1981), and
        never more than if all parties said the same.
        """
        known = self.total.class_shares is not None
        means = self.mean if known else self.mean[1:]
        square, noise = means**2, self.total.deviation**2
        weights = means * square / (square + noise)
        slopes = float((square * (square + 3 * noise) / (square + noise) ** 2 @ self.own_noise).sum())
        middle = self.rows[:, 1:].mean(axis=0)
        parts = weights
        if known:
            parts = (weights - (weights @ self.shares)[:, None]) * self.shares
        length = float(np.sqrt((parts**2).sum()))
        agreement = min(max(float((parts * means).sum()) - noise * slopes, 0.0), self.total.longest * length)
        weights = np.vstack([np.zeros((1, len(self.shares))), centred(weights)])
        if known:
            agreement += float(middle @ weights[1:] @ self.shares)
        moments = np.outer(self.rows.mean(axis=0), self.shares) * len(self.rows)
        sums = Sums(moments, np.eye(len(moments)) * len(self.rows), variance=noise)
        return calibrate(Head("parties", weights, agreement), sums, self.rows)

    @property
    def own_noise(self) -> Matrix:
        """How much of the noise on a class's column is in what it is multiplied with."""
        if self.total.class_shares is None:
            return np.ones(self.total.classes)
        return self.shares * (1 - self.shares) / (1 - 1 / self.total.classes)

    @cached_property
    def factors(self) -> Matrix | None:
        """By what labels are moved, so that they have the public class shares on the public rows."""
        if self.total.class_shares is None:
            return None
        target = self.shares**TOWARDS_FREQUENT
        return factors_to(self.calibrated.probabilities(self.rows), target / target.sum())

    def model(self) -> FittedModel:
        """The head as a model."""
        from fedkt.models.features.head import FeatureHead

        head, n_classes = self.calibrated, self.total.classes
        weights = np.zeros((self.features.width, n_classes))
        weights[: len(head.weights)] = head.weights
        width = len(head.weights) - 1
        weights[1 : 1 + width] *= scales(self.public, width)[:, None]
        reading = None if self.factors is None else Reading(factors=self.factors)
        estimator = FeatureHead(self.features, weights, head.offsets)
        return FittedModel(estimator, np.arange(n_classes), self.features.n_features, reading)

    def labelled(self) -> LabelledRows:
        """What it says of the public rows."""
        known = self.calibrated.probabilities(self.rows)
        labels = np.asarray((known if self.factors is None else known * self.factors).argmax(axis=1), dtype=np.int64)
        return LabelledRows(labels, distributions=known, shares=None if self.factors is None else self.shares)
