"""How good the labels of expert voting are on the public rows, if it is done otherwise or told wrong.

    python paper/expert_labels.py [--data-dir DIR]

Trains the students of `fedkt-expert` on the development seeds and writes paper/results/expert-labels.json: the part of
the public rows that is labelled right under each choice, for each problem and seed. The problems are the datasets, with
their usual family or another one, as they are and with public rows whose class shares are drawn from Dirichlet(0.5),
and made-up rows whose classes can hardly be told apart, of parties that are alike and of parties that are not, with
logistic regression and with forests. A finished one is kept.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from fedkt.algorithms import FedKT
from fedkt.algorithms.lesson import Lesson
from fedkt.algorithms.voting import Expert
from fedkt.algorithms.voting.expert import class_counts, doubt, opinion_of
from fedkt.data import load
from fedkt.data.dataset import with_skewed_public
from fedkt.data.partition import partition as deal
from fedkt.federation import Party, Server, run_parties, seed_for
from fedkt.lab.runner import assemble, draw_parties
from fedkt.lab.setting import Setting
from fedkt.pooling import limit_label_drift, normalise_rows, pooled_posterior, pull_to, shares_of
from fedkt.system.files import write_atomically
from fedkt.system.threads import one_thread
from fedkt.votes import winners

RESULTS = Path(__file__).parent / "results" / "expert-labels.json"
DATASETS = ("adult", "cod-rna", "mnist")
SEEDS = range(3)
BOAST = 20
MADE_UP_PARTIES = 10


@dataclass(frozen=True)
class Task:
    """Parties that are to label public rows."""

    model: str
    parties: Callable[[], list[Party]]
    server: Server
    truth: np.ndarray


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    options = parser.parse_args()
    problems: dict[str, Callable[[int], Task]] = {
        **{name: partial(dataset_task, name, None, options.data_dir) for name in DATASETS},
        **{f"{name}, skewed": partial(dataset_task, name, 0.5, options.data_dir) for name in DATASETS},
        "adult, parties alike": partial(dataset_task, "adult", None, options.data_dir, partition="even"),
        "adult, logistic": partial(dataset_task, "adult", None, options.data_dir, model="logistic"),
        "adult, boosting": partial(dataset_task, "adult", None, options.data_dir, model="boosting"),
        "adult, networks": partial(dataset_task, "adult", None, options.data_dir, model="mlp"),
        "noisy, parties alike": partial(synthetic_task, kind="even"),
        "noisy": partial(synthetic_task, kind="dirichlet"),
        "noisy, forests": partial(synthetic_task, kind="dirichlet", model="forest"),
    }
    study_missing(RESULTS, problems, right_labels)


def study_missing(
    results: Path, problems: dict[str, Callable[[int], Task]], look: Callable[[Task, int], dict[str, float]]
) -> None:
    """Look at every problem on every seed that is not in the file yet."""
    rows = json.loads(results.read_text()) if results.exists() else []
    for name, problem in problems.items():
        for seed in SEEDS:
            key = {"problem": name, "seed": seed}
            if not any(key.items() <= each.items() for each in rows):
                rows.append({**key, **look(problem(seed), seed)})
                write_atomically(results, json.dumps(rows, indent=1).encode() + b"\n")
                print(rows[-1], flush=True)


def dataset_task(
    dataset: str,
    public_beta: float | None,
    data_dir: Path | None,
    seed: int,
    partition: str = "balanced",
    model: str | None = None,
) -> Task:
    """The parties of a dataset; its public rows as they are or with other class shares."""
    setting = Setting(dataset, algorithm="fedkt-expert", partition=partition, model=model, seed=seed).with_defaults()
    data = with_skewed_public(load(dataset, seed=seed, data_dir=data_dir), public_beta, seed=seed)
    server = Server(data.X_public, data.classes, seed_for(seed, "the server"), image=data.image)
    return Task(
        str(setting.model),
        lambda: assemble(setting, data, draw_parties(setting, data)),
        server,
        np.array(data.y_public),
    )


def synthetic_task(seed: int, kind: str, model: str = "logistic") -> Task:
    """Two classes, the rarer one on 22 % of the rows, of which the best possible labels are 80 % right."""
    rng = np.random.default_rng(seed)

    def sample(count: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(count, 5)).astype(np.float32)
        return X, (rng.random(count) < 1 / (1 + np.exp(1.5 - 0.8 * X[:, 0] - 0.5 * X[:, 1]))).astype(np.int64)

    (X, y), (public, truth) = sample(4000), sample(2000)
    owner = deal(kind, y, MADE_UP_PARTIES, rng=rng)
    parties = [
        Party(public, (0, 1), seed_for(seed, f"p{who}"), name=f"p{who}", X=X[owner == who], y=y[owner == who])
        for who in range(MADE_UP_PARTIES)
    ]
    return Task(model, lambda: parties, Server(public, (0, 1), seed_for(seed, "the server")), truth)


class StudentsOfLabels(Expert):
    """Expert voting whose students learn the class that their teachers find likeliest."""

    def lessons(self, fedkt: FedKT, plain: Sequence[Lesson]) -> Sequence[Lesson]:
        """The plain ones."""
        return plain


def opinions_and_counts(task: Task, algorithm: FedKT) -> tuple[list[np.ndarray], np.ndarray]:
    """What the students say of the public rows, and the parties' counts."""
    parties = task.parties()
    for party in parties:
        party.shelf.clear()
    with one_thread():
        bundles = [bundle for bundle, _ in run_parties(algorithm, parties, None, jobs=1, progress=None)]
        answers = algorithm.student_answers(task.server, bundles)
    opinions = [opinion_of(np.asarray(each)) for _, each in answers.voters]
    return opinions, class_counts(answers.bundles)


def right_labels(task: Task, seed: int) -> dict[str, float]:
    """The part of the public rows that is labelled right, by choice."""

    def right(scores: np.ndarray) -> float:
        return float(np.mean(winners(scores, np.random.default_rng(seed)) == task.truth))

    def pooled_right(votes: list[np.ndarray], numbers: np.ndarray, *, calibrated: bool = False) -> float:
        pooled = pooled_posterior(votes, shares_of(numbers))
        return right(pooled if calibrated else limit_label_drift(pooled)[0])

    algorithm = FedKT(task.model, voting="expert")
    opinions, counts = opinions_and_counts(task, algorithm)
    as_it_is = partial(pooled_right, calibrated=algorithm.voting.calibrated(algorithm))
    of_labels, _ = opinions_and_counts(task, FedKT(task.model, voting=StudentsOfLabels()))
    hard = [np.eye(counts.shape[1])[each.argmax(axis=1)] for each in opinions]
    class_only = [doubt(each, own) for each, own in zip(hard, normalise_rows(counts), strict=True)]
    untouched = pooled_posterior(opinions, shares_of(counts))
    each = np.arange(len(counts))[:, None]
    fooled = [as_it_is(opinions, np.where(each == who, BOAST * counts, counts)) for who in range(len(counts))]
    rounded = 2.0 ** np.round(np.log2(np.maximum(counts, 1))) * (counts > 0)
    return {
        "as it is": as_it_is(opinions, counts),
        "every party alike": right(np.sum(hard, axis=0)),
        "students of labels": pooled_right(of_labels, counts),
        "students only name a class": pooled_right(class_only, counts),
        "never pulled back": right(untouched),
        "always pulled back": pooled_right(opinions, counts),
        "pulled back to what parties name on rows of their own": right(
            pull_to(untouched, named_shares(opinions, normalise_rows(untouched @ shares_of(counts).T)))
        ),
        "pulled back to the parties' prior": right(pull_to(untouched, counts.sum(axis=0) / counts.sum())),
        "counts rounded to powers of two": as_it_is(opinions, rounded),
        "one party boasts, mean": float(np.mean(fooled)),
        "one party boasts, worst": float(np.min(fooled)),
    }


def named_shares(opinions: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """How often each class is named if every party labels the rows that are likely its own (rows × parties)."""
    votes = [
        whose @ np.eye(each.shape[1])[each.argmax(axis=1)] for each, whose in zip(opinions, weights.T, strict=True)
    ]
    return np.asarray(np.sum(votes, axis=0) / weights.sum())


if __name__ == "__main__":
    main()
