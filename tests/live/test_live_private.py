"""The private levels between organisations: what is promised, what is written down, and what is refused."""

import json
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import onnx
import pytest

from fedkt.bundle import pack
from fedkt.errors import BundleError, ConfigurationError, FedKTError, PlanError, PrivacyError
from fedkt.live.claims import claim_fault
from fedkt.live.inbox import look
from fedkt.live.mailbox import file_at
from fedkt.live.noise_file import NoiseFile
from fedkt.live.shelf import Shelf
from fedkt.plan import parse_plan, read_plan
from fedkt.privacy import Gaussian, Laplace, Ledger, Release
from fedkt.privacy.accountant import price
from fedkt.privacy.accountant.together import price_together
from live_federation import NAMES, build, fedkt, new_plan, party, server

GAUSSIAN = ("--level", "L2", "--mechanism", "gaussian", "--sigma", "8", "--queries", "30")
LEDGER = "parties-73c729acfcf4.ledger"
"""The first digits of the SHA-256 of ["north", "south", "west"]."""
LAPLACE_L2 = ("--level", "L2", "--mechanism", "laplace", "--gamma", "0.1", "--queries", "40")
LAPLACE = ("--level", "L1", "--mechanism", "laplace", "--gamma", "0.5", "--queries", "40")


def entries(path):
    """The lines of a ledger."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def record_level(tmp_path_factory):
    """A federation at level L2 whose parties have sent; tests copy what they change."""
    folder = tmp_path_factory.mktemp("L2")
    build(folder)
    new_plan(folder, "--force", *GAUSSIAN)
    for name in NAMES:
        party(folder, name)
    return folder


@pytest.fixture(scope="module")
def party_level(tmp_path_factory):
    """A federation at level L1 whose parties have sent; tests copy what they change."""
    folder = tmp_path_factory.mktemp("L1")
    build(folder)
    new_plan(folder, "--force", *LAPLACE)
    for name in NAMES:
        party(folder, name)
    return folder


@pytest.fixture
def two(record_level, tmp_path):
    shutil.copytree(record_level, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def one(party_level, tmp_path):
    shutil.copytree(party_level, tmp_path, dirs_exist_ok=True)
    return tmp_path


def power_cut(folder, monkeypatch):
    """A run of north that ends when its first student is finished and not yet kept."""

    def dies(*_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(Shelf, "__setitem__", dies)
        with pytest.raises(AssertionError, match="power cut"):
            party(folder, "north")


def statement_in(path):
    """The privacy statement in the metadata of a final model."""
    notes = {each.key: each.value for each in onnx.load(path).metadata_props}
    return json.loads(notes["fedkt"])["privacy"]


def test_at_L2_every_student_is_paid_for_and_the_final_model_says_what_is_promised(two):
    expected = price(Release(Gaussian(8.0), 30, 5, 2, "record"), 1e-5).epsilon
    for name in NAMES:
        written = entries(two / f"{name}.csv.ledger")
        assert [(each["who"], each["queries"], each["voters"]) for each in written] == [(name, 30, 5)]
        assert stat.S_IMODE((two / f"{name}.csv.ledger").stat().st_mode) == 0o600
    report = json.loads(server(two, "--test", two / "test.csv", "--json").out)
    assert report["epsilon"] == pytest.approx(expected)
    assert report["delta"] == 1e-5
    assert report["level"] == "L2"
    assert all(each["claim"]["epsilon"] == pytest.approx(expected) for each in report["bundles"])
    assert report["privacy_statement"]["unit"] == "record"
    assert not report["privacy_statement"]["reproducible_noise"]
    assert statement_in(two / "result" / "final.onnx") == report["privacy_statement"]
    words = (two / "result" / "privacy.txt").read_text()
    assert words.strip() == report["privacy"]
    assert "for one record" in words
    assert "epsilon" in fedkt("inspect", two / "result" / "final.onnx").out
    assert "mechanism gaussian" in " ".join(fedkt("inspect", two / "inbox" / "north.fedkt").out.split())


def test_what_a_party_sends_at_L2_holds_no_votes_and_no_secret(two):
    said = json.loads(fedkt("inspect", two / "inbox" / "north.fedkt", "--plan", two / "plan.toml", "--json").out)
    assert said["verdict"] == "the server would count it"
    wanted = {"mechanism", "scale", "queries", "partitions", "voters", "classes", "epsilon", "delta"}
    assert set(said["claim"]) == wanted | {"unit", "adjacency", "total_epsilon", "releases"}
    assert not list(two.glob("work*"))


def test_two_runs_on_the_same_rows_draw_other_noise_and_are_both_charged(two):
    new_plan(two, "--force", *GAUSSIAN, "--budget", "20")
    party(two, "north", out=two / "first")
    party(two, "north", out=two / "second")
    assert (two / "first" / "north.fedkt").read_bytes() != (two / "second" / "north.fedkt").read_bytes()
    purposes = [each["purpose"] for each in entries(two / "north.csv.ledger")]
    assert len(purposes) == len(set(purposes)) == 3


def test_the_statement_says_what_all_releases_of_the_party_that_released_most_cost(two):
    new_plan(two, "--force", *GAUSSIAN, "--budget", "20")
    for name in (*NAMES, "north"):
        said = party(two, name)
    once = price(Release(Gaussian(8.0), 30, 5, 2, "record"), 1e-5).epsilon
    thrice = price(Release(Gaussian(8.0), 90, 5, 2, "record"), 1e-5).epsilon
    assert "fixed beforehand, covers 3 releases in the ledger so far" in " ".join(said.out.split())
    report = json.loads(server(two, "--json").out)
    claims = {each["party"]: each["claim"] for each in report["bundles"]}
    assert {name: claim["releases"] for name, claim in claims.items()} == {"north": 3, "south": 2, "west": 2}
    assert claims["north"]["epsilon"] == pytest.approx(once)
    assert claims["north"]["total_epsilon"] >= thrice * (1 - 1e-9)
    assert report["epsilon"] == pytest.approx(once)
    promised = report["privacy_statement"]
    assert (promised["total_epsilon"], promised["releases"]) == (claims["north"]["total_epsilon"], 3)
    assert statement_in(two / "result" / "final.onnx") == promised
    assert "covers all 3 in the ledger so far" in (two / "result" / "privacy.txt").read_text()
    for file in ("inbox/north.fedkt", "result/final.onnx"):
        assert "total_epsilon" in fedkt("inspect", two / file, "--json").out


def test_a_party_hears_that_its_ledger_is_new_and_only_then(two):
    new_plan(two, "--force", *GAUSSIAN, "--budget", "20")
    assert "is new: if releases" not in " ".join(party(two, "north").err.split())
    said = " ".join(party(two, "north", "--ledger", two / "fresh").err.split())
    assert "fresh is new: if releases about these rows were written into another ledger" in said


def test_changed_rows_compose_and_are_refused_past_the_budget_before_anything_is_trained(two, monkeypatch):
    once = price(Release(Gaussian(8.0), 30, 5, 2, "record"), 1e-5).epsilon
    twice = price(Release(Gaussian(8.0), 60, 5, 2, "record"), 1e-5).epsilon
    budget = (twice + price(Release(Gaussian(8.0), 90, 5, 2, "record"), 1e-5).epsilon) / 2
    assert once < twice < budget
    new_plan(two, "--force", *GAUSSIAN, "--budget", str(budget))
    lines = (two / "north.csv").read_text().splitlines(keepends=True)
    (two / "north.csv").write_text("".join(lines[:-1]))
    party(two, "north")
    assert len(entries(two / "north.csv.ledger")) == 2

    def forbidden(*_, **__):
        raise AssertionError("something was trained")

    monkeypatch.setattr("fedkt.algorithms.kept_students.learn_all", forbidden)
    (two / "north.csv").write_text("".join(lines[:-2]))
    before = (two / "inbox" / "north.fedkt").read_bytes()
    with pytest.raises(PrivacyError, match=r"budget of 'north' does not cover this run.*2 earlier releases"):
        party(two, "north")
    assert len(entries(two / "north.csv.ledger")) == 2
    assert (two / "inbox" / "north.fedkt").read_bytes() == before
    assert not (two / "work").exists()


def test_a_spent_budget_is_one_sentence_and_exit_code_one(two):
    command = [sys.executable, "-c", "from fedkt.cli import main; main()", "party", "plan.toml", "--name", "north"]
    command += ["--data", "north.csv", "--public", "public.csv"]
    ended = subprocess.run(command, cwd=two, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "does not cover this run" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (two / ".fedkt-work").exists()


def test_a_party_killed_in_the_middle_makes_the_same_release_and_pays_once(two):
    shutil.rmtree(two / "inbox")
    (two / "south.csv.ledger").unlink()
    (two / "south.csv.ledger.head").unlink()
    new_plan(two, "--force", *GAUSSIAN, "--partitions", "3", "--party-model", "north=forest")
    command = [sys.executable, "-c", "from fedkt.cli import main; main()", "party", "plan.toml", "--name", "south"]
    command += ["--data", "south.csv", "--public", "public.csv", "-o", "inbox", "--work", "work"]
    running = subprocess.Popen(command, cwd=two, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (two / "work" / "student-0.student").exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.001)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    assert not (two / "inbox" / "south.fedkt").exists()
    paid = entries(two / "south.csv.ledger")
    assert len(paid) == 3
    state = two / "work" / "shelf.json"
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert json.loads(state.read_text())["noise_secret"] > 2**192
    shutil.copytree(two / "work", two / "again")
    party(two, "south")
    first = (two / "inbox" / "south.fedkt").read_bytes()
    assert entries(two / "south.csv.ledger") == paid
    fedkt(
        *("party", two / "plan.toml", "--name", "south", "--data", two / "south.csv"),
        *("--public", two / "public.csv", "-o", two / "other", "--work", two / "again"),
    )
    assert (two / "other" / "south.fedkt").read_bytes() == first
    assert entries(two / "south.csv.ledger") == paid


def test_a_run_that_is_paid_for_is_not_given_up_because_it_is_started_otherwise(two, monkeypatch):
    new_plan(two, "--force", *GAUSSIAN, "--budget", "20")
    power_cut(two, monkeypatch)
    state = (two / "work" / "shelf.json").read_bytes()
    rows = (two / "north.csv").read_bytes()
    (two / "north.csv").write_bytes(b"".join(rows.splitlines(keepends=True)[:-1]))
    with pytest.raises(PrivacyError, match="paid for and not finished, begun with another data file or --id"):
        party(two, "north")
    assert (two / "work" / "shelf.json").read_bytes() == state
    assert len(entries(two / "north.csv.ledger")) == 2
    (two / "north.csv").write_bytes(rows)
    party(two, "north")
    assert len(entries(two / "north.csv.ledger")) == 2


@pytest.mark.parametrize("wrong", [("--id", "diagnosis"), ("--id", "mean_radius")])
def test_a_column_that_is_learned_or_predicted_cannot_tell_records_apart(two, wrong):
    before = (two / "north.csv.ledger").read_bytes()
    with pytest.raises(ConfigurationError, match="must not decide its subset"):
        party(two, "north", *wrong)
    assert (two / "north.csv.ledger").read_bytes() == before


def test_records_without_identities_are_refused_before_anything_is_paid_where_one_may_be_removed(two):
    new_plan(two, "--force", *GAUSSIAN, "--adjacency", "add-or-remove")
    with pytest.raises(ConfigurationError, match="Name a column of identities"):
        party(two, "north", "--ledger", two / "fresh")
    assert not (two / "fresh").exists()
    assert not (two / "work").exists()


def test_a_small_party_claims_what_every_other_does(two):
    new_plan(
        two, "--force", "--level", "L2", "--mechanism", "laplace", "--gamma", "0.3", "--queries", "5", "--budget", "9"
    )
    lines = (two / "south.csv").read_text().splitlines(keepends=True)
    (two / "south.csv").write_text("".join(lines[:4]))
    for name in NAMES:
        party(two, name, "--ledger", two / f"{name}.fresh")
    report = json.loads(server(two, "--json").out)
    claims = {each["party"]: each["claim"] for each in report["bundles"]}
    # A claim that names fewer voters would tell how many rows the party has.
    assert claims["south"] == claims["north"] == claims["west"]
    assert claims["south"]["voters"] == 5
    by_hand = price(Release(Laplace(0.3), 5, 5, 2, "record"), 1e-5).epsilon
    assert claims["south"]["epsilon"] == pytest.approx(by_hand)
    assert report["epsilon"] == pytest.approx(by_hand)


def test_a_claim_of_fewer_voters_is_priced_by_whichever_costs_more(two):
    # Six voters never tie, five may: by parity the fewer cost more here.
    new_plan(two, "--force", *LAPLACE_L2, "--subsets", "6", "--budget", "9")
    party(two, "north", "--ledger", two / "fresh")
    plan = read_plan(two / "plan.toml")
    claim = look(plan, *file_at(two / "inbox" / "north.fedkt")).bundle.claim
    six, five = (price(Release(Laplace(0.1), 40, voters, 2, "record"), 1e-5).epsilon for voters in (6, 5))
    assert six < five
    fewer = claim.model_copy(update={"voters": 5})
    assert "understates epsilon" in claim_fault(plan, fewer)
    assert not claim_fault(plan, fewer.model_copy(update={"epsilon": five, "total_epsilon": five}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0.5}, "understates epsilon: it says 0.5"),
        # One voter costs 3.071, the five agreed on 3.277.
        ({"voters": 1, "epsilon": 3.08}, "understates epsilon: it says 3.08, its figures cost 3.27"),
        ({"scale": {"sigma": 9.0}}, "differs from the plan: noise"),
        ({"mechanism": "laplace", "scale": {"gamma": 0.1}}, "differs from the plan: noise"),
        ({"mechanism": "none"}, "impossible noise"),
        ({"scale": {"sigma": -8.0}}, "impossible noise"),
        ({"queries": 29}, "queries 29, agreed was 30"),
        ({"partitions": 2}, "partitions 2, agreed was 1"),
        ({"classes": 3}, "classes 3, agreed was 2"),
        ({"delta": 1e-3}, "delta 0.001, agreed was 1e-05"),
        ({"voters": 6}, "6 voters, more than the 5 subsets"),
        (None, "it makes no privacy claim"),
    ],
)
def test_a_claim_that_does_not_hold_is_refused(two, change, words):
    plan = read_plan(two / "plan.toml")
    rows = plan.columns.encode(plan.read_public(two / "public.csv"))
    path = two / "inbox" / "north.fedkt"
    bundle = look(plan, *file_at(path)).bundle
    forged = None if change is None else bundle.claim.model_copy(update=change)
    path.write_bytes(pack(replace(bundle, claim=None), check_rows=rows, claim=forged))
    with pytest.raises(BundleError, match=words):
        server(two)
    assert words.split(":")[0] in fedkt("inspect", path, "--plan", two / "plan.toml", code=1).out
    assert json.loads(fedkt("inspect", path, "--plan", two / "plan.toml", "--json", code=1).out)["accepted"] is False


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"total_epsilon": 3.0}, "all releases together cannot cost less than this one"),
        ({"total_epsilon": float("inf")}, "manifest|JSON"),
        ({"releases": 0}, "field 'claim.releases' is wrong"),
    ],
)
def test_a_claim_whose_total_cannot_be_is_refused(two, change, words):
    plan = read_plan(two / "plan.toml")
    path = two / "inbox" / "north.fedkt"
    bundle = look(plan, *file_at(path)).bundle
    forged = bundle.claim.model_copy(update=change)
    rows = plan.columns.encode(plan.read_public(two / "public.csv"))

    def send():
        path.write_bytes(pack(replace(bundle, claim=None), check_rows=rows, claim=forged))
        server(two)

    # Some are refused already when they are written.
    with pytest.raises((BundleError, ValueError), match=words):
        send()


def test_a_claim_of_fewer_releases_than_its_own_run_is_refused(two):
    plan = read_plan(two / "plan.toml").model_copy(update={"partitions": 2})
    claim = look(read_plan(two / "plan.toml"), *file_at(two / "inbox" / "north.fedkt")).bundle.claim
    assert "counts 1 releases, fewer than the 2" in claim_fault(plan, claim.model_copy(update={"partitions": 2}))


def test_a_claim_has_no_place_at_a_level_without_noise_at_the_parties(one, record_level):
    plan = read_plan(one / "plan.toml")
    rows = plan.columns.encode(plan.read_public(one / "public.csv"))
    claim = look(read_plan(record_level / "plan.toml"), *file_at(record_level / "inbox" / "north.fedkt")).bundle.claim
    path = one / "inbox" / "north.fedkt"
    path.write_bytes(pack(look(plan, *file_at(path)).bundle, check_rows=rows, claim=claim))
    with pytest.raises(BundleError, match="makes a privacy claim, but at level L1"):
        server(one)


def test_at_L1_the_report_says_nothing_about_votes_and_the_final_model_says_what_is_promised(one):
    said = server(one, "--test", one / "test.csv", "--json")
    report = json.loads((one / "result" / "report.json").read_text())
    assert report == json.loads(said.out)
    expected = price(Release(Laplace(0.5), 40, 3, 2, "party", abstentions=True), 1e-5).epsilon
    assert report["epsilon"] == pytest.approx(expected)
    assert (report["votes"], report["party_accuracy"], report["bytes_sent"]) == ({}, {}, None)
    text = (one / "result" / "report.json").read_text()
    # The final model is what is released: its own digest may stand there, those of bundles may not.
    sent = [look(read_plan(one / "plan.toml"), *file_at(one / "inbox" / f"{name}.fedkt")) for name in NAMES]
    digests = [digest for each in sent for digest in (each.sha256, each.identity)]
    for word in ("agreement", "abstention_", "unlabelled", '"ties"', '"sha256"', *digests):
        assert word not in text
    assert report["privacy_statement"]["unit"] == "party"
    assert statement_in(one / "result" / "final.onnx") == report["privacy_statement"]
    assert (one / "result" / "privacy.txt").read_text().strip() == report["privacy"]
    written = entries(one / LEDGER)
    assert [(each["who"], each["queries"], each["voters"]) for each in written] == [("server", 40, 3)]
    assert report["accuracy"] is not None


def test_a_server_that_runs_again_on_the_same_bundles_pays_once_and_on_others_is_refused(one):
    server(one)
    first = (one / "result" / "final.onnx").read_bytes()
    [kept] = one.glob(f"{LEDGER}.*.noise")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    server(one)
    assert (one / "result" / "final.onnx").read_bytes() == first
    assert len(entries(one / LEDGER)) == 1
    (one / "inbox" / "south.fedkt").unlink()
    with pytest.raises(PrivacyError, match="budget of 'server' does not cover"):
        server(one, "--min-parties", "2")
    assert (one / "result" / "final.onnx").read_bytes() == first
    assert len(entries(one / LEDGER)) == 1
    assert list(one.glob(f"{LEDGER}.*.noise")) == [kept]


def test_a_server_killed_before_it_wrote_anything_goes_on_without_paying_again(one, monkeypatch):
    def dies(*_, **__):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr("fedkt.live.result.write_final", dies)
        with pytest.raises(AssertionError, match="power cut"):
            server(one)
    assert len(entries(one / LEDGER)) == 1
    server(one)
    assert len(entries(one / LEDGER)) == 1


def test_a_second_vote_within_the_budget_is_told_with_the_price_of_both(one):
    plan = one / "plan.toml"
    new_plan(one, "--force", *LAPLACE, "--budget", "90")
    shutil.rmtree(one / "inbox")
    for name in NAMES:
        party(one, name)
    server(one, "--ledger", one / "votes")
    (one / "inbox" / "south.fedkt").unlink()
    report = json.loads(server(one, "--min-parties", "2", "--ledger", one / "votes", "--json").out)
    assert len(entries(one / "votes")) == 2
    assert any("holds 2 releases" in note for note in report["notes"])
    both = price_together(
        [Release(Laplace(0.5), 40, voters, 2, "party", abstentions=True) for voters in (3, 2)], 1e-5, adaptive=True
    ).epsilon
    promised = report["privacy_statement"]
    assert promised["total_epsilon"] == pytest.approx(both)
    assert promised["releases"] == 2
    assert promised["total_epsilon"] > promised["epsilon"]
    assert statement_in(one / "result" / "final.onnx") == promised
    assert "covers all 2 in the ledger so far" in (one / "result" / "privacy.txt").read_text()
    assert not plan.with_name(LEDGER).exists()


def test_the_same_noise_never_gives_two_results(tmp_path):
    noise = NoiseFile(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, None)
    noise.hold("b" * 64)
    labels = json.loads((tmp_path / "noise").read_text())["labels"]
    again = NoiseFile(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, labels)
    again.hold("b" * 64)
    with pytest.raises(PrivacyError, match="other labels than before"):
        again.hold("c" * 64)
    assert json.loads((tmp_path / "noise").read_text())["labels"] == labels


def test_two_servers_with_the_same_noise_do_not_both_give_labels(tmp_path):
    # Both began before either had given any.
    first, second = (NoiseFile(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, None) for _ in range(2))
    first.hold("b" * 64)
    held = (tmp_path / "noise").read_bytes()
    with pytest.raises(PrivacyError, match="other labels than before"):
        second.hold("c" * 64)
    assert (tmp_path / "noise").read_bytes() == held
    second.hold("b" * 64)


def test_the_labels_are_held_under_the_lock_of_the_ledger(tmp_path, monkeypatch):
    from fedkt.privacy import ledger_file

    monkeypatch.setattr(ledger_file, "LOCK_SECONDS", 0.05)
    noise = NoiseFile(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, None)
    with ledger_file.locked(tmp_path / "ledger"), pytest.raises(PrivacyError, match="in use by another process"):
        noise.hold("b" * 64)
    assert not (tmp_path / "noise").exists()


def test_a_plan_with_one_party_fewer_does_not_begin_a_ledger_of_its_own(one):
    server(one)
    new_plan(one, "--force", *LAPLACE, parties=NAMES[:2])
    for name in NAMES[:2]:
        party(one, name)
    (one / "inbox" / "west.fedkt").unlink()
    with pytest.raises(PrivacyError, match=f"{LEDGER} beside .* is the ledger of another set of parties"):
        server(one)
    server(one, "--ledger", one / "others.ledger")
    assert len(entries(one / LEDGER)) == len(entries(one / "others.ledger")) == 1


def test_damaged_noise_is_refused(one):
    server(one)
    [kept] = one.glob(f"{LEDGER}.*.noise")
    kept.write_text("{")
    with pytest.raises(PrivacyError, match="is damaged"):
        server(one)


def test_a_ledger_where_there_is_no_noise_is_refused(party_level, record_level):
    with pytest.raises(ConfigurationError, match="At level L1 a party adds no noise"):
        party(party_level, "north", "--ledger", party_level / "x")
    with pytest.raises(ConfigurationError, match="At level L2 the server adds no noise"):
        server(record_level, "--ledger", record_level / "x")


def failing(monkeypatch, *answers):
    """Students of south that answer so, one after the other; the others are honest. How many rows each run had."""
    from fedkt.algorithms.voting import base

    honest, asked, left = base.predict_all, [], list(answers)

    def predict(models, rows, sandbox):
        asked.append(len(rows))
        if "south" in models[0].name and (said := left.pop(0) if left else None) is not None:
            return [said]
        return honest(models, rows, sandbox)

    monkeypatch.setattr(base, "predict_all", predict)
    return asked


def test_at_L1_a_party_that_cannot_vote_is_found_before_anything_is_spent(one, monkeypatch):
    failing(monkeypatch, "it ran for ever", "it ran for ever")
    with pytest.raises(BundleError, match=r"2 of the 3 parties needed could vote(.|\n)*'south' does not vote"):
        server(one)
    assert not (one / LEDGER).exists()
    report = json.loads(server(one, "--min-parties", "2", "--json").out)
    assert (report["parties"], report["missing"]) == (2, ["south"])
    assert [each["voters"] for each in entries(one / LEDGER)] == [2]


def test_a_student_that_can_be_run_only_once_costs_nobody_the_budget(one, monkeypatch):
    asked = failing(monkeypatch, None, "it misses the vote")
    report = json.loads(server(one, "--json").out)
    assert asked == [40, 40, 40]
    assert (report["parties"], report["missing"]) == (3, [])
    assert len(entries(one / LEDGER)) == 1


@pytest.mark.parametrize("level", ["L0", "L2"])
def test_at_every_level_each_student_is_run_once(two, monkeypatch, level):
    if level == "L0":
        new_plan(two, "--force")
        for name in NAMES:
            party(two, name)
    asked = failing(monkeypatch)
    server(two)
    assert asked == [100, 100, 100]


def test_at_L1_the_error_of_a_student_is_told_to_the_server_and_stored_nowhere(one, monkeypatch):
    failing(monkeypatch, "row 7 gave class 5")
    said = server(one, "--min-parties", "2", "--json")
    assert "row 7 gave class 5" in said.err
    assert "row 7" not in said.out
    for path in (one / "result").iterdir():
        assert b"row 7" not in path.read_bytes()
    report = json.loads(said.out)
    why = "Party 'south' does not vote: a student could not be run."
    assert why in report["notes"]
    assert [each["reason"] for each in report["bundles"] if each["party"] == "south"] == [why]


def test_a_copied_plan_and_another_plan_over_the_same_parties_meet_in_one_ledger(one):
    new_plan(one, "--force", *LAPLACE, "--budget", "90")
    shutil.rmtree(one / "inbox")
    for name in NAMES:
        party(one, name)
    first = server(one)
    assert f"{LEDGER} is new: if noisy votes about these parties" in " ".join(first.out.split())
    shutil.copy(one / "plan.toml", one / "plan2.toml")
    final = (one / "result" / "final.onnx").read_bytes()
    arguments = ("--public", one / "public.csv", "--bundles", one / "inbox", "-o", one / "second")
    again = fedkt("server", one / "plan2.toml", *arguments)
    assert "is new" not in again.out
    assert (one / "second" / "final.onnx").read_bytes() == final
    assert len(entries(one / LEDGER)) == 1
    new_plan(one, "--force", *LAPLACE[:-1], "20", "--budget", "90")
    for name in NAMES:
        party(one, name)
    server(one)
    assert [each["queries"] for each in entries(one / LEDGER)] == [40, 20]


def test_a_ledger_named_after_its_plan_by_an_earlier_version_goes_on_being_used(one):
    server(one)
    for each in ("", ".head"):
        (one / f"{LEDGER}{each}").rename(one / f"plan.toml.ledger{each}")
    shutil.copy(one / "plan.toml", one / "plan2.toml")
    (one / "inbox" / "south.fedkt").unlink()
    for name in ("plan.toml", "plan2.toml"):
        with pytest.raises(PrivacyError, match=r"1 release, with this one .*plan\.toml\.ledger"):
            fedkt(
                *("server", one / name, "--public", one / "public.csv", "--bundles", one / "inbox"),
                *("-o", one / "result", "--min-parties", "2", "--force"),
            )
    shutil.copy(one / "plan.toml.ledger", one / LEDGER)
    with pytest.raises(PrivacyError, match=rf"2 ledgers beside .*: {LEDGER}, plan\.toml\.ledger\. Nothing is released"):
        server(one)


def test_noise_of_an_earlier_version_is_not_drawn_in_another_way(one):
    server(one)
    [kept] = one.glob(f"{LEDGER}.*.noise")
    said = json.loads(kept.read_text())
    kept.write_text(json.dumps({"belongs": said["belongs"], "noise_seed": 5, "labels": said["labels"]}))
    with pytest.raises(PrivacyError, match="of an earlier version that drew noise in another way"):
        server(one)


def test_noise_whose_labels_another_server_holds_is_not_forgotten(tmp_path):
    noise = NoiseFile(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, None, fresh=True)
    noise.hold("b" * 64)
    noise.forget()
    assert (tmp_path / "noise").exists()


def test_at_L2_the_same_noise_never_gives_two_students(two, monkeypatch):
    from fedkt.algorithms import lesson

    new_plan(two, "--force", *GAUSSIAN, "--budget", "20")
    power_cut(two, monkeypatch)
    state = json.loads((two / "work" / "shelf.json").read_text())
    [(key, digest)] = state["labels"].items()
    assert key in entries(two / "north.csv.ledger")[-1]["purpose"]
    honest = lesson.count_votes

    def otherwise(predictions, n_classes):
        return honest(1 - predictions, n_classes)

    with monkeypatch.context() as broken:
        broken.setattr(lesson, "count_votes", otherwise)
        with pytest.raises(PrivacyError, match="gave other votes than before this run was interrupted"):
            party(two, "north")
    assert json.loads((two / "work" / "shelf.json").read_text())["labels"] == {key: digest}
    assert not list((two / "work").glob("*.student"))
    party(two, "north")
    assert len(entries(two / "north.csv.ledger")) == 2


def test_a_shelf_of_an_earlier_version_that_is_paid_for_is_left_to_it(two):
    from fedkt.federation import Diary
    from fedkt.live.shelf import claim_shelf, read_state

    plan, folder, diary = read_plan(two / "plan.toml"), two / "old", Diary()
    folder.mkdir()
    drawn = claim_shelf(folder, plan, "north", "d", diary)
    state = read_state(folder)
    assert state.pop("noise_secret") == drawn.noise_seed
    (folder / "shelf.json").write_text(json.dumps({**state, "noise_seed": 5}))
    with pytest.raises(PrivacyError, match="paid for and not finished"):
        claim_shelf(folder, plan, "north", "d", diary)


def test_at_L1_sizes_are_not_shown_and_times_are_whole_seconds(one):
    said = server(one).out
    for name in NAMES:
        assert f"{(one / 'inbox' / f'{name}.fedkt').stat().st_size:,}" not in said
    report = json.loads((one / "result" / "report.json").read_text())
    assert report["seconds"] == int(report["seconds"])
    assert report["cpu_seconds"] == int(report["cpu_seconds"])


def test_at_L1_a_party_hears_that_it_has_few_rows_and_the_servers_report_does_not_tell(one):
    lines = (one / "south.csv").read_text().splitlines(keepends=True)
    (one / "south.csv").write_text("".join(lines[:4]))
    assert "'south' has 3 rows, fewer than 5 subsets" in " ".join(party(one, "south").err.split())
    server(one)
    report = json.loads((one / "result" / "report.json").read_text())
    assert not any("south" in note for note in report["notes"])
    assert (report["rows"], report["party_rows"]) == ({"public": 100}, {})


def test_a_party_of_two_rows_is_told_which_subsets_vote_by_the_fixed_rule(two):
    lines = (two / "south.csv").read_text().splitlines(keepends=True)
    (two / "south.csv").write_text("".join(lines[:3]))
    said = party(two, "south", "--ledger", two / "fresh").err
    # Two rows are in one subset or in two, and the other ones of the five have none.
    assert re.search(r"partition 1: [34] of 5 subsets have no rows; their votes follow a fixed rule", said)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": True},
        {"epsilon": float("nan")},
        {"epsilon": -1.0},
        {"queries": 2.0},
        {"voters": 0},
        {"total_epsilon": None},
        {"total_epsilon": 0.1},
        {"releases": 0},
        {"releases": 1.0},
        {"unit": "party"},
        {"adjacency": "add"},
        {"scale": {str(number): 1.0 for number in range(17)}},
        {"votes": 3},
    ],
)
def test_a_claim_of_another_form_is_not_read(record_level, change):
    from fedkt.bundle.manifest import Claim

    said = json.loads(fedkt("inspect", record_level / "inbox" / "north.fedkt", "--json").out)["claim"]
    assert Claim.model_validate_json(json.dumps(said)).model_dump(exclude_none=True) == said
    with pytest.raises(ValueError, match="validation error"):
        Claim.model_validate_json(json.dumps({**said, **change}))


def test_what_others_have_spent_in_the_same_ledger_is_told(two):
    shutil.copy(two / "north.csv", two / "south.csv")
    shutil.rmtree(two / "inbox")
    said = party(two, "south", "--ledger", two / "north.csv.ledger").err
    assert "also holds 1 release of 'north'" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mechanism", "gaussian"), "Level L0 adds no noise, but mechanism was given"),
        (("--epsilon", "2"), "Level L0 adds no noise"),
        (("--budget", "2"), "Level L0 adds no noise"),
        (("--queries", "5"), "Level L0 adds no noise"),
        (("--level", "L1"), "Level L1 needs a noise"),
        (("--level", "L2", "--mechanism", "gaussian"), "Level L2 needs a noise"),
        (("--level", "L2", "--sigma", "4", "--gamma", "1"), "One noise at a time"),
        (("--level", "L2", "--mechanism", "gaussian", "--sigma", "4", "--epsilon", "2"), "not both"),
        (("--level", "L2", "--mechanism", "gaussian", "--gamma", "4"), "gaussian noise takes sigma"),
        (("--level", "L2", "--mechanism", "cauchy", "--gamma", "4"), "no noise 'cauchy'"),
        (("--level", "L2", "--mechanism", "gaussian", "--sigma", "0"), "above zero"),
        ((*GAUSSIAN[:6], "--queries", "101"), "between 1 and the 100 public rows"),
        ((*GAUSSIAN[:6], "--queries", "1.5"), "queries"),
        ((*GAUSSIAN, "--budget", "0.1"), "budget of epsilon 0.1 does not cover one run, which costs"),
        ((*GAUSSIAN, "--budget", "-1"), "privacy.budget"),
        ((*GAUSSIAN, "--delta", "2"), "privacy.delta"),
        ((*GAUSSIAN, "--adjacency", "remove"), "privacy.adjacency"),
        ((*LAPLACE, "--adjacency", "add-or-remove"), "At level L1 a party's rows are replaced"),
        (("--level", "L9"), "no privacy level 'L9'|Level L9"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_words(record_level, tmp_path, words, message):
    shutil.copy(record_level / "public.csv", tmp_path / "public.csv")
    with pytest.raises(FedKTError, match=message):
        new_plan(tmp_path, *words)
    assert not (tmp_path / "plan.toml").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('level = "L2"', 'level = "L0"', "level L0 adds no noise. Remove the"),
        ('adjacency = "replace-one"', 'adjacency = "add"', r"privacy\.adjacency"),
        ("queries = 30", "queries = 1000", "between 1 and the 100 public rows"),
        ("queries = 30", "queries = true", r"privacy\.queries"),
        ("delta = 1e-05", "delta = 0", r"privacy\.delta"),
        ("{sigma = 8.0}", "{sigma = nan}", "finite|NaN|nan"),
        ("{sigma = 8.0}", "{sigma = 8.0, gamma = 1.0}", "it has no gamma"),
        ('mechanism = "gaussian"', 'mechanism = "cauchy"', "no noise 'cauchy'"),
        ('mechanism = "gaussian"', "", r"privacy\.mechanism is missing"),
    ],
)
def test_a_wrong_private_plan_is_refused_with_its_key(record_level, old, new, message):
    text = (record_level / "plan.toml").read_text()
    assert old in text
    with pytest.raises(PlanError, match=message):
        parse_plan(text.replace(old, new).encode(), "plan.toml")


def test_a_private_plan_survives_toml_and_defaults_to_one_partition(record_level):
    text = (record_level / "plan.toml").read_text()
    plan = parse_plan(text.encode(), "plan.toml")
    assert parse_plan(plan.to_toml().encode(), "again").digest == plan.digest
    assert plan.partitions == 1
    assert parse_plan(text.replace("partitions = 1 ", "# ").encode(), "plan.toml").partitions == 1
    algorithm = plan.algorithm()
    assert (algorithm.level, algorithm.noise, algorithm.queries) == ("L2", Gaussian(8.0), 30)
    cost = price(Release(Gaussian(8.0), 30, 5, 2, "record"), 1e-5).epsilon
    assert cost <= plan.budget <= cost + 0.001
    without = "\n".join(line for line in text.splitlines() if not line.startswith("budget"))
    assert parse_plan(without.encode(), "plan.toml").budget == plan.budget


def test_an_epsilon_is_calibrated_and_the_plan_says_what_it_promises(tmp_path, record_level):
    shutil.copy(record_level / "public.csv", tmp_path / "public.csv")
    new_plan(tmp_path, "--level", "L2", "--epsilon", "2", "--queries", "20")
    plan = read_plan(tmp_path / "plan.toml")
    assert 1.99 < plan.price().epsilon <= 2 <= plan.budget
    words = fedkt("plan", "check", tmp_path / "plan.toml").out
    for part in ("epsilon 2.000 at delta 1e-05 for one record", "each record", "may cost epsilon 2", "not protected"):
        assert part in words
    new_plan(tmp_path, "--force", *LAPLACE, "--seed", "private")
    assert "for one party" in fedkt("plan", "check", tmp_path / "plan.toml").out


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (("--most-epsilon", "1"), r"epsilon 3\.27\d for one record, and you allow 1\."),
        (("--most-delta", "1e-6"), r"delta 1e-05, and you allow 1e-06\."),
        (("--most-epsilon", "1", "--most-delta", "1e-6"), r"you allow 1; delta 1e-05"),
    ],
)
def test_a_plan_beyond_a_partys_own_limits_is_refused_before_its_rows_are_read(two, limits, message):
    with pytest.raises(PrivacyError, match=f"asks more of 'north' than its own limits allow: .*{message}"):
        party(two, "north", *limits, "--ledger", two / "fresh", data=two / "there is no such file.csv")
    assert not (two / "fresh").exists()


def test_a_partys_own_limit_also_holds_for_the_total_in_its_ledger(two):
    new_plan(two, "--force", *GAUSSIAN, "--budget", "20")
    with pytest.raises(PrivacyError, match=r"limit of its own \(--most-epsilon\) of 'north' does not cover.* is 4 at"):
        party(two, "north", "--most-epsilon", "4")
    assert len(entries(two / "north.csv.ledger")) == 1
    party(two, "north", "--most-epsilon", "6", "--most-delta", "1e-5")
    assert len(entries(two / "north.csv.ledger")) == 2


def test_at_other_levels_a_limit_is_held_against_what_is_promised(one):
    cost = read_plan(one / "plan.toml").price().epsilon
    party(one, "north", "--most-epsilon", str(cost + 0.01))
    with pytest.raises(PrivacyError, match="for one party, and you allow 2"):
        party(one, "north", "--most-epsilon", "2")
    new_plan(one, "--force", *LAPLACE, "--budget", "90")
    with pytest.raises(PrivacyError, match="a budget of epsilon 90 for one party"):
        party(one, "north", "--most-epsilon", str(cost + 0.01))
    new_plan(one, "--force")
    with pytest.raises(PrivacyError, match="level L0 adds no noise, so epsilon is infinite"):
        party(one, "north", "--most-delta", "1e-5")


@pytest.mark.parametrize("limit", [("--most-epsilon", "nan"), ("--most-epsilon", "0"), ("--most-delta", "1")])
def test_a_limit_that_is_none_is_refused(two, limit):
    with pytest.raises(ConfigurationError, match=f"{limit[0]} must lie between 0 and"):
        party(two, "north", *limit)


def test_a_plan_with_a_large_delta_or_a_scale_that_no_noise_has_is_told(two):
    new_plan(two, "--force", *GAUSSIAN, "--delta", "0.9")
    assert "delta 0.9 is a chance of 0.9" in " ".join(fedkt("plan", "check", two / "plan.toml").out.split())
    said = json.loads(fedkt("plan", "check", two / "plan.toml", "--json").out)
    assert any("delta 0.9" in each for each in said["cautions"])
    assert said["chances"][0]["agree"] == said["chances"][0]["voters"]
    assert all(0.5 < each["right"] <= 1 for each in said["chances"])
    assert "--voting expert" in said["advice"]
    for sigma in ("1e300", "1e-300"):
        with pytest.raises(FedKTError, match="sigma of gaussian noise"):
            new_plan(two, "--force", *GAUSSIAN[:5], sigma, "--queries", "30")


def test_a_server_at_L2_does_not_take_parties_for_records_when_it_warns_of_delta(two):
    """It knows how many parties there are, and of nobody's rows how many."""
    new_plan(two, "--force", *GAUSSIAN, "--delta", "0.5")
    for name in NAMES:
        party(two, name, "--ledger", two / f"{name}.another.ledger")
    notes = json.loads(server(two, "--json").out)["notes"]
    assert not any("larger than one in" in note for note in notes)
    assert any("delta 0.5 is a chance of 0.5 that nothing at all is protected" in note for note in notes)


@pytest.mark.parametrize("family", ["naive-bayes", "svm", "hist-boosting"])
def test_at_L1_what_the_server_writes_is_a_function_of_noisy_labels_and_of_rows_that_are_nobodys(
    tmp_path, monkeypatch, family
):
    """A party's students are others, the noisy labels happen to be the same: so are all files but the ledger."""
    build(tmp_path)
    new_plan(tmp_path, "--force", *LAPLACE, "--seed", "7", "--final", family)
    for name in NAMES:
        party(tmp_path, name)
    drawn, votes = Ledger.release, []

    def same_labels(ledger, count, release, **noise):
        def counted():
            votes.append(np.asarray(count()))
            return votes[-1]

        labels = drawn(ledger, counted, release, **noise)
        # Some pattern that the vote has nothing to do with.
        return np.where(np.arange(len(labels)) % 3 == 0, 1, 0)

    monkeypatch.setattr(Ledger, "release", same_labels)
    options = ("--test", tmp_path / "test.csv", "--ledger", tmp_path / "shared.ledger")
    server(tmp_path, *options)
    before = {path.name: path.read_bytes() for path in (tmp_path / "result").iterdir()}
    text = (tmp_path / "west.csv").read_text()
    turned = text.replace("benign", "?").replace("malignant", "benign").replace("?", "malignant")
    (tmp_path / "west.csv").write_text(turned)
    party(tmp_path, "west")
    shutil.rmtree(tmp_path / "result")
    for path in tmp_path.glob("shared.ledger*"):
        path.unlink()
    server(tmp_path, *options)
    after = {path.name: path.read_bytes() for path in (tmp_path / "result").iterdir()}
    assert (votes[0] != votes[1]).any()
    assert before.keys() == after.keys()
    for name in before.keys() - {"report.json"}:
        assert before[name] == after[name], name
    clocks = {"seconds", "cpu_seconds"}
    first, second = (
        {key: value for key, value in json.loads(each["report.json"]).items() if key not in clocks}
        for each in (before, after)
    )
    assert first == second
