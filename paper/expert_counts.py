"""Whether a server notices class counts that a student was not taught from.

    python paper/expert_counts.py [--data-dir DIR]

Writes paper/results/expert-counts.json, for each problem and development seed: how far the counts of honest parties are
from what their students say, how many of these are suspected, how many parties are that give all their rows to their
rarest class (each in turn, while all others are honest), and how often these are the ones suspected most. A finished
problem is kept.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np

# `python paper/expert_counts.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

from fedkt.algorithms import FedKT
from fedkt.algorithms.voting.expert import doubt
from fedkt.models.catalogue import MODELS
from fedkt.pooling import MISFIT, misfits, normalise_rows, pooled_posterior, shares_of
from paper.expert_labels import Task, dataset_task, opinions_and_counts, study_missing

RESULTS = Path(__file__).parent / "results" / "expert-counts.json"
PROBLEMS = {
    "adult": ("adult", None, None),
    "adult, skewed": ("adult", 0.5, None),
    "cod-rna": ("cod-rna", None, None),
    "cod-rna, skewed": ("cod-rna", 0.5, None),
    "mnist": ("mnist", None, None),
    "hospitals": ("heart", None, None),
    "digits": ("digits", None, None),
    "digits, logistic": ("digits", None, "logistic"),
    "digits, svm": ("digits", None, "svm"),
    "digits, naive Bayes": ("digits", None, "naive-bayes"),
    "adult, naive Bayes": ("adult", None, "naive-bayes"),
}


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    options = parser.parse_args()

    def problem(name: str, seed: int) -> Task:
        dataset, public_beta, model = PROBLEMS[name]
        partition = "column" if dataset == "heart" else "balanced"
        return dataset_task(dataset, public_beta, options.data_dir, seed, partition, model)

    study_missing(RESULTS, {name: partial(problem, name) for name in PROBLEMS}, suspicions)


def suspicions(task: Task, seed: int) -> dict[str, float]:
    """Misfits when all are honest, and when one gives its rows to its rarest class."""
    opinions, counts = opinions_and_counts(task, FedKT(task.model, voting="expert"))
    honest = distances(task, opinions, counts)
    caught = first = 0
    for liar, own in enumerate(counts):
        claims = counts.copy()
        claims[liar] = np.where(np.arange(len(own)) == own.argmin(), own.sum(), 0)
        far = distances(task, opinions, claims)
        caught += int(far[liar] > MISFIT)
        first += int(far.argmax()) == liar
    return {
        "parties": len(counts),
        "largest misfit of an honest party": float(honest.max()),
        "honest parties suspected": float(np.mean(honest > MISFIT)),
        "liars suspected": caught / len(counts),
        "liars suspected most": first / len(counts),
    }


def distances(task: Task, opinions: list[np.ndarray], counts: np.ndarray) -> np.ndarray:
    """How far each party's counts are from what its students say, if these are the counts they give."""
    mute = not MODELS[task.model].probabilities
    shares = normalise_rows(counts)
    votes = [doubt(each, own) if mute else each for each, own in zip(opinions, shares, strict=True)]
    pooled = pooled_posterior(votes, shares_of(counts))
    return misfits(np.array([each.mean(axis=0, dtype=np.float64) for each in votes]), counts, pooled)


if __name__ == "__main__":
    main()
