"""One model at a time: fit it, ask it. scikit-learn and XGBoost here, networks in `networks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedkt.bench.work import Array, Work
from fedkt.system.stages import stage

# SEED_PATHS: a generator is made of (seed, partition, what it is for), and a teacher's of its subset as well.
CUT, TEACH, TIES, STUDY = range(4)
SMALLEST_SHARE = 1e-6
"""A class that is rarer than this on a row is left out of it."""


def tree(seed: int) -> Any:
    """The teacher of tree ensembles."""
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=6, random_state=seed)


def forest(seed: int) -> Any:
    """The paper's forest for Adult."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, max_depth=6, random_state=seed, n_jobs=1)


def boosting(seed: int) -> Any:
    """The paper's boosted trees for cod-rna."""
    from xgboost import XGBClassifier

    return XGBClassifier(
        n_estimators=100,
        max_depth=6,
        learning_rate=0.05,
        gamma=1,
        reg_lambda=1,
        tree_method="hist",
        verbosity=0,
        n_jobs=1,
        random_state=seed,
    )


def naive_bayes(seed: int) -> Any:
    """Gaussian naive Bayes, which draws nothing."""
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


MODELS: dict[str, Callable[[int], Any]] = {
    "tree": tree,
    "forest": forest,
    "boosting": boosting,
    "naive-bayes": naive_bayes,
}
TEACHERS = {"forest": "tree", "boosting": "tree"}
"""Who teaches ensembles where several teachers vote."""
WEIGHTS = {"tree": 100.0, "forest": 100.0, "boosting": 100.0, "naive-bayes": 1.0}
"""What a row weighs that is learned under several labels: boosting finds lighter ones too light to be told apart."""


@dataclass(frozen=True)
class Fitted:
    """A trained model and the classes it has seen."""

    estimator: Any
    classes: Array

    def predict(self, X: Array) -> Array:
        """The class of each row."""
        if self.estimator is None:
            return np.full(len(X), self.classes[0])
        return np.asarray(self.classes[self.estimator.predict(X)])

    def predict_proba(self, X: Array, n_classes: int) -> Array:
        """How probable each class of each row is."""
        probabilities = np.zeros((len(X), n_classes))
        probabilities[:, self.classes] = 1.0 if self.estimator is None else self.estimator.predict_proba(X)
        return probabilities


def learn(work: Work, family: str, X: Array, y: Array, path: tuple[int, ...]) -> Any:
    """A model of these rows, of their labels or of a distribution over the classes on each."""
    rng = np.random.default_rng(path)
    if family not in MODELS:
        from fedkt.bench.plain.networks import learn_network

        return learn_network(family, X, y, work, rng)
    seed, weights = int(rng.integers(2**31 - 1)), {}
    if y.ndim == 2:
        rows, labels = np.nonzero(y > SMALLEST_SHARE)
        weights = {"sample_weight": WEIGHTS[family] * y[rows, labels]}
        X, y = X[rows], labels
    # XGBoost takes no labels but 0, 1, 2 …, and nothing has to be learned of a single one.
    classes, local = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        return Fitted(None, classes)
    return Fitted(MODELS[family](seed).fit(X, local, **weights), classes)


def test_answers(final: Any, work: Work) -> Array:
    """The class that a final model finds for each test row."""
    with stage("test"):
        return np.asarray(final.predict(work.test))


def normalised(scores: Array) -> Array:
    """Each row divided by its sum; one of zeros is spread evenly."""
    total = scores.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, scores / np.where(total > 0, total, 1), 1 / scores.shape[1]))


def winners(scores: Array, rng: np.random.Generator) -> Array:
    """The class of the highest score, ties broken by lot; -1 where all are 0."""
    best = scores.max(axis=1, keepdims=True)
    tied = scores == best
    lot = np.floor(rng.random(len(scores)) * tied.sum(axis=1))
    labels = (np.cumsum(tied, axis=1) > lot[:, None]).argmax(axis=1)
    return np.where(best[:, 0] > 0, labels, -1)
