"""The tables about moments say what the results files say: pairs of seeds, places of runs, and what is missing."""

import json
from pathlib import Path

import pytest

from fedkt.lab.setting import Setting
from paper.moments_epsilon import epsilon_picture, epsilon_table
from paper.moments_page import moments_parts
from paper.moments_results import (
    Runs,
    dataset_table,
    gap,
    main_table,
    spread_table,
)
from paper.moments_rival_tables import attack_table, rivals_table
from paper.moments_study import DISTILLED, EXPERT, MOMENTS, changed_setting, setting_of

FOLDER = Path(__file__).parents[2] / "paper"


def line(setting, accuracy, *, bytes_sent=50_000, parties=50, balanced=0.5):
    full = setting.with_defaults()
    report = {
        **{"dataset": full.dataset, "algorithm": full.algorithm, "model": full.model, "parties": parties},
        **{"partitions": 1, "subsets": 1, "level": full.level, "seed": full.seed, "accuracy": accuracy},
        **{"balanced_accuracy": balanced, "label_accuracy": None, "epsilon": None, "privacy": ""},
        **{"bytes_sent": bytes_sent, "seconds": 9.0, "cpu_seconds": 2.0, "versions": {}},
        "quality": {"auc": {"value": 0.9}, "calibration_error": 0.05},
    }
    return {"setting": vars(full), "report": report}


def write(path, entries):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in entries))
    return path


def test_a_gap_is_of_the_seeds_that_both_have():
    # Differences 1, 2 and 3 points: mean 2, t(.975, 2) = 4.3027, reach 4.3027 · 1 / √3 = 2.48.
    ours, theirs = {1: 0.81, 2: 0.82, 3: 0.83, 4: 0.1}, {1: 0.80, 2: 0.80, 3: 0.80, 9: 0.9}
    assert gap(ours, theirs) == "+2.0 (-0.5 to +4.5)"
    assert gap({1: 0.8}, {1: 0.81, 2: 0.9}) == "-1.0", "one pair has no interval"
    assert gap({1: 0.8}, {2: 0.9}) == "–"


def test_a_dataset_s_table_has_each_method_once_and_its_gap_to_expert_voting(tmp_path):
    runs = [(EXPERT, 1, 0.80), (EXPERT, 2, 0.82), (MOMENTS, 1, 0.84), (MOMENTS, 2, 0.84), (DISTILLED, 1, 0.83)]
    path = write(tmp_path / "runs.jsonl", [line(setting_of("adult", name, seed), value) for name, seed, value in runs])
    lines = {each[0]: each[1:] for each in dataset_table(path, "adult").lines}
    assert list(lines) == ["moments", "moments, distilled", "expert voting"]
    # 4 and 2 points: mean 3, t(.975, 1) = 12.7062, reach 12.7062 · √2 / √2 = 12.7.
    assert lines["moments"][0] == "84.0 ± 0.0"
    assert lines["moments"][2:] == ["90.0 ± 0.0", "5.0 ± 0.0", "1.0", "2.0", "2", "+3.0 (-9.7 to +15.7)"]
    assert lines["moments, distilled"][-2:] == ["1", "+3.0"]
    assert lines["expert voting"][-1] == ""
    assert dataset_table(path, "heart") is None


def test_the_main_table_shows_datasets_and_methods_that_were_run(tmp_path):
    entries = [line(setting_of("adult", MOMENTS, 1), 0.84), line(setting_of("flights", EXPERT, 1), 0.7, parties=11)]
    table = main_table(write(tmp_path / "runs.jsonl", entries))
    assert sorted(table.head) == ["", "adult", "flights"]
    assert {line[0]: dict(zip(table.head[1:], line[1:], strict=True)) for line in table.lines} == {
        "moments": {"adult": "84.0", "flights": "–"},
        "expert voting": {"adult": "–", "flights": "70.0"},
    }


def test_a_run_at_another_setting_is_not_mistaken_for_one_of_the_table(tmp_path):
    other = Setting("adult", MOMENTS, partition="balanced", seed=1, soft_final=True, beta=0.1)
    runs = Runs(write(tmp_path / "runs.jsonl", [line(other, 0.5)]))
    assert runs.seeds == [1]
    assert runs.method("adult", MOMENTS) == {}


def test_accuracy_against_epsilon_puts_every_study_in_its_column(tmp_path):
    common = {"parties": 20, "partition": "even", "level": "L2", "epsilon": 1.0}
    write(tmp_path / "moments-epsilon.jsonl", [line(setting_of("adult", MOMENTS, 1, **common), 0.84, balanced=0.7)])
    rows = [{"epsilon": 1.0, "accuracy": [0.7, 0.8], "balanced_accuracy": [0.6, 0.6]}]
    write(tmp_path / "moments-votes.jsonl", [{"group": "adult-L2-het", "seed": 1, "rows": rows}])
    central = {"dataset": "adult", "inputs": "columns", "seed": 1, "accuracy": 0.845, "balanced_accuracy": 0.75}
    write(tmp_path / "moments-central.jsonl", [{**central, "epsilon": 2.0}])
    table = epsilon_table(tmp_path, "adult", "L2", FOLDER)
    assert table.head == ["ε", "moments, hom", "votes, het", "central DP-SGD, columns"]
    cells = {line[0]: line[1:] for line in table.lines}
    assert cells["1"] == ["84.0 / 70.0", "75.0 ± 7.1 / 60.0 ± 0.0", "–"]
    assert cells["2"] == ["–", "–", "84.5 / 75.0"]
    assert "82 at ε = 7.89 (appendix)" in table.caption
    assert epsilon_table(tmp_path, "mnist", "L2", FOLDER) is None
    assert epsilon_picture(tmp_path, FOLDER).words == "adult-L2-hom, ε 1: 84.0 %"


def test_one_thing_changed_stands_beside_the_main_table(tmp_path):
    write(tmp_path / "moments-main.jsonl", [line(setting_of("adult", MOMENTS, 1), 0.84)])
    pairs = [(MOMENTS, 0.8), (EXPERT, 0.7)]
    changed = [line(changed_setting("adult", name, 1, {"public_rows": 100}), value) for name, value in pairs]
    write(tmp_path / "moments-spread.jsonl", changed)
    assert spread_table(tmp_path, "adult").lines == [
        ["main table", "84.0 / 50.0", "–", "–"],
        ["100 public rows", "80.0 / 50.0", "70.0 / 50.0", "+10.0"],
    ]


def test_a_rival_is_compared_on_its_own_seeds_and_pays_for_both_ways(tmp_path):
    write(
        tmp_path / "moments-main.jsonl", [line(setting_of("adult", MOMENTS, seed), 0.8 + seed / 100) for seed in (1, 2)]
    )
    rival = {"rival": "bagging", "dataset": "adult", "seed": 2, "accuracy": 0.83, "parties": 50}
    entry = {**rival, "bytes_sent": 1_000_000, "bytes_received": 4_000_000, "after one round": {"accuracy": 0.76}}
    write(tmp_path / "moments-rivals.jsonl", [entry])
    (found,) = rivals_table(tmp_path).lines
    assert found[2:] == ["76.0", "83.0", "82.0", "-1.0", "100", "1.0", "1"]


def test_an_attack_s_figures_are_means_over_seeds_and_stand_beside_what_the_promise_allows(tmp_path):
    key = {"attack": "message", "algorithm": MOMENTS, "epsilon": 1.0, "rows": 100, "bound": 0.0272}
    entries = [{**key, "seed": 1, "auc": 0.5, "tpr": 0.01}, {**key, "seed": 2, "auc": 0.6, "tpr": 0.03}]
    write(tmp_path / "moments-attack.jsonl", entries)
    assert attack_table(tmp_path, "message").lines == [["moments", "1", "100", "0.550", "2.0", "2.7", "2"]]
    assert attack_table(tmp_path, "audit") is None


def test_what_nobody_has_run_is_said_and_no_cell_is_empty(tmp_path):
    for name in ("epsilon_rows.csv",):
        (tmp_path / name).write_text((FOLDER / name).read_text(encoding="utf-8"), encoding="utf-8")
    parts = moments_parts(tmp_path)
    assert parts.pop("moments curve") == "", "no picture either"
    for part in parts.values():
        assert part.startswith("Nobody has run `python paper/moments_")


@pytest.mark.parametrize("rows", [100, 1_000])
def test_a_number_of_public_rows_is_that_number_of_them(rows):
    # Adult has 4,070 public rows and cod-rna 7,442.
    for dataset, most in (("adult", 4_070), ("cod-rna", 7_442)):
        share = changed_setting(dataset, MOMENTS, 1, {"public_rows": rows}).public_share
        assert round(share * most) == rows
