"""Why a final model may rank rows worse than a party alone: what the vote knows, and what of it the model can copy.

    python paper/copying.py [--seeds 201-202] [--families forest,svm] [--data-dir DIR]

For the tables of `final_quality.py` and every family: how well the vote itself ranks the public rows, and, on the test
rows, one model of all rows, and the final model that learns from the public rows what that one model says of them, or
their true classes. What such a copy loses no vote can win back. A line of paper/results/copying.jsonl for each table,
family and seed; a finished one is kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

# `python paper/copying.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from fedkt.algorithms import FedKT
from fedkt.algorithms.centralised import Centralised
from fedkt.algorithms.final import final_lesson
from fedkt.algorithms.voting.base import LabelledRows
from fedkt.data.dataset import Dataset
from fedkt.errors import UnsuitedModel
from fedkt.federation import Party, run_parties, simulate
from fedkt.lab.results import append_line, read_lines
from fedkt.models.base import FittedModel
from fedkt.pooling import normalise_rows
from fedkt.quality import measure_quality
from fedkt.system.threads import one_thread
from fedkt.votes import winners
from paper.final_quality import FAMILIES, VOTINGS, fresh, measured, parties_of, seed_range, server_of
from paper.quality_tables import quality_tables

RESULTS = Path(__file__).parent / "results" / "copying.jsonl"
SEEDS = range(201, 203)


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--seeds", type=seed_range, default=SEEDS, metavar="A-B")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    for seed in options.seeds:
        for table, (load, n_parties) in quality_tables(options.data_dir).items():
            data = load(seed)
            for family in options.families.split(","):
                key = {"table": table, "family": family, "seed": seed}
                if not any(key.items() <= each.items() for each in read_lines(options.results)):
                    found = areas(data, parties_of(data, n_parties, seed), family, seed)
                    append_line(options.results, {**key, **found})
                    print(key, flush=True)


def areas(data: Dataset, parties: list[Party], family: str, seed: int) -> dict[str, float | None]:
    """The AUC of each vote, of the model of all rows, and of what a final model copies of it."""
    found: dict[str, float | None] = {}
    with one_thread():
        for voting in VOTINGS[None]:
            try:
                found[f"vote, {voting}"] = vote_area(data, parties, FedKT(family, voting=voting), seed)
            except UnsuitedModel:
                found[f"vote, {voting}"] = None
        (pooled,) = simulate(Centralised(family), fresh(parties), server_of(data, seed)).final.models
        assert isinstance(pooled, FittedModel)
        found["pooled"] = area_of(pooled, data)
        truth = np.eye(len(data.classes))[data.y_public]
        copies = {"copy of the true classes": truth}
        if pooled.has_probabilities:
            copies["copy of the pooled model"] = pooled.predict_proba(data.X_public, len(data.classes))
        for name, known in copies.items():
            labelled = LabelledRows(known.argmax(axis=1), distributions=known)
            found[name] = area_of(final_lesson(FedKT(family), server_of(data, seed), labelled).fit(), data)
    return found


def vote_area(data: Dataset, parties: list[Party], fedkt: FedKT, seed: int) -> float | None:
    """The AUC of what the parties say together, on the public rows that they speak of."""
    server = server_of(data, seed)
    bundles = [bundle for bundle, _ in run_parties(fedkt, fresh(parties), None, jobs=1, progress=None)]
    known = fedkt.voting.label(fedkt, server, fedkt.student_answers(server, bundles)).distributions
    if known is None:
        return None
    assert data.y_public is not None
    spoken = known.max(axis=1) > 0
    shares = normalise_rows(known[spoken])
    quality = measure_quality(data.y_public[spoken], winners(shares, server.rng(0)), data.classes, shares)
    return None if quality.auc is None else quality.auc.value


def area_of(model: Any, data: Dataset) -> float | None:
    """The AUC of a model on the test rows."""
    auc = measured([model], data)[0].auc
    return None if auc is None else auc.value


if __name__ == "__main__":
    main()
