"""Expert voting between parties that exchange files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from fedkt.bundle import Expected, pack, unpack
from fedkt.errors import BundleError, ConfigurationError, DataError, PlanError, PrivacyError
from fedkt.live.inbox import look
from fedkt.live.inspection import describe_file
from fedkt.live.mailbox import file_at
from fedkt.live.measure import labels_of
from fedkt.models.onnx_rules import Limits
from fedkt.models.prediction import probabilities_of_all
from fedkt.plan import read_plan
from fedkt.plan.reading import parse_plan
from fedkt.plan.voted import scale_down
from live_federation import NAMES, build, new_plan, party, server

NOISE = ("--mechanism", "laplace", "--gamma", "0.1")


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    """Three hospitals that agreed on expert voting, and their bundles."""
    folder = tmp_path_factory.mktemp("experts")
    build(folder)
    new_plan(folder, "--force", "--voting", "expert", "--rows", "north=60")
    for name in NAMES:
        party(folder, name)
    return folder


def bundle_of(folder, name):
    plan = read_plan(folder / "plan.toml")
    data = (folder / "inbox" / f"{name}.fedkt").read_bytes()
    agreed = {"plan": plan.digest, "classes": plan.classes, "n_features": plan.columns.n_features}
    return unpack(data, source=name, expected=Expected(**agreed, counts=True, soft=True))


def test_the_plan_says_what_is_told_and_the_report_who_weighs_how_much(federation):
    text = (federation / "plan.toml").read_text()
    assert 'voting = "expert"' in text
    plan = read_plan(federation / "plan.toml")
    assert (plan.partitions, plan.subsets, plan.parties[0].rows) == (1, 1, 60)
    said = plan.explain()
    assert "the rows of each class" in said
    assert "limited: north to 60 rows; nobody checks how many rows south, west may claim" in said
    assert "on the winning labels" not in " ".join(said.split()), "students learn probabilities"
    assert "tells the server how many of its rows have each label" in said
    assert "row counts stay with" not in " ".join(said.split())
    assert sum(bundle_of(federation, "north").counts) == 60
    made = json.loads(server(federation, "--test", federation / "test.csv", "--json").out)
    assert made["accuracy"] >= 0.85
    assert set(made["votes"]["weights"]) == set(NAMES)
    assert sum(made["votes"]["weights"].values()) == pytest.approx(1)
    assert made["algorithm"] == "fedkt-expert"
    assert "class counts were sent as they are" in made["privacy"]
    assert "class counts were sent as they are" in (federation / "result" / "privacy.txt").read_text()
    assert "Weights: " in server(federation).out


def test_a_server_knows_from_the_plan_whose_students_are_as_sure_as_they_should_be(federation):
    """The plan says trees, for the south logistic regression and for the west naive Bayes."""
    plan = read_plan(federation / "plan.toml")
    known = {name: look(plan, *file_at(federation / "inbox" / f"{name}.fedkt")).bundle.calibrated for name in NAMES}
    assert known == {"north": True, "south": True, "west": False}


def test_a_server_knows_it_without_the_libraries_of_the_parties(federation, monkeypatch):
    plan = read_plan(federation / "plan.toml")
    families = {"north": "boosting", "south": "lightgbm", "west": "mlp"}
    agreed = plan.model_copy(update={"models": plan.models.model_copy(update={"parties": families})})
    monkeypatch.setattr("fedkt.models.families.family.find_spec", lambda name: None)
    assert [agreed.calibrated(name) for name in NAMES] == [True, True, True]


def test_a_server_gives_each_party_its_part_of_the_time(federation, monkeypatch):
    monkeypatch.setattr("fedkt.live.inbox.Limits", lambda: Limits(run_cpu_seconds=300))
    (student,) = look(read_plan(federation / "plan.toml"), *file_at(federation / "inbox" / "north.fedkt")).bundle.models
    assert student.limits.party_cpu_seconds == 100


def test_a_bundle_with_counts_can_be_looked_into(federation):
    for more in ((), (federation / "plan.toml",)):
        seen = describe_file(*file_at(federation / "inbox" / "north.fedkt"), *map(read_plan, more))
        assert sum(seen["counts"]) == 60
        assert "refused" not in seen["models"][0]


def test_a_plan_of_the_papers_voting_says_nothing_new(federation, tmp_path):
    build(tmp_path)
    text = (tmp_path / "plan.toml").read_text()
    assert "voting" not in text
    assert read_plan(tmp_path / "plan.toml").voting == "consistent"


def test_more_rows_than_were_agreed_on_are_not_believed(federation, tmp_path):
    (tmp_path / "inbox").mkdir()
    for name in ("plan.toml", "public.csv", "inbox/south.fedkt", "inbox/west.fedkt"):
        (tmp_path / name).write_bytes((federation / name).read_bytes())
    sent = bundle_of(federation, "north")
    boast = replace(sent, counts=tuple(20 * each for each in sent.counts))
    (tmp_path / "inbox" / "north.fedkt").write_bytes(repacked(boast))
    with pytest.raises(BundleError, match="more than the 60 agreed on"):
        server(tmp_path)


def reversed_certainty(student):
    """A student with the label it had, and one minus the probabilities."""
    proto = onnx.ModelProto.FromString(student.data)
    for node in proto.graph.node:
        node.output[:] = ["was" if each == "probability" else each for each in node.output]
    proto.graph.initializer.append(numpy_helper.from_array(np.float32(1), "one"))
    proto.graph.node.append(helper.make_node("Sub", ["one", "was"], ["probability"]))
    return replace(student, data=proto.SerializeToString(deterministic=True))


def test_a_student_that_votes_otherwise_than_it_is_measured_is_not_heard(federation, tmp_path):
    (tmp_path / "inbox").mkdir()
    for name in ("plan.toml", "public.csv", "test.csv", "inbox/south.fedkt", "inbox/west.fedkt"):
        (tmp_path / name).write_bytes((federation / name).read_bytes())
    sent = bundle_of(federation, "north")
    liar = replace(sent, models=tuple(map(reversed_certainty, sent.models)))
    (tmp_path / "inbox" / "north.fedkt").write_bytes(repacked(liar))
    made = json.loads(server(tmp_path, "--test", tmp_path / "test.csv", "--min-parties", "2", "--json").out)
    assert made["missing"] == ["north"]
    (reason,) = [each["reason"] for each in made["bundles"] if each["party"] == "north"]
    assert "Party 'north' does not vote" in reason
    assert "likelier" in reason


def test_what_votes_is_what_is_measured(federation):
    """By their probabilities; a label beside them that says something else is not asked."""
    sent = bundle_of(federation, "north")
    X = np.random.default_rng(0).normal(size=(20, sent.models[0].n_features)).astype(np.float32)
    (measured,) = labels_of(sent, X)
    (said,) = probabilities_of_all(sent.models, X, 2)
    assert measured.tolist() == said.argmax(axis=1).tolist()
    (refused,) = labels_of(replace(sent, models=tuple(map(reversed_certainty, sent.models))), X)
    assert "likelier" in refused


def plan_lines(folder):
    return (folder / "plan.toml").read_bytes().splitlines(keepends=True)


def repacked(bundle):
    return pack(bundle, check_rows=np.zeros((1, bundle.models[0].n_features), np.float32))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--voting", "loudest"), "there is no voting 'loudest'"),
        (("--voting", "expert-no-counts", "--level", "L2", *NOISE), "adds no noise"),
        (("--voting", "expert-no-counts", "--subsets", "5"), "one subset"),
        (("--voting", "expert", "--level", "L1", *NOISE), "the noise hides just that.*level L0\\.$"),
        (("--voting", "expert", "--level", "L1"), "the noise hides just that.*level L0\\.$"),
        (("--voting", "expert", "--rows", "east=3"), "not among the parties"),
        (("--rows", "north=60"), "only expert voting and moments have it tell"),
    ],
)
def test_what_cannot_be_agreed_on_is_refused(tmp_path, more, why):
    build(tmp_path)
    with pytest.raises(PlanError, match=why):
        new_plan(tmp_path, "--force", *more)


def test_rows_that_are_no_number_are_refused(tmp_path):
    build(tmp_path)
    with pytest.raises(ConfigurationError, match="whole number of at least 1"):
        new_plan(tmp_path, "--force", "--voting", "expert", "--rows", "north=many")


def test_at_level_l2_counts_are_claimed_paid_for_and_checked(tmp_path):
    build(tmp_path)
    private = ("--level", "L2", "--mechanism", "gaussian", "--sigma", "3", "--queries", "20", "--subsets", "5")
    new_plan(tmp_path, "--force", "--voting", "consistent", *private)
    bare = read_plan(tmp_path / "plan.toml").price().epsilon
    new_plan(tmp_path, "--force", "--voting", "expert", *private)
    plan = read_plan(tmp_path / "plan.toml")
    assert plan.price().epsilon > bare
    assert plan.budget >= plan.price().epsilon
    with pytest.raises(PlanError, match="count_sigma is missing, the noise on class counts"):
        parse_plan(b"".join(line for line in plan_lines(tmp_path) if b"count_sigma =" not in line), "plan.toml")
    said, sigma = " ".join(plan.explain().split()), plan.privacy.count_sigma
    assert "on 20 released labels" in said
    assert f"class counts leave, with Gaussian noise (sigma {sigma:.4g} rows)" in said
    assert "on the winning labels" in said
    sent = json.loads(party(tmp_path, "north", "--json").out)
    assert sent["epsilon"] == pytest.approx(plan.price().epsilon)
    assert sent["releases"] == 2
    ledger = [json.loads(line) for line in (tmp_path / "north.csv.ledger").read_text().splitlines()]
    assert [entry["mechanism"] for entry in ledger] == ["gaussian", "gaussian-counts"]
    counts = bundle_of(tmp_path, "north").counts
    assert 0 < sum(counts) < 120
    with pytest.raises(PrivacyError, match="does not cover this run"):
        party(tmp_path, "north", out=tmp_path / "again")
    for name in NAMES[1:]:
        party(tmp_path, name)
    made = json.loads(server(tmp_path, "--json").out)
    assert made["epsilon"] == pytest.approx(plan.price().epsilon)
    assert set(made["votes"]["weights"]) == set(NAMES)
    assert "20 noisy labels of gaussian (sigma 3)" in made["privacy"]
    assert f"class counts left, with Gaussian noise (sigma {sigma:g} rows)" in made["privacy"]
    assert (made["privacy_statement"]["queries"], made["privacy_statement"]["count_sigma"]) == (20, sigma)
    claim = bundle_of(tmp_path, "north").claim
    short = replace(bundle_of(tmp_path, "north"), claim=claim.model_copy(update={"releases": 1}))
    (tmp_path / "inbox" / "north.fedkt").write_bytes(repacked(short))
    with pytest.raises(BundleError, match="counts 1 releases, fewer than the 2"):
        server(tmp_path)


def test_a_party_with_more_rows_than_it_may_tell_of_is_told_before_it_trains(tmp_path):
    build(tmp_path)
    new_plan(tmp_path, "--force", "--voting", "expert", "--rows", "north=50")
    with pytest.raises(DataError, match="has 60 rows, but the plan lets 'north' tell of at most 50"):
        party(tmp_path, "north")
    assert not (tmp_path / "inbox").exists()


@pytest.mark.parametrize("counts", [(70, 20), (61, 0), (60, 0), (3, 4)])
def test_noise_never_makes_a_party_tell_of_more_rows_than_it_may(counts):
    told = scale_down(counts, 60)
    assert sum(told) <= 60
    assert told == counts or sum(counts) > 60
    assert scale_down(counts, None) == counts
    assert scale_down(None, 60) is None


def test_an_epsilon_is_also_a_budget(tmp_path):
    build(tmp_path)
    private = ("--level", "L2", "--epsilon", "2", "--budget", "2", "--queries", "20", "--rows", "north=60")
    new_plan(tmp_path, "--force", "--voting", "expert", *private)
    sent = json.loads(party(tmp_path, "north", "--json").out)
    assert sent["epsilon"] <= sent["total_epsilon"] <= 2.0
    assert sum(bundle_of(tmp_path, "north").counts) <= 60


def test_who_claims_to_pay_more_is_believed(tmp_path):
    from fedkt.live.claims import claim_fault, dearest

    build(tmp_path)
    private = ("--level", "L2", "--mechanism", "gaussian", "--sigma", "8", "--queries", "20", "--budget", "20")
    new_plan(tmp_path, "--force", "--voting", "expert", *private)
    party(tmp_path, "north")
    plan, sent = read_plan(tmp_path / "plan.toml"), bundle_of(tmp_path, "north")
    more = sent.claim.model_copy(update={"epsilon": 15.0, "total_epsilon": 15.0})
    assert claim_fault(plan, more) == ""
    assert dearest(plan, [replace(sent, claim=more)]).epsilon == 15.0
    other = sent.claim.model_copy(update={"count_sigma": 2 * sent.claim.count_sigma})
    assert "noise on the class counts" in claim_fault(plan, other)
    beyond = sent.claim.model_copy(update={"epsilon": 21.0, "total_epsilon": 21.0})
    assert "more than the budget" in claim_fault(plan, beyond)


def test_without_counts_nothing_but_a_student_travels(tmp_path):
    build(tmp_path)
    new_plan(tmp_path, "--force", "--voting", "expert-no-counts", "--rows", "north=60")
    plan = read_plan(tmp_path / "plan.toml")
    assert (plan.partitions, plan.subsets, plan.expected.n_outputs) == (1, 1, 3)
    said = " ".join(plan.explain().split())
    assert "two teachers" in said
    assert "about how many rows of each label" in said
    for name in NAMES:
        party(tmp_path, name)
    agreed = {"plan": plan.digest, "classes": plan.classes, "n_features": plan.columns.n_features, "soft": True}
    data = (tmp_path / "inbox" / "north.fedkt").read_bytes()
    sent = unpack(data, source="north", expected=Expected(**agreed, background_class=True))
    assert sent.counts is None
    assert sent.models[0].n_classes == 3
    with pytest.raises(BundleError, match="refused"):
        unpack(data, source="north", expected=Expected(**agreed))
    for more in ((), (tmp_path / "plan.toml",)):
        seen = describe_file(*file_at(tmp_path / "inbox" / "north.fedkt"), *map(read_plan, more))
        assert "refused" not in seen["models"][0]
    made = json.loads(server(tmp_path, "--test", tmp_path / "test.csv", "--json").out)
    assert made["accuracy"] > 0.85
    assert made["algorithm"] == "fedkt-expert-no-counts"
    assert set(made["votes"]["weights"]) == set(NAMES)
    assert "class counts" not in made["privacy"]
    assert all(each > 0.8 for each in made["party_accuracy"].values())


@pytest.mark.parametrize("families", [("--model", "svm"), ("--party-model", "north=svm"), ("--teacher", "svm")])
def test_families_that_cannot_say_how_sure_they_are_are_refused_before_the_plan_is_sent(tmp_path, families):
    build(tmp_path)
    with pytest.raises(PlanError, match="svm does not say how sure it is"):
        new_plan(tmp_path, "--force", "--voting", "expert-no-counts", *families)


def test_without_counts_more_rows_than_agreed_are_scaled_down_and_not_refused(tmp_path):
    build(tmp_path)
    new_plan(tmp_path, "--force", "--voting", "expert-no-counts", "--rows", "north=50")
    assert "scaled down" in party(tmp_path, "north").err
