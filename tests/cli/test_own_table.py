"""A table of the user's own in the place of a dataset."""

import json

import pytest

from command_line import fedkt

QUICK = ("--algorithm", "fedkt", "--model", "tree", "--subsets", "2", "--json")


@pytest.fixture
def folder(tmp_path):
    """A table of three wards, public rows without labels, and test rows."""
    rows = [(f"w{i % 3}", 20 + i % 40, "yes" if i % 40 > 20 else "no") for i in range(120)]
    for name, part, width in (("own", rows[:80], 3), ("public", rows[40:90], 2), ("test", rows[80:], 3)):
        lines = ["ward,age,ill"] + [",".join(map(str, row)) for row in part]
        (tmp_path / f"{name}.csv").write_text("\n".join(",".join(line.split(",")[:width]) for line in lines) + "\n")
    return tmp_path


def found(*words, cwd):
    done = fedkt(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_column_names_the_parties_and_rows_are_set_aside(folder):
    report = found("simulate", "own.csv", "--label", "ill", "--party-column", "ward", *QUICK, cwd=folder)
    assert (report["dataset"], report["parties"], report["partition"]) == ("own.csv", 3, "column")
    assert report["rows"] == {"parties": 48, "public": 16, "test": 16}
    assert report["party_rows"].keys() == {"w0", "w1", "w2"}
    assert report["label_accuracy"] > 0.8
    assert "own.csv (sha256 " in report["source"]
    again = found("simulate", "own.csv", "--label", "ill", "--party-column", "ward", *QUICK, cwd=folder)
    assert (again["accuracy"], again["party_rows"]) == (report["accuracy"], report["party_rows"])


def test_without_a_column_rows_are_dealt_to_as_many_parties_as_are_wanted(folder):
    words = ("simulate", "own.csv", "--label", "ill", "--ignore", "ward", *QUICK)
    report = found(*words, "--parties", "4", "--partition", "even", cwd=folder)
    assert (report["parties"], report["partition"]) == (4, "even")
    assert found(*words, cwd=folder)["parties"] == 5


def test_public_and_test_rows_come_from_files_and_unlabelled_public_rows_are_not_measured(folder):
    files = ("--public-file", "public.csv", "--test-file", "test.csv")
    report = found("simulate", "own.csv", "--label", "ill", "--party-column", "ward", *files, *QUICK, cwd=folder)
    assert report["rows"] == {"parties": 80, "public": 50, "test": 40}
    assert (report["label_accuracy"], report["accuracy"] > 0.8) == (None, True)


def test_a_changed_file_is_another_run_and_an_unchanged_one_is_not_run_again(folder):
    words = ("compare", "own.csv", "--label", "ill", "--algorithms", "fedkt,solo", "--model", "tree", "--seeds", "1")
    words += ("--party-column", "ward", "--results", "r.jsonl", "--json")
    first = found(*words, cwd=folder)
    assert found(*words, cwd=folder) == first
    stored = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    assert len(stored) == 2
    assert stored[0]["setting"]["own"]["file"] == "own.csv"
    (folder / "own.csv").write_text((folder / "own.csv").read_text() + "w0,33,no\n")
    found(*words, cwd=folder)
    found(*words, "--test-aside", "0.3", cwd=folder)
    stored = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    assert len({json.dumps(each["setting"]["own"]) for each in stored}) == 3
    assert len(stored) == 6


def test_the_page_shows_whose_rows_were_whose(folder):
    words = ("simulate", "own.csv", "--label", "ill", "--party-column", "ward", *QUICK[:-1], "--report", "page.html")
    assert fedkt(*words, cwd=folder).returncode == 0
    page = (folder / "page.html").read_text()
    assert "fedkt on own.csv" in page
    assert "20 % set aside as public rows" in page
    assert ">w2<" in page


def test_at_a_private_level_public_rows_set_aside_are_warned_of(folder):
    words = ("simulate", "own.csv", "--label", "ill", "--ignore", "ward", "--algorithm", "fedkt", "--model", "tree")
    words += ("--level", "L1", "--noise", "gaussian:4", "--queries", "4", "--json")
    report = found(*words, cwd=folder)
    assert any("nobody may do in earnest" in note for note in report["notes"])
    quiet = found(*words, "--public-file", "public.csv", cwd=folder)
    assert not any("nobody may do in earnest" in note for note in quiet["notes"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("own.csv",), "Pass --label with one of own.csv: 'ward', 'age', 'ill'"),
        (("own.csv", "--label", "sick"), "own.csv has no label column 'sick'"),
        (("owm.csv", "--label", "ill"), "owm.csv is neither a file nor a folder"),
        (("zebra",), "There is no dataset 'zebra'. Choose one of"),
        (("digits", "--label", "ill"), "--label is for a table of your own; of 'digits' fedkt knows its columns"),
        (("own.csv", "--label", "ill", "--extra"), "'own.csv' has no extra part"),
        (("own.csv", "--label", "ill", "--partition", "column"), "Pass --party-column"),
        (("own.csv", "--label", "ill", "--party-column", "ward", "--partition", "even"), "Leave one of them out"),
        (("own.csv", "--label", "ill", "--party-column", "ward", "--parties", "4"), "leave the number of parties out"),
        (("own.csv", "--label", "ill", "--public-file", "own.csv"), "is the same file as own.csv"),
        (("own.csv", "--label", "ill", "--test-file", "no.csv"), "no.csv is neither a file"),
        (
            ("own.csv", "--label", "ill", "--test-file", "test.csv", "--test-aside", "0.1"),
            "--test-aside would set others aside",
        ),
        (("own.csv", "--label", "ill", "--public-file", "public.csv", "--public-beta", "1"), "have no labels"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(folder, words, said):
    done = fedkt("simulate", *words, *QUICK, cwd=folder)
    assert done.returncode == 1
    assert said in " ".join(done.stderr.split())


def test_a_folder_that_is_called_as_a_dataset_is_the_dataset_unless_its_path_says_so(folder):
    (folder / "digits").mkdir()
    assert found("simulate", "digits", *QUICK, cwd=folder)["dataset"] == "digits"
    assert "has no images" in " ".join(fedkt("simulate", "./digits", *QUICK, cwd=folder).stderr.split())


def test_a_file_that_is_written_in_another_way_is_read_as_somebody_says(folder):
    rows = [(f"w{i % 3}", f"1.0{20 + i % 40},5", "yes" if i % 40 > 20 else "no") for i in range(80)]
    lines = ["Patienten 2024;;", "ward;dose;ill", *(";".join(row) for row in rows)]
    (folder / "german.csv").write_bytes("\r\n".join(lines).encode("utf-16"))
    words = ("simulate", "german.csv", "--label", "ill", "--party-column", "ward", "--header", "2", *QUICK)
    told = found(*words, "--decimal", ",", cwd=folder)
    assert (told["parties"], told["rows"]) == (3, {"parties": 48, "public": 16, "test": 16})
    assert "--decimal" in fedkt(*words, cwd=folder).stderr
    known = fedkt("simulate", "digits", "--decimal", ",", *QUICK, cwd=folder)
    assert "is to be said of a table of your own" in known.stderr


def test_how_a_file_is_written_is_part_of_the_run(folder):
    words = (
        "compare",
        "own.csv",
        "--label",
        "ill",
        "--algorithms",
        "solo",
        "--model",
        "tree",
        "--seeds",
        "1",
        "--json",
    )
    for more in ((), ("--missing-value", "w1"), ("--missing-value", "w1")):
        found(*words, "--ignore", "ward", "--results", "r.jsonl", *more, cwd=folder)
    stored = [json.loads(line)["setting"]["own"] for line in (folder / "r.jsonl").read_text().splitlines()]
    assert [each.get("missing_values") for each in stored] == [None, ["w1"]]
