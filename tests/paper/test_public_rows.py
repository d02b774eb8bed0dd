"""The tables about made public rows say what the results file says, and rows are made for the parties of a run."""

import json

import numpy as np
import pytest

from paper.public_rows import METHODS, dataset_with, raw_dataset, setting_of, ways
from paper.public_rows_table import public_rows_tables
from real_data import DATA_DIR, needs_real_data


def line(seed, accuracy, method="expert", way="real"):
    key = {"dataset": "heart", "seed": seed, "public": way, "method": method, "public_rows": 230}
    return {**key, "accuracy": accuracy, "auc": 0.876, "calibration_error": 0.042, "seconds": 1.0}


def test_a_table_has_a_line_for_each_way_and_the_spread_over_seeds(tmp_path):
    path = tmp_path / "results.jsonl"
    found = [line(310, 0.80), line(311, 0.84), line(310, 0.7, "moments", "ranges")]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in found))
    text = public_rows_tables(path)
    # (.80 + .84)/2, and a standard deviation of .02·√2.
    assert "| real rows of the same register | 230 | 82.0 ± 2.8 / 0.88 / 4 |  |  |" in text
    assert "| `--schema`, ranges and categories alone | 230 |  | 70.0 / 0.88 / 4 |  |" in text
    assert "**heart**, seeds 310 to 311" in text
    assert "adult-table" not in text


def test_a_page_without_runs_says_so(tmp_path):
    assert "there are no numbers" in public_rows_tables(tmp_path / "nothing.jsonl")


@needs_real_data
def test_every_way_gives_rows_of_the_same_columns_and_no_labels():
    raw = raw_dataset("heart", 1, DATA_DIR)
    found = ways("heart", raw, 1)
    assert set(METHODS) == {"expert", "moments", "moments, ε = 1"}
    sizes = {}
    for name, make in found.items():
        public = make(np.random.default_rng(0))
        data = dataset_with("heart", raw, public)
        sizes[name] = len(data.X_public)
        assert data.X.shape[1] == data.X_public.shape[1]
        assert not any(each.startswith("num") for each in data.feature_names)
    assert sizes == pytest.approx(dict.fromkeys(found, 230) | {"real, 1 in 5": 46, "one party's rows": 151})
    assert setting_of("heart", 1, "expert").parties is None
