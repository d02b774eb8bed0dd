"""How good final models are that learn distributions, beside those that learn labels: every family, voting and table.

    python paper/final_quality.py [--epsilon 1] [--seeds 201-210] [--families forest,tree] [--data-dir DIR]

Trains the parties' students once and the final model twice: of labels, as before, and of distributions. Beside them
stand the parties alone (mean, and weighted by their rows) and one model of all rows. Parties are drawn from
Dirichlet(0.5), those of the heart are its hospitals. With --epsilon a record is protected (level L2, Gaussian noise on
the votes of 25 subsets, 200 queries). A line of paper/results/final-quality.jsonl for each table, family and seed; a
finished one is kept, and several commands may write at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

# `python paper/final_quality.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

from fedkt.algorithms import FedKT
from fedkt.algorithms.calibration import noise_for_epsilon
from fedkt.algorithms.centralised import Centralised
from fedkt.algorithms.solo import Solo
from fedkt.data.dataset import Dataset
from fedkt.errors import UnsuitedModel
from fedkt.federation import Party, Server, run_parties, seed_for, simulate
from fedkt.lab.results import append_line, read_lines
from fedkt.lab.runner import assemble, draw_parties
from fedkt.lab.setting import Setting
from fedkt.quality import Interval, Quality
from fedkt.report import FIGURES, figures_alone, qualities
from fedkt.system.threads import one_thread
from paper.quality_tables import quality_tables

RESULTS = Path(__file__).parent / "results" / "final-quality.jsonl"
FAMILIES = (
    *("forest", "extra-trees", "tree", "boosting", "hist-boosting", "lightgbm", "logistic", "naive-bayes", "svm"),
    "mlp",
)
VOTINGS = {None: ("consistent", "expert", "expert-no-counts"), "L2": ("consistent", "expert")}
SEEDS = range(201, 211)
DELTA, SUBSETS, QUERIES = 1e-5, 25, 200
"""Of level L2."""


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--epsilon", type=float, default=None, help="level L2 with this epsilon; without, level L0")
    parser.add_argument("--seeds", type=seed_range, default=SEEDS, metavar="A-B")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    tables = quality_tables(options.data_dir)
    for seed in options.seeds:
        for table, (load, parties) in tables.items():
            data = load(seed)
            for family in options.families.split(","):
                key = {"table": table, "family": family, "epsilon": options.epsilon, "seed": seed}
                if not any(key.items() <= each.items() for each in read_lines(options.results)):
                    append_line(options.results, {**key, **study(data, parties, family, seed, options.epsilon)})
                    print(key, flush=True)


def seed_range(text: str) -> Sequence[int]:
    """The seeds from A to B, both included."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def study(data: Dataset, n_parties: int, family: str, seed: int, epsilon: float | None) -> dict[str, Any]:
    """The figures of every model of one family on one table."""
    parties = parties_of(data, n_parties, seed)
    found: dict[str, Any] = {}
    if epsilon is None:
        found |= rivals(data, parties, family, seed)
    for voting in VOTINGS[None if epsilon is None else "L2"]:
        fedkt = FedKT(family, voting=voting, **privacy(data, family, voting, epsilon))
        try:
            found[voting] = finals(data, parties, fedkt, seed)
        except UnsuitedModel as reason:
            found[voting] = {"unsuited": str(reason)}
    return found


def parties_of(data: Dataset, n_parties: int, seed: int) -> list[Party]:
    """The parties of a seed: those of the table, or drawn."""
    partition = "dirichlet" if data.groups is None else "column"
    setting = Setting(data.name, parties=n_parties, partition=partition, seed=seed)
    return assemble(setting, data, draw_parties(setting, data))


def privacy(data: Dataset, family: str, voting: str, epsilon: float | None) -> dict[str, Any]:
    """The settings of level L2 for this ε; none for level L0."""
    if epsilon is None:
        return {}
    level: dict[str, Any] = {
        **{"level": "L2", "subsets": SUBSETS, "partitions": 1},
        "queries": min(QUERIES, len(data.X_public)),
    }
    figures = {"public_rows": len(data.X_public), "classes": len(data.classes), "parties": 1}
    noise = noise_for_epsilon(
        FedKT(family, voting=voting, **level), "gaussian", epsilon=epsilon, delta=DELTA, **figures
    )
    return {**level, "noise": noise}


def fresh(parties: Iterable[Party]) -> list[Party]:
    """The parties before they have done anything."""
    return [replace(party, shelf={}) for party in parties]


def server_of(data: Dataset, seed: int) -> Server:
    """The server of a seed, before it has done anything."""
    return Server(data.X_public, data.classes, seed_for(seed, "the server"), image=data.image)


def rivals(data: Dataset, parties: Sequence[Party], family: str, seed: int) -> dict[str, Any]:
    """The figures of parties alone, and of one model of all rows."""
    alone = simulate(Solo(family), fresh(parties), server_of(data, seed)).final.models
    pooled = simulate(Centralised(family), fresh(parties), server_of(data, seed)).final.models
    solo = figures_alone(measured(alone, data), [len(party.y) for party in parties])
    return {
        "solo": {name: solo[name]["mean"] for name in FIGURES},
        "solo by rows": {name: solo[name]["by_rows"] for name in FIGURES},
        "pooled": figures_of(measured(pooled, data)[0]),
    }


def finals(data: Dataset, parties: Sequence[Party], fedkt: FedKT, seed: int) -> dict[str, Any]:
    """The figures of the final model of labels and of that of distributions, taught by the same students."""
    with one_thread():
        bundles = [bundle for bundle, _ in run_parties(fedkt, fresh(parties), None, jobs=1, progress=None)]
        answers = fedkt.student_answers(server_of(data, seed), bundles)
        models = [
            with_final(fedkt, soft).train_final(server_of(data, seed), answers).models[0] for soft in (False, True)
        ]
    before, after = (figures_of(each) for each in measured(models, data))
    return {"labels": before, "distributions": after}


def with_final(fedkt: FedKT, soft: bool) -> FedKT:
    """The same, whose final model learns labels or distributions."""
    other = copy(fedkt)
    other.soft_final = soft
    return other


def measured(models: Sequence[Any], data: Dataset) -> list[Quality]:
    """The quality of each model on the test rows."""
    return qualities(models, data.X_test, data.y_test, data.classes)


def figures_of(quality: Quality) -> dict[str, float | None]:
    """The figures that are compared."""
    values = {name: getattr(quality, name) for name in FIGURES}
    return {name: each.value if isinstance(each, Interval) else each for name, each in values.items()}


if __name__ == "__main__":
    main()
