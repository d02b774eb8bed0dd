"""How good the labels of expert voting are on the public rows, if it is done otherwise or told wrong.

    python paper/expert_labels.py [--data-dir DIR]

Trains the students of `fedkt-expert` on the development seeds and writes paper/results/expert-labels.json: the part of
the public rows that is labelled right under each choice, for each dataset, seed and kind of public rows: as the
dataset has them, and with class shares drawn from Dirichlet(0.5). A finished one is kept.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fedkt.algorithms import ExpertFedKT, FedKT
from fedkt.algorithms.expert import counted, doubted
from fedkt.data import load
from fedkt.data.dataset import with_skewed_public
from fedkt.experiments.runner import assemble, draw_parties
from fedkt.experiments.setting import Setting
from fedkt.experts import (
    distance,
    pooled_posterior,
    pulled_back,
    pulled_to,
    rows_of_one,
    shares_of,
    with_shares,
)
from fedkt.federation import Server, play, seed_for
from fedkt.models.base import one_thread
from fedkt.transport.folder import write_atomically
from fedkt.votes import winners

RESULTS = Path(__file__).parent / "results" / "expert-labels.json"
DATASETS = ("adult", "cod-rna", "mnist")
SEEDS = range(3)
BOAST = 20
PRIOR_MOVES = 0.05
PUBLIC_BETAS = (None, 0.5)


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    asked = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for dataset in DATASETS:
        for seed in SEEDS:
            for beta in PUBLIC_BETAS:
                named = {"dataset": dataset, "seed": seed, "public_beta": beta}
                if not any(named.items() <= each.items() for each in found):
                    found.append({**named, **right_labels(dataset, seed, beta, asked.data_dir)})
                    write_atomically(RESULTS, json.dumps(found, indent=1).encode() + b"\n")
                    print(found[-1])


class StudentsOfLabels(ExpertFedKT):
    """Expert voting whose students learn the class that their teachers find likeliest."""

    lessons = FedKT.lessons


def right_labels(dataset: str, seed: int, beta: float | None, data_dir: Path | None) -> dict[str, float]:
    """The part of the public rows that is labelled right, by choice."""
    setting = Setting(dataset, algorithm="fedkt-expert", partition="balanced", seed=seed).filled()
    data = with_skewed_public(load(dataset, seed=seed, data_dir=data_dir), beta, seed=seed)
    n_classes = len(data.classes)

    def taught(algorithm: ExpertFedKT) -> tuple[list[np.ndarray], np.ndarray]:
        """What the students say of the public rows, and the parties' counts."""
        parties = assemble(setting, data, draw_parties(setting, data))
        server = Server(data.X_public, data.classes, seed_for(seed, "the server"), image=data.image)
        with one_thread():
            bundles = [bundle for bundle, _ in play(algorithm, parties, None, jobs=1, progress=None)]
            voting, opinions = algorithm.opinions(server, bundles)
        return opinions, counted(voting)

    def right(scores: np.ndarray) -> float:
        return float(np.mean(winners(scores, np.random.default_rng(seed)) == data.y_public))

    def with_counts(numbers: np.ndarray) -> float:
        return right(pulled_back(pooled_posterior(opinions, shares_of(numbers)))[0])

    def to_prior(numbers: np.ndarray) -> float:
        return right(pulled_to(pooled_posterior(opinions, shares_of(numbers)), prior_of(numbers)))

    def boasts(judged: Callable[[np.ndarray], float]) -> list[float]:
        each = np.arange(len(counts))[:, None]
        return [judged(np.where(each == who, BOAST * counts, counts)) for who in range(len(counts))]

    opinions, counts = taught(ExpertFedKT(setting.model))
    of_labels = pooled_posterior(taught(StudentsOfLabels(setting.model))[0], shares_of(counts))
    hard = [np.eye(n_classes)[each.argmax(axis=1)] for each in opinions]
    named = [doubted(said, own) for said, own in zip(hard, rows_of_one(counts), strict=True)]
    untouched = pooled_posterior(opinions, shares_of(counts))
    fooled, fooled_prior = boasts(with_counts), boasts(to_prior)
    return {
        "as it is": with_counts(counts),
        "every party alike": right(np.sum(hard, axis=0)),
        "students of labels": right(pulled_back(of_labels)[0]),
        "students of labels, the prior may help": right(helped(of_labels, prior_of(counts))),
        "students only name a class": right(pulled_back(pooled_posterior(named, shares_of(counts)))[0]),
        "students only name a class, the prior may help": right(
            helped(pooled_posterior(named, shares_of(counts)), prior_of(counts))
        ),
        "not pulled back": right(untouched),
        "the prior may help": right(helped(untouched, prior_of(counts))),
        "pulled back to the parties' prior": to_prior(counts),
        "shares exactly as probable": right(with_shares(untouched, untouched.mean(axis=0))),
        "counts rounded to powers of two": with_counts(2.0 ** np.round(np.log2(np.maximum(counts, 1))) * (counts > 0)),
        "one party boasts, mean": float(np.mean(fooled)),
        "one party boasts, worst": float(np.min(fooled)),
        "one party boasts, pulled back to the prior, mean": float(np.mean(fooled_prior)),
    }


def helped(scores: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The scores, pulled back to what the parties find probable, after the prior has moved that by 5 % at most."""
    mean = rows_of_one(scores).mean(axis=0)
    away = distance(mean, prior)
    return pulled_to(scores, prior if away <= PRIOR_MOVES else mean + PRIOR_MOVES / away * (prior - mean))


def prior_of(counts: np.ndarray) -> np.ndarray:
    """The class shares of all parties' rows together."""
    return counts.sum(axis=0) / counts.sum()


if __name__ == "__main__":
    main()
