"""Which way `fedkt-auto` serves, and what the other would have been: python paper/auto_choice.py OUT.jsonl SEEDS...

Tables of the project, and made-up ones of which some suit trees far better than features and some the other way round.
Both final models are made of one and the same message, so that the difference is the choice alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.auto import Auto, sums_alone
from fedkt.data import DATASETS, Dataset, load
from fedkt.data.dataset import Split, assign_rows
from fedkt.data.partition import partition
from fedkt.federation import Diary, Party, Server, seed_for

ROWS = Split(np.arange(4_000), np.arange(4_000, 4_800), np.arange(4_800, 7_300))
N = 7_300
FAMILIES = ("boosting", "forest")
Columns = NDArray[np.float64]
Made = tuple[Columns, NDArray[Any]]


def noisy(y: NDArray[Any], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Labels, a share of them drawn anew."""
    return np.where(rng.random(len(y)) < share, rng.integers(0, int(y.max()) + 1, len(y)), y).astype(np.int64)


def product(rng: np.random.Generator) -> Made:
    """The sign of a product of two of ten columns."""
    X = rng.normal(size=(N, 10))
    return X, noisy(X[:, 0] * X[:, 1] > 0, 0.1, rng)


def checks(rng: np.random.Generator) -> Made:
    """A board of 4 × 4 fields in two of six columns."""
    X = rng.uniform(size=(N, 6))
    return X, (np.floor(X[:, :2] * 4).sum(axis=1) % 2).astype(np.int64)


def rules(rng: np.random.Generator) -> Made:
    """Three rules over eight columns of four categories."""
    codes = rng.integers(0, 4, size=(N, 8))
    one, two, three, four, five = (codes[:, place] for place in range(5))
    y = ((one == 1) & (two != 2)) | ((three == 0) & (four == 3)) | ((five == 2) & (one == 0) & (codes[:, 5] < 2))
    return np.eye(4)[codes].reshape(N, -1), noisy(y, 0.06, rng)


def steps(rng: np.random.Generator) -> Made:
    """Two pairs of thresholds among thirty columns."""
    X = rng.normal(size=(N, 30))
    score = 2.0 * ((X[:, 0] > 0.3) & (X[:, 1] < 0.5)) + 2.0 * ((X[:, 2] > 0) & (X[:, 3] > 0)) - 1.5
    return X, (rng.random(N) < 1 / (1 + np.exp(-3 * score))).astype(np.int64)


def bands(rng: np.random.Generator) -> Made:
    """Bands along one of twelve columns."""
    X = rng.normal(size=(N, 12))
    return X, noisy(np.floor(X[:, 0] * 2.5) % 2, 0.1, rng)


def oblique(rng: np.random.Generator) -> Made:
    """Bands across eight columns, which nobody finds."""
    X = rng.normal(size=(N, 8))
    return X, (np.floor(X @ rng.normal(size=8) / 1.4) % 2).astype(np.int64)


def grown(rng: np.random.Generator) -> Made:
    """What a tree of 40 leaves says of ten columns, three classes."""
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=40, random_state=int(rng.integers(2**31)))
    tree.fit(rng.normal(size=(400, 10)), rng.integers(0, 3, 400))
    X = rng.normal(size=(N, 10))
    return X, noisy(tree.predict(X), 0.1, rng)


def clusters(rng: np.random.Generator) -> Made:
    """Four classes of three clusters each in eight of twenty columns."""
    from sklearn.datasets import make_classification

    made: Made = make_classification(
        N, 20, n_informative=8, n_redundant=4, n_classes=4, n_clusters_per_class=3, flip_y=0.05,
        random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    return made


def shells(rng: np.random.Generator) -> Made:
    """Three classes by their distance from the middle."""
    from sklearn.datasets import make_gaussian_quantiles

    made: Made = make_gaussian_quantiles(n_samples=N, n_features=5, n_classes=3, random_state=int(rng.integers(2**31)))
    return made


def skewed(rng: np.random.Generator) -> Made:
    """Logarithms of eight columns and a product of two."""
    Z = rng.normal(size=(N, 8))
    return np.exp(2 * Z), noisy(Z[:, 0] + Z[:, 1] * np.sign(Z[:, 2]) > 0, 0.2, rng)


def linear(rng: np.random.Generator) -> Made:
    """A logistic model of fifteen columns."""
    X = rng.normal(size=(N, 15))
    return X, (rng.random(N) < 1 / (1 + np.exp(-(X @ rng.normal(size=15))))).astype(np.int64)


MADE: dict[str, Callable[[np.random.Generator], Made]] = {
    each.__name__: each
    for each in (product, checks, rules, steps, bands, oblique, grown, clusters, shells, skewed, linear)
}


@dataclass(frozen=True)
class Task:
    """A table and its parties."""

    table: str
    parties: int = 10
    beta: float = 0.5
    rows: int | None = None
    """Of the parties, where not all are used; public and test rows then end at 1,500 and 4,000."""


TASKS = (
    *(Task("heart", 4), Task("breast", 4), Task("adult", rows=5_000), Task("cod-rna", rows=5_000)),
    *(Task(name) for name in MADE),
    *(Task(name, parties) for name in ("rules", "grown", "clusters") for parties in (3, 40)),
    *(Task(name, beta=beta) for name in ("rules", "grown", "clusters") for beta in (0.1, 100.0)),
    Task("digits", 5),
)


def table_of(task: Task, seed: int) -> Dataset:
    """The table, drawn and split by the seed."""
    rng = np.random.default_rng([seed, 77])
    if task.table in DATASETS:
        data = load(task.table, seed=seed)
        rows = rng.permutation(len(data.y))[: task.rows]
        some = slice(None) if task.rows is None else slice(1_500)
        groups = None if data.groups is None else data.groups[rows]
        test = slice(None if task.rows is None else 4_000)
        data = replace(data, X=data.X[rows], y=data.y[rows], groups=groups, X_public=data.X_public[some])
        return replace(data, X_test=data.X_test[test], y_test=data.y_test[test])
    if task.table == "breast":
        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
        split = Split(np.arange(340), np.arange(340, 440), np.arange(440, len(y)))
    else:
        (X, y), split = MADE[task.table](rng), ROWS
    order = rng.permutation(len(y))
    X, y, classes = X[order].astype(np.float32), y[order].astype(np.int64), tuple(range(int(y.max()) + 1))
    return assign_rows(task.table, X, y, split, classes=classes, source="made up", feature_names=())


def outcome_of(task: Task, family: str, seed: int) -> dict[str, Any]:
    """The accuracy of both final models, what was expected of them, and which was served."""
    data, auto = table_of(task, seed), Auto(family)
    kind = "balanced" if data.groups is None else "column"
    rng = np.random.default_rng([seed, 1])
    owners = partition(kind, data.y, task.parties, rng=rng, beta=task.beta, groups=data.groups)
    side: dict[str, Any] = {"public": data.X_public, "classes": data.classes, "image": data.image}
    parties = [
        Party(**side, seed=seed_for(seed, str(each)), name=str(each), X=data.X[rows], y=data.y[rows])
        for each in np.unique(owners)
        for rows in [np.flatnonzero(owners == each)]
    ]
    server = Server(**side, seed=seed_for(seed, "the server"))
    bundles = auto.party_steps(parties, None)
    finals = {
        auto.expert.name: auto.expert.server_step(replace(server, diary=Diary()), bundles),
        auto.moments.name: auto.moments.server_step(replace(server, diary=Diary()), [*map(sums_alone, bundles)]),
    }
    served = auto.choose(server, bundles, finals)
    expected = auto.expect(server, bundles, finals[auto.expert.name].models[0])
    right = {name: float(np.mean(each.models[0].predict(data.X_test) == data.y_test)) for name, each in finals.items()}
    return {
        **vars(task), "family": family, "seed": seed, "served": served, "accuracy": right,
        "expected": None if expected is None else vars(expected),
    }  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Every task with every family and seed that is not in the file yet, one line each."""
    path, seeds = Path(arguments[0]), [int(each) for each in arguments[1:]]
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(each["table"], each["parties"], each["beta"], each["family"], each["seed"]) for each in lines}
    for seed in seeds:
        for task in TASKS:
            for family in FAMILIES:
                if (task.table, task.parties, task.beta, family, seed) in done:
                    continue
                line = outcome_of(task, family, seed)
                with path.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(task, family, seed, line["served"], line["accuracy"], line["expected"], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
