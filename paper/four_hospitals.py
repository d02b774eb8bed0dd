"""Four real hospitals, each in a process of its own, with three kinds of models and nothing but files in between.

    python paper/four_hospitals.py [--seeds 10] [--data-dir DIR] [--results paper/results/heart-hospitals.jsonl]

UCI heart disease: Cleveland, Budapest, Zurich/Basel and Long Beach. Of each hospital's patients half stay with it, a
quarter (unlabelled) are public, a quarter are the test. Prints the final model's accuracy beside each hospital's alone;
every finished seed is kept in the results file and not run again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.data import find_file
from fedkt.data.dataset import split_rows_within
from fedkt.lab.results import append_line
from fedkt.models.base import fit_model
from fedkt.models.catalogue import as_estimator
from fedkt.plan import read_plan

BOOSTING = "boosting" if find_spec("xgboost") else "hist-boosting"
FAMILIES = {"cleveland": "forest", "hungarian": BOOSTING, "switzerland": "logistic", "va_long_beach": "forest"}
CATEGORIES = ("cp", "restecg", "slope", "thal")
RESULTS = Path(__file__).parent / "results" / "heart-hospitals.jsonl"


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """A fedkt command in a process of its own."""
    code = "import sys; from fedkt.cli import main; sys.argv[0] = 'fedkt'; main()"
    words = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What the command printed, once it has ended well."""
    out, err = process.communicate(timeout=300)
    if process.returncode:
        raise SystemExit(err)
    return out


def write_hospitals(folder: Path, *, seed: int, source: Path) -> None:
    """One CSV per hospital, the public rows without labels, and the test rows of all four."""
    with gzip.open(source, "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(io.StringIO(stream.read())))
    for row in rows:
        row["diagnosis"] = "healthy" if row.pop("num") == "0" else "disease"
        for never_zero in ("chol", "trestbps"):
            row[never_zero] = "" if row[never_zero] == "0" else row[never_zero]
    names = [name for name in rows[0] if name not in ("site", "diagnosis")]
    sites = np.array([row["site"] for row in rows])
    split = split_rows_within(sites, seed=seed, held_out=0.5)
    write(folder / "public.csv", names, [rows[row] for row in split.public])
    write(folder / "test.csv", [*names, "diagnosis"], [rows[row] for row in split.test])
    for site in FAMILIES:
        own = [rows[row] for row in split.train if sites[row] == site]
        write(folder / f"{site}.csv", [*names, "diagnosis"], own)


def write(path: Path, names: list[str], rows: list[dict[str, str]]) -> None:
    """A CSV file with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def write_plan(folder: Path, *more: str) -> None:
    """The plan everybody agrees on, made from the public rows."""
    words = ["--public", "public.csv", "--label", "diagnosis", "--classes", "healthy,disease", "--model", "forest"]
    for name, family in FAMILIES.items():
        words += ["--party", name, "--party-model", f"{name}={family}"]
    for name in CATEGORIES:
        words += ["--categorical", name]
    finish(start(folder, "plan", "new", *words, "--force", *more))


def party(folder: Path, name: str, *more: str) -> subprocess.Popen[str]:
    """One hospital's command."""
    files = ("--data", f"{name}.csv", "--public", "public.csv")
    return start(folder, "party", "plan.toml", "--name", name, *files, "-o", "inbox", "--json", *more)


def federation(folder: Path) -> dict[str, Any]:
    """The server's report, after every hospital has run; two at a time."""
    names = list(FAMILIES)
    for pair in (names[:2], names[2:]):
        for running in [party(folder, name) for name in pair]:
            finish(running)
    files = ("--public", "public.csv", "--bundles", "inbox", "--test", "test.csv")
    report: dict[str, Any] = json.loads(finish(start(folder, "server", "plan.toml", *files, "--json")))
    return report


def alone(folder: Path, name: str, seed: int) -> float:
    """Test accuracy of a hospital's own family, trained on all rows it has."""
    plan = read_plan(folder / "plan.toml")
    own, test = (plan.columns.read(folder / f"{which}.csv") for which in (name, "test"))
    model = fit_model(
        as_estimator(FAMILIES[name]),
        plan.columns.encode(own),
        plan.columns.labels(own, plan.classes),
        rng=np.random.default_rng(seed),
    )
    return float(np.mean(model.predict(plan.columns.encode(test)) == plan.columns.labels(test, plan.classes)))


def run_seed(seed: int, source: Path) -> dict[str, Any]:
    """One hold-out: the federation and every hospital alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_hospitals(folder, seed=seed, source=source)
        write_plan(folder, "--seed", str(seed))
        report = federation(folder)
        solo = {hospital: alone(folder, hospital, seed) for hospital in FAMILIES}
    fields = ("accuracy", "balanced_accuracy", "bytes_sent", "votes", "rows", "party_accuracy", "versions", "seconds")
    return {"seed": seed, **{key: report[key] for key in fields}, "alone": solo, "families": FAMILIES}


def main() -> None:
    """Run the seeds that are not in the results file yet, and print them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    source = find_file("heart_disease_4sites.csv", data_dir=options.data_dir)
    lines = options.results.read_text(encoding="utf-8").splitlines() if options.results.exists() else []
    entries = {entry["seed"]: entry for entry in map(json.loads, lines)}
    for seed in range(options.seeds):
        if seed not in entries:
            entries[seed] = run_seed(seed, source)
            append_line(options.results, entries[seed])
        entry = entries[seed]
        solo = float(np.mean(list(entry["alone"].values())))
        print(f"seed {seed}: final {entry['accuracy']:.4f}, hospitals alone {solo:.4f} on average, {entry['alone']}")


if __name__ == "__main__":
    main()
