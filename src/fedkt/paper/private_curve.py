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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from fedkt.algorithms.calibration import calibrated
from fedkt.lab.results import append_line, read_lines
from fedkt.models.base import one_thread
from fedkt.models.catalogue import as_estimator
from fedkt.paper import private_levels
from fedkt.paper.plans import out_of_reach
from fedkt.paper.private_federations import DELTA, SUBSETS, federation_of, parts_of, query_rows, scored
from fedkt.privacy import Noise
from fedkt.report import versions

TITLE = "Accuracy against ε, as well as we can"
WHERE = ""
FILE = "private-curve.jsonl"
DEVELOPMENT = (100, 101)
SEEDS = 3
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
Key = tuple[bool, str, int]
"""Whether it is development, the group, the seed."""


@cache
def noise_for(level: str, epsilon: float, queries: int, parties: int) -> Noise:
    """The smallest Gaussian noise that keeps ε."""
    return calibrated(
        "gaussian",
        level=level,
        epsilon=epsilon,
        delta=DELTA,
        queries=queries,
        partitions=1,
        subsets=SUBSETS[level],
        classes=2,
        parties=parties,
    )


def run_group(
    name: str, seed: int, asked: Iterable[tuple[float, Choice]], data_dir: Path | None, *, developing: bool
) -> dict[str, Any]:
    """Every ε with the choices asked for, on one group and seed."""
    started = time.process_time()
    level = parts_of(name)[1]
    with one_thread():
        federation = federation_of(name, seed, data_dir, developing=developing)
        rows = []
        for epsilon, choice in asked:
            noise = noise_for(level, epsilon, choice.queries, len(federation.parties))
            _, queries = query_rows(level, noise, choice.queries, federation)
            learner = None if choice.model is None else as_estimator(choice.model)
            plain, balanced = scored(federation, noise, queries, learner, seed, 1 if developing else DRAWS)
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
        "developing": developing,
        "group": name,
        "seed": seed,
        "delta": DELTA,
        "rows": rows,
        "cpu_seconds": time.process_time() - started,
        "command": "fedkt paper run private-curve",
        "versions": versions(),
    }


def chosen(entries: Iterable[dict[str, Any]]) -> dict[tuple[str, str, float], Choice]:
    """Of each dataset, level and ε the choice that does best in development, over seeds and partitions."""
    scores: dict[tuple[str, str, float], dict[Choice, list[float]]] = {}
    for each in entries:
        if each["developing"]:
            dataset, level, _ = parts_of(each["group"])
            for row in each["rows"]:
                tried = scores.setdefault((dataset, level, row["epsilon"]), {})
                tried.setdefault(Choice(row["queries"], row["model"]), []).append(mean(row["accuracy"]))
    return {key: max(tried, key=lambda choice: mean(tried[choice])) for key, tried in scores.items()}


def planned(folder: Path, *, seeds: int | None = None, quick: bool = False) -> list[Key]:
    """Development first, then the seeds of the tables."""
    names = [name for name in private_levels.groups(folder) if not quick or name in private_levels.QUICK]
    developing = [(True, name, seed) for seed in DEVELOPMENT[: 1 if quick else None] for name in names]
    return developing + [(False, name, seed) for seed in range(1 if quick else seeds or SEEDS) for name in names]


def made(results: Path) -> dict[Key, dict[str, Any]]:
    """What is finished."""
    return {(each["developing"], each["group"], each["seed"]): each for each in read_lines(results / FILE)}


def make_missing_groups(
    folder: Path,
    results: Path,
    *,
    seeds: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    on_start: Callable[[str], None] | None = None,
) -> dict[str, str]:
    """Run what is not in the results yet; datasets that cannot be had are left out and given back with the reason."""
    known = made(results)
    missing = [each for each in planned(folder, seeds=seeds, quick=quick) if each not in known]
    left_out = out_of_reach({parts_of(name)[0] for _, name, _ in missing}, data_dir)
    for number, (developing, name, seed) in enumerate(missing):
        dataset, level, _ = parts_of(name)
        if dataset in left_out:
            continue
        if on_start is not None:
            on_start(f"private-curve, group {number + 1} of {len(missing)}: {name}, seed {seed}")
        epsilons = QUICK_EPSILONS if quick else EPSILONS
        if developing:
            asked = list(product(epsilons, QUICK_CHOICES if quick else CHOICES))
        else:
            best = chosen(made(results).values())
            asked = [(epsilon, best[dataset, level, epsilon]) for epsilon in epsilons]
        append_line(results / FILE, run_group(name, seed, asked, data_dir, developing=developing))
    return left_out


@dataclass(frozen=True)
class Point:
    """One ε of a group's curve, over all seeds and draws."""

    epsilon: float
    choice: Choice
    accuracy: Sequence[float]
    balanced: Sequence[float]


def curve_of(results: Path) -> dict[str, list[Point]]:
    """The curve of every group that is finished, by ε."""
    found: dict[str, dict[tuple[float, Choice], tuple[list[float], list[float]]]] = {}
    for (developing, name, _), entry in made(results).items():
        if not developing:
            for row in entry["rows"]:
                key = row["epsilon"], Choice(row["queries"], row["model"])
                plain, balanced = found.setdefault(name, {}).setdefault(key, ([], []))
                plain += row["accuracy"]
                balanced += row["balanced_accuracy"]
    return {
        name: [Point(*key, *values) for key, values in sorted(points.items(), key=lambda each: each[0][0])]
        for name, points in found.items()
    }
