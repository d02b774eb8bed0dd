"""Four real hospitals, with three kinds of models and nothing but files in between.

The one that is killed is a process of its own; what the others do is done in this one, which has the libraries loaded.
"""

import json
import signal
import time
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest

from command_line import fedkt
from paper import four_hospitals
from paper.four_hospitals import FAMILIES, alone, federation, party, write_hospitals, write_plan
from real_data import DATA_DIR

HEART = DATA_DIR / "heart_disease_4sites.csv.gz"

pytestmark = pytest.mark.skipif(
    not HEART.is_file(), reason=f"{HEART.name} is not here; name its folder with FEDKT_DATA"
)


def printed(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def in_this_process():
    """A block in which the study's commands are no processes."""
    here = {"start": lambda folder, *words: fedkt(*map(str, words), cwd=folder), "finish": printed}
    with mock.patch.multiple(four_hospitals, **here):
        yield


def test_the_final_model_beats_the_mean_of_the_hospitals_alone(tmp_path, record_property):
    write_hospitals(tmp_path, seed=0, source=HEART)
    with in_this_process():
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
    said = fedkt("predict", "result/final.onnx", "test.csv", "--json", cwd=tmp_path)
    assert json.loads(printed(said))["accuracy"] == pytest.approx(report["accuracy"])


def test_a_hospital_killed_after_its_first_student_resumes_and_sends_the_same_bytes(tmp_path):
    write_hospitals(tmp_path, seed=0, source=HEART)
    with in_this_process():
        write_plan(tmp_path, "--partitions", "4")
        whole = json.loads(printed(party(tmp_path, "cleveland")))
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
    with in_this_process():
        resumed = json.loads(printed(party(tmp_path, "cleveland")))
    assert whole["resumed"] == 0
    assert 1 <= resumed["resumed"] < 4
    assert bundle.read_bytes() == expected
    assert not (tmp_path / ".fedkt-work").exists()
