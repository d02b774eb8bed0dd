"""Three hospitals, one server, nothing but files in between.

    python examples/three_hospitals/run.py [folder]

Makes three hospitals' files from scikit-learn's breast-cancer data (each sees another mix of patients), then runs the
commands that the hospitals and the server would run, each on its own machine. Takes about half a minute.
"""

from __future__ import annotations

import csv
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

HOSPITALS = {"north": 0.9, "south": 0.5, "west": 0.15}
"""Each hospital's share of malignant cases: specialists see more of them."""
ROWS = 60


def main() -> None:
    """Write the files, then let everybody do their part."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="three-hospitals-"))
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder)
    # Whoever coordinates: one plan, made from the public rows only. South trains boosted trees, west a linear model.
    fedkt(
        folder,
        "plan new --public public.csv --label diagnosis --classes malignant,benign --party north --party south "
        "--party west --model forest --party-model south=hist-boosting --party-model west=logistic --force",
    )
    # Each hospital, on its own machine, with its own rows.
    for name in HOSPITALS:
        fedkt(folder, f"party plan.toml --name {name} --data {name}.csv --public public.csv -o inbox")
    # The server: three files in, one model out.
    fedkt(folder, "server plan.toml --public public.csv --bundles inbox --test test.csv -o result")
    # Anybody with the final model.
    fedkt(folder, "predict result/final.onnx test.csv -o predictions.csv")
    print(f"Everything is in {folder}")


def write_files(folder: Path) -> None:
    """One file per hospital, unlabelled public rows, and labelled test rows."""
    data = load_breast_cancer()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data.target))
    public, test, rest = order[:150], order[150:300], order[300:]
    names = [name.replace(" ", "_") for name in data.feature_names]
    labels = np.array(["malignant", "benign"])[data.target]
    write_csv(folder / "public.csv", names, data.data[public])
    write_csv(folder / "test.csv", names, data.data[test], labels[test])
    for hospital, share in HOSPITALS.items():
        malignant = [row for row in rest if labels[row] == "malignant"][: round(ROWS * share)]
        benign = [row for row in rest if labels[row] == "benign"][: ROWS - len(malignant)]
        own = np.array([*malignant, *benign])
        write_csv(folder / f"{hospital}.csv", names, data.data[own], labels[own])
        # A patient goes to one hospital only.
        rest = np.setdiff1d(rest, own)


def write_csv(path: Path, names: list[str], rows: np.ndarray, labels: np.ndarray | None = None) -> None:
    """Rows under their column names, the diagnosis last."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names if labels is None else [*names, "diagnosis"])
        writer.writerows(
            rows.tolist() if labels is None else [[*r, label] for r, label in zip(rows, labels, strict=True)]
        )


def fedkt(folder: Path, command: str) -> None:
    """Run one command as its user would, in the folder."""
    print(f"\n$ fedkt {command}", flush=True)
    code = "import sys; from fedkt.cli import main; sys.argv[0] = 'fedkt'; main()"
    subprocess.run([sys.executable, "-c", code, *shlex.split(command)], cwd=folder, check=True)


if __name__ == "__main__":
    main()
