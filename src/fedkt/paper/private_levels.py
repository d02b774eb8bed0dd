"""The paper's 72 private settings on the real data, beside its accuracies and ε; and our own choice at ε = 1, 2, 4.

    python paper/private_levels.py [--seeds 5] [--draws 3] [--data-dir DIR] [--only adult-L1-het]

L1: 50 parties, t = 5; L2: 20 parties, t = 25; s = 1, δ = 1e-5; het is the balanced Dirichlet partition (β = 0.5), hom
the even one; Adult with forests, cod-rna with XGBoost. Teachers and students are trained once per seed; every noise is
then drawn anew. Each finished seed of a group is kept in paper/results/private-levels.jsonl and not run again.

The votes' data-dependent ε of the paper (diagnostic) is computed here because these datasets are public; for private
votes it is confidential.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.algorithms import FedKT
from fedkt.algorithms.levels import calibrated
from fedkt.algorithms.pate import CUT, TIES, cut, study, teach
from fedkt.data import Dataset, load
from fedkt.experiments.results import append_line
from fedkt.experiments.runner import assemble, draw_parties
from fedkt.experiments.setting import Setting
from fedkt.federation import Party, Server, seed_for
from fedkt.models.base import fit_model, one_thread
from fedkt.models.catalogue import Roles, as_estimator, roles
from fedkt.privacy import Laplace, Noise
from fedkt.privacy.diagnostic import diagnose, diagnose_parties
from fedkt.report import accuracies, versions
from fedkt.votes import consistent_votes, count_votes, winners

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "private-levels.jsonl"
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


def groups() -> dict[str, list[Asked]]:
    """The paper's settings by dataset, level and partition."""
    found: dict[str, list[Asked]] = {}
    with (HERE / "epsilon_rows.csv").open(encoding="utf-8") as file:
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
                yield Asked(f"own, epsilon {epsilon:g}", noise, queries, model=model)


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

    def run(self, noise: Noise, rows: np.ndarray, seed: int, learner: Any = None) -> Any:
        """The final model of one draw of the noise."""
        server = Server(self.data.X_public, self.data.classes, seed, noise_seed=seed)
        labels = noise.labels(self.votes[rows], server.noise_rng())
        return fit_model(learner or self.chosen.final, self.data.X_public[rows], labels, rng=server.rng(0))

    def bare(self) -> Any:
        """The final model without noise."""
        server = Server(self.data.X_public, self.data.classes, 0)
        labels = winners(self.votes, server.rng(0))
        return fit_model(self.chosen.final, self.data.X_public, labels, rng=server.rng(1))

    def diagnostic(self, noise: Laplace, rows: np.ndarray) -> float:
        """The paper's data-dependent ε."""
        return diagnose(self.votes[rows], noise, DELTA).epsilon


class PartyNoise:
    """L2: the teachers are trained once; every run adds its noise to their votes and trains new students."""

    def __init__(self, parties: list[Party], data: Dataset, chosen: Roles) -> None:
        self.data, self.chosen, self.parties = data, chosen, parties
        self.votes = [self.teachers_votes(party) for party in parties]

    def teachers_votes(self, party: Party) -> np.ndarray:
        """The bare votes of one party's teachers on all public rows."""
        pieces = cut(len(party.y), SUBSETS["L2"], party.rng(0, CUT))
        tasks = [(party, self.chosen.teacher, 0, number, piece) for number, piece in enumerate(pieces)]
        return count_votes([teach(task) for task in tasks], 2)

    def run(self, noise: Noise, rows: np.ndarray, seed: int, learner: Any = None) -> Any:
        """The final model of one draw of the noise."""

        def labels_of(party: Party, votes: np.ndarray) -> np.ndarray:
            return noise.labels(votes[rows], replace(party, noise_seed=seed_for(seed, party.name)).noise_rng(0))

        return self.final(rows, labels_of, learner or self.chosen.student)

    def bare(self) -> Any:
        """The final model without noise."""
        everything = np.arange(len(self.data.X_public))
        return self.final(everything, lambda party, votes: winners(votes, party.rng(0, TIES)), self.chosen.student)

    def final(self, rows: np.ndarray, labels_of: Callable[[Party, np.ndarray], np.ndarray], student: Any) -> Any:
        """Students of the labelled rows, their vote on all public rows, and the final model."""
        public = self.data.X_public
        students = [
            study(party, student, public[rows], labels_of(party, votes), 0)
            for party, votes in zip(self.parties, self.votes, strict=True)
        ]
        server = Server(public, self.data.classes, 0)
        labels = winners(consistent_votes(([each.predict(public)] for each in students), 2), server.rng(0))
        return fit_model(self.chosen.final, public, labels, rng=server.rng(1))

    def diagnostic(self, noise: Laplace, rows: np.ndarray) -> float:
        """The paper's data-dependent ε: the largest over the parties."""
        return diagnose_parties([votes[rows] for votes in self.votes], noise, DELTA).epsilon


def main() -> None:
    """Run what is not in the results file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--only", default=None, help="one group, e.g. adult-L1-het")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    lines = asked.results.read_text(encoding="utf-8").splitlines() if asked.results.exists() else []
    known = {(each["group"], each["seed"]) for each in map(json.loads, lines)}
    for seed in range(asked.seeds):
        for name, settings in groups().items():
            if (name, seed) in known or asked.only not in (None, name):
                continue
            result = run_group(name, settings, seed, asked.draws, asked.data_dir)
            append_line(asked.results, result)
            print(f"{name}, seed {seed}: {result['cpu_seconds']:.0f} CPU s, L0 {result['l0_accuracy']:.4f}", flush=True)


if __name__ == "__main__":
    main()
