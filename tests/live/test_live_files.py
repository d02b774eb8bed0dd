"""The files that a server and its readers write and read: signed, whole, nobody else's, and silent to terminals."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from command_line import fedkt as command
from fedkt.data.columns import Table
from fedkt.errors import ConfigurationError, ModelError
from fedkt.live.predictions import Predictions, to_csv
from fedkt.system.files import write_atomically
from fedkt.system.locks import try_lock, unlock
from live_federation import NAMES, build, fedkt, new_plan, party, server


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A federation whose server has a key."""
    folder = tmp_path_factory.mktemp("files")
    build(folder)
    for name in NAMES:
        party(folder, name)
    fedkt("keys", "new", "server", "-o", folder)
    server(folder, "--key", folder / "server.key")
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_final_model_that_is_there_is_replaced_only_if_that_is_asked_for(folder):
    words = ("server", folder / "plan.toml", "--public", folder / "public.csv", "--bundles", folder / "inbox")
    before = {path.name: path.read_bytes() for path in (folder / "result").iterdir()}
    with pytest.raises(ConfigurationError, match=r"final\.onnx is there already.*--force"):
        fedkt(*words, "-o", folder / "result")
    assert {path.name: path.read_bytes() for path in (folder / "result").iterdir()} == before
    fedkt(*words, "-o", folder / "result", "--force")


def test_a_signed_final_model_is_taken_under_its_servers_key(finished):
    final, key = finished / "result" / "final.onnx", finished / "server.pub"
    assert f"signed by {key.read_text().strip()}" in fedkt("inspect", final, "--server-key", key).out
    said = fedkt("predict", final, finished / "test.csv", "--server-key", key)
    assert f"signed by {key.read_text().strip()}" in said.err
    report = json.loads((finished / "result" / "report.json").read_text())
    assert report["signed_by"] == key.read_text().strip()
    assert report["final_sha256"] == hashlib.sha256(final.read_bytes()).hexdigest()


def test_a_final_model_that_its_server_did_not_sign_is_refused_before_it_is_parsed(folder, monkeypatch):
    final, key = folder / "result" / "final.onnx", folder / "server.pub"
    fedkt("keys", "new", "other", "-o", folder)
    monkeypatch.setattr("fedkt.live.final_file.parse_card", lambda *_: pytest.fail("it was parsed"))
    monkeypatch.setattr("fedkt.live.inspection.parse_card", lambda *_: pytest.fail("it was parsed"))
    verbs = [("inspect", final), ("predict", final, folder / "test.csv")]
    for words in verbs:
        with pytest.raises(ModelError, match=r"is not the server's .* changed on the way"):
            fedkt(*words, "--server-key", folder / "other.pub")
    final.write_bytes(final.read_bytes() + b"\0")
    for words in verbs:
        with pytest.raises(ModelError, match="changed on the way"):
            fedkt(*words, "--server-key", key)
    (folder / "result" / "final.onnx.sig").unlink()
    for words in verbs:
        with pytest.raises(ModelError, match=r"not signed: there is no final\.onnx\.sig"):
            fedkt(*words, "--server-key", key)


def test_a_server_without_a_key_leaves_no_earlier_signature_behind(folder):
    assert "there is one" in fedkt("inspect", folder / "result" / "final.onnx").out
    assert "not signed" in server(folder).out
    assert not (folder / "result" / "final.onnx.sig").exists()
    assert "none: not signed" in fedkt("inspect", folder / "result" / "final.onnx").out
    assert json.loads((folder / "result" / "report.json").read_text())["signed_by"] is None


def test_a_second_server_in_the_same_result_folder_is_refused(folder):
    before = (folder / "result" / "report.json").read_bytes()
    held = try_lock(folder / "result" / ".fedkt-server.lock")
    with pytest.raises(ConfigurationError, match="Another server is working for"):
        server(folder)
    assert (folder / "result" / "report.json").read_bytes() == before
    unlock(held)
    server(folder)
    written = ["final.onnx", "model-card.md", "privacy.txt", "report.json"]
    assert sorted(path.name for path in (folder / "result").iterdir()) == written


def test_what_a_killed_process_left_half_written_is_swept_and_what_a_living_one_writes_is_not(tmp_path):
    program = (
        "import sys, os, time; from pathlib import Path; import fedkt.system.files as folder\n"
        "def stuck(handle): print('writing', flush=True); time.sleep(60)\n"
        "os.fsync = stuck; folder.write_atomically(Path(sys.argv[1]), b'never')"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "a.txt")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"writing\n"
        (left,) = tmp_path.iterdir()
        write_atomically(tmp_path / "a.txt", b"first")
        assert sorted(tmp_path.iterdir()) == sorted([left, tmp_path / "a.txt"])
        writer.send_signal(signal.SIGKILL)
        writer.wait(60)
    (tmp_path / ".a.txt.backup.part").write_bytes(b"somebody else's")
    (tmp_path / ".b.txt.abcd1234.part").write_bytes(b"of another file")
    write_atomically(tmp_path / "a.txt", b"second")
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", ".a.txt.backup.part", ".b.txt.abcd1234.part"}
    assert (tmp_path / "a.txt").read_bytes() == b"second"


def test_no_space_left_names_the_file(folder, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    out = folder / "predictions.csv"
    ended = command("predict", str(folder / "result" / "final.onnx"), str(folder / "test.csv"), "-o", str(out))
    assert ended.returncode == 1
    assert ended.stderr.replace("\n", "") == f"error: No space left on device: {out}"
    assert not [path for path in folder.iterdir() if path.name.endswith(".part")]


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x7f"


def with_manifest(path, **changes):
    """The bundle in a file with another manifest."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    said = json.loads(members["manifest.json"]) | changes
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in (members | {"manifest.json": json.dumps(said).encode()}).items():
            archive.writestr(zipfile.ZipInfo(name), content)
    path.write_bytes(made.getvalue())


@pytest.mark.parametrize(
    "changes",
    [
        {"versions": {f"python{ESCAPES}": ESCAPES}},
        {"classes": ["malignant", ESCAPES]},
        {"party": f"north{ESCAPES}"},
        {f"extra{ESCAPES}": 1},
        {"kind": ESCAPES},
        {"format": ESCAPES},
        {"plan": ESCAPES},
        {"files": [{"name": ESCAPES, "size": 1, "sha256": "0" * 64}]},
        {"claim": {"mechanism": ESCAPES}},
    ],
    ids=lambda changes: next(iter(changes))[:5],
)
def test_nothing_in_a_manifest_speaks_to_the_terminal(folder, changes):
    path = folder / "inbox" / "north.fedkt"
    with_manifest(path, **changes)
    server_words = ("server", folder / "plan.toml", "--public", folder / "public.csv", "--bundles", folder / "inbox")
    for words in (
        ("inspect", path),
        ("inspect", path, "--json"),
        ("inspect", path, "--plan", folder / "plan.toml"),
        (*server_words, "-o", folder / "result"),
        (*server_words, "-o", folder / "result", "--min-parties", "2"),
        (*server_words, "-o", folder / "result", "--min-parties", "2", "--json"),
    ):
        ended = command(*map(str, words))
        assert not [each for each in ended.stdout + ended.stderr if not each.isprintable() and each != "\n"]


@pytest.mark.parametrize("change", [r"task = .*", r"label = .*", r"classes = .*", r"format = .*"])
def test_nothing_in_a_plan_speaks_to_the_terminal(folder, change):
    plan = folder / "plan.toml"
    key = change.split()[0]
    hostile = json.dumps(ESCAPES)
    plan.write_text(re.sub(rf"(?m)^{change}$", lambda _: f"{key} = {hostile}", plan.read_text(), count=1))
    ended = command("plan", "check", str(plan))
    assert ended.returncode == 1
    assert not [each for each in ended.stdout + ended.stderr if not each.isprintable() and each != "\n"]


def test_whatever_is_printed_is_printable_also_in_tables_and_json(capsys):
    from rich.table import Table as Grid

    from fedkt.cli.output import Screen, print_json

    text = io.StringIO()
    grid = Grid(f"head{ESCAPES}", title=f"title{ESCAPES}")
    grid.add_row(f"cell{ESCAPES}")
    screen = Screen(file=text)
    screen.print(grid)
    screen.print(f"line{ESCAPES}", markup=False)
    print_json({f"key{ESCAPES}": ESCAPES, "name": "Göteborg"})
    printed = text.getvalue() + capsys.readouterr().out
    assert not [each for each in printed if not each.isprintable() and each != "\n"]
    assert "Göteborg" in json.loads(printed.splitlines()[-1]).values()


def test_a_cell_that_begins_like_a_formula_is_text_to_a_spreadsheet_and_numbers_stay_numbers():
    formulas = ["=1+1", "+cmd|'/c calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "＝1", " =1", "-"]
    cells = [*formulas, "-5", "+.5e-3", "a=b", ""]
    table = Table({"=HYPERLINK(1)": np.array(cells, object), "n": np.arange(13.0) - 6}, "new.csv")
    written = to_csv(Predictions(table, ("=yes",) * 13, None))
    head, *rows = csv.reader(io.StringIO(written, newline=""))
    assert head == ["'=HYPERLINK(1)", "n", "prediction"]
    assert [row[0] for row in rows] == [*(f"'{each}" for each in formulas), "-5", "+.5e-3", "a=b", ""]
    assert [float(row[1]) for row in rows] == [place - 6 for place in range(13)]
    assert {row[2] for row in rows} == {"'=yes"}


def test_at_L1_why_a_file_was_refused_is_told_to_the_operator_and_stored_nowhere(folder):
    new_plan(folder, "--force", "--level", "L1", "--mechanism", "laplace", "--gamma", "0.5", "--queries", "40")
    shutil.rmtree(folder / "inbox")
    for name in NAMES:
        party(folder, name)
    with_manifest(folder / "inbox" / "south.fedkt", n_features=7)
    said = server(folder, "--min-parties", "2", "--json")
    assert "reads rows of 7 columns" in said.err
    stored = said.out + (folder / "result" / "report.json").read_text()
    assert "7 columns" not in stored
    (refused,) = [each for each in json.loads(said.out)["bundles"] if not each["accepted"]]
    assert (refused["party"], refused["status"]) == ("south", "refused")
    assert refused["reason"] == "why is told to the server's operator only."
    assert "7 columns" not in server(folder, "--min-parties", "2").out


def test_at_L2_a_party_killed_after_its_bundle_was_written_releases_nothing_again(folder):
    new_plan(folder, "--force", "--level", "L2", "--mechanism", "gaussian", "--sigma", "8", "--queries", "30")
    program = (
        "import fedkt.cli.party, os; from fedkt.cli import main\n"
        "fedkt.cli.party.print_sent = lambda *_, **__: os.kill(os.getpid(), 9)\n"
        "main()"
    )
    words = ["party", "plan.toml", "--name", "north", "--data", "north.csv", "--public", "public.csv", "-o", "outbox"]
    killed = subprocess.run([sys.executable, "-c", program, *words, "--work", "work"], cwd=folder)
    assert killed.returncode == -signal.SIGKILL
    sent, paid = (folder / "outbox" / "north.fedkt").read_bytes(), (folder / "north.csv.ledger").read_bytes()
    said = party(folder, "north", out=folder / "outbox")
    assert "was there already" in said.err
    assert (folder / "outbox" / "north.fedkt").read_bytes() == sent
    assert (folder / "north.csv.ledger").read_bytes() == paid
    assert not (folder / "work").exists()


def test_a_server_asked_to_end_while_it_waits_leaves_with_143_and_no_lock(folder):
    (folder / "inbox" / "west.fedkt").unlink()
    words = ["server", "plan.toml", "--public", "public.csv", "--bundles", "inbox", "-o", "new", "--wait", "60"]
    program = "from fedkt.cli import main; main()"
    running = subprocess.Popen([sys.executable, "-c", program, *words], cwd=folder, stderr=subprocess.PIPE, text=True)
    while not (folder / "new" / ".fedkt-server.lock").exists():
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    assert "stopped" in running.communicate(timeout=60)[1]
    assert running.returncode == 143
    assert not (folder / "new").exists()


STOPPED_AS_IT_LOCKS = """
import os, signal
open_file = os.open

def open_and_ask_to_end(path, *options, **more):
    handle = open_file(path, *options, **more)
    if str(path).endswith(".lock"):
        os.kill(os.getpid(), signal.SIGTERM)
    return handle

os.open = open_and_ask_to_end
from fedkt.cli import main
main()
"""


@pytest.mark.parametrize(
    "words",
    [
        ["server", "plan.toml", "--public", "public.csv", "--bundles", "inbox", "-o", "new"],
        ["party", "plan.toml", "--name", "west", "--data", "west.csv", "--public", "public.csv", "--work", "new"],
    ],
    ids=lambda words: words[0],
)
def test_whoever_is_asked_to_end_while_it_takes_its_lock_leaves_no_lock_and_no_folder(folder, words):
    running = subprocess.run(
        [sys.executable, "-c", STOPPED_AS_IT_LOCKS, *words], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert "stopped" in running.stderr
    assert running.returncode == 143
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    "said",
    [
        {"classes": [[]] * 100_000},
        {"schema": {"columns": [{}] * 100_000, "label": "y"}},
        {"schema": {"columns": [{"name": "a", "categories": [[]] * 100_000}]}},
        {f"key{place}": 0 for place in range(100_000)},
    ],
    ids=["classes", "columns", "categories", "keys"],
)
def test_a_final_model_of_a_hundred_thousand_faults_takes_little_memory(said, monkeypatch):
    from fedkt import final_card

    note = json.dumps({"format": 1, "task": "t", "plan": "0" * 64, "level": "L0", "classes": ["a", "b"], **said})
    monkeypatch.setattr(final_card, "find_note", lambda *_: note)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="about itself is wrong"):
            final_card.parse_card(b"", "final.onnx")
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()
