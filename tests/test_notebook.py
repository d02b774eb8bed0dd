"""The notebook is a run: every cell shows what it showed when its outputs were written, which is done by

python tests/support/notebook.py examples/own_table.ipynb
"""

import json
import re
from pathlib import Path

import pytest

from notebook import run, shown, steady

PATH = Path(__file__).parent.parent / "examples" / "own_table.ipynb"
NOTEBOOK = json.loads(PATH.read_text(encoding="utf-8"))
STORED = shown(NOTEBOOK)


def test_every_cell_shows_what_is_stored(tmp_path):
    # One test: every process that has one of several would run the notebook.
    again = shown(run(NOTEBOOK, tmp_path))
    assert {cell: steady(text) for cell, text in again.items()} == {cell: steady(STORED[cell]) for cell in again}


def test_every_code_cell_shows_something_and_two_are_there_to_be_refused():
    assert [cell for cell, text in STORED.items() if not text] == []
    assert [cell for cell, text in STORED.items() if "error:" in text] == ["simulate-first", "check-south"]


def test_every_page_that_the_notebook_links_to_is_there():
    links = [link for cell in NOTEBOOK["cells"] for link in re.findall(r"\]\(([^)]+)\)", "".join(cell["source"]))]
    assert links
    assert [link for link in links if not (PATH.parent / link).is_file()] == []


def test_nothing_of_the_machine_that_it_was_run_on_is_stored():
    assert not re.search(r"/(?:tmp|home|root|Users|work)\b", PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("1 student, 1,662 bytes, plan c9837421bb1a.", "1 student, 998,001 bytes, plan 004fd702c365."),
        ("ok       Time     about 4 seconds, with 1 job\n", "ok       Time     about 2 minutes, with 1 job\n"),
        ("a  %  seconds\n────\nx  9.5    1.0\n", "a  %   seconds\n─────\nx  9.5    12.0\n"),
        ("  seconds: 0.9\n", "  seconds: 11\n"),
    ],
)
def test_clocks_digests_and_sizes_may_differ(then, now):
    assert steady(then) == steady(now)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("Accuracy  95.6 %", "Accuracy  95.7 %"),
        ("a  %  seconds\n────\nx  9.5  1.0\n", "a  %  seconds\n────\nx  9.4  1.0\n"),
        ("1 student from 88 rows", "1 student from 89 rows"),
        ("'12,72' in column", "'12,73' in column"),
    ],
)
def test_another_figure_is_found(then, now):
    assert steady(then) != steady(now)
