"""Runs killed by SIGKILL at any student: started again they end as if nothing had been, and train none twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

SCRIPT = """
import json, os, signal, sys
from pathlib import Path
from fedkt.algorithms import kept_students
from fedkt.system.cache import Cache
from command_line import fedkt

learn, write = kept_students.learn_all, Cache.write


def start(words, moment, folder):
    count = 0

    def train(*given, **options):
        nonlocal count
        count += 1
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        with (folder / "trained").open("a") as file:
            file.write(".")
        return learn(*given, **options)

    def keep(*given):
        if moment is not None and count == -moment:
            os.kill(os.getpid(), signal.SIGKILL)
        write(*given)

    kept_students.learn_all, Cache.write = train, keep
    folder.mkdir(exist_ok=True)
    return fedkt(*words, cwd=folder)


def to_the_end(words, moments, folder):
    for moment in moments:
        child = os.fork()
        if not child:
            start(words, moment, folder)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, moment
    done = start(words, None, folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), len((folder / "trained").read_text())


cases = json.loads(sys.argv[1])
print(json.dumps({name: to_the_end(*case, Path(name).absolute()) for name, case in cases.items()}))
"""
COMMON = ["digits", "--model", "tree", "--parties", "3", "--subsets", "2", "--json"]
SIMULATED = ["simulate", *COMMON, "--algorithm", "fedkt"]
COMPARED = ["compare", *COMMON, "--algorithms", "fedkt,fedkt-expert,solo", "--seeds", "1"]
CASES = {
    "simulated": (SIMULATED, []),
    "simulated, killed": ([*SIMULATED, "--cache", "students"], [2, -2, 4]),
    "compared": (COMPARED, []),
    "compared, killed": ([*COMPARED, "--results", "runs.jsonl"], [3, 6, -1]),
}
"""Commands, and the students at which they are killed: before one is trained, or, negative, before it is kept."""
CLOCKS = ("seconds", "cpu_seconds", "command", "notes")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What each command prints in the end, how many students were trained in all, and where it worked."""
    folder = tmp_path_factory.mktemp("runs")
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1] / 'support')!r})\n{SCRIPT}"
    command = [sys.executable, "-c", script, json.dumps(CASES)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name: (*case, folder / name) for name, case in json.loads(done.stdout).items()}


def facts(report):
    return {name: value for name, value in report.items() if name not in CLOCKS}


def test_a_simulation_goes_on_with_finished_students(outcomes):
    undisturbed, trained, _ = outcomes["simulated"]
    # Three parties with two students each.
    assert trained == 6
    killed, trained, _ = outcomes["simulated, killed"]
    # One was trained and not kept.
    assert (facts(killed), trained) == (facts(undisturbed), 6 + 1)
    (told,) = [each for each in killed["notes"] if each not in undisturbed["notes"]]
    assert told.startswith("5 students had been trained by an earlier run")


def test_a_comparison_goes_on_with_the_students_of_the_run_that_was_killed(outcomes):
    undisturbed, trained, _ = outcomes["compared"]
    # Six students of the first method, three of the second.
    assert trained == 6 + 3
    killed, trained, folder = outcomes["compared, killed"]
    assert ([*map(facts, killed["runs"])], trained) == ([*map(facts, undisturbed["runs"])], 9 + 1)
    assert sorted(path.name for path in folder.iterdir()) == ["runs.jsonl", "trained"]
