"""How long a teacher must be trained: one subset of a party's rows, scored on the party's other rows.

    python paper/teacher_epochs.py [--data-dir FOLDER]

Neither test rows nor public rows are looked at. Writes paper/results/teacher-epochs.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from fedkt.algorithms.lesson import CUT, cut
from fedkt.data import load
from fedkt.lab.runner import assemble, draw_parties
from fedkt.lab.setting import Setting
from fedkt.models.catalogue import as_estimator
from fedkt.models.ensemble import TrainingTask, fit_group, fit_to_rows
from fedkt.system.files import write_atomically
from fedkt.system.versions import versions

RESULTS = Path(__file__).parent / "results" / "teacher-epochs.json"
EPOCHS = (10, 30, 100, None)
PARTIES = 3


def main() -> None:
    """Train the teachers and write down how well they do."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--data-dir", type=Path, default=None)
    options = arguments.parse_args()
    rows = []
    for name in ("mnist", "svhn"):
        setting = Setting(name).with_defaults()
        assert setting.subsets is not None
        data = load(name, seed=setting.seed, data_dir=options.data_dir)
        for party in assemble(setting, data, draw_parties(setting, data))[:PARTIES]:
            piece = cut(len(party.y), setting.subsets, party.rng(0, CUT))[0]
            others = np.setdiff1d(np.arange(len(party.y)), piece)
            for epochs in EPOCHS:
                network = fit_to_rows(as_estimator(setting.model), data.X_public, data.image).set_params(epochs=epochs)
                problem = TrainingTask(network, party.X, party.y[piece], np.random.default_rng(0), piece)
                model = fit_group([problem], len(data.classes))[0]
                accuracy = float(np.mean(model.predict(party.X[others]) == party.y[others]))
                seen = network.recipe.epochs_for(len(piece))
                rows.append(
                    {
                        "dataset": name,
                        "party": party.name,
                        "rows": len(piece),
                        "epochs": seen,
                        "auto": epochs is None,
                        "accuracy": accuracy,
                    }
                )
                print(rows[-1], flush=True)
    entry = {"command": "python paper/teacher_epochs.py", "seed": 0, "versions": versions(), "teachers": rows}
    write_atomically(RESULTS, (json.dumps(entry, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
