"""Small faults put into the source one at a time by cosmic-ray, and the tests asked whether they notice.

    python tools/mutants.py --mutants 25 --seed 1                # 25 places of every room
    python tools/mutants.py --mutants 200 --rooms privacy,plan   # of two rooms

The work is done on a copy of the tree in .mutants, a folder for every state of the source, and can be broken off at
any time: what has been tried is not tried again, but for survivors when the tests have changed. A place is mutated in
one way, picked at random: the many ways to write one product wrong are mostly killed alike. cosmic-ray and not mutmut,
which leaves a module's constants and its decorated functions alone: limits, properties, checks.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

from attrs import evolve
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkItem, WorkResult

ROOMS: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Of each its `sources`, which are mutated, and its `tests`, which are asked about them."""

SECONDS = 20
"""Of tests, as long as they took on the unharmed source, that a mutant is shown at most."""

PATIENCE, MINIMUM = 4, 30
"""A mutant has timed out at so many times what its tests took before, and after no fewer seconds."""

MEMORY = 16 * 2**30
"""Bytes of address space: a mutant may ask for any number of rows."""

SENSELESS = re.compile(
    r"ReplaceBinaryOperator_(Add|Sub|Mul|Div|FloorDiv|Mod|Pow)_(RShift|LShift|BitOr|BitAnd|BitXor)"
    r"|ReplaceComparisonOperator_(Eq|NotEq|Lt|LtE|Gt|GtE)_(Is|IsNot)"
    r"|ReplaceComparisonOperator_(Is|IsNot)_(Eq|NotEq|Lt|LtE|Gt|GtE)"
)
"""Operators that a float has not, and identity for equality: errors of type, or no change."""

PYTEST = ("-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider")
DURATION = re.compile(r"^([\d.]+)s (?:setup|call|teardown) +(tests/.*)$", re.MULTILINE)


def python_files(paths: Iterable[str]) -> list[Path]:
    """The Python files that paths name; a path that is missing is an error, for the tree has been moved about."""
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            sys.exit(f"{path} is not there. Put right what tools/mutants.toml says.")
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def digest(folder: str, *others: object) -> str:
    """What the Python files of a folder come to, and whatever else is given."""
    whole = hashlib.sha256(repr(others).encode() if others else b"")
    for path in python_files([folder]):
        whole.update(f"{path}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:12]


def copy_tree(to: Path) -> None:
    """Puts the tree as it is now, without what git ignores, into a fresh folder."""
    shutil.rmtree(to, ignore_errors=True)
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, capture_output=True, check=True).stdout.decode().split("\0"):
        if name and Path(name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, to / name)


def spans(nodes: Iterable[ast.AST | None]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """From where to where nodes go."""
    known = [node for node in nodes if isinstance(node, ast.expr | ast.stmt)]
    return [((at.lineno, at.col_offset), (at.end_lineno or 0, at.end_col_offset or 0)) for at in known]


def judge(path: Path) -> Callable[[WorkItem], bool]:
    """Whether a mutant of this file is worth a try: not in an annotation, nor in the words of an error."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    words = [part for node in nodes if isinstance(node, ast.Raise) for part in ast.walk(node)]
    out = spans(getattr(node, name, None) for node in nodes for name in ("annotation", "returns"))
    out += spans(part for part in words if isinstance(part, ast.JoinedStr))
    sums = spans(node for node in nodes if isinstance(node, ast.BinOp | ast.AugAssign))

    def worthwhile(item: WorkItem) -> bool:
        (spec,) = item.mutations
        if SENSELESS.search(spec.operator_name) or any(begin <= spec.start_pos < end for begin, end in out):
            return False
        # To cosmic-ray the stars of `def f(*, x)` and `{**x}` are products.
        return "BinaryOperator" not in spec.operator_name or any(a <= spec.start_pos < b for a, b in sums)

    return worthwhile


def shuffled(items: Iterable[WorkItem], sources: Iterable[Path], seed: int) -> list[WorkItem]:
    """Mutants of some files: places in random order, at each of them one mutant."""
    judges = {path: judge(path) for path in sources}
    places: dict[Any, list[WorkItem]] = defaultdict(list)
    for item in items:
        (spec,) = item.mutations
        if spec.module_path in judges and judges[spec.module_path](item):
            places[str(spec.module_path), spec.start_pos, spec.end_pos].append(item)

    def by_chance(*names: object) -> bytes:
        return hashlib.sha256(repr((seed, *names)).encode()).digest()

    # By digests, and not by a generator: what is picked at one place does not hang on what there is at others.
    return [
        min(found, key=lambda item: by_chance(place, item.mutations[0].operator_name, item.mutations[0].occurrence))
        for place, found in sorted(places.items(), key=lambda each: by_chance(each[0]))
    ]


def learn_tests(python: str, room: dict[str, list[str]], name: str) -> dict[str, Any]:
    """Which tests run which line, and how long each takes, by running them on the unharmed source: they must pass."""
    place = Path("..") / f"{name}.json"
    known: dict[str, Any] = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    if known and known["tests"] == digest("tests") and known["asked"] == room["tests"]:
        return known
    print(f"{name}: running its tests on the unharmed source", flush=True)
    python_files(room["tests"])
    measured = ["-vvv", "--durations=0", "--cov=fedkt", "--cov-context=test", "--cov-report="]
    done = subprocess.run([python, *PYTEST, *room["tests"], *measured], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"The tests of {name} fail without a mutant:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    seconds: dict[str, float] = defaultdict(float)
    for taken, test in DURATION.findall(done.stdout):
        seconds[test] += float(taken)
    include = ",".join(map(str, python_files(room["sources"])))
    report = [python, "-m", "coverage", "json", "-q", "--show-contexts", f"--include={include}", "-o", "cover.json"]
    subprocess.run(report, check=True, stdout=subprocess.DEVNULL)
    files = json.loads(Path("cover.json").read_text(encoding="utf-8"))["files"]
    lines = {
        path: {
            line: sorted({test.rpartition("|")[0] for test in tests} - {""}) for line, tests in file["contexts"].items()
        }
        for path, file in files.items()
    }
    known = {"tests": digest("tests"), "asked": room["tests"], "seconds": seconds, "lines": lines}
    every = {test for file in lines.values() for tests in file.values() for test in tests}
    Path("ids").write_text("\n".join(every), encoding="utf-8")
    if subprocess.run([python, *PYTEST, "--collect-only", "@ids"], stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"pytest does not find the tests of {name} by the names it gives them.")
    place.write_text(json.dumps(known), encoding="utf-8")
    return known


def tests_for(item: WorkItem, known: dict[str, Any]) -> list[str]:
    """The tests that run a mutant's line, quickest first, SECONDS of them; where only imports run it, any."""
    (spec,) = item.mutations
    lines = known["lines"].get(str(spec.module_path), {})
    # A line that nothing runs may be the rest of a statement: then whatever runs the line before.
    nearest = max((int(line) for line in lines if int(line) <= spec.start_pos[0]), default=0)
    found = set(lines.get(str(nearest), ()))
    found = found or {test for tests in lines.values() for test in tests} or set(known["seconds"])
    shown, together = [], 0.0
    for test in sorted(found, key=lambda test: (known["seconds"].get(test, 0), test)):
        together += known["seconds"].get(test, 0)
        if shown and together > SECONDS:
            break
        shown.append(test)
    return shown


def outcome(result: WorkResult) -> str:
    """In a word."""
    if (result.output or "").endswith("timeout"):
        return "timed out"
    return {TestOutcome.SURVIVED: "survived", TestOutcome.KILLED: "killed"}.get(result.test_outcome, "not run")


def run(item: WorkItem, known: dict[str, Any], python: str) -> WorkResult:
    """What becomes of a mutant; beside its output stands which tests it was shown to."""
    shown = tests_for(item, known)
    Path("ids").write_text("\n".join(shown), encoding="utf-8")
    limit = max(MINIMUM, PATIENCE * sum(known["seconds"].get(test, 0) for test in shown))
    # A limit on the processor's time too: where this program is killed, an endless mutant ends all the same.
    bounded = ["sh", "-c", 'ulimit -S -t "$0"; exec "$@"', str(round(limit)), python, *PYTEST, "-x", "@ids"]
    result = mutate_and_test(item.mutations, shlex.join(bounded), limit)
    return evolve(result, output=f"{known['tests']}\n{len(shown)} tests\n{(result.output or '')[-2000:].strip()}")


def turns(samples: dict[str, list[WorkItem]]) -> list[tuple[str, WorkItem]]:
    """One mutant of every room after another, so that a run that is broken off has something of each."""
    rows = zip_longest(*samples.values())
    return [(name, item) for row in rows for name, item in zip(samples, row, strict=True) if item is not None]


def place_of(item: WorkItem) -> str:
    """file:line"""
    return f"{item.mutations[0].module_path}:{item.mutations[0].start_pos[0]}"


def write_survivors(samples: dict[str, list[WorkItem]], results: dict[str, WorkResult], to: Path) -> None:
    """Lists who survived or timed out, with what was changed."""
    parts = []
    for name, items in samples.items():
        for item in sorted(items, key=lambda each: (str(each.mutations[0].module_path), each.mutations[0].start_pos)):
            result = results.get(item.job_id)
            if result is None or outcome(result) == "killed":
                continue
            changed = [line for line in (result.diff or "").splitlines() if re.match(r"[-+](?![-+])", line)]
            tests = (result.output or "\n").splitlines()[1]
            parts.append(f"{name}: {outcome(result)}: {place_of(item)} ({tests})\n" + "\n".join(changed) + "\n")
    to.write_text("\n".join(parts), encoding="utf-8")


def table(places: dict[str, list[WorkItem]], samples: dict[str, list[WorkItem]], results: dict[str, WorkResult]) -> str:
    """A row a room: places to mutate, the sample of them, how many of it were tried, and what became of those."""
    words = ("killed", "survived", "timed out", "not run")
    rows = [f"{'room':12}" + "".join(f"{word:>11}" for word in ("places", "sample", "tried", *words))]
    for name, items in samples.items():
        became = [outcome(results[item.job_id]) for item in items if item.job_id in results]
        figures = (len(places[name]), len(items), len(became), *map(became.count, words))
        rows.append(f"{name:12}" + "".join(f"{figure:11}" for figure in figures))
    return "\n".join(rows)


def try_mutants(rooms: list[str], number: int, seed: int, python: str, until: float) -> None:
    """Tries what has not been tried of the sample, in the copy of the tree, and prints what became of all of it."""
    known = {name: learn_tests(python, ROOMS[name], name) for name in rooms}
    with use_db("../session.sqlite", WorkDB.Mode.create) as db:
        if not db.num_work_items:
            init(python_files(path for room in ROOMS.values() for path in room["sources"]), db, {})
        everything = db.work_items
        places = {name: shuffled(everything, python_files(ROOMS[name]["sources"]), seed) for name in rooms}
        samples = {name: items[:number] for name, items in places.items()}
        results = dict(db.results)
        for name, item in turns(samples):
            before = results.get(item.job_id)
            if before and (outcome(before) == "killed" or (before.output or "").startswith(known[name]["tests"])):
                continue
            if time.monotonic() > until:
                print("The time is up.")
                break
            results[item.job_id] = run(item, known[name], python)
            db.set_result(item.job_id, results[item.job_id])
            print(f"{outcome(results[item.job_id]):10} {place_of(item)} {item.mutations[0].operator_name}", flush=True)
    write_survivors(samples, results, Path("../survivors.txt"))
    print(table(places, samples, results))
    print(f"Survivors: {Path('../survivors.txt').resolve().relative_to(Path('../../..').resolve())}")


def enter_copy(tree: Path, python: str) -> None:
    """Makes a fresh copy of the tree the working folder, and its package the one that tests and their children load."""
    copy_tree(tree)
    os.environ["PYTHONPATH"] = str((tree / "src").resolve())
    os.environ["OMP_NUM_THREADS"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(tree)
    # By content and not by time: two mutants of a second would be taken for one.
    subprocess.run([python, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src"], check=True)


def main() -> None:
    """Exit code 0 whatever survives: this is a look at the tests, not a gate."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=25, help="in each room")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another sample")
    parser.add_argument("--rooms", default=",".join(ROOMS), help="some of %(default)s")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant after these")
    parser.add_argument("--python", default=".venv/bin/python", help="the one that has what the tests need")
    options = parser.parse_args()
    rooms = [name for name in re.split(r"[, ]+", options.rooms) if name]
    if unknown := sorted(set(rooms) - set(ROOMS)):
        parser.error(f"no such room: {', '.join(unknown)}; there are {', '.join(ROOMS)}")
    tree = Path(".mutants") / digest("src", *(room["sources"] for room in ROOMS.values())) / "tree"
    tree.parent.mkdir(parents=True, exist_ok=True)
    with open(tree.parent / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"Another run works in {tree.parent}. Wait for it, or end it: nothing is lost.")
        python = str(Path(options.python).absolute())
        enter_copy(tree, python)
        try_mutants(rooms, options.mutants, options.seed, python, time.monotonic() + 60 * options.minutes)


if __name__ == "__main__":
    main()
