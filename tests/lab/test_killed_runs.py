"""Runs killed by SIGKILL at any student: started again they end as if nothing had been, and train none twice."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("fcntl")

SCRIPT = """
import json, os, signal, sys
from pathlib import Path
from fedkt.algorithms import kept_students
from fedkt.lab import series  # whatever a child needs is loaded before
from fedkt.system.cache import Cache
sys.path.insert(0, {support!r})
from command_line import fedkt

log, moments, words = Path("trained"), json.loads(sys.argv[1]), sys.argv[2:]
learn, write = kept_students.learn_all, Cache.write


def start(moment):
    count = 0

    def train(*given, **options):
        nonlocal count
        count += 1
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        with log.open("a") as file:
            file.write(".")
        return learn(*given, **options)

    def keep(*given):
        if count == -(moment or 0):
            os.kill(os.getpid(), signal.SIGKILL)
        write(*given)

    kept_students.learn_all, Cache.write = train, keep
    return fedkt(*words)


for moment in moments:
    child = os.fork()
    if not child:
        start(moment)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, moment
done = start(None)
assert done.returncode == 0, done.stderr
print(done.stdout)
"""
COMMON = ("digits", "--model", "tree", "--parties", "3", "--subsets", "2", "--json")
COMPARED = ("compare", *COMMON, "--algorithms", "fedkt,fedkt-expert,solo", "--seeds", "1")
CLOCKS = ("seconds", "cpu_seconds", "command", "notes")


def outcome(folder, moments, *words):
    """The reports of a command that was killed at these moments, and how many students were trained in all.

    A moment is a student: killed before it is trained, or, negative, before it is kept.
    """
    from pathlib import Path

    script = SCRIPT.replace("{support!r}", repr(str(Path(__file__).parents[1] / "support")))
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(moments), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    reports = found.get("runs", [found])
    facts = [{name: value for name, value in each.items() if name not in CLOCKS} for each in reports]
    return facts, [note for each in reports for note in each["notes"]], len((folder / "trained").read_text())


def test_a_simulation_goes_on_with_finished_students(tmp_path):
    """Three parties with two students each: killed before the second, before the third is kept, and before the last."""
    words = ("simulate", *COMMON, "--algorithm", "fedkt")
    undisturbed, notes, trained = outcome(tmp_path / "plain", [], *words)
    assert trained == 6
    killed, more, trained = outcome(tmp_path / "killed", [2, -2, 4], *words, "--cache", "students")
    assert (killed, trained) == (undisturbed, 6 + 1)
    told = [each for each in more if each not in notes]
    assert [each.partition(" had been")[0] for each in told] == ["5 students"]


def test_a_comparison_goes_on_with_the_students_of_the_run_that_was_killed(tmp_path):
    """Six students of the first method, three of the second; killed in the midst of either."""
    undisturbed, _, trained = outcome(tmp_path / "plain", [], *COMPARED)
    assert trained == 6 + 3
    killed, _, trained = outcome(tmp_path / "killed", [3, 6, -1], *COMPARED, "--results", "runs.jsonl")
    assert (killed, trained) == (undisturbed, 9 + 1)
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == ["runs.jsonl", "trained"]
