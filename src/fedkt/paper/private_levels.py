"""The paper's 72 private settings on the real data, beside its accuracies and ε.

Teachers and students are trained once per seed; every noise is then drawn anew. The votes' data-dependent ε of the
paper (diagnostic) is computed here because these datasets are public; for private votes it is confidential.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedkt.lab.private_tables import load_rows
from fedkt.lab.results import append_line, read_lines
from fedkt.models.base import one_thread
from fedkt.paper.plans import out_of_reach
from fedkt.paper.private_federations import DELTA, PartyNoise, ServerNoise, federation_of, parts_of, query_rows, scored
from fedkt.privacy import Laplace
from fedkt.report import accuracies, versions

TITLE = "FedKT-L1 and FedKT-L2: accuracy and ε"
WHERE = "its appendix on differential privacy, and the privacy table"
FILE = "private-levels.jsonl"
SEEDS = 3
QUICK = ("cod-rna-L1-hom", "cod-rna-L2-hom")
"""The groups of a rehearsal."""


@dataclass(frozen=True)
class Asked:
    """One setting of a group, and what the paper prints for it."""

    noise: Laplace
    queries: int
    paper_epsilon: float
    paper_accuracy: float
    paper_kind: str


def groups(folder: Path) -> dict[str, list[Asked]]:
    """The paper's settings by dataset, level and partition, from its rows in the folder."""
    found: dict[str, list[Asked]] = {}
    with (folder / "epsilon_rows.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["table"] == "tbl:dp":
                continue
            partition = "het" if row["partition"] == "het" else "hom"
            name = f"{row['dataset'].lower()}-{row['level']}-{partition}"
            found.setdefault(name, []).append(
                Asked(
                    Laplace(float(row["gamma"])),
                    int(row["queries"]),
                    float(row["paper_epsilon"]),
                    float(row["paper_accuracy"]),
                    row["kind"],
                )
            )
    return found


def run_group(name: str, asked: list[Asked], seed: int, draws: int, data_dir: Path | None) -> dict[str, Any]:
    """All settings of a group on one seed."""
    started = time.process_time()
    with one_thread():
        federation = federation_of(name, seed, data_dir)
        rows = [entry(each, name, federation, seed, draws) for each in asked]
        plain, balanced = accuracies([federation.bare()], federation.data.X_test, federation.data.y_test)
    return {
        "group": name,
        "seed": seed,
        "l0_accuracy": plain[0],
        "l0_balanced": balanced[0],
        "rows": rows,
        "cpu_seconds": time.process_time() - started,
        "versions": versions(),
    }


def entry(each: Asked, group: str, federation: ServerNoise | PartyNoise, seed: int, draws: int) -> dict[str, Any]:
    """One setting: accuracy per draw of the noise, the price, and what the paper prints."""
    algorithm, rows = query_rows(parts_of(group)[1], each.noise, each.queries, federation)
    price = algorithm.price(
        public_rows=len(federation.data.X_public),
        classes=2,
        parties=len(federation.parties),
        delta=DELTA,
    )
    assert price is not None
    plain, balanced = scored(federation, each.noise, rows, None, seed, draws)
    formula = price.accountants["paper"]
    return {
        "mechanism": each.noise.name,
        "scale": dict(each.noise.scale),
        "queries": each.queries,
        "accuracy": plain,
        "balanced_accuracy": balanced,
        "epsilon": price.epsilon,
        "accountant": price.accountant,
        "epsilon_paper_formula": formula if math.isfinite(formula) else None,
        "epsilon_data_dependent": federation.diagnostic(each.noise, rows),
        "paper_epsilon": each.paper_epsilon,
        "paper_accuracy": each.paper_accuracy,
        "paper_kind": each.paper_kind,
    }


def planned(folder: Path, *, seeds: int | None = None, quick: bool = False) -> list[tuple[str, int]]:
    """Every group and seed."""
    names = [name for name in groups(folder) if not quick or name in QUICK]
    return [(name, seed) for seed in range(1 if quick else seeds or SEEDS) for name in names]


def made(results: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The groups and seeds that are finished."""
    return {(each["group"], each["seed"]): each for each in read_lines(results / FILE)}


def rows_of(results: Path) -> list[dict[str, Any]]:
    """Every setting with all its seeds and draws, for the tables; empty before the first group is finished."""
    path = results / FILE
    return load_rows(path) if path.exists() else []


def make_missing_groups(
    folder: Path,
    results: Path,
    *,
    seeds: int | None = None,
    draws: int = 1,
    quick: bool = False,
    data_dir: Path | None = None,
    on_start: Callable[[str], None] | None = None,
) -> dict[str, str]:
    """Run what is not in the results yet; datasets that cannot be had are left out and given back with the reason."""
    settings, known = groups(folder), made(results)
    missing = [each for each in planned(folder, seeds=seeds, quick=quick) if each not in known]
    left_out = out_of_reach({parts_of(name)[0] for name, _ in missing}, data_dir)
    for number, (name, seed) in enumerate(missing):
        if parts_of(name)[0] in left_out:
            continue
        if on_start is not None:
            on_start(f"private, group {number + 1} of {len(missing)}: {name}, seed {seed}")
        append_line(results / FILE, run_group(name, settings[name], seed, draws, data_dir))
    return left_out
