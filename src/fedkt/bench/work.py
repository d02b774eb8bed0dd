"""The rows and seeds that both ways of a benchmark are given, as plain arrays in a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
TOY_ROWS = 20
"""Rows of each class in the small federation that is played first, so that whatever is loaded once has been."""
FACTS = "facts.json"


@dataclass(frozen=True)
class Work:
    """One federation to be played: who holds which rows, who learns, and the seeds of every model."""

    dataset: str
    voting: str
    """What students are weighed by; see the loops in `plain`."""
    model: str
    """The family of students and final model; teachers follow from it."""
    partitions: int
    subsets: int
    n_classes: int
    party_seeds: tuple[int, ...]
    server_seed: int
    X: Array
    """All parties' rows, party after party."""
    y: Array
    sizes: tuple[int, ...]
    """The rows of each party."""
    public: Array
    test: Array
    y_test: Array
    image: tuple[int, int, int] | None = None
    epochs: int | None = None
    """How long networks are trained; None follows fedkt's rule."""
    features: dict[str, Array] = field(default_factory=dict)
    """What the feature map of moments is made of, where there is one."""

    @property
    def parties(self) -> list[tuple[Array, Array, int]]:
        """Rows, labels and seed of each party."""
        cuts = np.cumsum(self.sizes)[:-1]
        return list(zip(np.split(self.X, cuts), np.split(self.y, cuts), self.party_seeds, strict=True))

    def toy(self) -> Work:
        """Two parties with a few of these rows and labels in turn."""
        count = TOY_ROWS * self.n_classes
        labels = np.arange(2 * count) % self.n_classes
        rows = np.arange(2 * count)
        return replace(
            self,
            X=self.X[rows % len(self.X)],
            y=labels,
            sizes=(count, count),
            party_seeds=(1, 2),
            public=self.public[rows % len(self.public)],
            test=self.test[:TOY_ROWS],
            y_test=self.y_test[:TOY_ROWS],
            epochs=1,
        )


ARRAYS = ("X", "y", "public", "test", "y_test")


def save_work(work: Work, folder: Path) -> None:
    """Write it into a folder."""
    arrays = {name: getattr(work, name) for name in ARRAYS}
    arrays |= {f"features-{name}": values for name, values in work.features.items()}
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    facts = {each.name: getattr(work, each.name) for each in fields(work) if each.name not in (*ARRAYS, "features")}
    (folder / FACTS).write_text(json.dumps({**facts, "features": list(work.features)}), encoding="utf-8")


def load_work(folder: Path) -> Work:
    """What `save_work` has written."""
    read = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    facts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in read.items()}

    def array(name: str) -> Array:
        return np.asarray(np.load(folder / f"{name}.npy", allow_pickle=False))

    facts["features"] = {name: array(f"features-{name}") for name in facts["features"]}
    facts |= {name: array(name) for name in ARRAYS}
    return Work(**facts)
