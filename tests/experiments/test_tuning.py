"""The best settings of a method, from runs on seeds of their own."""

from __future__ import annotations

from fedkt.experiments.setting import Setting
from fedkt.experiments.tuning import best_settings, read_tuning, tuning_table


def entry(method, epochs, seed, accuracy, dataset="mnist"):
    return {
        "dataset": dataset,
        "method": method,
        "options": {"local_epochs": epochs, "learning_rate": 0.001},
        "seed": seed,
        "accuracy": accuracy,
    }


ENTRIES = [
    entry("fedavg", 1, 100, 0.9),
    entry("fedavg", 1, 101, 0.5),
    entry("fedavg", 5, 100, 0.7),
    entry("fedavg", 5, 101, 0.8),
    entry("fedavg", 9, 100, 0.99),
    entry("fedavg", 1, 100, 1.0, dataset="svhn"),
    entry("pfnm", 5, 100, 0.4),
]


def test_the_best_mean_wins_among_what_every_seed_has_tried():
    best = best_settings(ENTRIES, "mnist")
    assert best["fedavg"] == ({"local_epochs": 5, "learning_rate": 0.001}, 0.75)
    assert best["pfnm"][1] == 0.4


def test_the_table_says_how_many_were_tried_and_how_bad_the_worst_was():
    lines = tuning_table(ENTRIES, "mnist").splitlines()
    assert lines[2] == "| fedavg | 3 | 5 | 0.001 |  | 75.0 | 50.0 |"


def test_a_file_that_is_not_there_has_no_runs(tmp_path):
    assert read_tuning(tmp_path / "none.jsonl") == []


def test_local_epochs_of_a_method_without_rounds_are_no_part_of_its_setting():
    assert Setting("digits", local_epochs=3).filled().local_epochs is None
    assert Setting("digits", algorithm="fedavg", local_epochs=3).filled().local_epochs == 3
