"""Accuracy against ε: how well one does at a given ε with the exact accountant, beside the paper's points.

For every ε, how many public rows are asked and who learns from the noisy answers is chosen by dataset and level on
seeds of its own, scored on rows that the parties lay aside; the winners then run on the seeds of the tables, once, on
the test rows. The noise is Gaussian, calibrated to ε: at the same ε it needs a smaller spread than Laplace or Gumbel
noise for every number of queries tried here.

Adult's and cod-rna's test rows are drawn anew with every seed, so a row laid aside on one seed may be a test row of
another: the choice among ten settings by the mean over several splits can hardly profit from that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from fedkt.algorithms import FedKT
from fedkt.algorithms.calibration import noise_for_epsilon
from fedkt.models.catalogue import as_estimator
from fedkt.privacy import Noise
from fedkt.report import versions
from fedkt.system.threads import one_thread
from paper.private_federations import DELTA, SUBSETS, accuracy_by_draw, federation_of, query_rows
from paper.private_study import GroupRun, Study, finished_groups, parts_of
from paper.workplace import Workplace

DRAWS = 3
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
QUICK_EPSILONS = (1.0,)


@dataclass(frozen=True)
class Choice:
    """How an ε is spent: the public rows that are asked, and who learns from the answers."""

    queries: int
    model: str | None
    """None is the dataset's own family; the final model at L1, the students at L2."""


CHOICES = tuple(Choice(queries, model) for queries, model in product((10, 20, 40, 80, 160), (None, "logistic")))
QUICK_CHOICES = (Choice(40, None), Choice(40, "logistic"))


@cache
def noise_for(level: str, epsilon: float, queries: int, parties: int) -> Noise:
    """The smallest Gaussian noise that keeps ε."""
    fedkt = FedKT(None, partitions=1, subsets=SUBSETS[level], level=level, queries=queries)
    return noise_for_epsilon(
        fedkt, "gaussian", epsilon=epsilon, delta=DELTA, public_rows=queries, classes=2, parties=parties
    )


def run_curve(each: GroupRun, place: Workplace) -> dict[str, Any]:
    """Every ε of one group and seed: with every choice in development, then with the best one."""
    started = time.process_time()
    dataset, level, _ = parts_of(each.group)
    epsilons = QUICK_EPSILONS if place.quick else EPSILONS
    if each.developing:
        choices = list(product(epsilons, QUICK_CHOICES if place.quick else CHOICES))
    else:
        best = best_choices(finished_groups(CURVE, place.results).values())
        choices = [(epsilon, best[dataset, level, epsilon]) for epsilon in epsilons]
    with one_thread():
        federation = federation_of(each.group, each.seed, place.data_dir, developing=each.developing)
        rows = []
        for epsilon, choice in choices:
            noise = noise_for(level, epsilon, choice.queries, len(federation.parties))
            _, queries = query_rows(level, noise, choice.queries, federation)
            learner = None if choice.model is None else as_estimator(choice.model)
            draws = 1 if each.developing else DRAWS
            plain, balanced = accuracy_by_draw(federation, noise, queries, learner, each.seed, draws=draws)
            rows.append(
                {
                    "epsilon": epsilon,
                    "queries": choice.queries,
                    "model": choice.model,
                    "mechanism": noise.name,
                    "scale": dict(noise.scale),
                    "accuracy": plain,
                    "balanced_accuracy": balanced,
                }
            )
    return {
        "developing": each.developing,
        "group": each.group,
        "seed": each.seed,
        "delta": DELTA,
        "rows": rows,
        "cpu_seconds": time.process_time() - started,
        "command": "python -m paper run private-curve",
        "versions": versions(),
    }


def best_choices(entries: Iterable[dict[str, Any]]) -> dict[tuple[str, str, float], Choice]:
    """Of each dataset, level and ε the choice that does best in development, over seeds and partitions."""
    scores: dict[tuple[str, str, float], dict[Choice, list[float]]] = {}
    for each in entries:
        if each["developing"]:
            dataset, level, _ = parts_of(each["group"])
            for row in each["rows"]:
                tried = scores.setdefault((dataset, level, row["epsilon"]), {})
                tried.setdefault(Choice(row["queries"], row["model"]), []).append(mean(row["accuracy"]))
    return {key: max(tried, key=lambda choice: mean(tried[choice])) for key, tried in scores.items()}


CURVE = Study(
    "private-curve",
    "Accuracy against ε, as well as we can",
    "",
    "private-curve.jsonl",
    run_curve,
    development=(100, 101),
)


@dataclass(frozen=True)
class Point:
    """One ε of a group's curve, over all seeds and draws."""

    epsilon: float
    choice: Choice
    accuracy: Sequence[float]
    balanced: Sequence[float]


def curve_of(results: Path) -> dict[str, list[Point]]:
    """The curve of every group that is finished, by ε."""
    groups: dict[str, dict[tuple[float, Choice], tuple[list[float], list[float]]]] = {}
    for each, entry in finished_groups(CURVE, results).items():
        if not each.developing:
            for row in entry["rows"]:
                key = row["epsilon"], Choice(row["queries"], row["model"])
                plain, balanced = groups.setdefault(each.group, {}).setdefault(key, ([], []))
                plain += row["accuracy"]
                balanced += row["balanced_accuracy"]
    return {
        name: [Point(*key, *values) for key, values in sorted(points.items(), key=lambda each: each[0][0])]
        for name, points in groups.items()
    }
