"""The tables about final models say what the results file says, and no more than its seeds show."""

import json

import numpy as np
import pytest
from scipy.stats import ttest_rel

from fedkt.report import FIGURES
from paper.quality_results import (
    behind_table,
    beyond_chance,
    cells_of,
    copying_table,
    rules_table,
    summary_table,
    table_of_cells,
)


def figures(auc, accuracy=0.8):
    return {**dict.fromkeys(FIGURES, 0.5), "accuracy": accuracy, "auc": auc, "log_loss": 0.4}


def entry(seed, *, family="forest", before=0.7, after=0.8, solo=0.75, epsilon=None):
    rivals = {"solo": figures(solo - 0.05), "solo by rows": figures(solo), "pooled": figures(0.9)}
    found = {"labels": figures(before), "distributions": figures(after)}
    key = {"table": "adult", "family": family, "epsilon": epsilon, "seed": seed}
    return {**key, **({} if epsilon else rivals), "expert": found, "consistent": {"unsuited": "no"}}


def write(path, entries):
    path.write_text("".join(f"{json.dumps(each)}\n" for each in entries))
    return path


def test_a_difference_is_beyond_chance_where_the_paired_t_test_says_so():
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(200):
        ours, theirs = rng.normal(0.05, 0.1, 8), rng.normal(0, 0.1, 8)
        verdict = beyond_chance(ours, theirs)
        test = ttest_rel(ours, theirs)
        assert (verdict != 0) == (test.pvalue < 0.05)
        assert verdict in (0, np.sign(test.statistic))
        found.add(verdict)
    assert {0, 1} <= found
    assert beyond_chance([0.9], [0.1]) == 0, "one pair shows nothing"


def test_a_cell_counts_as_better_only_beyond_chance_and_small_errors_are_good(tmp_path):
    entries = [entry(seed, before=0.7 + seed / 500, after=0.8 + seed / 490) for seed in range(4)]
    cells = cells_of(write(tmp_path / "runs.jsonl", entries), None)
    table = summary_table(cells)
    lines = {line[0]: line[1] for line in table.lines}
    assert table.head == ["", "expert"]
    assert lines["AUC"] == "0.703 → 0.803 (1 / 0 of 1)"
    assert lines["log loss"] == "0.400 → 0.400 (0 / 0 of 1)"
    assert "4 seeds" in table.caption
    worse = [entry(seed, before=0.8 + seed / 990, after=0.7) for seed in range(4)]
    (cell,) = cells_of(write(tmp_path / "worse.jsonl", worse), None)
    assert cell.verdict("auc") == -1


def test_cells_behind_parties_alone_are_named_with_whether_chance_explains_it(tmp_path):
    entries = [entry(seed, after=0.70 + seed / 1000, solo=0.75) for seed in range(3)]
    entries += [entry(seed, family="tree", after=0.76) for seed in range(3)]
    table = behind_table(cells_of(write(tmp_path / "runs.jsonl", entries), None))
    assert table.lines == [["adult", "forest", "expert", "0.701", "0.750", "0.900", "beyond chance"]]
    assert table.caption == "1 of 2 cells."


def test_levels_are_kept_apart_and_private_cells_have_no_rivals(tmp_path):
    path = write(tmp_path / "runs.jsonl", [entry(1), entry(1, epsilon=4.0), entry(2, epsilon=4.0)])
    assert len(cells_of(path, None)[0].after["auc"]) == 1
    private = table_of_cells(cells_of(path, 4.0), "adult")
    assert private.head[-1] == "calibration error"
    assert len(private.lines) == 1
    assert table_of_cells(cells_of(path, None), "adult").head[-1] == "AUC, pooled"


def test_rules_are_compared_by_their_means(tmp_path):
    runs = [
        {"table": "adult", "family": "forest", "seed": seed, "labels": figures(auc), "half": figures(0.9)}
        for seed, auc in ((20, 0.6), (21, 0.8))
    ]
    table = rules_table(write(tmp_path / "rules.jsonl", runs))
    assert [line[0] for line in table.lines] == ["labels", "half"]
    assert table.lines[0][1 + FIGURES.index("auc")] == "0.700"
    assert "2 runs" in table.caption
    assert "20 to 21" in table.caption


def test_what_a_family_cannot_do_is_a_dash(tmp_path):
    runs = [{"table": "heart", "family": "svm", "seed": 1, "vote, expert": 0.75, "vote, expert-no-counts": None}]
    table = copying_table(write(tmp_path / "copying.jsonl", runs))
    assert table.lines == [["heart", "svm", "0.750", "–"]]


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_without_results_there_are_no_cells(tmp_path, epsilon):
    assert cells_of(tmp_path / "none.jsonl", epsilon) == []
