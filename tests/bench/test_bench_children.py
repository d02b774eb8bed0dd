"""Measuring: each way in a process of its own, in turn, and what is made of the figures."""

from __future__ import annotations

import json

import pytest

from command_line import fedkt
from fedkt.bench import measure
from fedkt.bench.cases import CASES, cases_of
from fedkt.bench.measure import in_a_child, summary
from fedkt.bench.rows import made_up
from fedkt.bench.tables import range_in_words
from fedkt.bench.work import save_work
from fedkt.errors import ConfigurationError


def run(cpu, **stages):
    return {
        "cpu_seconds": cpu,
        "wall_seconds": cpu,
        "process_cpu_seconds": cpu + 1,
        "start_seconds": 1.0,
        "peak_megabytes": 100.0,
        "accuracy": 0.9,
        "stages": {name: {"cpu": seconds, "wall": seconds} for name, seconds in stages.items()},
    }


def test_ratios_are_of_the_same_turn_with_the_least_and_the_largest():
    runs = {"fedkt": [run(2.0), run(9.0), run(4.0)], "plain": [run(1.0), run(3.0), run(4.0)]}
    found = summary(runs)
    assert found["ratios"]["plain"]["cpu_seconds"] == [2.0, 1.0, 3.0]
    assert found["medians"]["fedkt"]["cpu_seconds"] == 4.0
    assert range_in_words([2.0, 1.0, 3.0]) == "2.00 (1.00 … 3.00)"


def test_a_stage_that_a_run_does_not_have_counts_as_nothing():
    runs = {"fedkt": [run(2.0, votes=0.5), run(2.0), run(2.0, votes=0.7)]}
    assert summary(runs)["medians"]["fedkt"]["stages"] == {"votes": 0.5}


def test_the_name_of_a_dataset_stands_for_its_cases_each_once():
    assert [case.name for case in cases_of(["digits-expert", "digits"])] == [
        "digits-expert",
        "digits-consistent",
        "digits-expert-no-counts",
    ]


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(ConfigurationError, match=r"There is no benchmark 'adlut'.*adult-expert.*growth"):
        cases_of(["digits", "adlut"])
    left = fedkt("bench", "adlut", "--json")
    assert left.returncode == 1
    assert json.loads(left.stdout)["kind"] == "ConfigurationError"


def test_options_that_would_do_nothing_are_refused():
    assert "Leave it out" in fedkt("bench", "growth", "--parties", "3").stderr
    assert "Leave it out" in fedkt("bench", "digits", "--model", "forest").stderr


def test_the_command_prints_one_object_and_writes_the_same_to_a_file(monkeypatch, tmp_path):
    played = []

    def answered(place, way, *options):
        played.append(way)
        if way == "prepare":
            sizes = {"parties": 5, "private_rows": 10, "public_rows": 5, "partitions": 2, "subsets": 5, "seed": 0}
            return {"setting": {**sizes, "voting": "consistent", "model": "forest"}}
        return {"versions": {"numpy": "2"}} if way == "versions" else run(1.0, teachers=0.5)

    monkeypatch.setattr(measure, "in_a_child", answered)
    words = ("bench", "digits-consistent", "--repeats", "2", "--results", str(tmp_path / "kept.json"))
    left = fedkt(*words, "--json")
    assert played == ["versions", "prepare", "fedkt", "plain", "fedkt", "plain"]
    found = json.loads(left.stdout)
    assert [case["name"] for case in found["benchmarks"]] == ["digits-consistent"]
    assert json.loads((tmp_path / "kept.json").read_text()) == found
    shown = fedkt(*words)
    assert "1.00" in shown.stdout
    assert "5 parties, 10 private and 5 public rows" in shown.stdout


def test_what_was_measured_is_kept_when_a_later_case_fails(monkeypatch, tmp_path):
    def answered(place, way, *options):
        if "digits-expert" in options:
            raise ConfigurationError("no such luck")
        return {"setting": {}, "versions": {}} if way in ("prepare", "versions") else run(1.0)

    monkeypatch.setattr(measure, "in_a_child", answered)
    kept = tmp_path / "kept.json"
    left = fedkt("bench", "digits-consistent", "digits-expert", "--results", str(kept))
    assert (left.returncode, "no such luck" in left.stderr) == (1, True)
    assert [case["name"] for case in json.loads(kept.read_text())["benchmarks"]] == ["digits-consistent"]


def test_a_process_of_its_own_says_what_it_took(tmp_path):
    save_work(made_up(parties=2, private_rows=30, public_rows=30), tmp_path)
    found = in_a_child(str(tmp_path), "plain")
    assert {"teachers", "votes", "students", "asking", "vote", "final model", "test"} <= set(found["stages"])
    assert 0 <= found["accuracy"] <= 1
    assert sum(each["cpu"] for each in found["stages"].values()) == pytest.approx(found["cpu_seconds"], rel=0.1)
    assert found["cpu_seconds"] < found["process_cpu_seconds"]
    assert found["peak_megabytes"] > 1


def test_a_refusal_in_a_process_is_one_here(tmp_path):
    save_work(made_up(model="no-such-model", parties=1, private_rows=10, public_rows=10), tmp_path)
    with pytest.raises(ConfigurationError, match="There is no model 'no-such-model'"):
        in_a_child(str(tmp_path), "fedkt")


def test_a_case_with_pictures_has_no_bagging():
    assert CASES["digits-expert"].ways == ("fedkt", "plain")
    assert CASES["adult-moments"].ways == ("fedkt", "plain", "bagging")
