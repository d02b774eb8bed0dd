"""The best settings of a method, from runs on seeds of their own."""

from __future__ import annotations

import json
from dataclasses import replace

from fedkt.lab.results import read_lines
from fedkt.lab.series import run_all
from fedkt.lab.setting import Setting, fingerprint
from paper.markdown import markdown
from paper.tuning import best_settings, tuned_table


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


def test_the_table_sets_the_papers_settings_beside_the_best(tmp_path):
    plain, tuned = tmp_path / "plain.jsonl", tmp_path / "tuned.jsonl"
    for path, epochs in ((plain, 1), (tuned, 2)):
        settings = [
            Setting("digits", algorithm="solo", model="tree", parties=2, seed=seed, beta=epochs) for seed in (0, 1)
        ]
        run_all(settings, results=path)
    own = [{**entry("solo", 7, 100, 0.75, "digits"), "options": {"local_epochs": 7, "learning_rate": 0.01, "mu": 0.1}}]
    table = tuned_table(own, "digits", plain, tuned, {"digits": {"solo": {"accuracy": 12.3}}})
    cells = markdown(table).splitlines()[-1].strip("| ").split(" | ")
    assert cells[:2] == ["solo", "12.3"]
    assert cells[4:] == ["7", "0.01", "mu 0.1", "1", "75.0"]
    assert cells[2] != cells[3]


def test_a_line_cut_off_by_a_kill_is_no_run(tmp_path):
    kept = tmp_path / "tuning.jsonl"
    kept.write_text(json.dumps(ENTRIES[0]) + "\n" + json.dumps(ENTRIES[1])[:20])
    assert read_lines(kept) == ENTRIES[:1]


def test_one_row_and_all_rows_are_different_settings():
    """1 equals 1.0 as a number: a stored result of one must not be given for the other."""
    private = Setting("digits", level="L1", mechanism="laplace", scale=(("gamma", 0.1),))
    assert fingerprint(replace(private, queries=1)) != fingerprint(replace(private, queries=1.0))


def test_a_file_that_is_not_there_has_no_runs(tmp_path):
    assert read_lines(tmp_path / "none.jsonl") == []


def test_local_epochs_of_a_method_without_rounds_are_no_part_of_its_setting():
    assert Setting("digits", local_epochs=3).with_defaults().local_epochs is None
    assert Setting("digits", algorithm="fedavg", local_epochs=3).with_defaults().local_epochs == 3
    assert (
        Setting("digits", mu=0.3, participation=0.5, distil_epochs=7).with_defaults()
        == Setting("digits").with_defaults()
    )
    prox = Setting("digits", algorithm="fedprox", mu=0.3, participation=0.5).with_defaults()
    assert (prox.mu, prox.participation) == (0.3, 0.5)
