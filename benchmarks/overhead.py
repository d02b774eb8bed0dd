"""What FedKT costs beside plain scikit-learn fits of the same models, in one process.

    python benchmarks/overhead.py [DATASET] [--model forest] [--parties 50] [--rounds 3] [--data-dir DIR]

The rival is a bare loop: the same subsets, the same estimators with the same random states, `fit` and `predict` and
nothing else. Both run in turn, several times, on one thread; CPU seconds and their ratio are printed, because seconds
alone mean little on a busy machine. The last line is the result as JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from fedkt.algorithms import FedKT
from fedkt.algorithms.lesson import CUT, STUDY, TEACH, cut
from fedkt.data import DATASETS, load
from fedkt.federation import Server, seed_for, simulate
from fedkt.lab.runner import assemble, draw_parties
from fedkt.lab.setting import Setting
from fedkt.models.base import untrained_copy
from fedkt.models.catalogue import roles
from fedkt.report import versions

PARTITIONS, SUBSETS = 2, 5


def plain(parties, public, families):
    """Fit and predict, as a script would: no federation, no wrapper."""
    for party in parties:
        for partition in range(PARTITIONS):
            answers = []
            for number, piece in enumerate(cut(len(party.y), SUBSETS, party.rng(partition, CUT))):
                y = party.y[piece]
                if len(np.unique(y)) == 1:
                    answers.append(np.full(len(public), y[0]))
                    continue
                teacher = untrained_copy(families.teacher, party.rng(partition, TEACH, number))
                answers.append(teacher.fit(party.X[piece], y).predict(public))
            labels = np.median(np.stack(answers), axis=0).astype(int)
            if len(np.unique(labels)) > 1:
                untrained_copy(families.student, party.rng(partition, STUDY)).fit(public, labels).predict(public)
    labels = np.arange(len(public)) % 2
    clone(families.final).fit(public, labels)


def main() -> None:
    """Run both in turn and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="digits", choices=list(DATASETS))
    parser.add_argument("--model", default=None)
    parser.add_argument("--parties", type=int, default=None)
    parser.add_argument("--partition", default="balanced")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", type=Path, default=None)
    options = parser.parse_args()
    setting = Setting(
        options.dataset, model=options.model, parties=options.parties, partition=options.partition, seed=options.seed
    ).with_defaults()
    data = load(setting.dataset, seed=setting.seed, data_dir=options.data_dir)
    owners = draw_parties(setting, data)
    families = roles(setting.model)
    rivals: dict[str, list[float]] = {"plain scikit-learn": [], "fedkt": []}
    for _ in range(options.rounds):
        parties = assemble(setting, data, owners)
        with threadpool_limits(1):
            started = time.process_time()
            plain(parties, data.X_public, families)
            rivals["plain scikit-learn"].append(time.process_time() - started)
        server = Server(data.X_public, data.classes, seed_for(setting.seed, "the server"))
        started = time.process_time()
        simulate(FedKT(setting.model, partitions=PARTITIONS, subsets=SUBSETS), parties, server)
        rivals["fedkt"].append(time.process_time() - started)
    for name, seconds in rivals.items():
        print(f"{name:20} {np.median(seconds):8.2f} CPU s (median of {[round(each, 2) for each in seconds]})")
    ratio = float(np.median(np.array(rivals["fedkt"]) / np.array(rivals["plain scikit-learn"])))
    print(f"fedkt costs {ratio:.2f} × the plain fits")
    result = {
        "benchmark": "overhead",
        "dataset": setting.dataset,
        "model": setting.model,
        "parties": len(set(owners.tolist())),
        "partition": setting.partition,
        "seed": setting.seed,
        "cpu_seconds": rivals,
        "ratio": ratio,
        "machine": platform.processor() or platform.machine(),
        "versions": versions(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
