"""What the walls around a received model cost, and whether labels stay the same behind them.

    python benchmarks/walls.py [--rounds 15]

The rival is the same child with limits only, as it was before. Both run in turn on the same models and rows; medians of
the wall clock and of CPU time per child are printed. What the walls stop is said by `fedkt doctor --acts`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.datasets import make_classification

from fedkt.models import child_process, sandbox
from fedkt.models.base import fit_model
from fedkt.models.catalogue import as_estimator
from fedkt.models.exchange import to_onnx
from fedkt.system import walls

FAMILIES = ("tree", "forest", "logistic", "naive-bayes")
EVERY, LIMITS_ONLY = "walls.raise_walls(**bounds)", 'walls.raise_walls(("limits",), **bounds)'


def without_walls(folder: Path) -> Path:
    """A copy of the child's program that sets limits and nothing else."""
    text = child_process.CHILD.read_text(encoding="utf-8")
    changed = text.replace(EVERY, LIMITS_ONLY)
    assert changed != text
    program = folder / "models" / child_process.CHILD.name
    program.parent.mkdir()
    program.write_text(changed, encoding="utf-8")
    (folder / "system").mkdir()
    shutil.copy(walls.__file__, folder / "system" / "walls.py")
    return program


def measured(program: Path, models: list[bytes], rows: np.ndarray) -> tuple[float, float, list[list[int]]]:
    """Milliseconds by the clock and of CPU time, and the labels."""
    before, started = os.times(), time.perf_counter()
    with mock.patch.object(child_process, "CHILD", program):
        answers = sandbox.run_models(models, rows, n_classes=3)
    clock, after = time.perf_counter() - started, os.times()
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    return 1_000 * clock, 1_000 * spent, [each.tolist() for each in answers if not isinstance(each, str)]


def main() -> None:
    """Runs both in turn and prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    X, y = make_classification(3_000, 8, n_informative=5, n_classes=3, random_state=0)
    X = X.astype(np.float32)
    fitted = [fit_model(as_estimator(name), X, y, rng=np.random.default_rng(0)) for name in FAMILIES]
    models = [to_onnx(each, n_features=8, n_classes=3, check_rows=X).data for each in fitted]
    timings: dict[str, list[tuple[float, float]]] = {"limits only": [], "all walls": []}
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        programs = {"limits only": without_walls(Path(folder)), "all walls": child_process.CHILD}
        for _ in range(rounds):
            for name, program in programs.items():
                clock, cpu, labels = measured(program, models, X)
                timings[name].append((clock, cpu))
                answers.append(labels)
    result = {
        name: {
            "median_ms": round(statistics.median(each for each, _ in pairs), 1),
            "least_ms": round(min(each for each, _ in pairs), 1),
            "median_cpu_ms": round(statistics.median(each for _, each in pairs), 1),
        }
        for name, pairs in timings.items()
    }
    same = len(answers[0]) == len(models) and all(each == answers[0] for each in answers)
    print(json.dumps({"rounds": rounds, "models": len(models), "rows": len(X), "same_labels": same, **result}))


if __name__ == "__main__":
    main()
