"""The private levels between organisations: what is promised, what is written down, and what is refused."""

import json
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
from fedkt.party_side import Shelf
from fedkt.plan import parse_plan, read_plan
from fedkt.privacy import Gaussian, Laplace, Release
from fedkt.privacy.accountant import price
from fedkt.privacy.accountant.together import price_together
from fedkt.server_side.claims import claim_fault
from fedkt.server_side.inbox import look
from fedkt.server_side.noise import KeptNoise
from live_federation import NAMES, build, fedkt, new_plan, party, server

GAUSSIAN = ("--level", "L2", "--mechanism", "gaussian", "--sigma", "8", "--queries", "30")
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
    assert "by 3 releases in the ledger so far" in " ".join(said.out.split())
    report = json.loads(server(two, "--json").out)
    claims = {each["party"]: each["claim"] for each in report["bundles"]}
    assert {name: claim["releases"] for name, claim in claims.items()} == {"north": 3, "south": 2, "west": 2}
    assert claims["north"]["epsilon"] == pytest.approx(once)
    assert claims["north"]["total_epsilon"] >= thrice * (1 - 1e-9)
    assert report["epsilon"] == pytest.approx(once)
    promised = report["privacy_statement"]
    assert (promised["total_epsilon"], promised["releases"]) == (claims["north"]["total_epsilon"], 3)
    assert statement_in(two / "result" / "final.onnx") == promised
    assert "all 3 in the ledger so far cost epsilon" in (two / "result" / "privacy.txt").read_text()
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

    monkeypatch.setattr("fedkt.algorithms.fedkt.learn_students", forbidden)
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
    assert json.loads(state.read_text())["noise_seed"] > 2**64
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


def test_rows_that_changed_after_an_interruption_get_noise_of_their_own(two, monkeypatch):
    new_plan(two, "--force", *GAUSSIAN, "--budget", "20")

    def dies(*_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(Shelf, "__setitem__", dies)
        with pytest.raises(AssertionError, match="power cut"):
            party(two, "north")
    seed = json.loads((two / "work" / "shelf.json").read_text())["noise_seed"]
    lines = (two / "north.csv").read_text().splitlines(keepends=True)
    (two / "north.csv").write_text("".join(lines[:-1]))
    with monkeypatch.context() as broken:
        broken.setattr(Shelf, "__setitem__", dies)
        with pytest.raises(AssertionError, match="power cut"):
            party(two, "north")
    assert json.loads((two / "work" / "shelf.json").read_text())["noise_seed"] != seed
    assert len(entries(two / "north.csv.ledger")) == 3


def test_a_small_party_claims_no_less_than_one_with_rows_enough(two):
    new_plan(
        two, "--force", "--level", "L2", "--mechanism", "laplace", "--gamma", "0.3", "--queries", "5", "--budget", "9"
    )
    lines = (two / "south.csv").read_text().splitlines(keepends=True)
    (two / "south.csv").write_text("".join(lines[:4]))
    for name in NAMES:
        party(two, name, "--ledger", two / f"{name}.fresh")
    report = json.loads(server(two, "--json").out)
    claims = {each["party"]: each["claim"] for each in report["bundles"]}
    assert {name: claim["voters"] for name, claim in claims.items()} == {"north": 5, "south": 3, "west": 5}
    by_hand = {v: price(Release(Laplace(0.3), 5, v, 2, "record"), 1e-5).epsilon for v in (3, 5)}
    assert by_hand[3] < by_hand[5]
    assert claims["south"]["epsilon"] == pytest.approx(by_hand[5])
    assert report["epsilon"] == pytest.approx(by_hand[5])


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
    bundle = look(plan, path).bundle
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
    bundle = look(plan, path).bundle
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
    claim = look(read_plan(two / "plan.toml"), two / "inbox" / "north.fedkt").bundle.claim
    assert "counts 1 releases, fewer than the 2" in claim_fault(plan, claim.model_copy(update={"partitions": 2}))


def test_a_claim_has_no_place_at_a_level_without_noise_at_the_parties(one, record_level):
    plan = read_plan(one / "plan.toml")
    rows = plan.columns.encode(plan.read_public(one / "public.csv"))
    claim = look(read_plan(record_level / "plan.toml"), record_level / "inbox" / "north.fedkt").bundle.claim
    path = one / "inbox" / "north.fedkt"
    path.write_bytes(pack(look(plan, path).bundle, check_rows=rows, claim=claim))
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
    sent = [look(read_plan(one / "plan.toml"), one / "inbox" / f"{name}.fedkt") for name in NAMES]
    digests = [digest for each in sent for digest in (each.sha256, each.identity)]
    for word in ("agreement", "abstention_", "unlabelled", '"ties"', '"sha256"', *digests):
        assert word not in text
    assert report["privacy_statement"]["unit"] == "party"
    assert statement_in(one / "result" / "final.onnx") == report["privacy_statement"]
    assert (one / "result" / "privacy.txt").read_text().strip() == report["privacy"]
    written = entries(one / "plan.toml.ledger")
    assert [(each["who"], each["queries"], each["voters"]) for each in written] == [("server", 40, 3)]
    assert report["accuracy"] is not None


def test_a_server_that_runs_again_on_the_same_bundles_pays_once_and_on_others_is_refused(one):
    server(one)
    first = (one / "result" / "final.onnx").read_bytes()
    [kept] = one.glob("plan.toml.ledger.*.noise")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    server(one)
    assert (one / "result" / "final.onnx").read_bytes() == first
    assert len(entries(one / "plan.toml.ledger")) == 1
    (one / "inbox" / "south.fedkt").unlink()
    with pytest.raises(PrivacyError, match="budget of 'server' does not cover"):
        server(one, "--min-parties", "2")
    assert (one / "result" / "final.onnx").read_bytes() == first
    assert len(entries(one / "plan.toml.ledger")) == 1
    assert list(one.glob("plan.toml.ledger.*.noise")) == [kept]


def test_a_server_killed_before_it_wrote_anything_goes_on_without_paying_again(one, monkeypatch):
    def dies(*_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr("fedkt.server_side.host.write_final", dies)
        with pytest.raises(AssertionError, match="power cut"):
            server(one)
    assert len(entries(one / "plan.toml.ledger")) == 1
    server(one)
    assert len(entries(one / "plan.toml.ledger")) == 1


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
    assert "all 2 in the ledger so far cost epsilon" in (one / "result" / "privacy.txt").read_text()
    assert not plan.with_name("plan.toml.ledger").exists()


def test_the_same_noise_never_gives_two_results(tmp_path):
    noise = KeptNoise(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, None)
    noise.hold(np.array([0, 1, 1]))
    labels = json.loads((tmp_path / "noise").read_text())["labels"]
    again = KeptNoise(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, labels)
    again.hold(np.array([0, 1, 1]))
    with pytest.raises(PrivacyError, match="other labels than before"):
        again.hold(np.array([0, 1, 0]))
    assert json.loads((tmp_path / "noise").read_text())["labels"] == labels


def test_two_servers_with_the_same_noise_do_not_both_give_labels(tmp_path):
    # Both began before either had given any.
    first, second = (KeptNoise(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, None) for _ in range(2))
    first.hold(np.array([0, 1, 1]))
    held = (tmp_path / "noise").read_bytes()
    with pytest.raises(PrivacyError, match="other labels than before"):
        second.hold(np.array([0, 1, 0]))
    assert (tmp_path / "noise").read_bytes() == held
    second.hold(np.array([0, 1, 1]))


def test_the_labels_are_held_under_the_lock_of_the_ledger(tmp_path, monkeypatch):
    from fedkt.privacy import book

    monkeypatch.setattr(book, "LOCK_SECONDS", 0.05)
    noise = KeptNoise(tmp_path / "noise", tmp_path / "ledger", "a" * 64, 5, None)
    with book.locked(tmp_path / "ledger"), pytest.raises(PrivacyError, match="in use by another process"):
        noise.hold(np.array([0, 1, 1]))
    assert not (tmp_path / "noise").exists()


def test_damaged_noise_is_refused(one):
    server(one)
    [kept] = one.glob("plan.toml.ledger.*.noise")
    kept.write_text("{")
    with pytest.raises(PrivacyError, match="is damaged"):
        server(one)


def test_a_ledger_where_there_is_no_noise_is_refused(party_level, record_level):
    with pytest.raises(ConfigurationError, match="At level L1 a party adds no noise"):
        party(party_level, "north", "--ledger", party_level / "x")
    with pytest.raises(ConfigurationError, match="At level L2 the server adds no noise"):
        server(record_level, "--ledger", record_level / "x")


def test_at_L1_a_party_that_cannot_vote_is_found_before_anything_is_spent(one, monkeypatch):
    from fedkt.server_side import noise

    def fails(models, rows):
        return ["it ran for ever"] if "south" in models[0].name else [np.zeros(len(rows), np.int64)]

    monkeypatch.setattr(noise, "predict_all", fails)
    with pytest.raises(BundleError, match=r"2 of the 3 parties needed could vote(.|\n)*'south' does not vote"):
        server(one)
    assert not (one / "plan.toml.ledger").exists()
    report = json.loads(server(one, "--min-parties", "2", "--json").out)
    assert (report["parties"], report["missing"]) == (2, ["south"])
    assert [each["voters"] for each in entries(one / "plan.toml.ledger")] == [2]


def test_at_L1_the_error_of_a_student_is_told_to_the_server_and_stored_nowhere(one, monkeypatch):
    from fedkt.server_side import noise

    asked = []

    def fails(models, rows):
        asked.append(len(rows))
        return ["row 7 gave class 5"] if "south" in models[0].name else [np.zeros(len(rows), np.int64)]

    monkeypatch.setattr(noise, "predict_all", fails)
    said = server(one, "--min-parties", "2", "--json")
    assert asked == [40, 40, 40]
    assert "row 7 gave class 5" in said.err
    assert "row 7" not in said.out
    for path in (one / "result").iterdir():
        assert b"row 7" not in path.read_bytes()
    report = json.loads(said.out)
    why = "Party 'south' does not vote: a student could not be run."
    assert why in report["notes"]
    assert [each["reason"] for each in report["bundles"] if each["party"] == "south"] == [why]


def test_at_L1_an_error_during_the_vote_is_not_stored_either(one, monkeypatch):
    from fedkt.algorithms import fedkt as algorithm

    honest = algorithm.ask

    def fails(task):
        return ["row 7 gave class 5"] if "south" in task[0][0].name else honest(task)

    monkeypatch.setattr(algorithm, "ask", fails)
    said = server(one, "--min-parties", "2", "--json")
    assert "row 7 gave class 5" in said.err
    assert "row 7" not in said.out + (one / "result" / "report.json").read_text()
    assert "Party 'south' does not vote: a student could not be run." in json.loads(said.out)["notes"]


def test_at_L1_sizes_are_not_shown_and_times_are_whole_seconds(one):
    said = server(one).out
    for name in NAMES:
        assert f"{(one / 'inbox' / f'{name}.fedkt').stat().st_size:,}" not in said
    report = json.loads((one / "result" / "report.json").read_text())
    assert report["seconds"] == int(report["seconds"])
    assert report["cpu_seconds"] == int(report["cpu_seconds"])


def test_a_party_too_small_for_the_budget_is_refused_with_the_reason(two):
    lines = (two / "south.csv").read_text().splitlines(keepends=True)
    (two / "south.csv").write_text("".join(lines[:3]))
    text = (two / "plan.toml").read_text()
    (two / "plan.toml").write_text(text.replace("queries = 30", "queries = 60"))
    with pytest.raises(PrivacyError, match=r"With 2 rows, fewer than the 5 subsets agreed on"):
        party(two, "south", "--ledger", two / "fresh")
    assert not (two / "fresh").exists()


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
        {"adjacency": "add-or-remove"},
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
        ((*GAUSSIAN, "--adjacency", "add-or-remove"), "subsets are cut by shuffling"),
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
        ('adjacency = "replace-one"', 'adjacency = "add-or-remove"', r"privacy\.adjacency: only replace-one"),
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
