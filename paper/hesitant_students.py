"""What a final model should learn where experts' students are hesitant: as they say it, moved, surer, or labels.

    python paper/hesitant_students.py [--seeds 20-21] [--data-dir DIR]

Forests and extra-trees under expert voting on the tables of `final_quality.py`, on development seeds. The students of
a run are trained once, the final model once for each rule. A line of paper/results/hesitant-students.jsonl for each
table, family and seed; a finished one is kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# `python paper/hesitant_students.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from fedkt.algorithms import FedKT
from fedkt.algorithms.final import final_lesson
from fedkt.algorithms.voting import Expert
from fedkt.algorithms.voting.base import LabelledRows
from fedkt.algorithms.voting.expert import surer
from fedkt.data.dataset import Dataset
from fedkt.federation import Party, run_parties
from fedkt.lab.results import append_line, read_lines
from fedkt.pooling import expected_shares, limit_label_drift, normalise_rows
from fedkt.system.threads import one_thread
from fedkt.votes import winners
from paper.final_quality import figures_of, fresh, measured, parties_of, seed_range, server_of
from paper.quality_tables import quality_tables

RESULTS = Path(__file__).parent / "results" / "hesitant-students.jsonl"
FAMILIES = ("forest", "extra-trees")
SEEDS = range(20, 22)


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--seeds", type=seed_range, default=SEEDS, metavar="A-B")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    for seed in options.seeds:
        for table, (load, n_parties) in quality_tables(options.data_dir).items():
            data = load(seed)
            for family in FAMILIES:
                key = {"table": table, "family": family, "seed": seed}
                if not any(key.items() <= each.items() for each in read_lines(options.results)):
                    found = figures_by_rule(data, parties_of(data, n_parties, seed), family, seed)
                    append_line(options.results, {**key, **found})
                    print(key, flush=True)


def figures_by_rule(data: Dataset, parties: list[Party], family: str, seed: int) -> dict[str, dict[str, float | None]]:
    """The figures of the final model under each rule."""
    fedkt, server = FedKT(family, voting="expert"), server_of(data, seed)
    with one_thread():
        bundles = [bundle for bundle, _ in run_parties(fedkt, fresh(parties), None, jobs=1, progress=None)]
        answers = fedkt.student_answers(server, bundles)
        assert isinstance(fedkt.voting, Expert)
        scores = fedkt.voting.weigh(fedkt, server, answers)
        found = {}
        for rule, labelled in rules(scores, seed).items():
            model = final_lesson(fedkt, server_of(data, seed), labelled).fit()
            found[rule] = figures_of(measured([model], data)[0])
    return found


def rules(scores: np.ndarray, seed: int) -> dict[str, LabelledRows]:
    """The public rows as each rule labels them."""
    moved, _, _ = limit_label_drift(scores)
    plain, pulled = (winners(each, np.random.default_rng(seed)) for each in (scores, moved))
    return {
        "labels, moved": LabelledRows(pulled),
        "as the parties say": LabelledRows(plain, distributions=scores),
        "as they say, labels moved afterwards": LabelledRows(
            pulled, distributions=scores, shares=expected_shares(scores[scores.max(axis=1) > 0])
        ),
        "moved": LabelledRows(pulled, distributions=normalise_rows(moved)),
        "half of it moved to the label": LabelledRows(pulled, distributions=surer(scores, pulled)),
    }


if __name__ == "__main__":
    main()
