"""The server's final model: what it learns from the labelled public rows, and how its scores are read.

A vote gives more than a label: how probable the parties together find each class. A final model learns that wherever
its family can; boosting on winners ranks rows worse than a party alone would. What other families score is calibrated
afterwards on the same distributions. Its labels may be moved towards classes that would be lost; probabilities stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.lesson import STUDY
from fedkt.algorithms.voting.base import LabelledRows
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Server, Side
from fedkt.models.base import FittedModel, count_rows, image_of, take_rows
from fedkt.models.class_weights import label_factors
from fedkt.models.ensemble import (
    TrainingTask,
    fit_group,
    is_calibrated,
    is_hesitant,
    is_neural,
    known_family,
    learns_distributions,
)
from fedkt.models.reading import (
    Calibration,
    Reading,
    by_decision,
    class_scores,
    cross_entropy,
    fit_calibration,
    has_scores,
    scores_fit_labels,
)
from fedkt.pooling import Matrix, drift_factors, normalise_rows
from fedkt.votes import NO_VOTE, Labels

if TYPE_CHECKING:
    from fedkt.algorithms.fedkt import FedKT


class Final(Protocol):
    """What has a final model to be trained."""

    level: str
    copies: bool
    """Whether a network also learns every public image shifted by one pixel."""

    def final_model(self, server: Server) -> Any:
        """Who studies at the server, untrained."""
        ...


FEW_ROWS = 20
"""On fewer public rows nothing is calibrated: slope and offsets would follow single rows."""
HALVES = 2
HALF = 0.5
"""On fewer rows the likeliest class must not be the one that the model names."""


@dataclass(frozen=True)
class FinalLesson:
    """The labelled public rows, as a final model learns them."""

    server: Server
    task: TrainingTask
    distributions: Matrix
    """How probable the classes are on each of its rows; all on its label where the vote gave no more."""
    shares: Matrix | None
    """The class shares that its labels should have, where they may be moved."""
    private: bool
    """Whether noise is in what it learns."""

    def fit(self) -> FittedModel:
        """The trained model, and how its scores are read."""
        (model,) = fit_group([self.task], len(self.server.classes))
        if model.estimator is None or is_neural(model.estimator):
            return model
        reading = self.reading(model)
        if reading is None and not model.has_probabilities:
            self.server.diary.say(
                f"The final model ({type(model.estimator).__name__}) only names a class: it does not say how sure it "
                "is. Choose another final family where probabilities matter."
            )
        return replace(model, reading=reading)

    def reading(self, model: FittedModel) -> Reading | None:
        """How the model's scores are read; None where that is the estimator's own business."""
        calibration, probabilities = None, None
        if self.needs_calibration(model):
            scores = self.scores(model)
            if scores is not None:
                calibration = self.calibrate(model, scores)
                probabilities = None if calibration is None else calibration.probabilities(scores)
        if calibration is None and not hasattr(model.estimator, "predict_proba"):
            return None
        factors = self.factors(model, probabilities)
        return None if calibration is None and factors is None else Reading(calibration, factors)

    def needs_calibration(self, model: FittedModel) -> bool:
        """Whether the model's scores are far from how often it is right, and its rows can tell how far."""
        own = self.task.estimator
        if not hasattr(model.estimator, "predict_proba"):
            return True
        # Labels that are mostly noise would make an average of models, which doubts anyway, doubt all it has learned.
        return not (is_calibrated(own) or (self.private and is_hesitant(own)))

    def factors(self, model: FittedModel, probabilities: Matrix | None) -> Matrix | None:
        """By what labels are moved towards each class; None where the estimator's own labels stay.

        Who has learned labels has learned those that the vote has moved already, and with the weights of classes that
        the estimator has. Where distributions are learned these weights have no say but here.
        """
        if self.task.shares is None:
            return None
        wishes = label_factors(self.task.estimator, self.distributions)
        moved = None
        if wishes is not None:
            moved = wishes[model.labels]
        elif self.shares is not None:
            known = probabilities
            if known is None:
                known = model.predict_proba(self.task.own_rows, len(self.server.classes))[:, model.labels]
            moved = drift_factors(known, normalise_rows(self.shares[None, model.labels])[0])
        # What calibration has made of the probabilities decides about the label too.
        return np.ones(len(model.labels)) if moved is None and probabilities is not None else moved

    def calibrate(self, model: FittedModel, scores: Matrix) -> Calibration | None:
        """The calibration of the model by the distributions of its rows; None where its probabilities say nothing.

        Where models of half the rows score on a scale of their own, what was found for them does not fit the model.
        Then it knows less than the classes' shares, even of rows that it has learned, or mostly names other classes.
        """
        known = normalise_rows(self.distributions[:, model.labels])
        found = fit_calibration(scores, known, logarithms=not by_decision(model.estimator))
        own = found.probabilities(class_scores(model.estimator, self.task.own_rows))
        shares = np.broadcast_to(known.mean(axis=0), known.shape)
        alike = np.mean(model.labels[own.argmax(axis=1)] == model.predict(self.task.own_rows))
        return None if cross_entropy(own, known) > cross_entropy(shares, known) or alike < HALF else found

    def scores(self, model: FittedModel) -> Matrix | None:
        """What such a model scores on its rows while it has not learned them; None where that says nothing.

        Each half is scored by a model of the other half. A model is surer of rows that it has learned.
        """
        task, n_rows = self.task, self.task.n_rows
        if n_rows < FEW_ROWS or not has_scores(model.estimator):
            return None
        half = self.server.rng(0, STUDY, 1).permutation(n_rows) % HALVES
        scores = np.zeros((n_rows, len(model.labels)))
        for number in range(HALVES):
            others, mine = np.flatnonzero(half != number), np.flatnonzero(half == number)
            twin = self.twin(others, number)
            if twin.estimator is None or not np.array_equal(twin.labels, model.labels):
                return None
            rows = take_rows(task.own_rows, mine)
            part = class_scores(twin.estimator, rows)
            if not scores_fit_labels(part, np.asarray(twin.estimator.predict(rows)), len(model.labels)):
                return None
            scores[mine] = part
        return scores

    def twin(self, places: Labels, number: int) -> FittedModel:
        """A model like the final one that has learned some of its rows."""
        task = self.task
        rows = places if task.rows is None else task.rows[places]
        rng = self.server.rng(0, STUDY, 2 + number)
        (model,) = fit_group([replace(task, y=task.y[places], rows=rows, rng=rng)], len(self.server.classes))
        return model


def final_lesson(fedkt: Final, server: Server, labelled: LabelledRows) -> FinalLesson:
    """What the final model learns: distributions where it can, else labels; rows without a label are left out."""
    answered = np.flatnonzero(labelled.labels != NO_VOTE)
    if len(answered) == 0:
        raise ModelError("No query was answered. Lower the threshold of the noise, or ask more queries.")
    labels = labelled.labels[answered]
    rows = answered if labelled.queries is None else labelled.queries[answered]
    estimator = fedkt.final_model(server)
    if fedkt.copies:
        check_copies(estimator, server)
    known: Matrix = np.eye(len(server.classes))[labels]
    target: Labels | NDArray[np.float64] = labels
    if labelled.distributions is not None:
        known = labelled.distributions[answered]
        if learns_distributions(estimator):
            target = known
    task = TrainingTask(
        estimator,
        server.public,
        target,
        server.rng(0, STUDY),
        None if len(rows) == count_rows(server.public) else rows,
        "The server's final model",
        alone=fedkt.copies,
        copies=fedkt.copies,
    )
    return FinalLesson(server, task, known, labelled.shares, fedkt.level != "L0")


def check_copies(final: Any, side: Side) -> None:
    """Refuse copies of what is no image, and for a final model that is none of our networks."""
    if not known_family(final).network:
        name = final if isinstance(final, str) else type(final).__name__
        raise ConfigurationError(
            f"Shifted copies are for a final network, and the final model is {name}. Choose mlp or cnn for it, or "
            "leave copies out."
        )
    if image_of(side.public, side.image or getattr(final, "image", None)) is None:
        raise ConfigurationError(
            "Copies are images shifted by one pixel, and these rows are no images. Leave copies out, or say "
            "image=(height, width, channels) where a row holds the pixels of an image."
        )


def fit_by_labels(fedkt: FedKT, server: Server, labelled: LabelledRows) -> FittedModel:
    """The final model as Algorithm 1 has it, of labels; only a network of experts learns distributions."""
    soft = fedkt.voting.probabilities and is_neural(fedkt.final_model(server))
    plain = labelled if soft else labelled._replace(distributions=None)
    (model,) = fit_group([final_lesson(fedkt, server, plain).task], len(server.classes))
    return model
