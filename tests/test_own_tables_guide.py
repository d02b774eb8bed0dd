"""The guide to one's own tables is a run: every command is given, and says what the page shows."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from command_line import fedkt

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guide" / "own-tables.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def without_figures(text):
    """The text with every number the same: bytes and last digits hang on versions of libraries."""
    return re.sub(r"[0-9][0-9.,]*", "0", re.sub(r"\b[0-9a-f]{12}\b", "0", text))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What stands on the page beside what was said: a pair for each block, and the file that a block of TOML is."""
    folder = tmp_path_factory.mktemp("own-tables")
    pairs, said = [], ""
    before = {}
    for language, block in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "console":
            said = ""
            for line in block.splitlines():
                program, *words = shlex.split(line)
                if program == "fedkt":
                    done = fedkt(*words, cwd=folder / "clinics")
                    said += done.stdout + done.stderr
                    pairs.append((line, done.returncode, "--check" not in line))
                elif program == "python":
                    make_files(folder, *words)
                    before = {path: path.read_bytes() for path in (folder / "clinics").glob("*.csv")}
        elif language == "text":
            pairs.append((block, said, None))
        else:
            pairs.append((block, (folder / "clinics" / "north.mapping.toml").read_text(), None))
    return pairs, before


def make_files(folder, script, place):
    """The files of the example, as its script makes them."""
    sys.path.insert(0, str((ROOT / script).parent))
    try:
        import make_files as example
    finally:
        sys.path.pop(0)
    example.make_files(folder / place)


def test_every_line_that_the_page_shows_is_said(told):
    for block, said, kind in told[0]:
        if kind is None:
            there = without_figures(said)
            assert [line for line in block.splitlines() if without_figures(line) not in there] == []


def test_every_command_that_is_to_run_runs(told):
    assert [(line, code) for line, code, runs in told[0] if runs and code != 0] == []


def test_no_file_was_edited(told):
    assert told[1]
    assert {path: path.read_bytes() for path in told[1]} == told[1]
