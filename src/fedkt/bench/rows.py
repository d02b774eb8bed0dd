"""The rows of a benchmark: those of a case, dealt out as `fedkt simulate` deals them, or rows that are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedkt.algorithms import Moments
from fedkt.algorithms.voting import algorithm_name, make_voting
from fedkt.bench.cases import SUMS, Case
from fedkt.bench.work import Array, Work
from fedkt.federation import seed_for
from fedkt.lab.rows import load_split
from fedkt.lab.runner import draw_parties
from fedkt.lab.setting import Setting
from fedkt.models.features.tables import Waves


def work_of(case: Case, *, seed: int, parties: int | None = None, data_dir: Path | None = None) -> Work:
    """The rows of a case, encoded and dealt out once for both ways."""
    algorithm = Moments.name if case.voting == SUMS else algorithm_name(make_voting(case.voting))
    setting = Setting(case.dataset, algorithm=algorithm, parties=parties, seed=seed).with_defaults()
    data = load_split(setting, data_dir)
    owners = draw_parties(setting, data)
    names, sizes = np.unique(owners, return_counts=True)
    # Stable, so that a party's rows keep their order, as `simulate` has them.
    order = np.argsort(owners, kind="stable")
    return Work(
        dataset=case.dataset,
        voting=case.voting,
        model=setting.model or "",
        partitions=setting.partitions or 1,
        subsets=setting.subsets or 1,
        n_classes=len(data.classes),
        party_seeds=tuple(seed_for(seed, name) for name in names.tolist()),
        server_seed=seed_for(seed, "the server"),
        X=data.X[order],
        y=data.y[order],
        sizes=tuple(sizes.tolist()),
        public=data.X_public,
        test=data.X_test,
        y_test=data.y_test,
        image=data.image,
        features=feature_arrays(setting.model, data.X_public) if case.voting == SUMS else {},
    )


def feature_arrays(model: Any, public: Array) -> dict[str, Array]:
    """The feature map of a table, by the numbers it is made of."""
    found = Moments(model).map_of(public, None)
    scale, waves = found.layers
    assert isinstance(waves, Waves)
    arrays = {name: getattr(scale, name) for name in ("columns", "mean", "deviation")}
    arrays |= {name: getattr(waves, name) for name in ("frequencies", "phases")}
    if waves.ranks is not None:
        arrays |= {f"rank_{name}": getattr(waves.ranks, name) for name in ("columns", "low", "size", "weights")}
        arrays |= {name: getattr(waves, name) for name in ("rank_frequencies", "rank_phases")}
    return {**arrays, "limit": np.array(found.limit), "prefixes": np.array(found.prefixes, dtype=np.int64)}


def made_up(
    *,
    voting: str = "consistent",
    model: str = "tree",
    parties: int = 8,
    private_rows: int = 400,
    public_rows: int = 1_000,
    partitions: int = 2,
    subsets: int = 4,
    classes: int = 2,
    columns: int = 10,
    seed: int = 0,
) -> Work:
    """Clouds of points, one a class, that overlap; every party has `private_rows` of them, in even shares."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, columns))
    total, test_rows = parties * private_rows, 500

    def draw(count: int) -> tuple[Array, Array]:
        labels = np.arange(count) % classes
        return (centres[labels] + rng.normal(size=(count, columns))).astype(np.float32), labels

    (X, y), (public, _), (test, y_test) = (draw(count) for count in (total, public_rows, test_rows))
    return Work(
        dataset="made-up",
        voting=voting,
        model=model,
        partitions=partitions,
        subsets=subsets,
        n_classes=classes,
        party_seeds=tuple(seed_for(seed, f"party {number}") for number in range(parties)),
        server_seed=seed_for(seed, "the server"),
        X=X,
        y=y,
        sizes=(private_rows,) * parties,
        public=public,
        test=test,
        y_test=y_test,
    )
