"""Many runs: kept, resumed, and shared between processes."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict

import pytest

from fedkt.errors import DataError
from fedkt.lab import series
from fedkt.lab.results import append_line, lock_of
from fedkt.lab.rounds import folder_for
from fedkt.lab.runner import run
from fedkt.lab.series import run_all
from fedkt.lab.setting import Setting, fingerprint
from fedkt.system.locks import if_free

QUICK = Setting("digits", model="tree", parties=3, partitions=1, subsets=2)
OTHER = Setting("digits", algorithm="solo", model="tree", parties=3)


def test_finished_runs_are_kept_and_not_run_again(tmp_path, monkeypatch):
    results = tmp_path / "results.jsonl"
    settings = [QUICK, OTHER]
    first = run_all(settings, results=results)
    monkeypatch.setattr(series, "run", lambda *a, **k: pytest.fail("a finished run was run again"))
    assert [each.as_dict() for each in run_all(settings, results=results)] == [each.as_dict() for each in first]


def test_a_line_cut_off_by_a_kill_is_run_again_and_spoils_nothing(tmp_path):
    results = tmp_path / "results.jsonl"
    run_all([QUICK, OTHER], results=results)
    whole = results.read_text()
    results.write_text(whole[:-40])
    again = run_all([QUICK, OTHER], results=results)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [line["setting"]["algorithm"] for line in lines] == ["fedkt", "solo"]
    assert len(again) == 2


def test_a_results_file_that_is_something_else_is_refused(tmp_path):
    results = tmp_path / "notes.txt"
    results.write_text("dear diary\nnothing\n")
    with pytest.raises(DataError, match=r"Line 1 of .*notes.txt is not a stored result"):
        run_all([QUICK], results=results)


def test_a_results_file_that_nobody_may_write_to_is_read_all_the_same(tmp_path, monkeypatch):
    results = tmp_path / "results.jsonl"
    run_all([QUICK], results=results)
    monkeypatch.setattr(series, "if_free", lambda path: pytest.fail("nothing is missing, and a lock was taken"))
    assert [each.algorithm for each in run_all([QUICK], results=results)] == ["fedkt"]


class AnotherProcess:
    """Holds the lock on a run until it is told to end."""

    def __init__(self, results, setting):
        self.results, self.setting = results, setting.with_defaults()
        self.locks = ExitStack()
        lock = lock_of(results, folder_for(results, fingerprint(self.setting)).name)
        assert self.locks.enter_context(if_free(lock))

    def finish(self, runs):
        assert runs == 1
        append_line(self.results, {"setting": asdict(self.setting), "report": run(self.setting).as_dict()})
        self.locks.close()

    def be_killed(self, runs):
        assert runs == 1
        self.locks.close()


def run_both(results, on_wait):
    """Which runs were started here, and the algorithms of all reports."""
    started = []
    made = run_all(
        [QUICK, OTHER],
        results=results,
        on_start=lambda number, setting: started.append((number, setting.algorithm)),
        on_wait=on_wait,
    )
    return started, [each.algorithm for each in made]


def test_a_run_that_another_process_makes_is_left_to_it(tmp_path):
    results = tmp_path / "results.jsonl"
    assert run_both(results, AnotherProcess(results, QUICK).finish) == ([(1, "solo")], ["fedkt", "solo"])
    assert len(results.read_text().splitlines()) == 2


def test_a_run_of_a_process_that_was_killed_is_made_by_another(tmp_path):
    results = tmp_path / "results.jsonl"
    started, made = run_both(results, AnotherProcess(results, QUICK).be_killed)
    assert started == [(1, "solo"), (0, "fedkt")]
    assert made == ["fedkt", "solo"]


def test_processes_that_share_a_results_file_share_the_runs(tmp_path):
    results, seeds = tmp_path / "results.jsonl", range(8)
    code = (
        "import sys; from pathlib import Path; from dataclasses import replace\n"
        "from fedkt.lab.series import run_all; from fedkt.lab.setting import Setting\n"
        f"first = {OTHER!r}\n"
        f"made = run_all([replace(first, seed=seed) for seed in {list(seeds)}], results=Path(sys.argv[1]))\n"
        "print([each.seed for each in made])"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code, results], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert said == [f"{list(seeds)}\n"] * 2
    settings = [json.loads(line)["setting"] for line in results.read_text().splitlines()]
    assert sorted(each["seed"] for each in settings) == list(seeds)
    assert [path.name for path in tmp_path.iterdir()] == [results.name]


def test_lines_that_several_write_at_once_are_all_whole(tmp_path):
    results = tmp_path / "results.jsonl"
    long = "x" * 200_000

    def write(writer):
        for number in range(10):
            append_line(results, {"writer": writer, "number": number, "long": long})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert sorted((each["writer"], each["number"]) for each in lines) == [(w, n) for w in range(8) for n in range(10)]
