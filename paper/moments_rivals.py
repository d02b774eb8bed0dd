"""Two rivals on the splits of the main table: boosting in ten rounds, and FedFisher in one.

    python paper/moments_rivals.py bagging --seeds 300-304 [--datasets heart,cod-rna,adult]
    python paper/moments_rivals.py fisher --seeds 300-301 [--datasets mnist]

*bagging* is federated XGBoost as Flower's FedXgbBagging has it: in each round every party boosts one tree onto the
global model with its own rows, and the server appends all of them (`fedkt.bench.plain.bagging`). RATES were chosen on
seeds 210 and 211, on rows that are no test rows (`--rates` tries them).

*fisher* is FedFisher (Jhunjhunwala, Wang and Joshi: FedFisher: Leveraging Fisher Information for One-Shot Federated
Learning, AISTATS 2024) with diagonal Fisher information, written anew from the paper's description: parties train from
one common start and send weights and Fisher information, the server descends on Σ shareᵢ (w − wᵢ)ᵀFᵢ(w − wᵢ). As there,
the server keeps the step that is best on 500 labelled rows: here public rows, whose labels no method of ours sees.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

# `python paper/moments_rivals.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from fedkt.bench.plain.bagging import RATES, ROUNDS, rounds_of
from fedkt.data import Dataset, load
from fedkt.federation import Party, seed_for
from fedkt.lab.runner import assemble, draw_parties
from fedkt.quality import measure_quality
from paper.final_quality import figures_of, seed_range
from paper.fisher import fisher_probabilities
from paper.kept import Key, make_missing
from paper.moments_central import laid_aside
from paper.moments_data import register
from paper.moments_study import MOMENTS, setting_of

RESULTS = Path(__file__).parent / "results" / "moments-rivals.jsonl"
TRIED_RATES = (0.3, 1.0, 2.0)
ROUNDS_KEPT = (1, 10)
"""After which the model is measured."""


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rival", choices=list(RIVALS))
    parser.add_argument("--seeds", type=seed_range, required=True, metavar="A-B")
    parser.add_argument("--datasets", default=None)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--rates", action="store_true", help="try RATES on rows laid aside, and keep nothing")
    options = parser.parse_args()
    register()
    run, usual = RIVALS[options.rival]
    datasets = (options.datasets or usual).split(",")
    if options.rates:
        for dataset, rate, seed in product(datasets, TRIED_RATES, options.seeds):
            data = laid_aside(load(dataset, seed=seed, data_dir=options.data_dir))
            print(dataset, rate, seed, bagging(data, parties_of(data, seed), seed, rate)["accuracy"], flush=True)
        return

    def make(key: Key) -> dict[str, Any]:
        data = load(key["dataset"], seed=key["seed"], data_dir=options.data_dir)
        return run(data, parties_of(data, key["seed"]), key["seed"])

    keys = [{"rival": options.rival, "dataset": each, "seed": seed} for seed, each in product(options.seeds, datasets)]
    make_missing(options.results, keys, make)


def parties_of(data: Dataset, seed: int) -> list[Party]:
    """The very parties of the main table."""
    setting = setting_of(data.name, MOMENTS, seed).with_defaults()
    return assemble(setting, data, draw_parties(setting, data))


def bagging(data: Dataset, parties: Sequence[Party], seed: int, rate: float | None = None) -> dict[str, Any]:
    """Figures after ROUNDS rounds and after some before, and the bytes that a party sends and receives."""
    rate = RATES[data.name] if rate is None else rate
    shares = [(party.X, party.y) for party in parties]
    after = list(rounds_of(shares, data.X_test, rate=rate, seed=seed))
    figures = {f"round {kept}": figures_of(quality_of(data, logistic(after[kept - 1][0]))) for kept in ROUNDS_KEPT}
    sent = after[-1][1]
    return {
        **figures[f"round {ROUNDS}"],
        "after one round": figures["round 1"],
        "bytes_sent": sent,
        # All trees of every round but the last go back to every party.
        "bytes_received": sent * (ROUNDS - 1) // ROUNDS * len(parties),
        "parties": len(parties),
        "rate": rate,
    }


def logistic(margins: Any) -> Any:
    """The probabilities of both classes."""
    positive = 1 / (1 + np.exp(-margins))
    return np.stack([1 - positive, positive], axis=1)


def quality_of(data: Dataset, probabilities: Any) -> Any:
    """How good these probabilities of the test rows are."""
    labels = probabilities.argmax(axis=1).astype(np.int64)
    return measure_quality(data.y_test, labels, data.classes, probabilities)


def fisher(data: Dataset, parties: Sequence[Party], seed: int) -> dict[str, Any]:
    """Figures of FedFisher, and the bytes that the parties send."""
    assert data.image is not None
    assert data.y_public is not None
    probabilities, sent = fisher_probabilities(
        [(party.X, party.y) for party in parties],
        labelled=(data.X_public[:500], data.y_public[:500]),
        test=data.X_test,
        image=data.image,
        n_classes=len(data.classes),
        seed=seed_for(seed, "FedFisher") % 2**31,
    )
    return {**figures_of(quality_of(data, probabilities)), "bytes_sent": sent, "parties": len(parties)}


RIVALS: dict[str, tuple[Callable[..., dict[str, Any]], str]] = {
    "bagging": (bagging, "heart,cod-rna,adult"),
    "fisher": (fisher, "mnist"),
}
"""How each is run, and on which datasets unless told otherwise."""


if __name__ == "__main__":
    main()
