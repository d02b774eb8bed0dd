"""The example of a package with plug-ins, as somebody would have it who installed it."""

import json
import os
import subprocess
import sys

from command_line import fedkt
from plug_ins import EXAMPLE, site, write_example

__all__ = ["site"]


def test_its_own_tests_pass_where_it_is_installed(tmp_path):
    write_example(tmp_path / "site")
    paths = (str(tmp_path / "site"), str(EXAMPLE / "src"), *filter(None, [os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_line_knows_what_it_brings_and_from_whom(site, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    write_example(site)
    found = json.loads(fedkt("plug-ins", "--json").stdout)["plug_ins"]
    assert [(each["kind"], each["name"], each["package"], each["version"], each["fault"]) for each in found] == [
        ("algorithm", "plurality", "fedkt-example", "1.0", ""),
        ("dataset", "wine", "fedkt-example", "1.0", ""),
        ("model", "bagging", "fedkt-example", "1.0", ""),
    ]
    assert "fedkt-example 1.0" in fedkt("plug-ins").stdout
    assert json.loads(fedkt("datasets", "--json").stdout)["wine"]["model"] == "bagging"
    done = fedkt("compare", "wine", "--algorithms", "plurality,solo", "--seeds", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["algorithms"][0]["algorithm"] == "plurality"
    assert told["runs"][0]["versions"]["fedkt-example"] == "1.0"
