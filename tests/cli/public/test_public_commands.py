"""`fedkt public …`: from nothing public to a plan."""

import csv
import hashlib
import json
import tomllib

import numpy as np
import pytest

from command_line import fedkt

SCHEMA = """
label = "ill"
[[columns]]
name = "age"
low = 0
high = 100
whole = true
[[columns]]
name = "ward"
categories = ["a", "b", "c"]
missing = 0.1
"""


def write(path, n, seed):
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "age", "ward", "ill"])
        for number in range(n):
            age = int(rng.integers(20, 90))
            writer.writerow([number, age, rng.choice(["a", "b"] if age < 50 else ["c", ""]), rng.choice(["yes", "no"])])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    for seed, name in enumerate(("north", "south")):
        write(tmp_path / f"{name}.csv", 300, seed)
    return tmp_path


def run(*words, cwd, code=0):
    done = fedkt("public", *words, cwd=cwd)
    assert done.returncode == code, done.stderr
    return done


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_two_parties_tell_with_noise_and_a_plan_is_made_of_the_rows(folder):
    for name in ("north", "south"):
        told = run("marginals", f"{name}.csv", "--schema", "schema.toml", "--name", name, "--epsilon", "1", cwd=folder)
        assert "epsilon 1.000 at delta 1e-05 for one record (replace-one)" in told.stdout
        assert f"Written into {name}.csv.ledger; everything in it costs '{name}' epsilon 1.000" in told.stdout
        assert f"caution: {name}.csv.ledger is new" in told.stderr
        assert (folder / f"{name}.csv.ledger").is_file()
    done = run("new", "--marginals", "north.toml", "--marginals", "south.toml", "--rows", "500", cwd=folder)
    assert "500 rows of 2 columns, without 'ill', made of what 2 parties told with noise" in done.stdout
    made = table(folder / "public.csv")
    assert len(made) == 500
    assert set(made[0]) == {"age", "ward"}
    assert {each["ward"] for each in made} <= {"a", "b", "c", ""}
    assert all(0 <= int(each["age"]) <= 100 for each in made)
    origin = tomllib.loads((folder / "public.csv.toml").read_text())
    assert origin["sha256"] == hashlib.sha256((folder / "public.csv").read_bytes()).hexdigest()
    assert [(each["party"], each["epsilon"] <= 1) for each in origin["files"]] == [("north", True), ("south", True)]
    plan = fedkt(
        *("plan", "new", "--public", "public.csv", "--label", "ill", "--classes", "yes,no", "--party", "north"),
        *("--party", "south", "-o", "plan.toml"),
        cwd=folder,
    )
    assert plan.returncode == 0, plan.stderr


def test_what_everybody_knows_is_enough_and_the_same_seed_makes_the_same_rows(folder):
    first = json.loads(run("new", "--schema", "schema.toml", "--json", cwd=folder).stdout)
    assert (first["rows"], first["seed"], first["origin"]) == (2000, 0, "public.csv.toml")
    assert "every column was drawn for itself" in first["cautions"][0]
    rows = (folder / "public.csv").read_bytes()
    run("new", "--schema", "schema.toml", "--force", cwd=folder)
    assert (folder / "public.csv").read_bytes() == rows
    run("new", "--schema", "schema.toml", "--force", "--seed", "1", cwd=folder)
    assert (folder / "public.csv").read_bytes() != rows


def test_categories_that_were_not_drawn_are_told_of(folder):
    (folder / "rare.toml").write_text(SCHEMA.replace("missing = 0.1", "shares = [0.5, 0.5, 0]"))
    told = run("new", "--schema", "rare.toml", cwd=folder).stderr
    assert "some categories are in no row, and a plan of these rows will not know them: 1 of 'ward'." in told
    assert "in no row" not in run("new", "--schema", "schema.toml", "--force", cwd=folder).stderr


def test_rows_of_consented_rows_come_with_a_warning_and_have_their_ties(folder):
    done = run("new", "--from", "north.csv", "--label", "ill", "--ignore", "patient", "-o", "made.csv", cwd=folder)
    assert "made of 300 consented rows in north.csv" in done.stdout
    assert "caution: no noise was added" in done.stderr
    made = table(folder / "made.csv")
    young = [each["ward"] in ("a", "b") for each in made if int(each["age"]) < 40]
    old = [each["ward"] in ("a", "b") for each in made if int(each["age"]) > 60]
    assert np.mean(young) > np.mean(old) + 0.3


def test_exact_counts_are_said_to_protect_nobody_when_they_are_told_and_when_they_are_used(folder):
    told = run("marginals", "north.csv", "--schema", "schema.toml", "--name", "north", "--json", cwd=folder)
    found = json.loads(told.stdout)
    assert (found["promise"], found["ledger"], found["output"]) == (None, None, "north.toml")
    assert "protect nobody" in told.stderr
    assert not (folder / "north.csv.ledger").exists()
    assert "nothing is promised" in run("new", "--marginals", "north.toml", cwd=folder).stderr


def test_a_schema_of_rows_that_may_be_described_is_one_that_rows_can_be_made_of(folder):
    done = run("schema", "north.csv", "--label", "ill", "--ignore", "patient", "-o", "own.toml", "--shares", cwd=folder)
    assert "Read it before it leaves" in done.stdout
    values = tomllib.loads((folder / "own.toml").read_text())
    assert [each["name"] for each in values["columns"]] == ["age", "ward"]
    assert values["columns"][0]["whole"]
    run("new", "--schema", "own.toml", cwd=folder)
    run("marginals", "south.csv", "--schema", "own.toml", "--name", "south", cwd=folder)


def test_the_label_is_not_told_where_the_schema_would_tell_it(folder):
    words = ("marginals", "north.csv", "--schema", "schema.toml", "--name", "north", "--label", "ward")
    assert "which is the label" in run(*words, cwd=folder, code=1).stderr


def test_a_release_beyond_the_partys_limit_leaves_no_file(folder):
    words = ("marginals", "north.csv", "--schema", "schema.toml", "--name", "north", "--epsilon", "1")
    assert "does not cover" in run(*words, "--most-epsilon", ".5", cwd=folder, code=1).stderr
    assert not (folder / "north.toml").exists()


def test_nothing_is_spent_where_the_file_could_not_be_written(folder):
    words = ("marginals", "north.csv", "--schema", "schema.toml", "--name", "north", "--epsilon", "1")
    run(*words, "-o", "schema.toml/north.toml", cwd=folder, code=1)
    assert not (folder / "north.csv.ledger").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new",), "got 0 of them"),
        (("new", "--schema", "schema.toml", "--from", "north.csv"), "got 2 of them"),
        (("new", "--from", "north.csv"), "Say which column is the label"),
        (("new", "--schema", "schema.toml", "--label", "ill"), "go with --from"),
        (("new", "--schema", "schema.toml", "--decimal", ","), "is said of the rows that --from names"),
        (("new", "--schema", "schema.toml", "-o", "public.parquet"), "--output ends in .csv"),
        (("new", "--schema", "north.csv"), "is not TOML"),
        (("new", "--schema", "schema.toml", "-o", "north.csv"), "north.csv is there already"),
        (("marginals", "north.csv", "--schema", "schema.toml", "--name", "n", "--ledger", "x"), "have no price"),
        (("marginals", "north.csv", "--schema", "schema.toml", "--name", "n", "--epsilon", "0"), "above zero"),
        (("schema", "north.csv", "--label", "Ill", "-o", "o.toml"), "Did you mean --label ill?"),
        (("new", "--from", "north.csv", "--label", "nope"), "has no column 'nope', so no label would be left out"),
        (("schema", "north.csv", "--label", "ill", "--ignore", "x", "-o", "o.toml"), "has no column 'x'"),
    ],
)
def test_a_choice_that_cannot_work_is_refused_in_words_and_writes_nothing(folder, words, told):
    before = sorted(folder.iterdir())
    done = run(*words, cwd=folder, code=1)
    assert told in done.stderr
    assert sorted(folder.iterdir()) == before


def test_a_file_that_is_written_in_another_way_is_read_as_its_party_says(folder):
    """Weights of 50.5, 51.5 … in halves with decimal commas, one of them not known."""
    weights = [f"{50 + number},5" for number in range(60)]
    (folder / "comma.csv").write_text("\n".join(["weight;ill", *(f"{each};yes" for each in weights), "-;no", ""]))
    written = ("--decimal", ",", "--missing-value", "-")
    told = run("schema", "comma.csv", "--label", "ill", "-o", "own.toml", cwd=folder, code=1).stderr
    assert "comma.csv, line 2: '50,5' in column 'weight' is not a number" in told
    assert "--decimal ," in told
    run("schema", "comma.csv", "--label", "ill", "-o", "own.toml", *written, cwd=folder)
    edges = tomllib.loads((folder / "own.toml").read_text())["columns"][0]["edges"]
    assert (edges[0], edges[-1]) == (50.5, 109.5)
    run("new", "--from", "comma.csv", "--label", "ill", *written, cwd=folder)
    assert all(50.5 <= float(each["weight"] or 60) <= 109.5 for each in table(folder / "public.csv"))
    words = ("marginals", "comma.csv", "--schema", "own.toml", "--name", "comma", "--epsilon", "1")
    assert "--decimal ," in run(*words, cwd=folder, code=1).stderr
    assert not (folder / "comma.csv.ledger").exists()
    run(*words, *written, cwd=folder)


def test_a_file_of_another_form_names_its_column(folder):
    (folder / "south.csv").write_text("age,ill\n3,yes\n")
    words = ("marginals", "south.csv", "--schema", "schema.toml", "--name", "south", "--epsilon", "1")
    assert "south.csv lacks the column 'ward'" in run(*words, cwd=folder, code=1).stderr
    assert not (folder / "south.csv.ledger").exists()


def test_labels_of_a_file_that_does_not_name_them_are_not_told(folder):
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    np.savez(folder / "rows.npz", X=X, y=y, names=["age", "size"])
    run("schema", "rows.npz", "--label", "ill", "-o", "own.toml", cwd=folder)
    values = tomllib.loads((folder / "own.toml").read_text())
    assert [each["name"] for each in values["columns"]] == ["age", "size"]
    run("new", "--from", "rows.npz", "--label", "ill", cwd=folder)
    assert set(table(folder / "public.csv")[0]) == {"age", "size"}


def test_a_libsvm_file_tells_of_columns_that_are_nowhere_in_it(folder):
    (folder / "north.libsvm").write_text("1 1:0.5\n-1 1:0.25\n" * 60)
    columns = "".join(f'[[columns]]\nname = "f{number}"\nlow = 0\nhigh = 1\n' for number in (1, 2, 3))
    (folder / "f.toml").write_text(f'label = "sick"\n{columns}')
    run("marginals", "north.libsvm", "--schema", "f.toml", "--name", "north", "--epsilon", "1", cwd=folder)
    told = tomllib.loads((folder / "north.toml").read_text())
    assert [len(own) for own in told["counts"]] == [11, 11, 11]


def test_pixels_are_refused(folder):
    np.savez(
        folder / "rows.npz", X=np.zeros((9, 4)), y=np.zeros(9), names=[f"pixel {a},{b}" for a in (0, 1) for b in (0, 1)]
    )
    assert "pixels of images" in run("new", "--from", "rows.npz", "--label", "ill", cwd=folder, code=1).stderr
