"""Who may import whom, read from the source."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "fedkt"

ALLOWED = {
    "errors": set(),
    "system": {"errors"},
    "votes": set(),
    "pooling": set(),
    "quality": {"errors"},
    "privacy": {"errors", "system", "votes"},
    "models": {"errors", "system"},
    "data": {"errors", "system"},
    "bundle": {"errors", "models", "system"},
    "federation": {"errors", "bundle", "privacy", "system", "votes"},
    "algorithms": {"errors", "bundle", "federation", "models", "pooling", "privacy", "system", "votes"},
    "plan": {"errors", "algorithms", "bundle", "data", "models", "privacy", "system"},
    "report": {"errors", "algorithms", "data", "federation", "models", "privacy", "quality", "system", "votes"},
    "final_card": {"errors", "data", "plan"},
}
BASE = set(ALLOWED)
ALLOWED |= {part: BASE for part in ("estimator", "lab", "live")}
ALLOWED["bench"] = BASE | {"lab"}
ALLOWED["cli"] = set(ALLOWED)

PAPER = SOURCE.parents[1] / "paper"
COMMANDS = {"__main__.py"}
"""`python -m paper` speaks like `fedkt`: the same options, progress bars, tables and refusals."""

HEAVY = {"torch", "xgboost", "lightgbm"}
LOOPS = SOURCE / "bench" / "plain"
"""What fedkt is measured against: whoever writes such a loop has no models folder."""


def modules():
    return sorted(
        path
        for path in SOURCE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py") or path.parent != SOURCE
    )


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_lies_below_it(path):
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    used = {name.split(".")[1] for name in imported(path) if name.startswith("fedkt.")}
    assert used - {part, "__version__"} <= ALLOWED[part]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_what_is_installed_knows_nothing_of_the_clone(path):
    assert not {"paper", "tests", "benchmarks", "fuzz"} & {name.split(".")[0] for name in imported(path)}


def test_what_only_a_clone_can_run_is_not_installed():
    told = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert told["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/fedkt"]}


@pytest.mark.parametrize("path", sorted(PAPER.glob("*.py")), ids=lambda path: path.name)
def test_only_the_papers_command_speaks_through_the_command_line(path):
    used = {name.split(".")[1] for name in imported(path) if name.startswith("fedkt.")}
    assert "cli" not in used or path.name in COMMANDS


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_learning_libraries_are_known_to_the_models_folder_only(path):
    if path.relative_to(SOURCE).parts[0] != "models" and path.parent != LOOPS:
        assert not HEAVY & {name.split(".")[0] for name in imported(path)}


@pytest.mark.parametrize("path", sorted(LOOPS.glob("*.py")), ids=lambda path: path.name)
def test_a_bare_loop_has_nothing_of_fedkt_but_its_rows_and_the_clock(path):
    used = {name for name in imported(path) if name.startswith("fedkt.") and not name.startswith("fedkt.bench.plain")}
    assert {name.rpartition(".")[0] for name in used} <= {"fedkt.bench.work", "fedkt.system.stages"}


def test_nothing_in_the_product_can_unpickle():
    for path in modules():
        assert not {"pickle", "cloudpickle", "dill", "marshal", "shelve"} & {
            name.split(".")[0] for name in imported(path)
        }, path


def test_the_runtime_is_imported_in_one_place_only():
    """The one that tells it before not to report to its makers."""
    found = [path.name for path in modules() if "onnxruntime" in {name.split(".")[0] for name in imported(path)}]
    assert found == ["sandbox_child.py"]


@pytest.mark.parametrize("name", ["data/parquet_child", "models/sandbox_child", "models/wall_acts", "system/walls"])
def test_what_runs_behind_walls_imports_nothing_of_fedkt(name):
    assert [each for each in imported(SOURCE / f"{name}.py") if each.split(".")[0] == "fedkt"] == []


def test_importing_fedkt_loads_no_learning_library():
    code = (
        "import sys, fedkt; "
        "print([m for m in ('sklearn', 'torch', 'onnx', 'onnxruntime', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("words", [(), ("simulate",), ("compare",), ("plan", "new"), ("privacy", "price")])
def test_asking_for_help_loads_no_learning_library(words):
    code = (
        f"import sys, fedkt.cli; sys.argv = ['fedkt', *{words}, '--help']\n"
        "try:\n    fedkt.cli.main()\nexcept SystemExit:\n    pass\n"
        "heavy = ('sklearn', 'scipy', 'torch', 'onnx', 'onnxruntime', 'matplotlib', 'skl2onnx')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Usage: fedkt" in shown
    assert shown.endswith("\n[]\n")
