"""Runs that look for a method's best settings, on seeds of their own: reading them, and the best of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.fedprox import MU
from fedkt.federation import Party, stack_rows
from fedkt.lab.grid import Grid
from fedkt.lab.results import Summary, read_report, stored, summarise
from fedkt.lab.words import points, points_with_spread
from fedkt.report import Report
from fedkt.votes import Labels

LAID_ASIDE = 0.1
"""The share of its rows that a party lays aside to be scored on."""
COMMON = ("local_epochs", "learning_rate")
"""Settings that all methods have."""


def lay_aside(parties: Sequence[Party]) -> tuple[list[Party], NDArray[Any], Labels]:
    """The parties without the rows they lay aside, and these rows of all of them with their labels."""
    remaining, X, y = [], [], []
    for party in parties:
        order = np.random.default_rng(party.seed).permutation(len(party.y))
        aside = np.sort(order[: int(LAID_ASIDE * len(order))])
        rest = np.setdiff1d(np.arange(len(party.y)), aside)
        remaining.append(replace(party, X=party.X[rest], y=party.y[rest]))
        X.append(party.X[aside])
        y.append(party.y[aside])
    return remaining, stack_rows(X), np.concatenate(y)


def best_settings(entries: Sequence[dict[str, Any]], dataset: str) -> dict[str, tuple[dict[str, Any], float]]:
    """Of each method the settings with the best mean over the seeds, and that mean; only what all seeds have tried."""
    scores: dict[str, dict[str, dict[int, float]]] = {}
    for each in entries:
        if each["dataset"] == dataset:
            options = json.dumps(each["options"], sort_keys=True)
            scores.setdefault(each["method"], {}).setdefault(options, {})[each["seed"]] = each["accuracy"]
    best = {}
    for method, scores_by_options in scores.items():
        seeds = max(len(by_seed) for by_seed in scores_by_options.values())
        means = {
            options: mean(by_seed.values()) for options, by_seed in scores_by_options.items() if len(by_seed) == seeds
        }
        options = max(means, key=lambda each: means[each])
        best[method] = (json.loads(options), means[options])
    return best


def tuned_table(
    entries: Sequence[dict[str, Any]], dataset: str, plain: Path, tuned: Path, expected: dict[str, Any]
) -> Grid:
    """Each method as the paper runs it and with its own best settings, on the same seeds, beside the paper."""
    before, after = (summaries_by_algorithm(path) for path in (plain, tuned))
    head = [
        "method",
        "paper",
        "with its settings",
        "tuned",
        "local epochs",
        "learning rate",
        "own",
        "tried",
        "laid aside",
    ]
    lines = []
    for method, (options, accuracy) in best_settings(entries, dataset).items():
        own = [each for each in entries if (each["dataset"], each["method"]) == (dataset, method)]
        lines.append(
            [
                method,
                f"{expected[dataset][method]['accuracy']:.1f}",
                points_with_spread(before[method].accuracy),
                points_with_spread(after[method].accuracy),
                f"{options['local_epochs']:g}",
                f"{options['learning_rate']:g}",
                ", ".join(f"{name} {value:g}" for name, value in options.items() if name not in COMMON),
                str(len({json.dumps(each["options"], sort_keys=True) for each in own})),
                points(accuracy),
            ]
        )
    return Grid(head, lines)


def pull_table(*paths: Path) -> Grid:
    """FedProx by its μ: how much of a party's one round is left as the pull grows."""
    runs_by_mu: dict[float, list[Report]] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["setting"]["algorithm"] == "fedprox":
                runs_by_mu.setdefault(entry["setting"]["mu"] or MU, []).append(read_report(entry["report"]))
    values = sorted(runs_by_mu)
    cells = [points_with_spread(summarise(runs_by_mu[mu])[0].accuracy) for mu in values]
    return Grid(["μ", *(f"{mu:g}" for mu in values)], [["FedProx on MNIST", *cells]])


def summaries_by_algorithm(path: Path) -> dict[str, Summary]:
    """The runs of a results file, summed up."""
    return {each.algorithm: each for each in summarise(list(stored(path).values()))}
