"""Texts between organisations: three parties that each have seen other topics, from the plan to a prediction."""

import csv
import tomllib

import numpy as np
import pytest

from fedkt.errors import PlanError
from fedkt.live.final_file import read_final
from fedkt.plan import parse_plan, read_plan
from tests.support.live_federation import fedkt, party, server

TOPICS = {
    "bill": "invoice payment overdue amount bank Überweisung €",
    "trip": "train ticket platform delayed journey Köln 🚆",
    "food": "recipe onions simmer butter oven Käse 🧀",
}
FILLER = ["dear", "all", "please", "find", "the", "note", "about", "our", "matter", "let", "me", "know", "thanks"]
PARTIES = {"north": ("bill", "trip"), "south": ("trip", "food"), "west": ("food", "bill")}


def letters(topics, count, seed):
    rng = np.random.default_rng(seed)
    for number in range(count):
        topic = topics[number % len(topics)]
        words = [*rng.choice(TOPICS[topic].split(), 3), *rng.choice(FILLER, 8)]
        yield " ".join(rng.permutation(words)), number % 7, topic


def write(path, rows, labelled):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["letter", "pages", *(["topic"] if labelled else [])])
        writer.writerows(row if labelled else row[:2] for row in rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    write(folder / "public.csv", letters([*TOPICS], 90, 0), labelled=False)
    write(folder / "test.csv", letters([*TOPICS], 60, 1), labelled=True)
    for place, (name, topics) in enumerate(PARTIES.items()):
        write(folder / f"{name}.csv", letters(topics, 60, 2 + place), labelled=True)
    members = [word for name in PARTIES for word in ("--party", name)]
    made = fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "topic", "--classes", "bill,trip,food"),
        *("--text", "letter", "--terms", "200", "--voting", "expert", "--model", "logistic", *members),
        *("-o", folder / "plan.toml"),
    )
    assert "1 text of which" in made.out
    for name in PARTIES:
        party(folder, name)
    server(folder)
    return folder


def test_the_final_model_knows_topics_that_no_party_had_together(folder):
    judged = fedkt("evaluate", folder / "result" / "final.onnx", folder / "test.csv", "--json")
    assert '"rows": 60' in judged.out
    final = read_final(folder / "result" / "final.onnx")
    assert [column.kind for column in final.card.columns.columns] == ["text", "number"]
    fedkt("predict", folder / "result" / "final.onnx", folder / "test.csv", "-o", folder / "out.csv")
    with (folder / "out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    right = np.mean([row["topic"] == row["prediction"] for row in rows])
    assert right > 0.9


def test_a_plan_for_trees_is_told_what_learns_texts_better(folder, tmp_path):
    said = fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "topic", "--classes", "bill,trip,food"),
        *("--text", "letter", "--party", "north", "--party", "south", "-o", tmp_path / "plan.toml"),
    )
    assert "--model logistic --voting expert" in " ".join(said.err.split())


def test_empty_and_long_and_unknown_texts_are_predicted_as_any_other(folder):
    rows = [
        ("", 1, "bill"),
        ("x" * 50_000, 1, "bill"),
        ("nothing agreed 😀", 1, "bill"),
        ("INVOICE " * 5_000, 1, "bill"),
    ]
    write(folder / "odd.csv", rows, labelled=False)
    fedkt("predict", folder / "result" / "final.onnx", folder / "odd.csv", "-o", folder / "odd.out.csv")
    with (folder / "odd.out.csv").open(encoding="utf-8") as file:
        assert [row["prediction"] for row in csv.DictReader(file)][3] == "bill"


def test_the_words_are_data_in_the_plan_and_survive_it(folder):
    plan = read_plan(folder / "plan.toml")
    column = plan.columns.columns[0]
    assert {"überweisung", "🚆", "€", "invoice"} <= set(column.terms)
    assert parse_plan(plan.to_toml().encode(), "plan.toml").digest == plan.digest
    (written, _) = tomllib.loads(plan.to_toml())["schema"]["columns"]
    assert list(written) == ["name", "kind", "missing", "terms", "weights"]


def test_another_word_is_another_plan_and_a_pattern_is_none(folder):
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    other = parse_plan(text.replace('"invoice"', '"envoice"').encode(), "plan.toml")
    assert other.digest != read_plan(folder / "plan.toml").digest
    with pytest.raises(PlanError, match="pattern is not a key that a plan has"):
        parse_plan(text.replace("terms = [", 'pattern = "(a+)+$", terms = [').encode(), "plan.toml")
