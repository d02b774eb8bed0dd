"""What goes wrong when organisations run a federation with files, and how they are told."""

import json
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest

from fedkt.bundle import Bundle, pack
from fedkt.errors import BundleError, ConfigurationError, DataError, ModelError, PlanError
from fedkt.live.shelf import STATE, Shelf, sole_worker
from fedkt.models.exchange import OnnxModel
from fedkt.plan import make_plan, parse_plan, read_plan
from fedkt.system.versions import versions
from live_federation import NAMES, build, fedkt, new_plan, party, server


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """Three hospitals that have sent their bundles; tests copy what they change."""
    folder = tmp_path_factory.mktemp("sent")
    build(folder)
    for name in NAMES:
        party(folder, name)
    return folder


@pytest.fixture
def folder(sent, tmp_path):
    shutil.copytree(sent, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_second_process_in_the_same_working_folder_is_refused(folder):
    with (
        sole_worker("north", folder / "work"),
        pytest.raises(ConfigurationError, match="Another process is working for 'north' in"),
    ):
        party(folder, "north")
    assert not (folder / "work").exists()
    party(folder, "north")


def test_processes_at_the_same_time_send_what_one_would_have_sent(folder):
    before = (folder / "inbox" / "north.fedkt").read_bytes()
    command = [sys.executable, "-c", "from fedkt.cli import main; main()", "party", "plan.toml", "--name", "north"]
    command += ["--data", "north.csv", "--public", "public.csv", "--work", "shared", "-o"]
    running = [
        subprocess.Popen([*command, f"out{number}"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for number in range(2)
    ]
    for process in running:
        _, told = process.communicate(timeout=120)
        assert b"Traceback" not in told
        assert process.returncode == 0 or b"Another process is working for 'north'" in told
    assert 0 in [process.returncode for process in running]
    for number, process in enumerate(running):
        path = folder / f"out{number}" / "north.fedkt"
        assert path.exists() == (process.returncode == 0)
        assert not path.exists() or path.read_bytes() == before
    assert not (folder / "shared").exists()


@pytest.mark.parametrize("name", ["thesis.student", "download.part", "student-0.student", "shelf.json"])
def test_files_of_others_in_the_working_folder_are_never_removed(folder, name):
    work = folder / "work"
    work.mkdir()
    (work / name).write_text('{"books": 12}')
    with pytest.raises(DataError, match=r"not fedkt's .*nothing in it is touched"):
        party(folder, "north")
    assert (work / name).read_text() == '{"books": 12}'
    assert [path.name for path in work.iterdir()] == [name]


def test_files_that_others_put_beside_a_shelf_stay(folder, monkeypatch):
    put = Shelf.__setitem__

    def joined(shelf, student, model):
        put(shelf, student, model)
        (shelf.folder / "notes.part").write_text("mine")

    monkeypatch.setattr(Shelf, "__setitem__", joined)
    party(folder, "north")
    assert [path.name for path in (folder / "work").iterdir()] == ["notes.part"]


def broken_bundle(folder, name, models):
    """A bundle of this party that keeps every rule, but whose students fail when they are run."""
    plan = read_plan(folder / "plan.toml")
    rows = plan.columns.encode(plan.read_public(folder / "public.csv"))
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("MatMul", ["rows", "table"], ["wide"]),
            onnx.helper.make_node("ArgMax", ["wide"], ["local"], axis=1, keepdims=0),
            onnx.helper.make_node("Gather", ["labels", "local"], ["label"]),
        ],
        "fedkt",
        [onnx.helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, [None, rows.shape[1]])],
        [onnx.helper.make_tensor_value_info("label", onnx.TensorProto.INT64, [None])],
        [
            onnx.numpy_helper.from_array(np.ones((rows.shape[1] + 1, 2), np.float32), "table"),
            onnx.numpy_helper.from_array(np.array([0, 1], np.int64), "labels"),
        ],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    data = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    student = OnnxModel(data, rows.shape[1], 2)
    bundle = Bundle(name, plan.classes, (student,) * models, plan.digest)
    (folder / "inbox" / f"{name}.fedkt").write_bytes(pack(bundle, check_rows=rows))


def test_bundles_in_which_nothing_runs_do_not_make_up_the_number_of_parties(folder):
    for name in ("north", "west"):
        broken_bundle(folder, name, 2)
    with pytest.raises(BundleError, match=r"1 of the 3 parties needed could vote(.|\n)*'north' does not vote"):
        server(folder)
    with pytest.raises(BundleError, match="1 of the 2 parties needed"):
        server(folder, "--min-parties", "2")
    assert not (folder / "result").exists()
    said = json.loads(server(folder, "--min-parties", "1", "--test", folder / "test.csv", "--json").out)
    assert said["parties"] == 1
    assert said["missing"] == ["north", "west"]
    assert [each["party"] for each in said["bundles"] if each["accepted"]] == ["south"]
    assert set(said["party_accuracy"]) == {"south"}
    words = server(folder, "--min-parties", "1").out
    assert "refused: north.fedkt: Party 'north' does not vote" in words


WARDS = "age,ward\n" + "".join(f"{30 + i},{'ab'[i % 2]}\n" for i in range(40))


def ward_file(path, wards, labels=("yes", "no")):
    path.write_text("age,ward,ill\n" + "".join(f"{30 + i},{w},{labels[i % 2]}\n" for i, w in enumerate(wards)))
    return path


def ward_federation(folder, *more):
    (folder / "public.csv").write_text(WARDS)
    return fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "ill", "--classes", "yes,no"),
        *("--party", "north", "--model", "tree", "-o", folder / "plan.toml", *more),
    )


def test_categories_that_nobody_agreed_on_are_told_by_party_server_and_predict(tmp_path):
    ward_federation(tmp_path)
    words = "3 of 20 values of 'ward' in {} ('c', 'd', …) are not among the agreed categories and count as none"
    ward_file(tmp_path / "north.csv", "abab" * 4 + "acdc")
    ward_file(tmp_path / "test.csv", "ab" * 9 + "xb")
    told = party(tmp_path, "north").err
    assert words.format(tmp_path / "north.csv") in " ".join(told.split())
    said = json.loads(server(tmp_path, "--test", tmp_path / "test.csv", "--json").out)
    assert any("1 of 20 values of 'ward'" in note and "counts as none" in note for note in said["notes"])
    predicted = json.loads(fedkt("predict", tmp_path / "result" / "final.onnx", tmp_path / "north.csv", "--json").out)
    assert words.format(tmp_path / "north.csv") in predicted["note"]


def test_categories_that_nobody_agreed_on_are_refused_where_that_was_agreed(tmp_path):
    ward_federation(tmp_path, "--unseen", "refuse")
    ward_file(tmp_path / "north.csv", "abab" * 4 + "acdc")
    with pytest.raises(DataError, match=r"line 19: 'c' in column 'ward' is not one of its agreed categories"):
        party(tmp_path, "north")
    with pytest.raises(ConfigurationError, match="--unseen is ignore or refuse"):
        ward_federation(tmp_path, "--unseen", "drop", "--force")


def libsvm(path, rows):
    path.write_text("".join(f"{i % 2} 1:{i} 2:{i % 2} 3:{i % 5}\n" for i in range(rows)))
    return path


def test_a_libsvm_plan_may_ignore_the_last_feature_and_predictions_have_an_accuracy(tmp_path):
    public = libsvm(tmp_path / "public.libsvm", 40)
    fedkt(
        *("plan", "new", "--public", public, "--label", "ill", "--classes", "0,1", "--party", "north"),
        *("--model", "tree", "--ignore", "f3", "-o", tmp_path / "plan.toml"),
    )
    data = libsvm(tmp_path / "north.libsvm", 30)
    fedkt(
        *("party", tmp_path / "plan.toml", "--name", "north", "--data", data, "--public", public),
        *("-o", tmp_path / "inbox", "--work", tmp_path / "work"),
    )
    server_words = ("server", tmp_path / "plan.toml", "--public", public, "--bundles", tmp_path / "inbox")
    fedkt(*server_words, "-o", tmp_path / "result", "--test", data)
    final = tmp_path / "result" / "final.onnx"
    assert json.loads(fedkt("predict", final, data, "--json").out)["accuracy"] == 1.0
    np.savez(tmp_path / "new.npz", X=[[1.0, 1.0], [2.0, 0.0]], y=[1, 0], names=["f1", "f2"])
    assert json.loads(fedkt("predict", final, tmp_path / "new.npz", "--json").out)["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seed=--5", "--classes", "a,b"), "seed: .*valid integer or 'private'.*got '--5'"),
        (("--seed", "abc", "--classes", "a,b"), "seed: .*or 'private'"),
        (("--seed", "9" * 5000, "--classes", "a,b"), "seed"),
        (("--classes", "yes"), "classes: at least 2 are needed"),
        (("--classes", "a,b", "--seed", "-1"), "seed"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused_in_words(tmp_path, words, message):
    (tmp_path / "public.csv").write_text(WARDS)
    with pytest.raises(PlanError, match=message):
        fedkt(
            *("plan", "new", "--public", tmp_path / "public.csv", "--label", "ill", "--party", "north"),
            *("-o", tmp_path / "plan.toml", *words),
        )


def test_odd_classes_are_texts(tmp_path):
    (tmp_path / "public.csv").write_text(WARDS)
    fedkt(
        *("plan", "new", "--public", tmp_path / "public.csv", "--label", "ill", "--classes=--5,1", "--party", "north"),
        *("-o", tmp_path / "plan.toml"),
    )
    assert read_plan(tmp_path / "plan.toml").classes == ("--5", "1")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seed = 0", f"seed = {'9' * 400}", "is not TOML|seed"),
        ("seed = 0", f"seed = {'9' * 5000}", "longer than the 500 characters that a number"),
        ("seed = 0", f"seed = 0x{'9' * 9000}", "plan.toml"),
        ('["yes", "no"]', "[true, false]", r"classes\.0: .*valid string or a valid integer \(got True\)"),
        ('name = "ward"', 'name = "wa\\u001brd"', r"schema\.columns\.1\.name: .*cannot be printed"),
        ('"a", "b"', '"a", "b\\n"', r"schema\.columns\.1\.categories\.1: .*cannot be printed"),
        ('label = "ill"', 'label = "il\\u202el"', r"schema\.label: .*cannot be printed"),
        ('label = "ill"', f'label = "{"x" * 501}"', r"schema\.label"),
        ('"null"', '"\\u0007"', r"schema\.missing_values"),
        ('"null"', f'"{"x" * 101}"', r"schema\.missing_values"),
    ],
)
def test_a_plan_with_hostile_texts_is_refused_in_words(tmp_path, old, new, words):
    (tmp_path / "public.csv").write_text(WARDS)
    plan = make_plan(tmp_path / "public.csv", label="ill", classes=["yes", "no"], parties=["north"], model="tree")
    text = plan.to_toml()
    assert old in text
    with pytest.raises(PlanError, match=words) as refused:
        parse_plan(text.replace(old, new).encode(), "plan.toml")
    assert str(refused.value).isprintable()


def test_public_rows_with_texts_that_cannot_be_printed_are_refused_in_words(tmp_path):
    (tmp_path / "public.csv").write_text('age,ward\n30,"a\nb"\n31,c\n')
    with pytest.raises(DataError, match=r"public\.csv cannot be used as public rows: .*'a\\nb' has a line break"):
        make_plan(tmp_path / "public.csv", label="ill", classes=["yes", "no"], parties=["north"], model="tree")
    (tmp_path / "public.csv").write_text('age,"wa\nrd"\n30,a\n31,c\n')
    plan = make_plan(tmp_path / "public.csv", label="ill", classes=["yes", "no"], parties=["north"], model="tree")
    assert [column.name for column in plan.columns.columns] == ["age", "wa rd"]
    (tmp_path / "public.csv").write_text('age,"wa\x07rd"\n30,a\n31,c\n')
    with pytest.raises(DataError, match=r"column name 'wa\\x07rd' has a line break or another"):
        make_plan(tmp_path / "public.csv", label="ill", classes=["yes", "no"], parties=["north"], model="tree")
    (tmp_path / "public.csv").write_text('age (5"),ward\n30,a\n31,c\n')
    plan = make_plan(tmp_path / "public.csv", label="ill", classes=["yes", "no"], parties=["north"], model="tree")
    assert plan.columns.columns[0].name == 'age (5")'
    assert plan.public.rows == 2


def test_a_card_whose_format_is_true_is_refused_without_the_names_of_branches(folder):
    server(folder)
    final = folder / "result" / "final.onnx"
    proto = onnx.load(final)
    note = proto.metadata_props[0].value
    for old, new, words in (
        ('"format": 1', '"format": true', "at 'format'"),
        ('["malignant", "benign"]', "[true, false]", r"at 'classes\.0': .*string or a valid integer \(got True\)"),
    ):
        proto.metadata_props[0].value = note.replace(old, new)
        final.write_bytes(proto.SerializeToString())
        with pytest.raises(ModelError, match=words):
            fedkt("predict", final, folder / "test.csv")


def test_a_file_that_is_no_npz_is_not_said_to_need_pickle(tmp_path):
    (tmp_path / "a.npz").write_text("hello")
    (tmp_path / "public.csv").write_text(WARDS)
    ward_federation(tmp_path)
    with pytest.raises(DataError, match="is not an NPZ file") as refused:
        party(tmp_path, "north", data=tmp_path / "a.npz")
    assert "pickle" not in str(refused.value)
    np.savez(tmp_path / "b.npz", X=np.array([[1, "a"]], dtype=object))
    with pytest.raises(DataError, match="Python objects") as refused:
        party(tmp_path, "north", data=tmp_path / "b.npz")
    assert "pickle" not in str(refused.value)


def test_inspecting_a_plan_says_what_inspect_takes(folder):
    with pytest.raises(BundleError, match=r"takes a party's \.fedkt file or a final\.onnx.*fedkt plan check"):
        fedkt("inspect", folder / "plan.toml")
    with pytest.raises(ModelError, match=r"takes a party's \.fedkt file or a final\.onnx"):
        fedkt("inspect", folder / "north.csv")


def test_a_copy_is_counted_once_and_files_passed_over_are_named(folder):
    inbox = folder / "inbox"
    shutil.copy(inbox / "north.fedkt", inbox / "north (1).fedkt")
    shutil.copy(inbox / "south.fedkt", inbox / "SOUTH.FEDKT")
    (inbox / "west2.fedkt").symlink_to(folder / "gone.fedkt")
    said = json.loads(server(folder, "--json").out)
    assert [each["status"] for each in said["bundles"]].count("copy, counted once") == 1
    assert any("SOUTH.FEDKT" in note and "ends with .fedkt" in note for note in said["notes"])
    assert any("west2.fedkt" in note and "link to nothing" in note for note in said["notes"])
    words = server(folder).out
    assert "copy, counted once: north.fedkt: it is a copy of north (1).fedkt" in words
    assert "refused" not in words
    (inbox / "south.fedkt").unlink()
    with pytest.raises(BundleError, match=r"SOUTH\.FEDKT in .* was not looked at"):
        server(folder)


def test_one_list_of_versions_serves_bundles_reports_and_shelves(folder):
    said = json.loads(fedkt("inspect", folder / "inbox" / "north.fedkt", "--json").out)
    assert said["versions"] == versions()
    assert json.loads(server(folder, "--json").out)["versions"] == versions()
    for name in ("fedkt", "python", "numpy", "scikit-learn", "onnx", "onnxruntime", "skl2onnx", "lightgbm"):
        assert name in versions()
    with sole_worker("north", folder / "work"):
        assert not (folder / "work" / STATE).exists()


def test_a_column_that_names_rows_is_pointed_out(folder):
    public = folder / "public.csv"
    head, *rows = public.read_text().splitlines()
    public.write_text("\n".join([f"{head},patient", *(f"{row},id-{place}" for place, row in enumerate(rows))]) + "\n")
    assert "leave it out with --ignore patient" in new_plan(folder, "--force").err
    assert "--ignore" not in new_plan(folder, "--force", "--ignore", "patient").err


def test_help_shows_examples_and_one_is_singular(folder):
    for verb in ("plan", "keys", "privacy"):
        assert "Examples" in fedkt(verb, "--help").out
    new_plan(folder, "--force", "--partitions", "1", "--subsets", "1", "--model", "svm")
    assert "cuts its rows 1 time into 1 subset, trains" in fedkt("plan", "check", folder / "plan.toml").out
    said = party(folder, "north")
    assert "1 student from 60 rows" in said.out


@pytest.mark.filterwarnings("error::FutureWarning")
def test_a_support_vector_machine_travels_without_warnings(folder):
    new_plan(folder, "--force", "--partitions", "1", "--student", "svm")
    party(folder, "north")
