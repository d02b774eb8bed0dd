"""Tables: every number in the documentation comes from a result file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fedkt.errors import DataError
from paper.markdown import in_bold, markdown, replace_between
from paper.private_tables import EXACT, setting_rows, settings_in_words, settings_table
from paper.tables import bytes_table, effectiveness_table, provenance, rounds_table, seed_table

ROOT = Path(__file__).parents[2]


def result(seed, accuracy):
    report = {
        "dataset": "adult",
        "algorithm": "fedkt",
        "model": "forest",
        "parties": 50,
        "partitions": 2,
        "subsets": 5,
        "level": "L0",
        "seed": seed,
        "accuracy": accuracy,
        "balanced_accuracy": 0.5,
        "label_accuracy": None,
        "epsilon": None,
        "privacy": "none",
        "bytes_sent": None,
        "seconds": 1800.0,
        "cpu_seconds": None,
        "versions": {"fedkt": "0"},
        "command": "fedkt compare adult",
        "notes": [],
    }
    return json.dumps({"setting": {"dataset": "adult", "seed": seed}, "report": report})


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "adult.jsonl"
    path.write_text("\n".join([result(0, 0.80), result(1, 0.84)]) + "\n")
    return path


def test_ours_stands_beside_the_papers_with_the_difference(results, tmp_path):
    expected = tmp_path / "expected.toml"
    expected.write_text("[effectiveness.adult.fedkt]\naccuracy = 82.5\nspread = 0.6\n")
    # Mean of 80 and 84 is 82.0, their sample standard deviation 2.83.
    assert markdown(effectiveness_table([results], expected)).splitlines()[2] == (
        "| adult | fedkt | 82.5 ± 0.6 | 82.0 ± 2.8 | 50.0 ± 0.0 | -0.5 | 2 |"
    )


def test_every_seed_can_be_looked_at(results):
    assert markdown(seed_table(results, "fedkt")).splitlines()[2] == "| accuracy | 80.0 | 84.0 |"
    with pytest.raises(DataError, match="no run of 'pate'"):
        seed_table(results, "pate")


def test_a_result_names_its_command_versions_and_time(results):
    assert provenance(results) == "`fedkt compare adult`; 1.00 hours of work in all; fedkt 0."


def test_only_what_lies_between_the_markers_is_replaced():
    text = "a\n<!-- t -->\nold\n<!-- end t -->\nb"
    assert replace_between(text, "t", "new") == "a\n<!-- t -->\nnew\n<!-- end t -->\nb"
    with pytest.raises(DataError, match="exactly one"):
        replace_between("nothing here", "t", "new")


def test_a_private_setting_shows_all_its_epsilons(tmp_path):
    row = {
        "mechanism": "laplace",
        "scale": {"gamma": 0.04},
        "queries": 81,
        "balanced_accuracy": [0.6],
        "epsilon": 1.3713,
        "accountant": "exact",
        "epsilon_paper_formula": 3.718,
        "epsilon_data_dependent": 3.6,
        "paper_epsilon": 3.7,
        "paper_accuracy": 80.0,
        "paper_kind": "DD",
    }
    path = tmp_path / "private.jsonl"
    groups = [
        {"group": "adult-L1-het", "seed": seed, "l0_accuracy": 0.8, "rows": [{**row, "accuracy": [accuracy]}]}
        for seed, accuracy in enumerate((0.70, 0.80, 0.75))
    ]
    path.write_text("\n".join(map(json.dumps, groups)) + "\n")
    rows = setting_rows(path)
    assert markdown(in_bold(settings_table(rows, "L1"), EXACT)).splitlines()[2] == (
        "| adult | het | 0.04 | 81 | 3.7 | 3.72 | 3.60 | **1.372** | 80.0 | 75.0 | 75.0 ± 5.0 | 60.0 ± 0.0 |"
    )
    assert "below the printed one in 1 of 1 settings" in settings_in_words(rows)
    assert "1 are within 5 % of ours" in settings_in_words(rows)


def test_the_documentation_says_what_the_results_say():
    done = subprocess.run(
        [sys.executable, str(ROOT / "paper" / "update_tables.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def with_rounds(algorithm, accuracies, sent, received):
    entry = json.loads(result(0, accuracies[-1]))
    history = [
        {"round": number, "accuracy": value, "sent": sent, "received": received}
        for number, value in enumerate(accuracies, start=1)
    ]
    count = len(accuracies)
    entry["setting"]["algorithm"] = algorithm
    entry["report"] |= {"algorithm": algorithm, "rounds": count, "history": history if count > 1 else []}
    entry["report"] |= {"bytes_sent": sent * count, "bytes_received": received * count}
    return json.dumps(entry)


def test_what_an_accuracy_costs_is_a_table_for_the_documentation(tmp_path):
    path = tmp_path / "rounds.jsonl"
    lines = [with_rounds("fedavg", [0.2, 0.5, 0.8], 5_000_000, 5_000_000), with_rounds("fedkt", [0.66], 9_000_000, 0)]
    path.write_text("\n".join(lines) + "\n")
    # 80, 85 and 90 % of 80.0 are 64, 68 and 72 %.
    assert markdown(rounds_table(path), spaced=True).splitlines() == [
        "| algorithm | best | 64.0 % (80 % of the best of fedavg) | 66.0 % (the best of fedkt) | "
        "68.0 % (85 % of the best of fedavg) | 72.0 % (90 % of the best of fedavg) |",
        "| --- | --- | --- | --- | --- | --- |",
        "| fedavg | 80.0 | 3 · 30.0 | 3 · 30.0 | 3 · 30.0 | 3 · 30.0 |",
        "| fedkt | 66.0 | 1 · 9.00 | 1 · 9.00 | – | – |",
    ]
    # 50 parties: M is 5 MB / 50 = 100 kB, so FedKT's 50 · 2 students are 10 MB.
    assert markdown(bytes_table(path)).splitlines()[2:] == [
        "| fedavg | 3 | 15.0 MB | 15.0 MB | 30.0 MB | 2·n·M·r | 30.0 MB |",
        "| fedkt | 1 | 9.0 MB | 0 B | 9.0 MB | n·s·M | 10.0 MB |",
    ]


def test_a_file_without_results_has_no_such_table(tmp_path):
    with pytest.raises(DataError, match="holds no results"):
        rounds_table(tmp_path / "nothing.jsonl")
