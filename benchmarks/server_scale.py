"""What a server of 1,000 parties takes: CPU seconds, peak memory and disk.

    python benchmarks/server_scale.py [--rival FOLDER] [--parties 1000] [--json FILE]
    python benchmarks/server_scale.py --large [--parties 1000] [--rows 1000000] [--json FILE]

Without `--large`, 1,000 bundles of received students, single trees and small forests, label Adult's public rows by
consistent and by expert voting, and a tree learns the labels. The rival is another version of fedkt, the `src` of a
checkout; both run in turn, each in a process of its own, and must give the same labels.

With `--large` no student is run: what 1,000 students say of a million rows of 10 classes is made up block by block and
kept as the server keeps it, and the votings label the rows from there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

CLASSES, DISTINCT = 10, 10
FAMILIES = {"tree": {"max_depth": 6}, "forest": {"n_estimators": 10, "max_depth": 6}}
VOTINGS = ("consistent", "expert")


def vote_on_adult(family: str, voting: str, n_parties: int, data_dir: Path | None) -> dict[str, Any]:
    """CPU seconds and memory of one vote of so many parties, whose students are ten that take turns."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    from fedkt.algorithms import FedKT
    from fedkt.bundle import Bundle
    from fedkt.data import load
    from fedkt.federation import Server
    from fedkt.models.base import fit_model
    from fedkt.models.exchange import to_onnx, to_soft_onnx

    data = load("adult", seed=0, data_dir=data_dir)
    public = np.ascontiguousarray(data.X_public, dtype=np.float32)
    kind = DecisionTreeClassifier if family == "tree" else RandomForestClassifier
    convert = to_soft_onnx if voting == "expert" else to_onnx
    shuffled = np.random.default_rng(0).permutation(len(data.y))
    students, counts = [], []
    for place, rows in enumerate(np.array_split(shuffled, 4 * DISTINCT)[: 2 * DISTINCT]):
        model = fit_model(kind(random_state=place, **FAMILIES[family]), data.X[rows], data.y[rows], rng=rng_of(place))
        students.append(convert(model, n_features=public.shape[1], n_classes=2, check_rows=public[:200]))
        counts.append(tuple(int(each) for each in np.bincount(data.y[rows], minlength=2)))
    fedkt = FedKT("tree", voting=voting)
    bundles = []
    for place in range(n_parties):
        which = [(2 * place + each) % len(students) for each in range(fedkt.partitions)]
        bundle = Bundle(f"party {place}", ("0", "1"), tuple(students[each] for each in which))
        if voting == "expert":
            bundle = Bundle(bundle.sender, bundle.classes, bundle.models, counts=counts[which[0]], soft=True)
        bundles.append(bundle)
    server = Server(public, ("0", "1"), 0)
    started = os.times()
    answers = fedkt.student_answers(server, bundles)
    asked = os.times()
    final = fedkt.train_final(server, answers).models[0]
    labels = server.diary.vote.labels[0][1]
    return {
        "asking_cpu_seconds": spent(started, asked),
        "labelling_cpu_seconds": spent(asked, os.times()),
        "voters": len(answers.bundles),
        "peak_mb": peak_mb(),
        "rows": len(public),
        "labels": digest(labels),
        "final": digest(final.predict(public)),
    }


def rng_of(*path: int) -> np.random.Generator:
    """A generator of its own for each piece of what is made up."""
    return np.random.default_rng(path)


def spent(before: os.times_result, after: os.times_result) -> float:
    """CPU seconds of this process and of the children it has waited for."""
    return round(sum(after[:4]) - sum(before[:4]), 2)


def peak_mb() -> dict[str, int]:
    """The largest memory that this process, and the largest of its children, have had."""
    who = {"server": resource.RUSAGE_SELF, "largest child": resource.RUSAGE_CHILDREN}
    return {name: resource.getrusage(each).ru_maxrss // 1024 for name, each in who.items()}


def digest(labels: np.ndarray) -> str:
    """Tells labels from others."""
    return hashlib.sha256(np.ascontiguousarray(labels, dtype="<i8").tobytes()).hexdigest()[:16]


def in_a_process(source: Path | None, *options: str) -> dict[str, Any]:
    """What this file prints with these options, run with fedkt from `source`."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    said = subprocess.run(
        [sys.executable, __file__, *options], stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    return dict(json.loads(said.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=1_000)
    parser.add_argument("--family")
    parser.add_argument("--voting")
    parser.add_argument("--data-dir", type=Path, default=None)
    o = parser.parse_args()
    print(json.dumps(vote_on_adult(o.family, o.voting, o.parties, o.data_dir)))


if __name__ == "__main__":
    main()
