"""The paper's 72 private settings on the real data, beside its accuracies and ε; and our own choice at ε = 1, 2, 4.

L1: 50 parties, t = 5; L2: 20 parties, t = 25; s = 1, δ = 1e-5; het is the balanced Dirichlet partition (β = 0.5), hom
the even one; Adult with forests, cod-rna with XGBoost. Teachers and students are trained once per seed; every noise is
then drawn anew.

The votes' data-dependent ε of the paper (diagnostic) is computed here because these datasets are public; for private
votes it is confidential.
"""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedkt.algorithms import FedKT
from fedkt.algorithms.levels import calibrated
from fedkt.algorithms.pate import TIES, Ballots, Lesson, studying
from fedkt.data import Dataset, load
from fedkt.experiments.private_tables import OWN, load_rows
from fedkt.experiments.results import append_line
from fedkt.experiments.runner import assemble, draw_parties
from fedkt.experiments.setting import Setting
from fedkt.federation import Party, Server, seed_for
from fedkt.models.base import fit_model, one_thread
from fedkt.models.catalogue import Roles, as_estimator, roles
from fedkt.models.ensemble import fit_group
from fedkt.paper.plans import out_of_reach
from fedkt.privacy import Laplace, Noise
from fedkt.privacy.diagnostic import diagnose, diagnose_parties
from fedkt.report import accuracies, versions
from fedkt.votes import Labels, Votes, consistent_votes, winners

TITLE = "FedKT-L1 and FedKT-L2: accuracy and ε"
WHERE = "its appendix on differential privacy, and the privacy table"
FILE = "private-levels.jsonl"
SEEDS = 3
QUICK = ("cod-rna-L1-hom", "cod-rna-L2-hom")
"""The groups of a rehearsal."""
DELTA = 1e-5
PARTIES = {"L1": 50, "L2": 20}
SUBSETS = {"L1": 5, "L2": 25}
PARTITION = {"het": "balanced", "homo": "even", "hom": "even"}
# A small grid fixed beforehand, reported whole: nothing in it is picked by test accuracy.
OWN_QUERIES = (40, 160)
OWN_EPSILONS = (1.0, 2.0, 4.0)
OWN_MODELS = (None, "logistic")
"""Who learns from the noisy labels: the dataset's own family, or a linear model, which needs fewer of them."""


@dataclass(frozen=True)
class Asked:
    """One setting of a group."""

    kind: str
    noise: Noise
    queries: int
    paper_epsilon: float | None = None
    paper_accuracy: float | None = None
    paper_kind: str = ""
    model: str | None = None
    """Who learns from the noisy labels, where it is not the dataset's own family."""


def groups(folder: Path) -> dict[str, list[Asked]]:
    """The paper's settings by dataset, level and partition, from its rows in the folder."""
    found: dict[str, list[Asked]] = {}
    with (folder / "epsilon_rows.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["table"] == "tbl:dp":
                continue
            partition = "het" if row["partition"] == "het" else "hom"
            name = f"{row['dataset'].lower()}-{row['level']}-{partition}"
            found.setdefault(name, []).append(
                Asked(
                    "paper",
                    Laplace(float(row["gamma"])),
                    int(row["queries"]),
                    float(row["paper_epsilon"]),
                    float(row["paper_accuracy"]),
                    row["kind"],
                )
            )
    return found


def own_choices(level: str, party_rows: list[int]) -> Iterator[Asked]:
    """Gaussian noise calibrated to ε = 1, 2 and 4, for two numbers of queries and two kinds of models."""
    for epsilon in OWN_EPSILONS:
        for queries in OWN_QUERIES:
            noise = calibrated(
                "gaussian",
                level=level,
                epsilon=epsilon,
                delta=DELTA,
                queries=queries,
                partitions=1,
                subsets=SUBSETS[level],
                classes=2,
                party_rows=party_rows,
            )
            for model in OWN_MODELS:
                yield Asked(f"{OWN}{epsilon:g}", noise, queries, model=model)


def run_group(name: str, asked: list[Asked], seed: int, draws: int, data_dir: Path | None) -> dict[str, Any]:
    """All settings of a group on one seed."""
    dataset, level, partition = name.rsplit("-", 2)
    started = time.process_time()
    setting = Setting(
        dataset, parties=PARTIES[level], partition=PARTITION[partition], subsets=SUBSETS[level], seed=seed
    ).filled()
    data = load(dataset, seed=seed, data_dir=data_dir)
    parties = assemble(setting, data, draw_parties(setting, data))
    sizes = [len(party.y) for party in parties]
    side = ServerNoise if level == "L1" else PartyNoise
    with one_thread():
        federation = side(parties, data, roles(setting.model))
        rows = [entry(each, level, sizes, federation, seed, draws) for each in [*asked, *own_choices(level, sizes)]]
        plain, balanced = accuracies([federation.bare()], data.X_test, data.y_test)
    return {
        "group": name,
        "seed": seed,
        "l0_accuracy": plain[0],
        "l0_balanced": balanced[0],
        "rows": rows,
        "cpu_seconds": time.process_time() - started,
        "versions": versions(),
    }


def entry(
    each: Asked, level: str, sizes: list[int], federation: ServerNoise | PartyNoise, seed: int, draws: int
) -> dict[str, Any]:
    """One setting: accuracy per draw of the noise, the price, and what the paper prints."""
    data = federation.data
    private = FedKT("tree", level=level, noise=each.noise, queries=each.queries, subsets=SUBSETS[level])
    price = private.price(public_rows=len(data.X_public), classes=2, party_rows=sizes, delta=DELTA)
    rows = private.query_rows(len(data.X_public))
    assert price is not None
    assert rows is not None
    learner = None if each.model is None else as_estimator(each.model)
    models = [federation.run(each.noise, rows, seed_for(seed, f"draw {draw}"), learner) for draw in range(draws)]
    plain, balanced = accuracies(models, data.X_test, data.y_test)
    formula = price.accountants["paper"]
    return {
        "kind": each.kind,
        "mechanism": each.noise.name,
        "scale": dict(each.noise.scale),
        "queries": each.queries,
        "model": each.model,
        "accuracy": plain,
        "balanced_accuracy": balanced,
        "epsilon": price.epsilon,
        "accountant": price.accountant,
        "epsilon_paper_formula": formula if math.isfinite(formula) else None,
        "epsilon_data_dependent": federation.diagnostic(each.noise, rows) if isinstance(each.noise, Laplace) else None,
        "paper_epsilon": each.paper_epsilon,
        "paper_accuracy": each.paper_accuracy,
        "paper_kind": each.paper_kind,
    }


class ServerNoise:
    """L1: the students are trained once; every run adds its noise to their consistent votes."""

    def __init__(self, parties: list[Party], data: Dataset, chosen: Roles) -> None:
        self.data, self.chosen, self.parties = data, chosen, parties
        algorithm = FedKT("tree", teacher=chosen.teacher, student=chosen.student, partitions=1, subsets=SUBSETS["L1"])
        bundles = [algorithm.party_step(party, None) for party in parties]
        self.votes = consistent_votes(([m.predict(data.X_public) for m in each.models] for each in bundles), 2)

    def run(self, noise: Noise, rows: Labels, seed: int, learner: Any = None) -> Any:
        """The final model of one draw of the noise."""
        server = Server(self.data.X_public, self.data.classes, seed, noise_seed=seed)
        labels = noise.labels(self.votes[rows], server.noise_rng())
        return fit_model(learner or self.chosen.final, self.data.X_public[rows], labels, rng=server.rng(0))

    def bare(self) -> Any:
        """The final model without noise."""
        server = Server(self.data.X_public, self.data.classes, 0)
        labels = winners(self.votes, server.rng(0))
        return fit_model(self.chosen.final, self.data.X_public, labels, rng=server.rng(1))

    def diagnostic(self, noise: Laplace, rows: Labels) -> float:
        """The paper's data-dependent ε."""
        return diagnose(self.votes[rows], noise, DELTA).epsilon


class PartyNoise:
    """L2: the teachers are trained once; every run adds its noise to their votes and trains new students."""

    def __init__(self, parties: list[Party], data: Dataset, chosen: Roles) -> None:
        self.data, self.chosen, self.parties = data, chosen, parties
        self.lessons = [Lesson(party, 0, chosen, SUBSETS["L2"]) for party in parties]
        self.votes = Ballots(self.lessons, 2, 1, lambda _: None).votes

    def run(self, noise: Noise, rows: Labels, seed: int, learner: Any = None) -> Any:
        """The final model of one draw of the noise."""

        def labels_of(party: Party, votes: Votes) -> Labels:
            return noise.labels(votes[rows], replace(party, noise_seed=seed_for(seed, party.name)).noise_rng(0))

        return self.final(rows, labels_of, learner)

    def bare(self) -> Any:
        """The final model without noise."""
        return self.final(None, lambda party, votes: winners(votes, party.rng(0, TIES)))

    def final(self, rows: Labels | None, labels_of: Callable[[Party, Votes], Labels], learner: Any = None) -> Any:
        """Students of the labelled rows, their vote on all public rows, and the final model."""
        public = self.data.X_public
        chosen = self.chosen if learner is None else replace(self.chosen, student=learner)
        students = [
            fit_group([studying(replace(lesson, queries=rows, chosen=chosen), labels_of(lesson.party, votes))], 2)[0]
            for lesson, votes in zip(self.lessons, self.votes, strict=True)
        ]
        server = Server(public, self.data.classes, 0)
        labels = winners(consistent_votes(([each.predict(public)] for each in students), 2), server.rng(0))
        return fit_model(self.chosen.final, public, labels, rng=server.rng(1))

    def diagnostic(self, noise: Laplace, rows: Labels) -> float:
        """The paper's data-dependent ε: the largest over the parties."""
        return diagnose_parties([votes[rows] for votes in self.votes], noise, DELTA).epsilon


def planned(folder: Path, *, seeds: int | None = None, quick: bool = False) -> list[tuple[str, int]]:
    """Every group and seed."""
    names = [name for name in groups(folder) if not quick or name in QUICK]
    return [(name, seed) for seed in range(1 if quick else seeds or SEEDS) for name in names]


def made(results: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The groups and seeds that are finished."""
    path = results / FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {(each["group"], each["seed"]): each for each in map(json.loads, lines)}


def rows_of(results: Path) -> list[dict[str, Any]]:
    """Every setting with all its seeds and draws, for the tables; empty before the first group is finished."""
    path = results / FILE
    return load_rows(path) if path.exists() else []


def make_missing_groups(
    folder: Path,
    results: Path,
    *,
    seeds: int | None = None,
    draws: int = 1,
    quick: bool = False,
    data_dir: Path | None = None,
    on_start: Callable[[str], None] | None = None,
) -> dict[str, str]:
    """Run what is not in the results yet; datasets that cannot be had are left out and given back with the reason."""
    settings, known = groups(folder), made(results)
    missing = [each for each in planned(folder, seeds=seeds, quick=quick) if each not in known]
    left_out = out_of_reach({name.rsplit("-", 2)[0] for name, _ in missing}, data_dir)
    for number, (name, seed) in enumerate(missing):
        if name.rsplit("-", 2)[0] in left_out:
            continue
        if on_start is not None:
            on_start(f"private, group {number + 1} of {len(missing)}: {name}, seed {seed}")
        append_line(results / FILE, run_group(name, settings[name], seed, draws, data_dir))
    return left_out
