"""A party's own names and codes: said once, kept beside its data, and nowhere else."""

import csv
import json
import stat

import numpy as np
import pytest

from fedkt.data.mapping import TableMapping
from fedkt.errors import ConfigurationError, DataError, PrivacyError
from fedkt.live import mapping_file, shelf
from fedkt.live.mapping_file import as_toml, read_mapping
from live_federation import build, fedkt, new_plan, party, server

L2 = ("--level", "L2", "--mechanism", "gaussian", "--sigma", "8", "--queries", "30")
L1 = ("--level", "L1", "--mechanism", "laplace", "--gamma", "0.5", "--queries", "40")
CHOICES = ("--rename", "Mean Radius=mean_radius", "--rename", "befund=diagnosis", "--label-map", "1=malignant,0=benign")


def rewritten(source, path, names=None, codes=None):
    """The file at `source` with other names, and other values in some columns."""
    with source.open() as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([(names or {}).get(name, name) for name in rows[0]])
        for row in rows:
            writer.writerow([(codes or {}).get(name, lambda value: value)(value) for name, value in row.items()])
    return path


def foreign(folder, name="north"):
    """The file of a party as it would export it itself."""
    path = folder / f"{name}-export.csv"
    names = {"mean_radius": "Mean Radius", "diagnosis": "befund"}
    codes = {"diagnosis": {"malignant": "1", "benign": "0"}.__getitem__}
    return rewritten(folder / f"{name}.csv", path, names, codes)


@pytest.fixture
def folder(tmp_path):
    build(tmp_path)
    return tmp_path


def test_a_file_of_its_own_names_and_codes_gives_the_bundle_of_the_rewritten_one(folder):
    party(folder, "north")
    agreed = (folder / "inbox" / "north.fedkt").read_bytes()
    party(folder, "north", *CHOICES, data=foreign(folder))
    assert (folder / "inbox" / "north.fedkt").read_bytes() == agreed


def test_choices_are_written_beside_the_data_for_their_owner_and_used_again(folder):
    data = foreign(folder)
    first = party(folder, "north", *CHOICES, data=data)
    path = folder / "north.mapping.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert text.startswith("# How this party's own file")
    assert '"Mean Radius" = "mean_radius"' in text
    assert f"Written into {path}, and used from now on: column 'Mean Radius' is 'mean_radius'" in first.err
    again = party(folder, "north", data=data)
    assert f"is read as {path} says" in again.err
    assert path.read_text() == text
    assert "mapping" not in (folder / "inbox" / "north.fedkt").read_bytes().decode("latin-1")


def test_without_choices_no_file_is_written(folder):
    party(folder, "north")
    assert not (folder / "north.mapping.toml").exists()


def test_a_refused_file_writes_nothing_down(folder):
    with pytest.raises(DataError, match="lacks the agreed column 'mean_radius'"):
        party(folder, "north", *CHOICES[2:], data=foreign(folder))
    assert not (folder / "north.mapping.toml").exists()


def test_a_choice_that_contradicts_the_file_is_refused(folder):
    data = foreign(folder)
    party(folder, "north", *CHOICES, data=data)
    with pytest.raises(ConfigurationError, match=r"--label-map 1=benign contradicts .*north\.mapping\.toml, which"):
        party(folder, "north", "--label-map", "1=benign", data=data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("format = 2", "does not begin with format = 1"),
        ("format = 1\n[rename", "is no TOML"),
        ('format = 1\nnames = "x"', "is no mapping: names"),
        ("format = 1\n[rename]\na = 3", "is no mapping: rename"),
        ("#" * (2**20 + 1), "is larger than any mapping"),
    ],
)
def test_a_damaged_mapping_is_refused_with_what_to_do(folder, text, words):
    (folder / "north.mapping.toml").write_text(text)
    with pytest.raises(DataError, match=f"{words}.*remove it and give"):
        party(folder, "north")


def test_work_under_another_mapping_is_not_gone_on_with(folder, monkeypatch):
    def dies(*_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(shelf.Shelf, "__contains__", dies)
        with pytest.raises(AssertionError):
            party(folder, "north")
    said = party(folder, "north", "--label-map", "malignant=benign,benign=malignant")
    assert "begun with another data file or --id, or --hold-out, or mapping of names and codes" in said.err


def test_a_paid_run_is_not_thrown_away_for_another_mapping(folder, monkeypatch):
    new_plan(folder, "--force", *L2)

    def dies(*_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(shelf.Shelf, "__setitem__", dies)
        with pytest.raises(AssertionError):
            party(folder, "north")
    with pytest.raises(PrivacyError, match="paid for and not finished"):
        party(folder, "north", "--label-map", "malignant=benign,benign=malignant")


def test_evaluating_uses_the_mapping_and_notices_another(folder):
    data = foreign(folder)
    party(folder, "north", *CHOICES, "--hold-out", "0.3", data=data)
    for name in ("south", "west"):
        party(folder, name)
    server(folder)
    judged = party(folder, "north", "--evaluate", folder / "result" / "final.onnx", "--json", data=data)
    assert json.loads(judged.out)["rows"] > 0
    more = ("--evaluate", folder / "result" / "final.onnx", "--label-map", "x=benign")
    with pytest.raises(DataError, match="the mapping of its names and codes was"):
        party(folder, "north", *more, data=data)


def test_predict_evaluate_and_server_read_files_with_names_of_their_own(folder):
    for name in ("north", "south", "west"):
        party(folder, name)
    server(folder)
    test, final = foreign(folder, "test"), folder / "result" / "final.onnx"
    agreed = json.loads(fedkt("evaluate", final, folder / "test.csv", "--json").out)["quality"]
    assert json.loads(fedkt("evaluate", final, test, *CHOICES, "--json").out)["quality"] == agreed
    lines = fedkt("predict", final, test, *CHOICES).out.splitlines()
    assert lines[0].startswith("Mean Radius,")
    assert lines[0].endswith(",befund,prediction")
    expected = [line.rpartition(",")[2] for line in fedkt("predict", final, folder / "test.csv").out.splitlines()]
    assert [line.rpartition(",")[2] for line in lines] == expected
    server(folder, "--test", test, *CHOICES)
    report = json.loads((folder / "result" / "report.json").read_text())
    assert report["accuracy"] == agreed["accuracy"]["value"]


def grams(folder):
    """North's file with one column in another unit."""
    codes = {"mean_area": lambda value: str(1000 * float(value))}
    return rewritten(folder / "north.csv", folder / "north-grams.csv", codes=codes)


def test_another_unit_is_refused_without_noise_and_can_be_accepted_once_and_for_all(folder):
    with pytest.raises(DataError, match=r"'mean_area' lie far from the public rows'.*--accept mean_area.*Nothing was"):
        party(folder, "north", data=grams(folder))
    party(folder, "north", "--accept", "mean_area", data=grams(folder))
    party(folder, "north", data=grams(folder))


def test_at_level_l2_a_warning_is_for_the_party_alone_and_moves_no_byte(folder, monkeypatch):
    """The same noise: once warned, once with the column accepted."""
    new_plan(folder, "--force", "--budget", "1000", *L2)
    monkeypatch.setattr(shelf, "new_secret", lambda: 12345)
    warned = party(folder, "north", "--ledger", folder / "one.ledger", data=grams(folder))
    first = (folder / "inbox" / "north.fedkt").read_bytes()
    silent = party(folder, "north", "--ledger", folder / "two.ledger", "--accept", "mean_area", data=grams(folder))
    assert "caution:" in warned.err
    assert "'mean_area' lie far from the public rows'" in warned.err
    assert "lie far" not in silent.err
    assert (folder / "inbox" / "north.fedkt").read_bytes() == first
    lines = [json.loads((folder / name).read_text()) for name in ("one.ledger", "two.ledger")]
    assert {**lines[0], "time": None, "digest": None} == {**lines[1], "time": None, "digest": None}


@pytest.mark.parametrize("level", [L2, L1])
def test_at_private_levels_odd_values_refuse_nothing(folder, level):
    new_plan(folder, "--force", *level)
    assert "caution:" in party(folder, "north", data=grams(folder)).err


def test_numbers_of_rows_in_the_public_file_are_warned_of(folder):
    with (folder / "public.csv").open() as file:
        rows = list(csv.reader(file))
    numbers = np.random.default_rng(1).permutation(10_000)
    with (folder / "public.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["patient", *rows[0]], *([numbers[at], *row] for at, row in enumerate(rows[1:]))])
    assert "leave it out with --ignore patient" in new_plan(folder, "--force").err
    assert "--ignore" not in new_plan(folder, "--force", "--ignore", "patient").err


NAMES = ["a.b", 'quote"', "it's", "umlaut \u00e4", "x = y", "#", "back\\slash", "[rename]", "1", " "]


def test_whatever_names_there_are_the_file_gives_them_back(tmp_path):
    pairs = {name: name[::-1] + "x" for name in NAMES}
    values = {name: {"M": "male", name: "female"} for name in NAMES}
    mapping = TableMapping(rename=pairs, labels=pairs, values=values, accept=tuple(NAMES))
    path = tmp_path / "north.mapping.toml"
    path.write_text(as_toml(mapping), encoding="utf-8")
    assert read_mapping(path) == mapping


def test_where_the_file_cannot_be_written_the_run_goes_on_and_says_so(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(mapping_file, "write_atomically", full)
    said = party(folder, "north", *CHOICES, data=foreign(folder))
    assert "could not be written (Read-only file system): give these options again next time" in said.err
    assert (folder / "inbox" / "north.fedkt").exists()


def test_folders_of_images_have_labels_of_their_own_too(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    for place in ("shown", "own/CATS", "own/D"):
        (folder / place).mkdir(parents=True)
        for number in range(12):
            Image.fromarray(rng.integers(0, 256, size=(4, 4), dtype=np.uint8)).save(folder / place / f"{number}.png")
    new = (
        "plan",
        "new",
        "--public",
        folder / "shown",
        "--label",
        "animal",
        "--classes",
        "cats,dogs",
        "--party",
        "north",
    )
    fedkt(*new, "--model", "tree", "-o", folder / "plan.toml", "--force")
    run = ("party", folder / "plan.toml", "--name", "north", "--data", folder / "own", "--public", folder / "shown")
    with pytest.raises(DataError, match="Did you mean --label-map CATS=cats,D=dogs"):
        fedkt(*run, "-o", folder / "inbox", "--work", folder / "work")
    fedkt(*run, "-o", folder / "inbox", "--work", folder / "work", "--label-map", "CATS=cats,D=dogs")
    assert (folder / "north.mapping.toml").exists()
