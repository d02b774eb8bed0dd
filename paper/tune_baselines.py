"""Which settings suit the methods FedKT is measured against, in one round: their best fair tuning.

    python paper/tune_baselines.py [mnist] [--methods fedavg,fedprox] [--data-dir FOLDER]

Development seeds that no table uses; every party lays a tenth of its rows aside, and the final model is scored on these
rows of all parties together. Neither test nor public labels are looked at. The grids contain the paper's own (learning
rates 10⁻³ and 10⁻², 10, 20 and 40 local epochs, μ of 0.1 and 1) and go beyond it. Every run is kept at once in
paper/results/tuning.jsonl and never made again; the settings with the best mean are printed.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.algorithms import ALGORITHMS
from fedkt.data import Dataset, load
from fedkt.experiments.results import append_line
from fedkt.experiments.runner import assemble, draw_parties
from fedkt.experiments.setting import Setting
from fedkt.experiments.tuning import best_settings, read_tuning
from fedkt.federation import Party, Server, seed_for, simulate
from fedkt.models.catalogue import trained_for
from fedkt.report import accuracies
from fedkt.versions import versions

RESULTS = Path(__file__).parent / "results" / "tuning.jsonl"
SEEDS = (100, 101)
LAID_ASIDE = 0.1
EPOCHS, RATES = (5, 10, 20, 40), (1e-3, 1e-2)
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "fedavg": {"local_epochs": (1, 2, *EPOCHS), "learning_rate": (1e-4, *RATES)},
    "fedprox": {"local_epochs": EPOCHS, "learning_rate": RATES, "mu": (0.001, 0.01, 0.1, 1.0)},
    "scaffold": {"local_epochs": EPOCHS[1:], "learning_rate": (*RATES, 0.1, 0.3)},
    "feddf": {"local_epochs": EPOCHS, "learning_rate": (1e-4, *RATES)},
    "pfnm": {"local_epochs": EPOCHS, "learning_rate": (1e-4, *RATES)},
}


def halves(party: Party) -> tuple[Party, np.ndarray]:
    """A party without the rows it lays aside, and these rows."""
    order = np.random.default_rng(party.seed).permutation(len(party.y))
    aside = np.sort(order[: int(LAID_ASIDE * len(order))])
    kept = np.setdiff1d(np.arange(len(party.y)), aside)
    return replace(party, X=party.X[kept], y=party.y[kept]), aside


def tried(setting: Setting, data: Dataset, method: str, options: dict[str, float]) -> dict[str, Any]:
    """One run of one method with these options, and its score."""
    started = time.process_time()
    whole = assemble(setting, data, draw_parties(setting, data))
    parties, aside = zip(*(halves(party) for party in whole), strict=True)
    X = np.concatenate([party.X[rows] for party, rows in zip(whole, aside, strict=True)])
    y = np.concatenate([party.y[rows] for party, rows in zip(whole, aside, strict=True)])
    given: dict[str, Any] = {**options, "local_epochs": int(options["local_epochs"])}
    network = trained_for(setting.model, epochs=None, learning_rate=options["learning_rate"])
    algorithm = ALGORITHMS[method](network, parties=len(parties), **given)
    server = Server(data.X_public, data.classes, seed_for(setting.seed, "the server"), image=data.image)
    outcome = simulate(algorithm, parties, server)
    return {
        "dataset": setting.dataset,
        "method": method,
        "options": options,
        "seed": setting.seed,
        "accuracy": accuracies(outcome.final.models, X, y)[0][0],
        "rows": len(y),
        "cpu_seconds": round(time.process_time() - started, 1),
        "command": f"python paper/tune_baselines.py {setting.dataset}",
        "versions": versions(),
    }


def main() -> None:
    """Try what has not been tried, and say what is best."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("dataset", nargs="?", default="mnist")
    arguments.add_argument("--methods", default=",".join(GRIDS))
    arguments.add_argument("--data-dir", type=Path, default=None)
    given = arguments.parse_args()
    for seed in SEEDS:
        setting = Setting(given.dataset, seed=seed).filled()
        data = load(given.dataset, seed=seed, data_dir=given.data_dir)
        for method in given.methods.split(","):
            for values in product(*GRIDS[method].values()):
                options = dict(zip(GRIDS[method], values, strict=True))
                known = [
                    (each["dataset"], each["method"], each["options"], each["seed"]) for each in read_tuning(RESULTS)
                ]
                if (given.dataset, method, options, seed) not in known:
                    entry = tried(setting, data, method, options)
                    append_line(RESULTS, entry)
                    print(f"{method} {options} seed {seed}: {entry['accuracy']:.4f}", flush=True)
    for method, (options, accuracy) in best_settings(read_tuning(RESULTS), given.dataset).items():
        print(json.dumps({"method": method, **options, "accuracy": round(accuracy, 4)}))


if __name__ == "__main__":
    main()
