"""The commands with which organisations that exchange only files run a federation."""

import csv
import hashlib
import io
import json
import re
import runpy
import shlex
import shutil
import stat
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

from fedkt.algorithms import FedKT
from fedkt.bundle import Bundle, pack
from fedkt.errors import BundleError, ConfigurationError, DataError, ModelError, PlanError
from fedkt.federation import Party, Server, seed_for, simulate
from fedkt.live.final_file import read_final
from fedkt.live.inbox import look
from fedkt.live.mailbox import file_at
from fedkt.live.shelf import Shelf
from fedkt.models.exchange import OnnxModel
from fedkt.plan import read_plan
from live_federation import FAMILIES, NAMES, build, fedkt, new_plan, party, server


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A federation of three hospitals that has run; tests copy what they change."""
    folder = tmp_path_factory.mktemp("federation")
    build(folder)
    for name in NAMES:
        party(folder, name)
    server(folder, "--test", folder / "test.csv")
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of the finished federation."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_the_final_model_is_the_one_a_simulation_gives(finished):
    plan = read_plan(finished / "plan.toml")
    public = plan.columns.encode(plan.read_public(finished / "public.csv"))
    members = []
    for name in NAMES:
        table = plan.columns.read(finished / f"{name}.csv")
        X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
        own = FAMILIES.get(name)
        members.append(Party(public, plan.classes, seed_for(0, name), name=name, X=X, y=y, model=own))
    outcome = simulate(FedKT("tree"), members, Server(public, plan.classes, seed_for(0, "the server")))
    test = plan.columns.encode(plan.columns.read(finished / "test.csv"))
    expected = outcome.final.models[0].predict(test)
    assert (read_final(finished / "result" / "final.onnx").model.predict(test) == expected).all()


def test_the_report_has_figures_and_no_labels(finished):
    report = json.loads((finished / "result" / "report.json").read_text())
    assert [each["party"] for each in report["bundles"]] == list(NAMES)
    assert all(each["accepted"] and each["students"] == 2 for each in report["bundles"])
    assert report["bytes_sent"] == sum((finished / "inbox" / f"{name}.fedkt").stat().st_size for name in NAMES)
    assert report["plan"] == read_plan(finished / "plan.toml").digest
    assert report["missing"] == []
    assert "labels" not in report["votes"]
    assert set(report["party_accuracy"]) == set(NAMES)
    assert "none" in report["privacy"]
    assert report["accuracy"] > 0.8


def test_nothing_is_left_in_the_working_folder(finished):
    assert not (finished / "work").exists()
    assert sorted(path.name for path in (finished / "inbox").iterdir()) == [f"{name}.fedkt" for name in NAMES]


def test_a_plan_is_not_overwritten_unless_forced(folder):
    before = (folder / "plan.toml").read_bytes()
    with pytest.raises(ConfigurationError, match="--force"):
        new_plan(folder, "--seed", "7")
    assert (folder / "plan.toml").read_bytes() == before
    new_plan(folder, "--seed", "7", "--force")
    assert read_plan(folder / "plan.toml").seed == 7


@pytest.mark.parametrize(
    ("left_out", "option"), [("--label", "--label"), ("--classes", "--classes"), ("--party", "--party")]
)
def test_what_is_missing_is_named_where_nobody_can_be_asked(finished, tmp_path, left_out, option):
    given = {"--label": "diagnosis", "--classes": "malignant,benign", "--party": "north"}
    words = [word for name, value in given.items() if name != left_out for word in (name, value)]
    with pytest.raises(ConfigurationError, match=left_out):
        fedkt("plan", "new", "--public", finished / "public.csv", "-o", tmp_path / "plan.toml", *words)


def test_whole_number_classes_are_numbers(finished, tmp_path):
    made = tmp_path / "plan.toml"
    public = finished / "public.csv"
    fedkt("plan", "new", "--public", public, "--label", "y", "--classes", "0,1", "--party", "a", "-o", made)
    assert read_plan(made).classes == (0, 1)
    with pytest.raises(ConfigurationError, match="NAME=VALUE"):
        fedkt(
            "plan",
            "new",
            "--public",
            public,
            "--label",
            "y",
            "--classes",
            "0,1",
            "--party",
            "a",
            "--key",
            "a",
            "-o",
            "x",
        )


def test_a_plan_is_explained_and_held_against_the_public_file(folder):
    plan, public = folder / "plan.toml", folder / "public.csv"
    assert "epsilon is infinite" in fedkt("plan", "check", plan, "--public", public).out
    said = json.loads(fedkt("plan", "check", plan, "--json").out)
    assert said["digest"] == read_plan(plan).digest
    public.write_bytes(public.read_bytes() + b"\n")
    with pytest.raises(PlanError, match="is not the public file"):
        fedkt("plan", "check", plan, "--public", public)


def test_a_private_key_is_for_its_owner_and_is_never_overwritten(tmp_path):
    said = json.loads(fedkt("keys", "new", "north", "-o", tmp_path, "--json").out)
    secret = tmp_path / "north.key"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert (tmp_path / "north.pub").read_text().strip() == said["public"]
    before = secret.read_bytes()
    with pytest.raises(ConfigurationError, match="is there already"):
        fedkt("keys", "new", "north", "-o", tmp_path)
    assert secret.read_bytes() == before
    with pytest.raises(ConfigurationError, match="letters"):
        fedkt("keys", "new", "../north", "-o", tmp_path)


def test_a_plan_with_keys_takes_only_what_their_owners_have_signed(folder):
    for name in ("north", "south"):
        fedkt("keys", "new", name, "-o", folder)
    new_plan(folder, "--key", f"north={folder / 'north.pub'}", "--force")
    shutil.rmtree(folder / "inbox")
    with pytest.raises(PlanError, match=r"must be signed\. Pass --key north\.key"):
        party(folder, "north")
    with pytest.raises(PlanError, match="not the key that the plan lists for 'north'"):
        party(folder, "north", "--key", folder / "south.key")
    with pytest.raises(PlanError, match="lists no key for 'south'"):
        party(folder, "south", "--key", folder / "south.key")
    party(folder, "north", "--key", folder / "north.key")
    bundle = folder / "inbox" / "north.fedkt"
    said = json.loads(fedkt("inspect", bundle, "--plan", folder / "plan.toml", "--json").out)
    assert said["signature"].startswith("right")
    assert said["accepted"]
    assert said["verdict"] == "the server would count it"
    plan = read_plan(folder / "plan.toml")
    unsigned = Bundle("north", plan.classes, read_bundle_models(bundle, plan), said["plan"])
    bundle.write_bytes(pack(unsigned, check_rows=np.zeros((1, said["features"]), np.float32)))
    with pytest.raises(BundleError, match="not signed"):
        server(folder, "--min-parties", "1")


def test_the_same_party_sends_the_same_bytes_on_any_number_of_cores(folder):
    before = (folder / "inbox" / "north.fedkt").read_bytes()
    sent = json.loads(party(folder, "north", "--jobs", "2", "--json").out)
    assert (folder / "inbox" / "north.fedkt").read_bytes() == before
    assert sent["bytes"] == len(before)
    assert sent["resumed"] == 0


def test_a_stranger_and_wrong_files_are_refused_before_anything_is_trained(folder):
    with pytest.raises(PlanError, match=r"no party 'east'\. Its parties are: north, south, west"):
        party(folder, "east", data=folder / "north.csv")
    with pytest.raises(DataError, match="is the public file"):
        party(folder, "north", data=folder / "public.csv")
    (folder / "wrong.csv").write_text((folder / "north.csv").read_text().replace("benign", "healthy"))
    with pytest.raises(DataError, match=r"wrong\.csv, line \d+: the label 'healthy'"):
        party(folder, "north", data=folder / "wrong.csv")
    assert not (folder / "work").exists()


def interrupted(folder, monkeypatch, name="north"):
    """Run a party that dies after its first student is on the shelf."""
    put = Shelf.__setitem__

    def dies(shelf, student, model):
        if student == "student-1":
            raise RuntimeError("power cut")
        put(shelf, student, model)

    with monkeypatch.context() as broken:
        broken.setattr(Shelf, "__setitem__", dies)
        with pytest.raises(AssertionError, match="power cut"):
            party(folder, name)
    assert sorted(path.name for path in (folder / "work").iterdir()) == ["shelf.json", "student-0.student"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (folder / "work").iterdir())


def test_an_interrupted_party_goes_on_where_it_was(folder, monkeypatch):
    before = (folder / "inbox" / "north.fedkt").read_bytes()
    (folder / "inbox" / "north.fedkt").unlink()
    interrupted(folder, monkeypatch)
    said = party(folder, "north", "--json")
    assert json.loads(said.out)["resumed"] == 1
    assert "1 of 2 students was finished" in said.err
    assert (folder / "inbox" / "north.fedkt").read_bytes() == before


def test_a_damaged_student_on_the_shelf_is_trained_again(folder, monkeypatch):
    before = (folder / "inbox" / "north.fedkt").read_bytes()
    interrupted(folder, monkeypatch)
    student = folder / "work" / "student-0.student"
    student.write_bytes(student.read_bytes()[:-1] + b"\x00")
    said = party(folder, "north", "--json")
    assert json.loads(said.out)["resumed"] == 0
    assert "was damaged (its digest does not fit)" in said.err
    assert (folder / "inbox" / "north.fedkt").read_bytes() == before


def test_a_shelf_begun_with_other_rows_is_not_used(folder, monkeypatch):
    interrupted(folder, monkeypatch)
    lines = (folder / "north.csv").read_text().splitlines(keepends=True)
    (folder / "north.csv").write_text("".join(lines[:-1]))
    said = party(folder, "north", "--json")
    assert json.loads(said.out)["resumed"] == 0
    assert "begun with another data file or --id" in said.err


def test_a_private_seed_is_kept_for_a_resumed_run_and_differs_between_runs(folder, monkeypatch):
    new_plan(folder, "--seed", "private", "--force")
    interrupted(folder, monkeypatch)
    seed = json.loads((folder / "work" / "shelf.json").read_text())["seed"]
    first_student = (folder / "work" / "student-0.student").read_bytes()[32:]
    party(folder, "north")
    sent = json.loads(fedkt("inspect", folder / "inbox" / "north.fedkt", "--json").out)["models"][0]
    assert sent["sha256"] == hashlib.sha256(first_student).hexdigest()
    interrupted(folder, monkeypatch)
    assert json.loads((folder / "work" / "shelf.json").read_text())["seed"] != seed


def test_a_working_folder_with_other_files_is_not_touched(folder):
    (folder / "work").mkdir()
    (folder / "work" / "thesis.tex").write_text("ten years")
    with pytest.raises(DataError, match="not fedkt's"):
        party(folder, "north")
    assert (folder / "work" / "thesis.tex").read_text() == "ten years"


def test_a_refused_bundle_is_named_and_the_others_go_on(folder):
    inbox = folder / "inbox"
    (inbox / "south.fedkt").write_bytes((inbox / "south.fedkt").read_bytes()[:-30])
    (inbox / "noise.fedkt").write_bytes(b"not a bundle")
    said = json.loads(server(folder, "--min-parties", "2", "--json").out)
    verdicts = {each["file"]: each for each in said["bundles"]}
    assert [name for name, each in verdicts.items() if each["accepted"]] == ["north.fedkt", "west.fedkt"]
    assert "not a zip archive" in verdicts["noise.fedkt"]["reason"]
    assert said["missing"] == ["south"]
    assert said["parties"] == 2
    words = server(folder, "--min-parties", "2").out
    assert "refused: south.fedkt" in words
    assert "Party 'south' has not sent" in words


def test_a_server_without_enough_parties_says_who_is_missing(folder):
    (folder / "inbox" / "south.fedkt").unlink()
    before = (folder / "result" / "final.onnx").read_bytes()
    with pytest.raises(BundleError, match=r"2 of the 3 bundles needed.*Missing: south\.\n.*--min-parties"):
        server(folder)
    assert (folder / "result" / "final.onnx").read_bytes() == before
    with pytest.raises(PlanError, match="between 1 and the plan's 3"):
        server(folder, "--min-parties", "4")


def test_the_server_cannot_undercut_the_number_of_parties_in_the_plan(folder):
    new_plan(folder, "--min-parties", "2", "--force")
    with pytest.raises(PlanError, match="below the 2 that everybody agreed on"):
        server(folder, "--min-parties", "1")


def test_a_bundle_made_under_another_plan_is_refused(folder):
    new_plan(folder, "--seed", "1", "--force")
    with pytest.raises(BundleError, match="was made under plan"):
        server(folder)


def test_two_different_bundles_of_one_party_are_both_refused_and_a_copy_counts_once(folder):
    inbox = folder / "inbox"
    shutil.copy(inbox / "north.fedkt", inbox / "north (1).fedkt")
    said = json.loads(server(folder, "--json").out)
    assert said["parties"] == 3
    assert ["is a copy of" in (each["reason"] or "") for each in said["bundles"]].count(True) == 1
    plan = read_plan(folder / "plan.toml")
    other = Bundle("north", plan.classes, read_bundle_models(inbox / "south.fedkt", plan), plan.digest)
    rows = plan.columns.encode(plan.read_public(folder / "public.csv"))
    (inbox / "north (1).fedkt").write_bytes(pack(other, check_rows=rows))
    said = json.loads(server(folder, "--min-parties", "2", "--json").out)
    refused = [each for each in said["bundles"] if not each["accepted"]]
    assert [each["file"] for each in refused] == ["north (1).fedkt", "north.fedkt"]
    assert all("different bundles" in each["reason"] for each in refused)


def zipped_again(data, *, date=(2001, 2, 3, 4, 5, 6)):
    """The same members in another zip file: other dates, nothing compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as after:
        for name in before.namelist():
            after.writestr(zipfile.ZipInfo(name, date), before.read(name))
    return made.getvalue()


def test_a_bundle_that_was_zipped_again_is_a_copy_and_silences_nobody(folder):
    inbox = folder / "inbox"
    again = zipped_again((inbox / "north.fedkt").read_bytes())
    assert again != (inbox / "north.fedkt").read_bytes()
    (inbox / "again.fedkt").write_bytes(again)
    said = json.loads(server(folder, "--json").out)
    assert said["parties"] == 3
    assert [each["status"] for each in said["bundles"]] == ["counted", "copy, counted once", "counted", "counted"]


def test_a_bundles_identity_is_the_digest_of_its_manifest(folder):
    plan, path = read_plan(folder / "plan.toml"), folder / "inbox" / "north.fedkt"
    with zipfile.ZipFile(path) as archive:
        expected = hashlib.sha256(archive.read("manifest.json")).hexdigest()
    assert look(plan, *file_at(path)).identity == expected
    path.write_bytes(zipped_again(path.read_bytes()))
    assert look(plan, *file_at(path)).identity == expected


def read_bundle_models(path, plan):
    return look(plan, *file_at(path)).bundle.models


def test_a_party_that_sends_fewer_students_than_agreed_is_refused(folder):
    plan = read_plan(folder / "plan.toml")
    rows = plan.columns.encode(plan.read_public(folder / "public.csv"))
    north = folder / "inbox" / "north.fedkt"
    one = Bundle("north", plan.classes, read_bundle_models(north, plan)[:1], plan.digest)
    north.write_bytes(pack(one, check_rows=rows))
    with pytest.raises(BundleError, match="it holds 1 student, but 2 were agreed on"):
        server(folder)


def test_a_server_waits_for_a_late_party(folder):
    late = folder / "inbox" / "west.fedkt"
    late.rename(folder / "west.late")
    timer = threading.Timer(1.0, lambda: (folder / "west.late").rename(late))
    started = time.monotonic()
    timer.start()
    said = json.loads(server(folder, "--wait", "60", "--json").out)
    assert said["parties"] == 3
    assert 1.0 <= time.monotonic() - started < 50


def test_inspecting_builds_and_runs_nothing(finished, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a received model was run")

    monkeypatch.setattr("fedkt.models.sandbox.run_models", forbidden)
    monkeypatch.setattr("onnxruntime.InferenceSession", forbidden)
    said = json.loads(fedkt("inspect", finished / "inbox" / "north.fedkt", "--json").out)
    assert (said["party"], said["signature"], len(said["models"])) == ("north", "none", 2)
    assert any(name.startswith("TreeEnsemble") for name in said["models"][0]["operators"])
    final = json.loads(fedkt("inspect", finished / "result" / "final.onnx", "--json").out)
    assert (final["kind"], final["label"], final["classes"]) == ("final model", "diagnosis", ["malignant", "benign"])
    assert (
        "made under this plan"
        in fedkt("inspect", finished / "result" / "final.onnx", "--plan", finished / "plan.toml").out
    )


def test_what_a_stranger_wrote_does_not_speak_to_the_terminal(folder):
    (folder / "inbox" / "\x1b[2Jx.fedkt").write_bytes(b"")
    assert "\x1b[2J" not in server(folder).out
    final = folder / "result" / "final.onnx"
    forged(final, lambda text: text.replace("mean_radius", "\\u001b[2J"))
    with pytest.raises(ModelError, match="cannot be printed") as refused:
        fedkt("inspect", final)
    assert "\x1b[2J" not in str(refused.value)


def test_predictions_keep_the_order_of_the_rows(finished, tmp_path):
    final, test = finished / "result" / "final.onnx", finished / "test.csv"
    said = fedkt("predict", final, test)
    rows = list(csv.DictReader(io.StringIO(said.out)))
    given = list(csv.DictReader(io.StringIO(test.read_text())))
    assert [float(row["mean_radius"]) for row in rows] == [float(row["mean_radius"]) for row in given]
    right = np.mean([row["prediction"] == row["diagnosis"] for row in rows])
    assert f"accuracy {right:.2%} on 100 labelled rows" in said.err
    fedkt("predict", final, test, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == said.out
    listed = json.loads(fedkt("predict", final, test, "--json").out)
    assert listed["predictions"] == [row["prediction"] for row in rows]
    assert listed["accuracy"] == pytest.approx(right)
    with pytest.raises(DataError, match="already has a column 'prediction'"):
        fedkt("predict", final, tmp_path / "out.csv")


def test_rows_without_labels_and_with_shuffled_columns_are_predicted_alike(finished, tmp_path):
    final = finished / "result" / "final.onnx"
    given = list(csv.DictReader(io.StringIO((finished / "test.csv").read_text())))
    names = [name for name in reversed(given[0]) if name != "diagnosis"]
    with (tmp_path / "new.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(given)
    plain = json.loads(fedkt("predict", final, tmp_path / "new.csv", "--json").out)
    assert plain["accuracy"] is None
    assert (
        plain["predictions"] == json.loads(fedkt("predict", final, finished / "test.csv", "--json").out)["predictions"]
    )


def forged(path, note=None, *, twice=False, damage=None):
    """A final file with another note inside, or another graph."""
    proto = onnx.load(path)
    if note is not None:
        proto.metadata_props[0].value = note(proto.metadata_props[0].value)
    if twice:
        proto.metadata_props.append(proto.metadata_props[0])
    if damage is not None:
        damage(proto)
    path.write_bytes(proto.SerializeToString())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"note": lambda text: "{"}, "what it says about itself is wrong"),
        ({"note": lambda text: text.replace('"L0"', '"L9"')}, "level"),
        ({"note": lambda text: re.sub('"mean": [-+0-9.e]+', '"mean": 1e999', text)}, "mean"),
        ({"note": lambda text: text.replace('"format": 1', '"format": 1, "run": "rm"')}, "run"),
        ({"note": lambda text: text.replace("malignant", "\\u001b[2J")}, "classes"),
        ({"note": lambda text: json.dumps({**json.loads(text), "classes": ["only"]})}, "classes"),
        ({"note": lambda text: "[" * 100_000}, "about itself is wrong"),
        ({"twice": True}, "2 fedkt notes"),
        ({"damage": lambda proto: proto.ClearField("metadata_props")}, "no fedkt notes"),
        ({"damage": lambda proto: proto.graph.node.append(onnx.helper.make_node("Loop", [], []))}, "'Loop'"),
    ],
)
def test_a_final_file_that_lies_about_itself_is_refused(folder, change, words):
    final = folder / "result" / "final.onnx"
    forged(final, **change)
    with pytest.raises(ModelError, match=words):
        fedkt("predict", final, folder / "test.csv")


def test_other_bytes_are_no_final_file(tmp_path, finished):
    for data in (b"", b"PK\x03\x04", b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f"):
        (tmp_path / "final.onnx").write_bytes(data)
        with pytest.raises(ModelError):
            fedkt("predict", tmp_path / "final.onnx", finished / "test.csv")


def test_every_truncation_of_a_final_file_is_refused_in_words(tmp_path, finished):
    data = (finished / "result" / "final.onnx").read_bytes()
    for length in np.random.default_rng(0).integers(0, len(data), 40):
        (tmp_path / "final.onnx").write_bytes(data[:length])
        with pytest.raises(ModelError):
            read_final(tmp_path / "final.onnx")


def test_a_final_model_that_fails_in_the_sandbox_is_told_in_words(folder, monkeypatch):
    def fails(self, question):
        return ["it ran for ever"] * len(question.models)

    monkeypatch.setattr("fedkt.models.sandbox.Sandbox.ask", fails)
    for rows in ("public.csv", "test.csv"):
        with pytest.raises(ModelError, match="it ran for ever"):
            fedkt("predict", folder / "result" / "final.onnx", folder / rows)


def test_an_error_is_one_sentence_on_stderr_and_exit_code_one(tmp_path):
    code = "import sys; from fedkt.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "plan", "check", str(tmp_path / "none.toml")], capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("error:")
    assert "Traceback" not in ended.stderr


def test_models_on_the_shelf_are_what_travels(finished):
    plan = read_plan(finished / "plan.toml")
    models = read_bundle_models(finished / "inbox" / "north.fedkt", plan)
    assert all(isinstance(model, OnnxModel) for model in models)


def test_the_example_of_three_hospitals_runs(tmp_path, monkeypatch):
    script = Path(__file__).parents[2] / "examples" / "three_hospitals" / "run.py"
    example = runpy.run_path(str(script))
    as_its_user_would, commands = example["fedkt"], []

    def in_this_process(folder, command):
        # The first is what it is for whoever runs the script: a process of its own.
        monkeypatch.chdir(folder)
        commands.append(fedkt(*shlex.split(command)) if commands else as_its_user_would(folder, command))

    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path)])
    example["main"].__globals__["fedkt"] = in_this_process
    example["main"]()
    assert len(commands) == 6
    report = json.loads((tmp_path / "result" / "report.json").read_text())
    assert report["accuracy"] > np.mean(list(report["party_accuracy"].values()))
    assert (tmp_path / "predictions.csv").is_file()
