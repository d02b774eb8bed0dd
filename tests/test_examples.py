"""Every example runs as it stands, in this process, which has the libraries loaded."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PACKAGES = [each.parent for each in EXAMPLES.rglob("pyproject.toml")]
"""Whose files are imported, and tested by themselves."""
HOSPITALS = EXAMPLES / "three_hospitals" / "run.py"
"""Its commands are run in tests/cli/test_live_commands.py, where what they leave is looked at."""
SCRIPTS = sorted(path for path in EXAMPLES.rglob("*.py") if not {*PACKAGES, HOSPITALS} & {path, *path.parents})


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_the_example_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
