"""Tables on terminals of every width: whatever has to give way, it is never a digit."""

import io
import json
import re

import pytest

from fedkt.cli import grids, output
from fedkt.lab.grid import Grid, GridCell
from live_federation import NAMES, build, fedkt, new_plan, party, server

WIDTHS = (80, 60, 40, 24)


def shown(grid, width):
    """The lines that a terminal of a width shows."""
    text = io.StringIO()
    grids.print_grid(grid, screen=output.Screen(file=text, width=width))
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_number_is_whole_in_a_terminal_of_any_width(width):
    names = ["fedkt-expert-no-counts", "a name of several words", "under_scores_and_no_space_at_all"]
    head = ["algorithm", *(f"figure {place} %" for place in range(7))]
    lines = [[name, *(f"{10 * row + place}.{place} ± {row}.5" for place in range(7))] for row, name in enumerate(names)]
    printed = shown(Grid(head, lines, "A title that may take several lines of its own on a phone"), width)
    assert max(map(len, printed)) <= width
    text = "\n".join(printed)
    assert "…" not in text
    for line in lines:
        for number in line[1:]:
            assert text.count(f" {number}") == 1, number
    # A table that does not fit is continued below with the same names.
    letters = re.sub(r"\s", "", "".join(line[:25] for line in printed))
    for name in ("algorithm", *names):
        assert re.sub(r"\s", "", name)[:6] in letters


@pytest.mark.parametrize("width", WIDTHS)
def test_names_wrap_between_words_and_all_of_them_stays(width):
    (*_, first, second) = shown(Grid(["student", "points", "95 % between"], [["a party, student 1", "+1.3", "x"]]), 30)
    assert first.split() == ["a", "party,", "+1.3", "x"]
    assert second.split() == ["student", "1"]
    long = "x" * 300
    printed = shown(Grid(["student", "points"], [[long, "+12.3"]]), width)
    assert "".join(printed).count("x") == 300
    assert sum("+12.3" in line for line in printed) == 1


def test_what_stands_below_a_number_is_not_cut_either():
    grid = Grid(["Figure", "final model", "your own"], [["Accuracy", GridCell("83.3 %", "55.2 to 95.3"), "75.0 %"]])
    assert "(55.2 to 95.3)" in "\n".join(shown(grid, 30))


def test_a_number_wider_than_the_terminal_is_broken_and_not_cut():
    printed = shown(Grid(["a", "b"], [["name", "1234567890123456789012345"]]), 16)
    assert re.sub(r"\D", "", "".join(printed)) == "1234567890123456789012345"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three hospitals whose bundles are sent, one of them with a name that leaves no room for figures."""
    folder = tmp_path_factory.mktemp("narrow")
    build(folder)
    names = (*NAMES[:2], "the_university_hospital_of_the_west")
    (folder / "west.csv").rename(folder / f"{names[2]}.csv")
    new_plan(folder, "--force", parties=names)
    for name in names:
        party(folder, name, "--hold-out", "0.3")
    server(folder)
    return folder


@pytest.mark.parametrize("width", [80, 60])
def test_evaluate_server_and_party_cut_no_figure(folder, width, monkeypatch):
    monkeypatch.setattr(output.stdout, "width", width)
    words = ("evaluate", folder / "result" / "final.onnx", folder / "test.csv", "--bundles", folder / "inbox")
    text = fedkt(*words, "--plan", folder / "plan.toml").out
    figures = json.loads(fedkt(*words, "--plan", folder / "plan.toml", "--json").out)
    for student in figures["students"]:
        apart = student["difference"]
        points, low, high = (re.escape(f"{100 * apart[name]:+.1f}") for name in ("value", "low", "high"))
        assert re.search(rf" {points} +{low} to {high} ", text)
    served = server(folder, "--test", folder / "test.csv").out
    report = json.loads((folder / "result" / "report.json").read_text(encoding="utf-8"))
    for share in report["party_accuracy"].values():
        assert f"{100 * share:.2f} %" in served
    for each in report["bundles"]:
        assert f"{each['bytes']:,}" in served
    judged = party(folder, "north", "--evaluate", folder / "result" / "final.onnx").out
    beside = json.loads(party(folder, "north", "--evaluate", folder / "result" / "final.onnx", "--json").out)
    for model in ("final", "own"):
        accuracy = beside[model]["accuracy"]
        assert f"({100 * accuracy['low']:.1f} to {100 * accuracy['high']:.1f})" in judged
    for printed in (text, served, judged):
        assert "…" not in re.sub(r"SHA-256 \w+…", "", printed)


@pytest.mark.parametrize("width", [80, 60])
def test_simulate_and_compare_cut_no_figure(tmp_path, width, monkeypatch):
    monkeypatch.setattr(output.stdout, "width", width)
    monkeypatch.chdir(tmp_path)
    quick = ("--model", "tree", "--parties", "3", "--subsets", "2", "--bytes")
    one = fedkt("simulate", "digits", *quick)
    several = ("compare", "digits", *quick, "--algorithms", "fedkt,fedkt-expert-no-counts,solo", "--seeds", "2")
    compared = fedkt(*several, "--results", "runs.jsonl").out
    assert "…" not in one.out + compared
    for summary in json.loads(fedkt(*several, "--results", "runs.jsonl", "--json").out)["algorithms"]:
        for figure in ("accuracy", "balanced_accuracy"):
            mean, spread = summary[figure]
            assert f"{100 * mean:.1f} ± {100 * spread:.1f}" in compared
        assert f"{summary['seconds']:.1f}" in compared
