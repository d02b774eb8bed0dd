"""Which settings suit the methods FedKT is measured against, in one round: their best fair tuning.

    python paper/tune_baselines.py [mnist] [--methods fedavg,fedprox] [--data-dir FOLDER]

Development seeds that no table uses; every party lays a tenth of its rows aside, and the final model is scored on these
rows of all parties together. No label of a test or public row is looked at. (The public images of a development seed
are among the unlabelled test images of other seeds; FedDF reads them.)

On the first seed every method gets the same local epochs and learning rates (SCAFFOLD, whose steps are plain SGD, its
own), then the best of them with other values of its own parameter (FedProx also at FedAvg's best); the best three go on
to the other seeds, and the best mean wins. The paper's grid (10, 20 and 40 epochs, rates of 10⁻³ and 10⁻², μ of 0.1 and
1) lies inside. Every run is kept at once in paper/results/tuning.jsonl and never made again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

# `python paper/tune_baselines.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

from fedkt.algorithms import ALGORITHMS
from fedkt.data import Dataset, load
from fedkt.federation import Server, seed_for, simulate
from fedkt.lab.results import append_line, read_lines
from fedkt.lab.runner import assemble, draw_parties
from fedkt.lab.setting import Setting
from fedkt.models.catalogue import trained_for
from fedkt.report import accuracies
from fedkt.system.versions import versions
from paper.tuning import best_settings, lay_aside

RESULTS = Path(__file__).parent / "results" / "tuning.jsonl"
DATASETS = ("mnist", "svhn")
"""Their training part is fixed: no row that is tuned on is another seed's test row."""
SEEDS = (100, 101, 102)
GO_ON = 3
EPOCHS = (1, 5, 10, 20, 40, 100)
Options = dict[str, float]


def over(**values: tuple[float, ...]) -> list[Options]:
    """Every combination."""
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


COMMON = over(local_epochs=EPOCHS, learning_rate=(1e-3,)) + over(local_epochs=(10, 40), learning_rate=(1e-4, 1e-2))
GRIDS: dict[str, list[Options]] = {
    "fedavg": COMMON,
    "fedprox": [{**each, "mu": 0.1} for each in COMMON],
    "scaffold": over(local_epochs=EPOCHS, learning_rate=(0.1,))
    + over(local_epochs=(10, 40), learning_rate=(1e-3, 1e-2, 0.3)),
    "feddf": [{**each, "distil_epochs": 10} for each in COMMON],
    "pfnm": COMMON,
}
OWN: dict[str, list[Options]] = {
    "fedprox": over(mu=(0.001, 0.01, 1.0)),
    "feddf": over(distil_epochs=(40, 100)),
}


def trial(setting: Setting, data: Dataset, method: str, options: Options) -> dict[str, Any]:
    """One run of one method with these options, and its score."""
    start = time.process_time()
    all_parties = assemble(setting, data, draw_parties(setting, data))
    parties, X, y = lay_aside(all_parties)
    network = trained_for(setting.model, epochs=None, learning_rate=options["learning_rate"])
    algorithm = ALGORITHMS[method].build(network, teachers=len(parties), **options)
    server = Server(data.X_public, data.classes, seed_for(setting.seed, "the server"), image=data.image)
    outcome = simulate(algorithm, parties, server)
    return {
        "dataset": setting.dataset,
        "method": method,
        "options": options,
        "seed": setting.seed,
        "accuracy": accuracies(outcome.final.models, X, y)[0][0],
        "rows": len(y),
        "cpu_seconds": round(time.process_time() - start, 1),
        "command": f"python paper/tune_baselines.py {setting.dataset}",
        "versions": versions(),
    }


class Tuning:
    """All runs of one dataset, kept in a file."""

    def __init__(self, dataset: str, results: Path, data_dir: Path | None) -> None:
        self.dataset, self.results, self.data_dir = dataset, results, data_dir
        self.loaded: dict[int, Dataset] = {}

    def score(self, method: str, options: Options, seed: int) -> float:
        """The accuracy of one run, made where nobody has made it."""
        for each in read_lines(self.results):
            if (each["dataset"], each["method"], each["options"], each["seed"]) == (
                self.dataset,
                method,
                options,
                seed,
            ):
                return float(each["accuracy"])
        if seed not in self.loaded:
            self.loaded = {seed: load(self.dataset, seed=seed, data_dir=self.data_dir)}
        entry = trial(Setting(self.dataset, seed=seed).with_defaults(), self.loaded[seed], method, options)
        append_line(self.results, entry)
        print(f"{method} {options} seed {seed}: {entry['accuracy']:.4f} ({entry['cpu_seconds']} s)", flush=True)
        return float(entry["accuracy"])

    def tune(self, method: str) -> None:
        """The common grid, the method's own parameter at its best, then the best on the other seeds."""
        scores = {json.dumps(each): self.score(method, each, SEEDS[0]) for each in GRIDS[method]}
        bases = [json.loads(max(scores, key=lambda each: scores[each]))]
        if method == "fedprox":
            # With a small μ it is FedAvg, and must not do worse for want of having been tried there.
            bases.append(max(GRIDS["fedavg"], key=lambda each: self.score("fedavg", each, SEEDS[0])))
        for base, own in product(bases, OWN.get(method, [])):
            scores[json.dumps({**base, **own})] = self.score(method, {**base, **own}, SEEDS[0])
        for options in sorted(scores, key=lambda each: -scores[each])[:GO_ON]:
            for seed in SEEDS[1:]:
                self.score(method, json.loads(options), seed)


def main() -> None:
    """Try what has not been tried, and say what is best."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("dataset", nargs="?", default="mnist", choices=DATASETS)
    arguments.add_argument("--methods", default=",".join(GRIDS))
    arguments.add_argument("--data-dir", type=Path, default=None)
    arguments.add_argument("--results", type=Path, default=RESULTS)
    command = arguments.parse_args()
    tuning = Tuning(command.dataset, command.results, command.data_dir)
    for method in command.methods.split(","):
        tuning.tune(method)
    for method, (options, accuracy) in best_settings(read_lines(command.results), command.dataset).items():
        print(json.dumps({"method": method, **options, "accuracy": round(accuracy, 4)}))


if __name__ == "__main__":
    main()
