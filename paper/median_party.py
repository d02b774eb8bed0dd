"""Count, per seed, the parties that hardly know the rarer class, beside the accuracy FedKT reached there.

    python paper/median_party.py [--data-dir DIR]

Reads paper/results/adult-balanced.jsonl, draws the same partitions again (nothing is trained) and writes
paper/results/adult-median-party.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from fedkt.data import load
from fedkt.lab.results import stored
from fedkt.lab.runner import draw_parties
from fedkt.lab.setting import Setting
from fedkt.system.files import write_atomically

RESULTS = Path(__file__).parent / "results"
BLIND = 0.2


def main() -> None:
    """Write one entry per seed, and the rank correlation over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    options = parser.parse_args()
    rows = []
    reports = [each for each in stored(RESULTS / "adult-balanced.jsonl").values() if each.algorithm == "fedkt"]
    for report in sorted(reports, key=lambda each: each.seed or 0):
        setting = Setting("adult", parties=report.parties, partition="balanced", seed=report.seed or 0).with_defaults()
        data = load("adult", seed=setting.seed, data_dir=options.data_dir)
        owners = draw_parties(setting, data)
        shares = np.array([np.mean(data.y[owners == name] == 1) for name in np.unique(owners)])
        rows.append(
            {
                "seed": setting.seed,
                "blind_parties": int((shares < BLIND).sum()),
                "median_share": float(np.median(shares)),
                "accuracy": report.accuracy,
                "balanced_accuracy": report.balanced_accuracy,
            }
        )
    correlation = spearmanr([row["median_share"] for row in rows], [row["balanced_accuracy"] for row in rows])
    result = {
        "blind_below": BLIND,
        "seeds": rows,
        "spearman_median_share_balanced_accuracy": float(correlation.statistic),
    }
    write_atomically(RESULTS / "adult-median-party.json", json.dumps(result, indent=1).encode() + b"\n")
    for row in rows:
        print(row)
    print(f"rank correlation of median share and balanced accuracy: {correlation.statistic:.2f}")


if __name__ == "__main__":
    main()
