"""What central training with differential privacy reaches at the same ε: DP-SGD by Opacus on all rows in one place.

    pip install --no-deps --target FOLDER opacus opt_einsum       # and PYTHONPATH=FOLDER
    python paper/moments_central.py --seeds 300-302 [--datasets adult,cod-rna,mnist] [--inputs columns,features]

Logistic regression, whose inputs are either the columns, standardised as the public rows have them, or φ, the very
features that moments use at level L2. Opacus clips, adds the noise and finds its size (accountant "prv"). Its promise
is weaker than that of moments: it is for a record that is added or removed, not replaced, and no party keeps its rows.
Step sizes were chosen on seeds 210 and 211 at ε = 1 (`--rates` tries them), on rows that are no test rows.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

# `python paper/moments_central.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from fedkt.algorithms.moments import MAP_SEED
from fedkt.data import Dataset, load
from fedkt.models.features.images import image_map
from fedkt.models.features.tables import table_map
from fedkt.quality import measure_quality
from paper.final_quality import figures_of, seed_range
from paper.kept import Key, make_missing

RESULTS = Path(__file__).parent / "results" / "moments-central.jsonl"
EPSILONS = (1.0, 0.5, 2.0, 0.25, 4.0, 0.1, 8.0)
DELTA, EPOCHS, BATCH, CLIP = 1e-5, 20, 1024, 1.0
RATES = {"columns": 2.0, "features": 8.0}
TRIED_RATES = (0.5, 2.0, 8.0, 32.0)
FURTHEST = 4.0
"""Standard deviations at which a column ends, as in the map of moments."""


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seed_range, required=True, metavar="A-B")
    parser.add_argument("--datasets", default="adult,cod-rna")
    parser.add_argument("--inputs", default="columns,features")
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--rates", action="store_true", help="try step sizes on rows laid aside, and keep nothing")
    options = parser.parse_args()
    datasets, kinds = options.datasets.split(","), options.inputs.split(",")
    if options.rates:
        for dataset, kind, rate, seed in product(datasets, kinds, TRIED_RATES, options.seeds):
            data = laid_aside(load(dataset, seed=seed, data_dir=options.data_dir))
            print(dataset, kind, rate, seed, central(data, kind, 1.0, rate, seed)["accuracy"], flush=True)
        return
    keys = (
        {"dataset": dataset, "inputs": kind, "epsilon": float(epsilon), "seed": seed}
        for epsilon, seed, dataset, kind in product(options.epsilons.split(","), options.seeds, datasets, kinds)
    )

    def run(key: Key) -> dict[str, Any]:
        data = load(key["dataset"], seed=key["seed"], data_dir=options.data_dir)
        return central(data, key["inputs"], key["epsilon"], RATES[key["inputs"]], key["seed"])

    make_missing(options.results, keys, run)


def laid_aside(data: Dataset) -> Dataset:
    """The dataset with a fifth of the parties' rows in place of its test rows."""
    order = np.random.default_rng(len(data.y)).permutation(len(data.y))
    test, rest = np.split(order, [len(order) // 5])
    groups = None if data.groups is None else data.groups[rest]
    return replace(data, X=data.X[rest], y=data.y[rest], groups=groups, X_test=data.X[test], y_test=data.y[test])


def central(data: Dataset, kind: str, epsilon: float, rate: float, seed: int) -> dict[str, Any]:
    """How good logistic regression by DP-SGD is on the test rows."""
    rows, test = inputs(data, kind)
    probabilities, noise = private_logistic(rows, data.y, test, len(data.classes), epsilon, rate, seed)
    labels = probabilities.argmax(axis=1).astype(np.int64)
    quality = measure_quality(data.y_test, labels, data.classes, probabilities)
    return {**figures_of(quality), "noise_multiplier": noise, "rate": rate}


def inputs(data: Dataset, kind: str) -> tuple[Any, Any]:
    """What the model reads of the parties' rows and of the test rows."""
    if kind == "features":
        make = image_map(data.X_public, data.image, seed=MAP_SEED, private=True) if data.image is not None else None
        features = make or table_map(data.X_public, seed=MAP_SEED, private=True)
        return features(data.X), features(data.X_test)
    mean, scale = np.nanmean(data.X_public, axis=0), np.nanstd(data.X_public, axis=0)
    used = scale > 1e-6

    def standardised(rows: Any) -> Any:
        away = (rows[:, used] - mean[used]) / scale[used]
        return np.clip(np.where(np.isnan(away), 0.0, away), -FURTHEST, FURTHEST)

    return standardised(data.X), standardised(data.X_test)


def private_logistic(
    rows: Any, y: Any, test: Any, n_classes: int, epsilon: float, rate: float, seed: int
) -> tuple[Any, float]:
    """The probabilities of the test rows after EPOCHS of DP-SGD, and the noise multiplier that keeps ε."""
    import torch
    from opacus import GradSampleModule
    from opacus.accountants.utils import get_noise_multiplier
    from opacus.optimizers import DPOptimizer

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    share = min(1.0, BATCH / len(y))
    noise = float(
        get_noise_multiplier(
            target_epsilon=epsilon, target_delta=DELTA, sample_rate=share, epochs=EPOCHS, accountant="prv"
        )
    )
    X, labels = torch.tensor(rows, dtype=torch.float32), torch.tensor(y)
    linear = torch.nn.Linear(X.shape[1], n_classes)
    torch.nn.init.zeros_(linear.weight)
    torch.nn.init.zeros_(linear.bias)
    model = GradSampleModule(linear)
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=rate),
        noise_multiplier=noise,
        max_grad_norm=CLIP,
        expected_batch_size=int(share * len(y)),
    )
    for _ in range(int(EPOCHS / share)):
        # Every row by itself is in a batch or not, as the accountant has it.
        batch = torch.rand(len(y)) < share
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(X[batch]), labels[batch]).backward()
        optimizer.step()
    with torch.no_grad():
        scores = linear(torch.tensor(test, dtype=torch.float32))
        return torch.softmax(scores, dim=1).double().numpy(), noise


if __name__ == "__main__":
    main()
