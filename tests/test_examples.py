"""Every example runs as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PACKAGES = [each.parent for each in EXAMPLES.rglob("pyproject.toml")]
"""Whose files are imported, and tested by themselves."""
SCRIPTS = sorted(path for path in EXAMPLES.rglob("*.py") if not set(PACKAGES) & set(path.parents))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_the_example_runs(path, tmp_path):
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
