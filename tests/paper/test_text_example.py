"""Texts between three organisations: together they know more than each alone, and less than all texts in one place."""

from statistics import mean

import numpy as np
import pytest

from fedkt.lab.results import append_line
from paper.text_data import AREAS, description, entries
from paper.text_example import PARTIES, SEEDS, measure, task_of, text_table

DEVELOPMENT = 220


def right(algorithm, model="logistic"):
    return measure({"algorithm": algorithm, "model": model, "seed": DEVELOPMENT})


def test_an_entry_is_what_the_manual_says_without_what_would_tell():
    doc = "sort(x, y)\n\nSort the signals of a SciPy statistic.\n\nParameters\n----------\nx : array\n    Sparse."
    assert description(doc) == "Sort the of a ."
    assert description(None) == ""
    texts, areas = entries()
    assert set(areas) == set(AREAS)
    assert len(texts) == len(set(texts)) > 1_000


def test_words_are_those_of_the_public_entries_and_nobody_has_anothers_rows():
    task = task_of(DEVELOPMENT, raw=False)
    assert task.X.shape[1] == task.public.shape[1] <= 1_001
    assert (task.public != 0).any(axis=0)[:-1].all()
    assert sorted(np.unique(task.owners)) == [*range(PARTIES)]
    raw = task_of(DEVELOPMENT, raw=True)
    assert not set(raw.X) & (set(raw.public) | set(raw.X_test))


@pytest.mark.parametrize("model", ["logistic", "pipeline"])
def test_three_parties_together_beat_each_alone_and_come_near_to_all_rows_pooled(model):
    alone, together, pooled = (right(each, model) for each in ("solo", "fedkt-expert", "centralised"))
    assert len(alone["each"]) == PARTIES
    assert alone["accuracy"] == mean(alone["each"])
    assert alone["majority"] < alone["accuracy"] < together["accuracy"] - 0.05
    assert together["accuracy"] < pooled["accuracy"] < together["accuracy"] + 0.2


def test_the_table_has_mean_and_spread_of_its_own_seeds(tmp_path):
    path = tmp_path / "texts.jsonl"
    for seed, accuracy in ((SEEDS[0], 0.5), (SEEDS[1], 0.7), (DEVELOPMENT, 0.0)):
        key = {"algorithm": "fedkt-expert", "model": "logistic", "seed": seed}
        append_line(path, {**key, "accuracy": accuracy, "majority": 0.25, "test_rows": 10, "scipy": "1"})
    table = text_table(path)
    line = next(each for each in table.lines if each[0] == "`logistic`")
    # The deviation of 50 and 70 is 10·√2.
    assert line == ["`logistic`", "–", "–", "60.0 ± 14.1", "–", "–"]
    assert "over 2 seeds of 3 parties" in table.caption
