"""Runs that look for a method's best settings, on seeds of their own: reading them, and the best of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any


def read_tuning(path: Path) -> list[dict[str, Any]]:
    """All runs kept so far."""
    if not path.exists():
        return []
    # A last line without an end was cut off by a kill; the next run writes it again.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def best_settings(entries: Sequence[dict[str, Any]], dataset: str) -> dict[str, tuple[dict[str, Any], float]]:
    """Of each method the settings with the best mean over the seeds, and that mean; only what all seeds have tried."""
    scores: dict[str, dict[str, dict[int, float]]] = {}
    for each in entries:
        if each["dataset"] == dataset:
            options = json.dumps(each["options"], sort_keys=True)
            scores.setdefault(each["method"], {}).setdefault(options, {})[each["seed"]] = each["accuracy"]
    best = {}
    for method, tried in scores.items():
        seeds = max(len(by_seed) for by_seed in tried.values())
        means = {options: mean(found.values()) for options, found in tried.items() if len(found) == seeds}
        options = max(means, key=lambda each: means[each])
        best[method] = (json.loads(options), means[options])
    return best


def tuning_table(entries: Sequence[dict[str, Any]], dataset: str) -> str:
    """The best settings of each method, how many were tried, and how far the worst lies below."""
    lines = [
        "| method | tried | local epochs | learning rate | μ | laid-aside rows, best | worst |",
        "|---|---|---|---|---|---|---|",
    ]
    for method, (options, accuracy) in best_settings(entries, dataset).items():
        own = [each for each in entries if (each["dataset"], each["method"]) == (dataset, method)]
        tried = len({json.dumps(each["options"], sort_keys=True) for each in own})
        worst = min(each["accuracy"] for each in own)
        cells = [
            options["local_epochs"],
            f"{options['learning_rate']:g}",
            f"{options['mu']:g}" if "mu" in options else "",
        ]
        figures = f"{100 * accuracy:.1f} | {100 * worst:.1f}"
        lines.append(f"| {method} | {tried} | " + " | ".join(map(str, cells)) + f" | {figures} |")
    return "\n".join(lines)
