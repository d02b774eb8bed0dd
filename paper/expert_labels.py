"""How good the labels of expert voting are on the public rows, if it is done otherwise or told wrong.

    python paper/expert_labels.py [--data-dir DIR]

Trains the students of `fedkt-expert` on the development seeds and writes paper/results/expert-labels.json: the part of
the public rows that is labelled right under each choice, for each dataset and seed. A finished one is kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from fedkt.algorithms import ExpertFedKT
from fedkt.algorithms.expert import counted
from fedkt.data import load
from fedkt.experiments.runner import assemble, draw_parties
from fedkt.experiments.setting import Setting
from fedkt.experts import expert_votes, pooled_posterior, pulled_back, shares_of, with_shares
from fedkt.federation import Server, seed_for
from fedkt.models.base import one_thread
from fedkt.transport.folder import write_atomically
from fedkt.votes import winners

RESULTS = Path(__file__).parent / "results" / "expert-labels.json"
DATASETS = ("adult", "cod-rna", "mnist")
SEEDS = range(5)
BOAST = 20


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    asked = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for dataset in DATASETS:
        for seed in SEEDS:
            if not any((each["dataset"], each["seed"]) == (dataset, seed) for each in found):
                found.append({"dataset": dataset, "seed": seed, **right_labels(dataset, seed, asked.data_dir)})
                write_atomically(RESULTS, json.dumps(found, indent=1).encode() + b"\n")
                print(found[-1])


def right_labels(dataset: str, seed: int, data_dir: Path | None) -> dict[str, float]:
    """The part of the public rows that is labelled right, by choice."""
    setting = Setting(dataset, algorithm="fedkt-expert", partition="balanced", seed=seed).filled()
    data = load(dataset, seed=seed, data_dir=data_dir)
    parties = assemble(setting, data, draw_parties(setting, data))
    algorithm = ExpertFedKT(setting.model)
    server = Server(data.X_public, data.classes, seed_for(seed, "the server"), image=data.image)
    with one_thread():
        if algorithm.together(parties):
            bundles = algorithm.party_steps(parties, None)
        else:
            bundles = [algorithm.party_step(party, None) for party in parties]
        voting, opinions = algorithm.opinions(server, bundles)
    counts = counted(voting)
    prior = counts.sum(axis=0) / counts.sum()

    def right(scores: np.ndarray) -> float:
        return float(np.mean(winners(scores, np.random.default_rng(seed)) == data.y_public))

    def told(numbers: np.ndarray) -> float:
        said = numbers.sum(axis=0) / numbers.sum()
        return right(pulled_back(pooled_posterior(opinions, shares_of(numbers)), said)[0])

    hard = [np.eye(len(data.classes))[each.argmax(axis=1)] for each in opinions]
    untouched = pooled_posterior(opinions, shares_of(counts))
    boasts = [
        told(np.where(np.arange(len(counts))[:, None] == who, BOAST * counts, counts)) for who in range(len(counts))
    ]
    return {
        "as it is": told(counts),
        "every party alike": right(np.sum(hard, axis=0)),
        "votes weighed": right(pulled_back(expert_votes(hard, shares_of(counts)), prior)[0]),
        "not pulled back": right(untouched),
        "matched exactly": right(with_shares(untouched, prior)),
        "counts rounded to powers of two": told(2.0 ** np.round(np.log2(np.maximum(counts, 1))) * (counts > 0)),
        "one party boasts, mean": float(np.mean(boasts)),
        "one party boasts, worst": float(np.min(boasts)),
    }


if __name__ == "__main__":
    main()
