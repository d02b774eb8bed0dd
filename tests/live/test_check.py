"""`fedkt party --check` finds what a run would find, all of it, and does none of what a run does."""

import json

import pytest

from fedkt.errors import FedKTError, ModelError
from fedkt.live import check, duration, shelf
from fedkt.live.keys import write_keys
from fedkt.plan import read_plan
from fedkt.privacy.ledger_file import LedgerFile
from live_federation import build, fedkt, new_plan, party

L2 = ("--level", "L2", "--mechanism", "gaussian", "--sigma", "8", "--queries", "30")


@pytest.fixture
def folder(tmp_path):
    build(tmp_path)
    return tmp_path


def looked(folder, *more, data=None, public="public.csv", name="north", code=0):
    """What a dry run finds, as JSON."""
    found = fedkt(
        *("party", folder / "plan.toml", "--name", name, "--data", data or folder / f"{name}.csv", "--public"),
        *(folder / public, "-o", folder / "inbox", "--work", folder / "work", "--check", "--json", *more),
        code=code,
    )
    return json.loads(found.out)


def problems(found):
    return [each["text"] for each in found["findings"] if each["status"] == "problem"]


def everything(folder):
    """Every name, byte and time below a folder."""
    return {path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in folder.rglob("*")}


def test_a_run_that_would_work_is_told_what_it_would_do_and_nothing_is_done(folder):
    before = everything(folder)
    found = looked(folder)
    assert everything(folder) == before
    assert found["would_run"] is True
    assert found["rows"] == 60
    assert sum(found["classes"].values()) == 60
    assert found["about_seconds"] > 0
    assert {"Plan", "Name", "Key", "Public", "Data", "Columns", "Labels", "Outbox", "Work", "Disk", "Cost"} <= {
        each["what"] for each in found["findings"]
    }


def test_it_is_said_line_by_line_and_at_the_end_whether_it_would_run(folder):
    said = party(folder, "north", "--check")
    assert "ok       Columns  8 of 8 agreed ones are there" in said.out
    assert said.out.rstrip().endswith("Nothing was trained on your rows, spent or written.")


def test_every_problem_is_found_and_not_only_the_first(folder):
    text = (folder / "north.csv").read_text().splitlines()
    text[0] = text[0].replace("mean_radius", "Mean Radius")
    cells = text[3].split(",")
    text[3] = ",".join([cells[0], "old", cells[2], "big", *cells[4:-1], "maybe"])
    own = folder / "own.csv"
    own.write_text("\n".join(text) + "\n")
    (folder / "inbox").write_text("a file")
    found = looked(folder, "--key", folder / "no.key", "--hold-out", "0.9", data=own, public="south.csv", code=1)
    words = "\n".join(problems(found))
    assert len(problems(found)) == 8
    for each in (
        "--hold-out takes the share",
        "No such file or directory",
        "is not the public file of this plan",
        "Did you mean --rename 'Mean Radius=mean_radius'",
        "line 4: 'old' in column 'mean_texture' is not a number",
        "line 4: 'big' in column 'mean_area' is not a number",
        "the label 'maybe'",
        "inbox is a file",
    ):
        assert each in words


def test_the_exit_code_says_whether_it_would_run(folder):
    said = fedkt(
        *("party", folder / "plan.toml", "--name", "east", "--data", folder / "north.csv"),
        *("--public", folder / "public.csv", "--check"),
        code=1,
    )
    assert "PROBLEM  Name     This plan has no party 'east'" in said.out
    assert "ok       Labels " in said.out
    assert "It would not run: 1 problem. Nothing was trained, spent or written." in said.err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--key", "north.key"),
        ("--issue", "2"),
        ("--id", "mean_area", "--hold-out", "0.2"),
        ("--id", "patient", "--hold-out", "0.2"),
        ("--most-epsilon", "1"),
        ("--ledger", "north.ledger"),
        ("--rename", "Radius=mean_radius", "--rename", "mean_radius=radius"),
        ("--label-map", "1=ill"),
        ("--label-map", "malignant=benign,benign=malignant"),
    ],
)
def test_it_would_run_exactly_where_it_runs(folder, wrong):
    write_keys("north", folder)
    options = [folder / each if each.endswith((".key", ".ledger")) else each for each in wrong]
    try:
        party(folder, "north", *options)
        runs = True
    except FedKTError:
        runs = False
    (folder / "north.mapping.toml").unlink(missing_ok=True)
    assert looked(folder, *options, code=0 if runs else 1)["would_run"] is runs


def test_at_level_l2_the_cost_is_told_and_not_paid(folder):
    new_plan(folder, "--force", *L2)
    before = everything(folder)
    found = looked(folder)
    assert everything(folder) == before
    assert found["epsilon"] == found["total_epsilon"] == pytest.approx(read_plan(folder / "plan.toml").price().epsilon)


def test_a_budget_that_is_spent_is_a_problem_and_the_ledger_is_not_touched(folder):
    new_plan(folder, "--force", *L2)
    party(folder, "north")
    before = everything(folder)
    (words,) = problems(looked(folder, code=1))
    assert words.startswith("The budget of 'north' does not cover this run")
    assert everything(folder) == before


def test_an_unfinished_run_costs_nothing_more(folder, monkeypatch):
    new_plan(folder, "--force", *L2)

    def dies(*_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(shelf.Shelf, "__setitem__", dies)
        with pytest.raises(AssertionError):
            party(folder, "north")
    found = looked(folder)
    text = " ".join(each["text"] for each in found["findings"])
    assert "which goes on at no further charge" in text
    assert "nothing more: it is paid for" in text
    assert "paid for and not finished" in problems(looked(folder, "--label-map", "x=benign", code=1))[0]


def test_an_interrupted_ledger_is_looked_at_and_not_mended(folder):
    new_plan(folder, "--force", *L2, "--budget", "1000")
    party(folder, "north")
    ledger = folder / "north.csv.ledger"
    with ledger.open("ab") as file:
        file.write(b'{"abst')
    text = ledger.read_bytes()
    (folder / "north.csv.ledger.lock").unlink(missing_ok=True)
    assert len(LedgerFile.peek(ledger).spent(who="north")) == 1
    assert looked(folder)["would_run"] is True
    assert ledger.read_bytes() == text
    assert not (folder / "north.csv.ledger.lock").exists()


def test_a_plan_of_moments_is_looked_at_as_well(folder):
    new = ("plan", "new", "--public", folder / "public.csv", "--label", "diagnosis", "--classes", "malignant,benign")
    fedkt(*new, "--party", "north", "--voting", "moments", "-o", folder / "plan.toml", "--force")
    found = looked(folder)
    assert found["would_run"] is True
    assert any("sums of" in each["text"] for each in found["findings"] if each["what"] == "Travels")


def test_odd_columns_are_problems_without_noise_and_notes_with_it(folder):
    lines = [line.split(",") for line in (folder / "north.csv").read_text().splitlines()]
    own = folder / "own.csv"
    own.write_text("\n".join(",".join([line[0] + "000" * (place > 0), *line[1:]]) for place, line in enumerate(lines)))
    grams = [[str(float(line[0]) * 1000) if place else line[0], *line[1:]] for place, line in enumerate(lines)]
    own.write_text("\n".join(map(",".join, grams)) + "\n")
    assert "lie far from the public rows'" in problems(looked(folder, data=own, code=1))[0]
    new_plan(folder, "--force", *L2)
    found = looked(folder, data=own)
    assert found["doubts"] == ["mean_radius"]
    assert any("lie far" in each["text"] for each in found["findings"] if each["status"] == "note")
    assert looked(folder, "--accept", "mean_radius", data=own)["doubts"] == []


def test_the_time_is_that_of_all_teachers_and_students(folder, monkeypatch):
    """Two cuts of five teachers at 7 s and one student at 7 s; with five jobs the teachers of a cut train at once."""
    plan = read_plan(folder / "plan.toml")
    public = plan.columns.encode(plan.read_public(folder / "public.csv"))
    monkeypatch.setattr(duration, "fit_seconds", lambda *_: 7.0)
    fixed = duration.START + 2 * duration.CONVERT
    assert duration.about_seconds(plan, "north", public, 60) == fixed + 2 * (5 * 7 + 7)
    assert duration.about_seconds(plan, "north", public, 60, jobs=8) == fixed + 2 * (7 + 7)


def test_a_network_is_tried_for_one_epoch_and_its_steps_are_multiplied(folder):
    pytest.importorskip("torch")
    new_plan(folder, "--force", "--final", "mlp", "--student", "mlp", "--epochs", "3")
    assert looked(folder)["about_seconds"] > 0


def test_a_teacher_that_cannot_teach_at_level_l2_is_a_problem(folder, monkeypatch):
    new_plan(folder, "--force", *L2)

    def fails(*_):
        raise ModelError("it cannot teach")

    monkeypatch.setattr(check, "try_on_public_rows", fails)
    assert problems(looked(folder, code=1)) == ["it cannot teach"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 second"), (75, "75 seconds"), (600, "10 minutes"), (9000, "2 hours")]
)
def test_a_duration_is_told_as_one_says_it(seconds, words):
    assert check.in_words(seconds) == words


def test_looking_and_evaluating_do_not_go_together(folder):
    with pytest.raises(FedKTError, match="--check is about training"):
        party(folder, "north", "--check", "--evaluate", folder / "final.onnx")
