"""What forests grown on bins cost beside scikit-learn's, and how alike the two are.

    python benchmarks/forests.py [--json benchmarks/results/forests.json] [--rounds 3] [--data-dir DIR]

First one student after the other: the same public rows and the same labels, or distributions, for both, in turn. Then
whole federations on Adult, with and without the extra `fast`, each in a process of its own. CPU seconds; seconds of
importing and of compiling are in the second table and not in the first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from fedkt.data import load
from fedkt.models.forests.training import bins_of, fit_forest
from fedkt.system.versions import versions

ALGORITHMS = ("fedkt-expert", "fedkt-expert-no-counts", "fedkt")
SEEDS = (210, 211, 212, 213, 214)


def tables(data_dir: Path | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Public rows by their names, and how probable a forest of other rows finds the second class."""
    found = {}
    for name in ("adult", "cod-rna"):
        data = load(name, seed=0, data_dir=data_dir)
        teacher = RandomForestClassifier(50, max_depth=8, random_state=0).fit(data.X[:5_000], data.y[:5_000])
        found[name] = data.X_public, teacher.predict_proba(data.X_public)
        if name == "adult":
            many = np.resize(np.arange(len(data.X)), 100_000)
            found["adult, 100,000 rows"] = data.X[many], teacher.predict_proba(data.X[many])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 8)).astype(np.float32)
    chance = 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1] * X[:, 2]))
    found["normal numbers, 100,000 × 8"] = X, np.column_stack([1 - chance, chance])
    return found


def clocked(work):
    """What `work` gives, and its CPU seconds."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def student(X, shares, kind: str, rounds: int) -> dict[str, object]:
    """One student of both, in turn."""
    rows, labels, params = np.arange(len(X)), shares.argmax(axis=1), {}
    if kind == "distributions":
        rows, labels = np.nonzero(shares > 1e-6)
        params = {"sample_weight": shares[rows, labels]}
    bins, binning = clocked(lambda: bins_of(X))
    seconds: dict[str, list[float]] = {"scikit-learn": [], "fedkt": []}
    answers: dict[str, list[np.ndarray]] = {"scikit-learn": [], "fedkt": []}
    for seed in range(rounds):
        forest = RandomForestClassifier(100, max_depth=6, random_state=seed)
        copies = X[rows] if params else X
        ours, spent = clocked(lambda f=forest: fit_forest(f, X, labels, rows=rows, params=params, bins=bins))
        seconds["fedkt"].append(spent)
        plain, spent = clocked(lambda f=forest, c=copies: f.fit(c, labels, **params))
        seconds["scikit-learn"].append(spent)
        answers["fedkt"].append(ours.predict(X[:5_000]))
        answers["scikit-learn"].append(plain.predict(X[:5_000]))
    same = [[float(np.mean(a == b)) for b in answers["scikit-learn"]] for a in answers["scikit-learn"]]
    across = [float(np.mean(a == b)) for a in answers["fedkt"] for b in answers["scikit-learn"]]
    return {
        "shape": list(X.shape),
        "learns": kind,
        "cpu_seconds": seconds,
        "binning": binning,
        "times": median(a / b for a, b in zip(seconds["scikit-learn"], seconds["fedkt"], strict=True)),
        "agreement": float(np.mean(across)),
        "agreement_of_scikit_learn": float(np.mean([same[a][b] for a in range(rounds) for b in range(a)]))
        if rounds > 1
        else None,
    }


def federation(algorithm: str, seed: int, fast: bool, data_dir: Path | None) -> dict[str, float]:
    """A whole simulation on Adult in a process of its own."""
    command = [sys.executable, "-m", "fedkt", "simulate", "adult", "--algorithm", algorithm, "--seed", str(seed)]
    where = [] if data_dir is None else ["--data-dir", str(data_dir)]
    environment = {**os.environ, "FEDKT_FAST": "1" if fast else "0"}
    before = os.times()
    shown = subprocess.run([*command, *where, "--json"], env=environment, capture_output=True, text=True, check=True)
    after = os.times()
    report = json.loads(shown.stdout)
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return {"process": spent, "cpu_seconds": report["cpu_seconds"], "accuracy": report["accuracy"]}


def main() -> None:
    """Print both tables, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--data-dir", type=Path, default=None)
    options = parser.parse_args()
    result = {"benchmark": "forests", "machine": platform.processor() or platform.machine(), "versions": versions()}
    students, federations = {}, {}
    with threadpool_limits(1):
        found = tables(options.data_dir)
        # Compiled, or read from the cache, before a clock runs.
        student(*(each[:200] for each in found["adult"]), "distributions", 2)
        for name, (X, shares) in found.items():
            for kind in ("labels", "distributions"):
                rounds = 1 if len(X) > 50_000 else options.rounds
                line = students[f"{name}, {kind}"] = student(X, shares, kind, rounds)
                plain, ours = (median(line["cpu_seconds"][each]) for each in ("scikit-learn", "fedkt"))
                times = f"{plain:7.3f} {ours:7.3f} s  {line['times']:5.1f} ×"
                alike = f"labels agree {line['agreement']:.4f} (its own: {line['agreement_of_scikit_learn']})"
                print(f"{name + ', ' + kind:45} {times}  {alike}", flush=True)
    for algorithm in ALGORITHMS:
        runs = [
            {name: federation(algorithm, seed, name == "fast", options.data_dir) for name in ("plain", "fast")}
            for seed in SEEDS[: options.seeds]
        ]
        federations[algorithm] = runs
        plain, ours = (median(each[name]["cpu_seconds"] for each in runs) for name in ("plain", "fast"))
        before, after = (np.mean([each[name]["accuracy"] for each in runs]) for name in ("plain", "fast"))
        times = f"{plain:7.2f} {ours:7.2f} s  {plain / ours:5.1f} ×"
        print(f"{algorithm:45} {times}  accuracy {before:.4f} {after:.4f}", flush=True)
    result |= {"students": students, "federations": federations}
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
