"""What a server of 1,000 parties takes: CPU seconds, peak memory and disk.

    python benchmarks/server_scale.py [--rival FOLDER] [--parties 1000] [--only WORD] [--json FILE]
    python benchmarks/server_scale.py --large [--parties 1000] [--rows 1000000] [--only WORD] [--json FILE]

Without `--large`, 1,000 bundles of received students label Adult's public rows, two trees each by consistent voting and
small forests by expert voting, and a tree learns the labels. The rival is another version of fedkt, the `src` of a
checkout; both run in turn, each in a process of its own, and must give the same labels.

With `--large` no student is run: what 1,000 students say of a million rows of 10 classes is made up block by block and
kept as the server keeps it, and the votings label the rows from there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

CLASSES, DISTINCT = 10, 10
FAMILIES = {"tree": {"max_depth": 6}, "forest": {"n_estimators": 10, "max_depth": 6}}
VOTINGS = ("consistent", "expert")
CASES = ("tree consistent", "forest expert")


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


def large_vote(voting: str, n_parties: int, n_rows: int, folder: Path | None) -> dict[str, Any]:
    """CPU seconds and memory of labelling rows by what students are made up to say, kept as a server keeps it."""
    from fedkt.algorithms import FedKT
    from fedkt.algorithms.voting.answers import StudentAnswers, compact
    from fedkt.bundle import Bundle
    from fedkt.federation import Server
    from fedkt.models.exchange import OnnxModel
    from fedkt.system.scratch import OnDisk, Scratch

    fedkt = FedKT("tree", voting=voting)
    names = tuple(map(str, range(CLASSES)))
    # The rows themselves are not asked about here; only their number counts.
    server = Server(np.zeros((n_rows, 1), np.float32), names, 0, scratch=folder)
    scratch, answers = Scratch(folder), StudentAnswers()
    rng = rng_of(1)
    truth = rng.integers(0, CLASSES, n_rows)
    densities = rng.gamma(0.3, 1.0, (n_rows, CLASSES)).astype(np.float32) + np.float32(1e-3)
    started = os.times()
    for place in range(n_parties):
        counts = rng_of(2, place).integers(1, 100, CLASSES)
        model = OnnxModel(b"", 1, CLASSES, soft=voting == "expert")
        bundle = Bundle(f"party {place}", names, (model,) * fedkt.partitions)
        if voting == "expert":
            # What a perfect student of a party with these counts says, where parties differ in nothing else.
            said = densities * counts.astype(np.float32)
            said /= said.sum(axis=1, keepdims=True)
            bundle = Bundle(bundle.sender, names, bundle.models, counts=tuple(map(int, counts)), soft=True)
            kept = scratch.keep(compact(said[None], CLASSES))
        else:
            # Each student is wrong on a tenth of the rows, of which each party has others.
            labels = [np.roll(truth, 0), truth.copy()]
            for number, each in enumerate(labels):
                first = (place * 2 + number) * 7_919 % n_rows
                each[first : first + n_rows // 10] += 1
                each %= CLASSES
            kept = scratch.keep(compact(np.stack(labels), CLASSES))
        answers.voters.append((bundle, kept))
    made = os.times()
    with_labels = fedkt.voting.label(fedkt, server, answers)
    on_disk = sum(int(np.prod(each.shape)) * each.dtype.itemsize for _, each in answers.voters if type(each) is OnDisk)
    return {
        "making_cpu_seconds": spent(started, made),
        "labelling_cpu_seconds": spent(made, os.times()),
        "peak_mb": peak_mb(),
        "disk_gb": round(on_disk / 1e9, 2),
        "labels": digest(with_labels.labels),
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
    """Runs every case in a process of its own, and prints and keeps what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=1_000_000, help="with --large")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--only", default="", metavar="WORD", help="leave out cases without it in their name")
    parser.add_argument("--rival", type=Path, help="the src folder of another version")
    parser.add_argument("--folder", type=Path, help="where answers lie that are too many for memory (--large)")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--json", type=Path, help="a file to keep the result in, beside what others it holds")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        family, _, voting = options.case.partition(" ")
        if options.large:
            print(json.dumps(large_vote(voting, options.parties, options.rows, options.folder)))
        else:
            print(json.dumps(vote_on_adult(family, voting, options.parties, options.data_dir)))
        return
    again = [each for each in sys.argv[1:] if each != "--json" and each != str(options.json)]
    result: dict[str, Any] = {}
    if options.large:
        for voting in (each for each in VOTINGS if options.only in each):
            result[voting] = in_a_process(None, "--case", f"any {voting}", *again)
            print(voting, json.dumps(result[voting]), flush=True)
    else:
        for case in (each for each in CASES if options.only in each):
            result[case] = {"now": in_a_process(None, "--case", case, *again)}
            if options.rival is not None:
                result[case]["rival"] = in_a_process(options.rival, "--case", case, *again)
                same = {each: result[case]["now"][each] == result[case]["rival"][each] for each in ("labels", "final")}
                result[case] |= {"ratio": ratio(result[case]), "same": same}
            print(case, json.dumps(result[case]), flush=True)
    if options.json is not None:
        size = f"{options.parties} parties"
        keep(
            options.json,
            f"{size}, {options.rows} rows, {CLASSES} classes" if options.large else f"{size}, adult",
            result,
        )


def ratio(case: dict[str, dict[str, Any]]) -> float:
    """How many times the CPU seconds the rival takes, from the first question to the final model."""
    both = [case[who]["asking_cpu_seconds"] + case[who]["labelling_cpu_seconds"] for who in ("rival", "now")]
    return round(both[0] / both[1], 2)


def keep(path: Path, name: str, result: dict[str, Any]) -> None:
    """Write a result beside those that a file holds."""
    from fedkt.system.versions import versions

    whole = json.loads(path.read_text()) if path.exists() else {"benchmark": "server_scale"}
    whole |= {"machine": platform.processor() or platform.machine(), "versions": versions()}
    whole[name] = whole.get(name, {}) | result
    path.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
