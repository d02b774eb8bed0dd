"""What version 0.1.0 wrote is read for ever: plans, bundles, ledgers, final models and results.

What is expected was written beside the files by 0.1.0 itself (see README.md). Labels are compared exactly, numbers that
a runtime computes within round-off, so that another version of a library changes nothing here.
"""

import base64
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from asked_for import DIGITS
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from golden_reading import (
    answers,
    bundle_in,
    outputs,
    plan_in,
    public_rows,
    runs_in,
    tables_of,
    told,
)

from command_line import fedkt
from fedkt import Bundle, Plan

HERE = Path(__file__).parent / "released"
PUBLIC, PICTURES, NEW = HERE / "public.csv", HERE / "public-images-idx3-ubyte", HERE / "new.csv"
ROUND_OFF = 1e-5


def expected(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))


PLANS, BUNDLES = expected("plans.json"), expected("bundles.json")
FINALS = sorted(path.name for path in (HERE / "final").iterdir())
SAME_PLAN = ("hand-turned", "hand-crlf")


def includes(whole, part):
    """Whether all of `part` is in `whole`, which may have keys that came later."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and includes(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(includes, whole, part))
    return whole == part


def copied(name, to):
    return Path(shutil.copytree(HERE / name, to / name))


def plan_of(name):
    folder, bundle = (HERE / name).parent, HERE / name
    return bundle.with_suffix(".toml") if folder.name == "private" else folder / "plan.toml"


def test_the_files_cover_every_level_voting_noise_and_family():
    said = [entry["plan"] for entry in PLANS.values()]
    assert {(each["level"], each["voting"]) for each in said} == {
        *(("L0", voting) for voting in ("consistent", "expert", "expert-no-counts")),
        *(("L1", "consistent"), ("L2", "consistent"), ("L2", "expert")),
    }
    noises = {"laplace", "gaussian", "gumbel", "confident-gaussian"}
    for level in ("L1", "L2"):
        assert {each["privacy"]["mechanism"] for each in said if each["level"] == level} == noises
    table = {"forest", "extra-trees", "tree", "boosting", "hist-boosting", "lightgbm", "logistic", "naive-bayes", "mlp"}
    for voting, all_of_it in (
        ("consistent", table | {"svm"}),
        ("expert", table | {"svm"}),
        ("expert-no-counts", table),
    ):
        assert {path.stem for path in (HERE / voting).glob("*.fedkt")} == all_of_it
    signed = {name.split("/")[1] for name, entry in BUNDLES.items() if entry["signature"]}
    assert signed == table | {"svm", "cnn"}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_says_what_it_said_and_has_its_digest(name):
    said = told("plan", "check", HERE / "plans" / f"{name}.toml", "--public", PUBLIC)
    assert said["digest"] == PLANS[name]["digest"]
    assert includes(said["plan"], PLANS[name]["plan"])


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_is_written_anew_is_the_same_plan(name, tmp_path):
    plan = plan_in(HERE / "plans" / f"{name}.toml")
    assert isinstance(plan, Plan)
    (tmp_path / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
    again = plan_in(tmp_path / "plan.toml")
    assert again == plan
    assert again.digest == PLANS[name]["digest"]


def test_layout_is_no_part_of_a_plan_and_everything_else_is():
    same = PLANS["L2-expert-gaussian"]["digest"]
    assert [PLANS[name]["digest"] for name in SAME_PLAN] == [same, same]
    assert PLANS["hand-bare"]["digest"] == PLANS["L0-consistent"]["digest"]
    others = {entry["digest"] for name, entry in PLANS.items() if name not in (*SAME_PLAN, "hand-bare")}
    assert len(others) == len(PLANS) - len(SAME_PLAN) - 1


SINCE_THEN = {
    ("confident-gaussian", "consistent"): 0.872,
    ("gaussian", "expert"): 0.769,
    ("gumbel", "expert"): 0.891,
    ("laplace", "expert"): 0.6,
}
"""What a plan costs, as a part of what 0.1.0 said it costs, wherever that is not the same."""


@pytest.mark.parametrize("name", [name for name, entry in PLANS.items() if entry["epsilon"] is not None])
def test_a_plan_costs_what_it_cost_or_what_changes_md_says(name):
    plan = plan_in(HERE / "plans" / f"{name}.toml")
    ratio = plan.price().epsilon / PLANS[name]["epsilon"]
    part = SINCE_THEN.get((plan.privacy.mechanism, plan.voting))
    assert ratio == (pytest.approx(1, rel=1e-5) if part is None else pytest.approx(part, abs=1e-3))
    assert plan.price().epsilon <= plan.budget


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_is_inspected_as_it_was(name):
    before = BUNDLES[name]
    said = told("inspect", HERE / f"{name}.fedkt", "--plan", plan_of(name))
    assert includes(said, before["inspect"])
    assert said["sha256"] == before["sha256"]
    manifest = before["manifest"]
    for key in ("party", "plan", "classes", "versions", "claim", "counts"):
        assert includes(said.get(key), manifest.get(key)), key
    assert said["features"] == manifest["n_features"]
    assert [(each["name"], each["bytes"], each["sha256"]) for each in said["models"]] == [
        (each["name"], each["size"], each["sha256"]) for each in manifest["files"]
    ]


@pytest.mark.parametrize("name", [name for name, entry in BUNDLES.items() if entry["signature"]])
def test_a_signature_is_over_the_manifest_and_fits_the_key_in_the_plan(name, tmp_path):
    key = plan_in(plan_of(name)).keys[BUNDLES[name]["manifest"]["party"]]
    with zipfile.ZipFile(HERE / f"{name}.fedkt") as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    assert members["manifest.sig"].hex() == BUNDLES[name]["signature"]
    Ed25519PublicKey.from_public_bytes(base64.b64decode(key)).verify(members["manifest.sig"], members["manifest.json"])
    forged = tmp_path / "forged.fedkt"
    with zipfile.ZipFile(forged, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, bytes(64) if member == "manifest.sig" else data)
    assert fedkt("inspect", str(forged), "--plan", str(plan_of(name))).returncode == 1


def received(name, plan):
    """A bundle, which says of itself what it said."""
    before, manifest = BUNDLES[name], BUNDLES[name]["manifest"]
    bundle = bundle_in(HERE / f"{name}.fedkt", plan)
    assert isinstance(bundle, Bundle)
    assert (bundle.sender, bundle.plan, bundle.identity) == (manifest["party"], manifest["plan"], before["identity"])
    assert (bundle.signed, bundle.issue) == (before["signature"] is not None, 0)
    assert list(bundle.counts or ()) == manifest.get("counts", [])
    assert len(bundle.models) == len(before["labels"])
    return bundle


@pytest.mark.parametrize("plan_file", sorted({plan_of(name) for name in BUNDLES}), ids=lambda path: path.parent.name)
def test_a_bundle_is_received_as_it_was_and_its_students_say_what_they_said(plan_file):
    public, plan = PICTURES if plan_file.parent.name.startswith("pictures") else PUBLIC, plan_in(plan_file)
    names = [name for name in BUNDLES if plan_of(name) == plan_file]
    models = [model for name in names for model in received(name, plan).models]
    labels, sure = answers(models, public_rows(plan, public), outputs(plan))
    assert [each.tolist() for each in labels] == [given for name in names for given in BUNDLES[name]["labels"]]
    before = [given for name in names for given in BUNDLES[name]["probabilities"]]
    assert len(sure) == len(before)
    for now, then in zip(sure, before, strict=True):
        np.testing.assert_allclose(now, then, atol=ROUND_OFF)


@pytest.mark.parametrize("name", FINALS)
def test_a_final_model_predicts_the_labels_it_predicted(name):
    before, final = expected(f"final/{name}/expected.json"), HERE / "final" / name / "final.onnx"
    said = told("predict", final, NEW)
    assert includes(said, before["predict"])
    shown = told("inspect", final, "--plan", HERE / name / "plan.toml")
    # 0.1.0 signed no final model and said so; since 0.2.0 this one is not signed.
    assert shown["signature"] == "none: not signed"
    assert includes(shown, {key: value for key, value in before["inspect"].items() if key != "signature"})
    assert shown["verdict"] == "made under this plan"


@pytest.mark.parametrize("name", FINALS)
def test_a_server_counts_the_bundles_as_it_counted_them_and_writes_a_final_model_of_the_same_labels(name, tmp_path):
    """Its bytes are others: 0.1.0 wrote neither probabilities nor a model card into it."""
    before = expected(f"final/{name}/report.json")
    now = told(
        *("server", HERE / name / "plan.toml", "--public", PUBLIC, "--bundles", HERE / name, "-o", tmp_path / "result")
    )
    same = ("dataset", "algorithm", "model", "parties", "partitions", "subsets", "level", "seed", "epsilon", "privacy")
    assert {key: now[key] for key in same} == {key: before[key] for key in same}
    for key in ("plan", "missing", "bytes_sent", "notes", "privacy_statement"):
        assert includes(now[key], before[key]), key
    assert [(each["party"], each["status"], each["sha256"]) for each in now["bundles"]] == [
        (each["party"], each["status"], each["sha256"]) for each in before["bundles"]
    ]
    assert now["votes"].keys() >= before["votes"].keys()
    for key, value in before["votes"].items():
        assert now["votes"][key] == (pytest.approx(value, abs=ROUND_OFF) if isinstance(value, float) else value), key
    new = tmp_path / "result" / "final.onnx"
    assert told("predict", new, NEW)["predictions"] == expected(f"final/{name}/expected.json")["predict"]["predictions"]


def entries_and_total(ledger, to):
    """What a ledger holds, and its one total; read from a copy, since a reader may put a lock beside it."""
    folder = copied(Path(ledger).parent.name, to)
    said = told("privacy", "ledger", folder / Path(ledger).name)
    (total,) = said["totals"]
    return said["entries"], total


def test_a_ledger_holds_what_it_held_and_several_releases_may_cost_more(tmp_path):
    """What several releases cost together is since 0.2 the least budget that would have let all of them pass."""
    before = expected("private/north.json")
    entries, now = entries_and_total("private/north.ledger", tmp_path)
    assert includes(entries, before["entries"])
    assert [entry["mechanism"] for entry in entries] == ["gaussian", "laplace", "gaussian-counts", "confident-gaussian"]
    (then,) = before["totals"]
    assert {**now, "epsilon": 0} == {**then, "epsilon": 0}
    assert then["epsilon"] <= now["epsilon"] <= 1.25 * then["epsilon"]


def test_one_release_in_a_ledger_costs_what_it_cost(tmp_path):
    before = expected("level-one/ledger.json")
    entries, now = entries_and_total("level-one/plan.toml.ledger", tmp_path)
    assert includes(entries, before["entries"])
    assert now == {**before["totals"][0], "epsilon": pytest.approx(before["totals"][0]["epsilon"])}


def test_noise_kept_for_a_servers_vote_is_not_used_again(tmp_path):
    """The vote would be counted with new noise, which the ledger charges: the budget was for one run."""
    folder = copied("level-one", tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = fedkt(
        *("server", str(folder / "plan.toml"), "--public", str(PUBLIC), "--bundles", str(folder)),
        *("-o", str(tmp_path / "result")),
    )
    assert done.returncode == 1
    assert "The budget of 'server' does not cover this release" in done.stderr
    after = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}
    assert after == before
    assert not (tmp_path / "result" / "final.onnx").exists()


def resumed(level, tmp_path):
    folder = copied(f"interrupted-{level}", tmp_path)
    return folder, fedkt(
        *("party", str(folder / "plan.toml"), "--name", "north", "--data", str(folder / "north.csv")),
        *("--public", str(PUBLIC), "-o", str(folder / "out"), "--work", str(folder / "work")),
    )


def test_a_private_run_that_was_interrupted_is_neither_finished_with_its_old_noise_nor_thrown_away(tmp_path):
    folder, done = resumed("L2", tmp_path)
    assert done.returncode == 1
    assert "holds a run that is paid for and not finished" in done.stderr
    assert not (folder / "out").exists()
    kept = HERE / "interrupted-L2"
    for name in ("north.csv.ledger", "work/shelf.json", "work/student-0.student"):
        assert (folder / name).read_bytes() == (kept / name).read_bytes()


def test_a_run_without_noise_that_was_interrupted_is_done_again(tmp_path):
    folder, done = resumed("L0", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "it is done again from the beginning" in done.stderr
    assert (folder / "out" / "north.fedkt").is_file()
    assert not (folder / "work").exists()


@pytest.mark.parametrize("name", expected("results/runs.json"))
def test_a_kept_run_is_found_by_its_setting_and_reports_what_it_reported(name):
    before, now = expected("results/runs.json")[name], runs_in(HERE / "results" / name)
    assert list(now) == list(before)
    for key in before:
        plain = json.loads(json.dumps(now[key]))
        assert includes(plain, before[key])


def test_kept_lines_that_are_no_runs_give_the_tables_they_gave():
    assert json.loads(json.dumps(tables_of(HERE / "results"))) == expected("results/tables.json")


def test_runs_that_were_kept_are_not_made_again(tmp_path):
    file = tmp_path / "digits.jsonl"
    kept = (HERE / "results" / "compare" / "digits.jsonl").read_bytes()
    file.write_bytes(kept)
    said = told(*DIGITS, "--results", file)
    assert file.read_bytes().startswith(kept)
    new = [json.loads(line)["setting"] for line in file.read_bytes()[len(kept) :].splitlines()]
    # FedKT's final model learns distributions now, which is another setting: its runs of then stay, and are others.
    assert [(each["algorithm"], each["soft_final"]) for each in new] == [("fedkt", True), ("fedkt-expert", True)]
    (solo,) = (each for each in said["algorithms"] if each["algorithm"] == "solo")
    (before,) = (each for each in expected("results/compare/digits.json")["algorithms"] if each["algorithm"] == "solo")
    assert includes(solo, before)
