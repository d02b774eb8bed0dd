"""The model card: beside the final model and inside it, in words that keep to what the report may tell."""

import json
import shutil
import tomllib

import numpy as np
import pytest

from fedkt.errors import ModelError, PlanError
from fedkt.final_card import MAX_CARD_TEXT, FinalCard
from fedkt.live.final_file import read_final
from fedkt.live.model_card import escape, write_card
from fedkt.plan import parse_plan, read_plan
from fedkt.privacy import statement
from fedkt.quality import measure_quality
from fedkt.report import RunLog, build_report
from live_federation import NAMES, build, fedkt, new_plan, party, server

TEXTS = (
    *("--purpose", "Second reading of biopsies in [our](http://x) *clinics*"),
    *("--not-for", "Screening of healthy people", "--contact", "data_team@north.example"),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    build(folder)
    new_plan(folder, "--force", *TEXTS)
    for name in NAMES:
        party(folder, name)
    server(folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def facts(plan, *, quality=None, level="L0"):
    """A report as a server builds it."""
    promise = statement(level, plan.price())
    return build_report(
        promise,
        RunLog(),
        dataset=plan.task,
        algorithm="fedkt",
        model="tree",
        parties=3,
        partitions=2,
        subsets=5,
        seed=0,
        quality=quality,
        accuracy=None,
        balanced_accuracy=None,
        bytes_sent=987_654,
        rows={"public": 100, "test": 50},
        party_accuracy={"north": 0.123},
    )


def test_the_card_lies_beside_the_final_model_and_the_same_text_is_inside(finished):
    text = (finished / "result" / "model-card.md").read_text()
    assert read_final(finished / "result" / "final.onnx").card.model_card == text
    assert json.loads((finished / "result" / "report.json").read_text())["model_card"].endswith("model-card.md")
    plan = read_plan(finished / "plan.toml")
    for words in (
        "# Model card: diagnosis",
        "one of `malignant`, `benign`",
        "Parties: 3 of 3: `north`, `south`, `west`",
        "`consistent` voting: the server counts a party's vote where all its students agree",
        "tree; south uses logistic; west uses naive-bayes",
        f"Public rows: 100, without labels, SHA-256 {plan.public.sha256}",
        f"Plan: {plan.digest}",
        "None: level L0 adds no noise",
        "Not measured: no labelled rows were given",
        "- Screening of healthy people",
        "data_team@north.example",
    ):
        assert words in text, words
    # What people wrote is text to whoever shows Markdown.
    assert r"\[our\](http://x) \*clinics\*" in text


def test_inspect_shows_the_card_with_a_mark_before_each_line(finished):
    said = fedkt("inspect", finished / "result" / "final.onnx").out
    assert "  | # Model card: diagnosis" in said
    shown = json.loads(fedkt("inspect", finished / "result" / "final.onnx", "--json").out)
    assert shown["model_card"] == (finished / "result" / "model-card.md").read_text()


def test_the_server_says_where_the_card_lies_and_a_measured_model_says_how_good_it_is(folder):
    said = server(folder, "--test", folder / "test.csv").out
    assert str(folder / "result" / "model-card.md") in said
    text = (folder / "result" / "model-card.md").read_text()
    report = json.loads((folder / "result" / "report.json").read_text())
    assert "Not measured" not in text
    assert f"Accuracy {report['accuracy']:.1%} (" in text
    assert "always naming `benign` has" in text


def test_the_card_of_the_same_run_is_the_same(folder):
    before = (folder / "result" / "final.onnx").read_bytes()
    server(folder)
    assert (folder / "result" / "final.onnx").read_bytes() == before


def test_a_party_without_a_vote_is_named(folder):
    (folder / "inbox" / "west.fedkt").unlink()
    server(folder, "--min-parties", "2")
    text = (folder / "result" / "model-card.md").read_text()
    assert "Parties: 2 of 3: `north`, `south`; without a vote: `west`" in text


def test_measured_quality_stands_beside_the_majority_and_with_its_verdicts(finished):
    plan = read_plan(finished / "plan.toml")
    truth = np.array([0] * 40 + [1] * 10)
    quality = measure_quality(truth, np.zeros(50, int), plan.classes)
    text = write_card(plan, facts(plan, quality=quality), probabilities=False)
    assert "always naming `malignant` has 80.0%" in text
    assert "| benign | 10 | 0.0% | – |" in text
    assert "no better than always naming" in text
    assert "Ranking rows or telling a risk" in text


def test_at_L1_the_card_tells_nothing_of_single_parties(finished, tmp_path):
    build(tmp_path)
    new_plan(tmp_path, "--force", "--level", "L1", "--noise", "laplace:0.5", "--queries", "40")
    plan = read_plan(tmp_path / "plan.toml")
    text = write_card(plan, facts(plan, level="L1"), probabilities=True)
    assert "Noisy labels: 40, released by the server" in text
    assert "for one party (replace-one)" in text
    assert "987" not in text
    assert "12.3%" not in text


def test_whatever_names_and_notes_hold_the_card_fits_into_a_final_file(finished):
    plan = read_plan(finished / "plan.toml")
    wide = plan.model_copy(update={"classes": tuple(f"{'|<b>`' * 30}{each}" for each in range(3000))})
    notes = tuple(f"*\x1b[2J {'<script>' * 500}" for _ in range(100))
    text = write_card(wide, facts(plan), probabilities=True, notes=notes)
    assert len(text) <= MAX_CARD_TEXT
    assert "\x1b" not in text
    known = read_final(finished / "result" / "final.onnx").card.model_dump(by_alias=True)
    assert FinalCard.model_validate({**known, "model_card": text}).model_card == text
    assert "80 more in report.json" in write_card(plan, facts(plan), probabilities=True, notes=("a",) * 100)


def test_only_what_markdown_would_take_for_more_is_escaped():
    assert escape("a_b c@d.org, 5 % of 3-4") == "a_b c@d.org, 5 % of 3-4"
    assert escape("_a_ `x` <b> [l](u) a|b ~s~ \\") == r"\_a\_ \`x\` \<b\> \[l\](u) a\|b \~s\~ \\"


@pytest.mark.parametrize("text", ["", "x" * (MAX_CARD_TEXT + 1), "a\u001b[2J"], ids=["empty", "long", "control"])
def test_a_final_file_with_a_card_that_no_server_writes_is_refused(folder, text):
    import onnx

    final = folder / "result" / "final.onnx"
    proto = onnx.load(final)
    proto.metadata_props[0].value = json.dumps({**json.loads(proto.metadata_props[0].value), "model_card": text})
    final.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="model_card"):
        read_final(final)


def test_texts_for_the_card_are_part_of_the_plan_and_a_plan_without_them_has_the_digest_it_had(finished, tmp_path):
    toml = (finished / "plan.toml").read_text()
    assert tomllib.loads(toml)["card"]["limits"] == "Screening of healthy people"
    with_texts = parse_plan(toml.encode(), "plan.toml")
    assert "Not for     Screening of healthy people" in with_texts.explain()
    start, end = toml.index("[card]"), toml.index("[public]")
    bare = parse_plan((toml[:start] + toml[end:]).encode(), "plan.toml")
    empty = parse_plan((toml[:start] + "[card]\n" + toml[end:]).encode(), "plan.toml")
    assert bare.digest == empty.digest != with_texts.digest
    assert "[card]" not in bare.to_toml()
    with pytest.raises(PlanError, match=r"card\.purpose"):
        parse_plan(toml.replace("Second reading", "x" * 1001).encode(), "plan.toml")
    with pytest.raises(PlanError, match=r"card\.author is not a key"):
        parse_plan(toml.replace("[card]", '[card]\nauthor = "me"').encode(), "plan.toml")
