"""Four real hospitals, each in a process of its own, with three kinds of models and nothing but files in between.

UCI heart disease: Cleveland, Budapest, Zurich/Basel and Long Beach. Of each hospital's patients half stay with it, a
quarter (unlabelled) are public, a quarter are the test.
"""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest

from fedkt.data.dataset import split_rows_within
from fedkt.models.base import fit_model
from fedkt.models.catalogue import as_estimator
from fedkt.plan import read_plan
from real_data import DATA_DIR

HEART = DATA_DIR / "heart_disease_4sites.csv.gz"
BOOSTING = "boosting" if find_spec("xgboost") else "hist-boosting"
FAMILIES = {"cleveland": "forest", "hungarian": BOOSTING, "switzerland": "logistic", "va_long_beach": "forest"}
CATEGORIES = ("cp", "restecg", "slope", "thal")

pytestmark = pytest.mark.skipif(
    not HEART.is_file(), reason=f"{HEART.name} is not here; name its folder with FEDKT_DATA"
)


def start(folder, *arguments):
    """A fedkt command in a process of its own."""
    code = "import sys; from fedkt.cli import main; sys.argv[0] = 'fedkt'; main()"
    words = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    """What the command printed, once it has ended well."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def write_hospitals(folder, *, seed):
    """One CSV per hospital, the public rows without labels, and the test rows of all four."""
    with gzip.open(HEART, "rt", encoding="utf-8") as stream:
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


def write(path, names, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def write_plan(folder, *more, families=FAMILIES, model="forest"):
    words = ["--public", "public.csv", "--label", "diagnosis", "--classes", "healthy,disease", "--model", model]
    for name, family in families.items():
        words += ["--party", name, "--party-model", f"{name}={family}"]
    for name in CATEGORIES:
        words += ["--categorical", name]
    finish(start(folder, "plan", "new", *words, "--force", *more))


def party(folder, name, *more):
    files = ("--data", f"{name}.csv", "--public", "public.csv")
    return start(folder, "party", "plan.toml", "--name", name, *files, "-o", "inbox", "--json", *more)


def federation(folder):
    """The server's report, after every hospital has run; two at a time."""
    names = list(FAMILIES)
    for pair in (names[:2], names[2:]):
        for running in [party(folder, name) for name in pair]:
            finish(running)
    files = ("--public", "public.csv", "--bundles", "inbox", "--test", "test.csv")
    return json.loads(finish(start(folder, "server", "plan.toml", *files, "--json")))


def alone(folder, name, seed):
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


def test_the_final_model_beats_the_mean_of_the_hospitals_alone(tmp_path, record_property):
    write_hospitals(tmp_path, seed=0)
    write_plan(tmp_path)
    report = federation(tmp_path)
    solo = {name: alone(tmp_path, name, seed=0) for name in FAMILIES}
    mean = float(np.mean(list(solo.values())))
    record_property("final accuracy", report["accuracy"])
    record_property("mean of the hospitals alone", mean)
    print(f"final {report['accuracy']:.4f}, alone {mean:.4f} on average: {solo}")
    assert report["parties"] == 4
    assert set(report["party_accuracy"]) == set(FAMILIES)
    assert report["accuracy"] > mean
    said = finish(start(tmp_path, "predict", "result/final.onnx", "test.csv", "--json"))
    assert json.loads(said)["accuracy"] == pytest.approx(report["accuracy"])


def test_a_hospital_killed_after_its_first_student_resumes_and_sends_the_same_bytes(tmp_path):
    write_hospitals(tmp_path, seed=0)
    write_plan(tmp_path, "--partitions", "4")
    whole = json.loads(finish(party(tmp_path, "cleveland")))
    bundle = tmp_path / "inbox" / "cleveland.fedkt"
    expected = bundle.read_bytes()
    bundle.unlink()
    running = party(tmp_path, "cleveland")
    while not list((tmp_path / ".fedkt-work").glob("*/student-0.student")):
        assert running.poll() is None, running.communicate()
        time.sleep(0.002)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    assert not bundle.exists()
    resumed = json.loads(finish(party(tmp_path, "cleveland")))
    assert whole["resumed"] == 0
    assert 1 <= resumed["resumed"] < 4
    assert bundle.read_bytes() == expected
    assert not (tmp_path / ".fedkt-work").exists()
