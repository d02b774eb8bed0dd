"""Accuracy against ε: what is chosen in development, and where the curve reaches the paper."""

from __future__ import annotations

import json
from pathlib import Path

from fedkt.algorithms import FedKT
from paper import private_curve
from paper.private_curve import CURVE, Choice, Point, best_choices, curve_of
from paper.private_federations import DELTA, PARTIES
from paper.private_study import GroupRun, finished_groups, group_runs, make_missing_groups
from paper.private_tables import PaperBest, epsilon_table, paper_bests
from paper.workplace import Workplace
from real_data import needs_real_data, real_data_dir

FOLDER = Path(__file__).parents[2] / "paper"


def entry(group: str, seed: int, *, developing: bool, **accuracy: float) -> dict[str, object]:
    rows = [
        {"epsilon": 1.0, "queries": int(name[1:]), "model": None, "accuracy": [value], "balanced_accuracy": [0.5]}
        for name, value in accuracy.items()
    ]
    return {"developing": developing, "group": group, "seed": seed, "rows": rows, "cpu_seconds": 1.0}


def test_the_choice_is_made_by_development_alone_over_partitions_and_seeds():
    entries = [
        entry("adult-L1-het", 100, developing=True, k40=0.7, k80=0.8),
        entry("adult-L1-hom", 100, developing=True, k40=0.9, k80=0.7),
        entry("adult-L2-hom", 100, developing=True, k40=0.1, k80=0.2),
        entry("adult-L1-het", 0, developing=False, k80=1.0),
    ]
    assert best_choices(entries) == {("adult", "L1", 1.0): Choice(40, None), ("adult", "L2", 1.0): Choice(80, None)}


def test_only_the_seeds_of_the_tables_are_on_the_curve(tmp_path):
    lines = [
        entry("adult-L1-het", 100, developing=True, k40=0.1),
        entry("adult-L1-het", 0, developing=False, k40=0.8),
        entry("adult-L1-het", 1, developing=False, k40=0.9),
    ]
    (tmp_path / CURVE.file).write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert curve_of(tmp_path) == {"adult-L1-het": [Point(1.0, Choice(40, None), [0.8, 0.9], [0.5, 0.5])]}


def test_the_smallest_epsilon_that_reaches_the_paper_is_named_and_a_miss_is_said():
    points = [
        Point(epsilon, Choice(40, None), [value], [0.5]) for epsilon, value in ((0.5, 0.7), (1.0, 0.81), (2.0, 0.8))
    ]
    wanted = [PaperBest("appendix", 80.0, 4.7, misprint=True), PaperBest("appendix", 85.0, 9.0, misprint=False)]
    lines = epsilon_table({"cod-rna-L2-hom": points}, {"cod-rna-L2-hom": wanted}).lines
    assert [line[:3] for line in lines] == [["cod-rna", "L2", "hom"]] * 2
    assert lines[0][4:7] == ["80.0", "4.7 (misprint)", "1"]
    assert lines[1][6] == "not reached"
    assert lines[1][7].endswith("at 1")


def test_the_papers_best_rows_are_found_in_its_file():
    found = paper_bests(FOLDER)
    assert len(found) == 8
    assert [(each.accuracy, each.epsilon) for each in found["cod-rna-L2-hom"]] == [(84.7, 9.78), (84.7, 8.3)]
    assert found["adult-L1-het"][0].misprint


def test_every_group_is_developed_before_it_is_measured():
    runs = group_runs(CURVE, Workplace(FOLDER))
    assert [each.developing for each in runs] == [True] * 16 + [False] * 24
    assert not {each.seed for each in runs if each.developing} & {each.seed for each in runs if not each.developing}


@needs_real_data
def test_a_rehearsal_develops_then_measures_and_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setattr("paper.private_study.QUICK", ("cod-rna-L1-hom",))
    monkeypatch.setitem(PARTIES, "L1", 4)
    (tmp_path / "epsilon_rows.csv").write_text((FOLDER / "epsilon_rows.csv").read_text())
    place = Workplace(tmp_path, quick=True, data_dir=real_data_dir())
    said: list[str] = []
    assert make_missing_groups(CURVE, place, on_start=said.append) == {}
    assert list(finished_groups(CURVE, place.results)) == [
        GroupRun("cod-rna-L1-hom", 100, developing=True),
        GroupRun("cod-rna-L1-hom", 0),
    ]
    (point,) = curve_of(place.results)["cod-rna-L1-hom"]
    assert point.choice in private_curve.QUICK_CHOICES
    assert len(point.accuracy) == private_curve.DRAWS
    make_missing_groups(CURVE, place, on_start=said.append)
    assert len(said) == 2


def test_a_point_of_the_curve_costs_no_more_than_it_says():
    noise = private_curve.noise_for("L1", 1.0, 10, 50)
    algorithm = FedKT("tree", level="L1", noise=noise, queries=10, subsets=5)
    price = algorithm.price(public_rows=100, classes=2, parties=50, delta=DELTA)
    assert 0.99 < price.epsilon <= 1.0
