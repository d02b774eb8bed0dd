"""Rivals of moments, and who was in the rows, as tables."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

from fedkt.lab.grid import Grid
from fedkt.lab.results import over_seeds, read_lines
from fedkt.lab.words import points_with_spread
from paper.moments_results import NAMES, Entry, accuracy, figure, gap, kilobytes, runs_of
from paper.moments_study import MOMENTS

RIVALS = {"bagging": "federated XGBoost, 10 rounds", "fisher": "FedFisher (diagonal), 1 round"}


def rivals_table(results: Path) -> Grid | None:
    """Each rival beside moments on the same splits; None where nothing was run."""
    main, entries = runs_of(results / "moments-main.jsonl"), read_lines(results / "moments-rivals.jsonl")
    lines = []
    for rival, dataset in dict.fromkeys((each["rival"], each["dataset"]) for each in entries):
        own = {each["seed"]: each for each in entries if (each["rival"], each["dataset"]) == (rival, dataset)}
        found = [each["accuracy"] for each in own.values()]
        early = [each["after one round"]["accuracy"] for each in own.values() if "after one round" in each]
        moments = main.method(dataset, MOMENTS)
        traffic = mean((each["bytes_sent"] + each.get("bytes_received", 0)) / each["parties"] for each in own.values())
        lines.append(
            [
                *(dataset, RIVALS[rival]),
                points_with_spread(over_seeds(early), len(early) > 1),
                points_with_spread(over_seeds(found), len(found) > 1),
                figure({seed: report for seed, report in moments.items() if seed in own}),
                gap(accuracy(moments), {seed: each["accuracy"] for seed, each in own.items()}),
                *(f"{traffic / 1_000:,.0f}", kilobytes(moments.values()), str(len(own))),
            ]
        )
    head = ("", "rival", "after one round", "at the end", "moments", "moments less it", "its kB a party", "moments' kB")
    return Grid([*head, "seeds"], lines) if lines else None


def attack_table(results: Path, attack: str) -> Grid | None:
    """AUC, and hits at 1 % false alarms, of one kind of attack; None where nothing was run."""
    entries = [each for each in read_lines(results / "moments-attack.jsonl") if each["attack"] == attack]
    groups: dict[tuple[Any, ...], list[Entry]] = {}
    for each in entries:
        groups.setdefault((each.get("algorithm"), each["epsilon"], each.get("rows")), []).append(each)
    lines = []
    for (algorithm, epsilon, rows), own in groups.items():
        name = [NAMES[algorithm] if algorithm else "noise at its worst pair"]
        limit = own[0].get("bound")
        line = [*name, "–" if epsilon is None else f"{epsilon:g}", *([f"{rows:,}"] if rows else [])]
        line += [f"{mean(each['auc'] for each in own):.3f}", f"{100 * mean(each['tpr'] for each in own):.1f}"]
        line += ["–" if limit is None else f"{100 * limit:.1f}"]
        line += [f"{mean(each['proven'] for each in own):.2f}"] if "proven" in own[0] else []
        lines.append([*line, str(len(own))])
    head = ["", "ε", *(["rows"] if attack == "message" else []), "AUC", "TPR at 1 % FPR, %", "(ε, δ) allows, %"]
    return Grid([*head, *(["ε proven"] if attack == "audit" else []), "seeds"], lines) if lines else None
