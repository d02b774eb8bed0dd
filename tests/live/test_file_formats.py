"""Every party's file in a format of its own: the same rows, the same bundle, and nothing of the format travels."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from fedkt.errors import ConfigurationError, DataError
from live_federation import fedkt

HEAD = ("größe", "day", "smoker", "ward", "ill")


def made_up_rows(seed: int, n: int) -> list[tuple[float, np.datetime64, bool, str, bool]]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        height = round(float(rng.normal(1_170, 90)), 1)
        day = np.datetime64("2020-01-01") + int(rng.integers(1_000))
        rows.append((height, day, bool(rng.integers(2)), str(rng.choice(["Köln", "Bonn"])), height > 1_170))
    return rows


def plain(path: Path, rows: list) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD)
        for height, day, smoker, ward, ill in rows:
            writer.writerow([height, day, smoker, ward, "yes" if ill else "no"])
    return path


def german(path: Path, rows: list) -> Path:
    """As a spreadsheet in Germany saves it."""
    lines = [";".join(HEAD)]
    for height, day, smoker, ward, ill in rows:
        number = f"{height:,}".replace(",", "x").replace(".", ",").replace("x", ".")
        date = day.item().strftime("%d.%m.%Y")
        lines.append(f"{number};{date};{'ja' if smoker else 'nein'};{ward};{'Ja' if ill else 'Nein'}")
    path.write_bytes("\r\n".join(["", *lines, "", ""]).encode("cp1252"))
    return path


def american(path: Path, rows: list) -> Path:
    lines = ["\t".join(HEAD)]
    for height, day, smoker, ward, ill in rows:
        date = day.item().strftime("%m/%d/%Y")
        lines.append(f"{height:,} mm\t{date}\t{int(smoker)}\t{ward}\t{'YES' if ill else 'NO'}")
    path.write_bytes("\n".join(lines).encode("utf-16"))
    return path


def workbook(path: Path, rows: list) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(HEAD)
    for height, day, smoker, ward, ill in rows:
        book.active.append([height, day.item(), smoker, ward, "yes" if ill else "no"])
    book.save(path)
    return path


OWN = {
    "plain": (plain, "north.csv", ()),
    "german": (german, "north.csv", ("--decimal", ",")),
    "american": (american, "north.tsv", ("--decimal", ".", "--unit", "größe=mm", "--dates", "day=mm/dd/yyyy")),
    "workbook": (workbook, "north.xlsx", ()),
}


def new_plan(folder: Path, *more: str, public: str = "public.csv"):
    return fedkt(
        *("plan", "new", "--public", folder / public, "--label", "ill", "--classes", "yes,no", "--party", "north"),
        *("--party", "south", "--model", "tree", "-o", folder / "plan.toml", *more),
    )


def party(folder: Path, data: Path, *more: str, public: str = "public.plain.csv"):
    said = fedkt(
        *("party", folder / "plan.toml", "--name", "north", "--data", data, "--public", folder / public),
        *("-o", folder / "inbox", "--work", folder / "work", "--json", *more),
    )
    return json.loads(said.out), said.err


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    """A plan of a public file from a German spreadsheet."""
    folder = tmp_path_factory.mktemp("formats")
    german(folder / "public.csv", made_up_rows(0, 60))
    said = new_plan(folder, "--decimal", ",")
    assert "is not UTF-8; read as Windows-1252" in said.err
    # The terminal breaks a line where it likes.
    assert "Send it with" in " ".join(said.out.split())
    assert "public.plain.csv" in said.out
    return folder


@pytest.mark.parametrize("kind", OWN)
def test_the_same_rows_give_the_same_bundle_however_they_are_written(federation, tmp_path, kind):
    rows = made_up_rows(1, 60)
    told, _ = party(federation, plain(tmp_path / "own.csv", rows))
    write, name, options = OWN[kind]
    sent, errors = party(federation, write(tmp_path / name, rows), *options)
    assert sent["sha256"] == told["sha256"]
    found = [note for note in sent["notes"] if "1252" in note or "UTF-16" in note]
    assert len(found) == (kind in ("german", "american"))
    assert all(note in errors for note in found)


def test_what_the_public_file_was_like_is_not_part_of_the_plan(federation, tmp_path):
    text = (federation / "plan.toml").read_text()
    assert 'file = "public.plain.csv"' in text
    assert not {"cp1252", "decimal", "encoding"} & set(text.split())
    # The same rows in a file that was plain before: all of the plan but the file is the same.
    plain(tmp_path / "public.csv", made_up_rows(0, 60))
    new_plan(tmp_path)
    lines = zip(text.splitlines(), (tmp_path / "plan.toml").read_text().splitlines(), strict=True)
    different = [line for line, other in lines if line != other]
    assert [line.split()[0] for line in different if not line.startswith("#")] == ["file", "sha256"]


def test_a_plain_copy_is_not_written_over_another_file(federation, tmp_path):
    german(tmp_path / "public.csv", made_up_rows(0, 60))
    (tmp_path / "public.plain.csv").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"public\.plain\.csv is there already, with other content"):
        new_plan(tmp_path, "--decimal", ",")
    assert (tmp_path / "public.plain.csv").read_text() == "mine"
    assert not (tmp_path / "plan.toml").exists()


def test_a_public_file_with_decimal_commas_is_no_plan_of_categories(tmp_path):
    german(tmp_path / "public.csv", made_up_rows(0, 60))
    with pytest.raises(DataError, match=r"line 3: .* in column 'größe' is not a number, .*--decimal ,"):
        new_plan(tmp_path)
    assert not (tmp_path / "plan.toml").exists()


def test_the_server_and_whoever_predicts_say_how_their_own_files_are_written(federation, tmp_path):
    test = german(tmp_path / "test.csv", made_up_rows(2, 40))
    for name in ("north", "south"):
        own = plain(tmp_path / f"{name}.csv", made_up_rows(3, 60))
        fedkt(
            *("party", federation / "plan.toml", "--name", name, "--data", own, "-o", tmp_path / "inbox"),
            *("--public", federation / "public.plain.csv", "--work", tmp_path / "work"),
        )
    server = (
        "server",
        federation / "plan.toml",
        "--public",
        federation / "public.plain.csv",
        "-o",
        tmp_path / "result",
    )
    server = (*server, "--bundles", tmp_path / "inbox")
    with pytest.raises(ConfigurationError, match="about --test, and there is none"):
        fedkt(*server, "--decimal", ",")
    with pytest.raises(DataError, match="--decimal ,"):
        fedkt(*server, "--test", test)
    said = json.loads(fedkt(*server, "--test", test, "--decimal", ",", "--json").out)
    final = tmp_path / "result" / "final.onnx"
    predicted = json.loads(fedkt("predict", final, test, "--decimal", ",", "--json").out)
    evaluated = json.loads(fedkt("evaluate", final, test, "--decimal", ",", "--baseline", final, "--json").out)
    rows = json.loads(fedkt("predict", final, plain(tmp_path / "same.csv", made_up_rows(2, 40)), "--json").out)
    assert predicted["predictions"] == rows["predictions"]
    assert said["accuracy"] == predicted["accuracy"] == rows["accuracy"]
    assert "read as Windows-1252" in predicted["note"]
    assert any("read as Windows-1252" in note for note in evaluated["notes"])


def test_where_records_are_protected_no_row_says_how_other_dates_are_read(federation, tmp_path):
    noisy = ("--level", "L2", "--noise", "gaussian:40", "--queries", "5")
    german(tmp_path / "public.csv", made_up_rows(0, 60))
    new_plan(tmp_path, "--decimal", ",", *noisy)
    rows = made_up_rows(1, 60)
    own = plain(tmp_path / "north.csv", rows)
    for _, day, *_ in rows:
        own.write_text(own.read_text().replace(str(day), day.item().strftime("%m/%d/%Y")))
    # Read at level L0, where the thirteenth of a month tells.
    party(federation, own)
    ledger = ("--ledger", str(tmp_path / "ledger"))
    with pytest.raises(DataError, match=r"no row may decide how others are read\. .*--dates day=mm/dd/yyyy"):
        party(tmp_path, own, *ledger)
    assert not (tmp_path / "ledger").exists()
    sent, _ = party(tmp_path, own, "--dates", "day=mm/dd/yyyy", *ledger)
    assert sent["rows"] == 60


def test_rows_laid_aside_are_judged_in_the_format_they_were_laid_aside_in(federation, tmp_path):
    own = german(tmp_path / "north.csv", made_up_rows(1, 60))
    party(federation, own, "--decimal", ",", "--hold-out", "0.3")
    south = plain(tmp_path / "south.csv", made_up_rows(3, 60))
    fedkt(
        *("party", federation / "plan.toml", "--name", "south", "--data", south, "-o", federation / "inbox"),
        *("--public", federation / "public.plain.csv", "--work", tmp_path / "work"),
    )
    fedkt(
        *("server", federation / "plan.toml", "--public", federation / "public.plain.csv", "-o", tmp_path / "result"),
        *("--bundles", federation / "inbox"),
    )
    judged = ("--evaluate", str(tmp_path / "result" / "final.onnx"))
    said, _ = party(federation, own, "--decimal", ",", *judged)
    assert said["rows"] + said["learned"] == 60
    with pytest.raises(DataError):
        party(federation, own, *judged)
