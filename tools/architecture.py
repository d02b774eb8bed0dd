"""Figures of the tree: lines, rooms, long files and functions, names defined twice, and how far a party's flow jumps.

    python tools/architecture.py [--names]

`--names` lists every module-level name that is defined more than once, with its files.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import fedkt
from fedkt.algorithms import ALGORITHMS
from fedkt.federation import Party
from fedkt.privacy import Gaussian

ROOT = Path(fedkt.__file__).parent
LONG_FILE, LONG_FUNCTION = 300, 60
FLOWS = (
    ("fedkt", "L0"),
    ("fedkt-expert", "L0"),
    ("fedkt-expert-no-counts", "L0"),
    ("fedkt", "L2"),
    ("fedkt-expert", "L2"),
)


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="list the names that are defined more than once")
    options = parser.parse_args()
    files = sorted(ROOT.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    long_files = [f"{place(path)} {count}" for path, count in lengths.items() if count > LONG_FILE]
    functions = long_functions(trees)
    twice = names_defined_twice(trees)
    print(f"lines of Python in the wheel      {sum(lengths.values()):,} in {len(files)} files")
    print(f"rooms                             {len({place(path).split('/')[0] for path in files} - {'__init__.py'})}")
    print(f"files over {LONG_FILE} lines              {len(long_files)}  {', '.join(long_files)}")
    print(f"functions over {LONG_FUNCTION} lines           {len(functions)}  {', '.join(functions)}")
    print(f"names defined more than once      {len(twice)}")
    for name, places in sorted(twice.items(), key=lambda each: -len(each[1])) if options.names else ():
        print(f"    {name:24} {', '.join(places)}")
    print("changes of file in one party's flow, among the algorithms:")
    for name, level in FLOWS:
        print(f"    {name:24} {level}  {file_changes(name, level)}")


def place(path: Path) -> str:
    """A file as it is written in the tree."""
    return path.relative_to(ROOT).as_posix()


def long_functions(trees: dict[Path, ast.Module]) -> list[str]:
    """Functions over the limit, decorators left out."""
    functions = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONG_FUNCTION:
                    functions.append(f"{place(path)}:{node.name} {lines}")
    return functions


def names_defined_twice(trees: dict[Path, ast.Module]) -> dict[str, list[str]]:
    """Functions and classes of modules that share their name with another one, with their files."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                homes[node.name].append(place(path))
    return {name: places for name, places in homes.items() if len(places) > 1}


def file_changes(name: str, level: str) -> int:
    """How often the calls of one party's step go from one file of `algorithms` to another."""
    rng = np.random.default_rng(0)
    X, public = rng.normal(size=(60, 4)), rng.normal(size=(30, 4))
    private = {"noise": Gaussian(sigma=3.0), "queries": 10, "subsets": 2} if level != "L0" else {}
    algorithm = ALGORITHMS[name].build("tree", level=level, **private)
    inside, files = str(ROOT / "algorithms"), [""]

    def step() -> None:
        algorithm.party_step(Party(public, ("a", "b"), 1, name="north", X=X, y=(X[:, 0] > 0).astype(np.int64)), None)

    def watch(frame: FrameType, event: str, value: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(inside) and files[-1] != path:
            files.append(path)

    step()
    sys.setprofile(watch)
    step()
    sys.setprofile(None)
    return len(files) - 2


if __name__ == "__main__":
    main()
