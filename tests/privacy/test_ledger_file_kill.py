"""A process that dies at any moment: the ledger never counts less than was released."""

import os
import random
import subprocess
import sys
import time
import warnings

import pytest

from fedkt.privacy import Laplace, Release
from fedkt.privacy import ledger_file as module
from fedkt.privacy.ledger_file import LedgerFile, Spending, reserve
from fedkt.system import locks

SPENDING = Spending(who="north", release=Release(Laplace(0.1), 10, 5, 2, "record", purpose=""))
STEPS = ("open", "write", "fsync", "replace", "truncate")

pytestmark = pytest.mark.filterwarnings("ignore:The ledger .* ended in an interrupted write:RuntimeWarning")


class Killed(BaseException):
    """The process is gone: nothing may catch it."""


class DyingSystem:
    """The `os` module of a process that dies before, in the middle of, or after its n-th step on the disk."""

    def __init__(self, step, moment):
        self.left, self.moment, self.dead = step, moment, False

    def __getattr__(self, name):
        real = getattr(os, name)
        return (lambda *given: self.take(real, name, given)) if name in STEPS else real

    def take(self, real, name, given):
        assert not self.dead, f"{name} after death"
        self.left -= 1
        if self.left:
            return real(*given)
        self.dead = True
        if self.moment == "after":
            real(*given)
        elif self.moment == "middle" and name == "write":
            real(given[0], given[1][: len(given[1]) // 2])
        raise Killed


def dies(monkeypatch, step, moment, work):
    """Whether `work` died at this step; False means it had finished before."""
    with monkeypatch.context() as patch:
        system = DyingSystem(step, moment)
        patch.setattr(module, "os", system)
        patch.setattr(locks, "os", system)
        try:
            work()
        except Killed:
            return True
        return False


def steps_until_done(monkeypatch, moment, prepare, work):
    """Each step at which `work` dies, after `prepare`, until it is no longer reached."""
    for step in range(1, 100):
        prepare()
        if not dies(monkeypatch, step, moment, work):
            return
        yield step
    raise AssertionError("the work never finished")


@pytest.mark.parametrize("moment", ["before", "middle", "after"])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_dying_at_any_step_of_an_append_leaves_a_ledger_that_counts_enough(tmp_path, monkeypatch, before, moment):
    folders = iter(range(1000))

    def fresh():
        nonlocal path
        path = tmp_path / f"{next(folders)}.jsonl"
        ledger_file = LedgerFile.open(path)
        for _ in range(before):
            ledger_file.append(SPENDING)

    path = None
    counts = []
    for _ in steps_until_done(monkeypatch, moment, fresh, lambda: LedgerFile.open(path).append(SPENDING)):
        counts.append(len(LedgerFile.open(path).entries))
        assert LedgerFile.open(path).append(SPENDING).number == counts[-1] + 1
        assert len(LedgerFile.open(path).entries) == counts[-1] + 1
    # First nothing is written, from some step on the entry counts, and it never goes back.
    assert counts == sorted(counts)
    assert set(counts) == {before, before + 1}
    assert len(counts) >= 10
    assert len(LedgerFile.open(path).entries) == before + 1


@pytest.mark.parametrize("moment", ["before", "middle", "after"])
def test_dying_at_any_step_of_a_run_of_three_leaves_all_of_it_or_nothing(tmp_path, monkeypatch, moment):
    folders = iter(range(1000))

    def fresh():
        nonlocal path
        path = tmp_path / f"{next(folders)}.jsonl"
        LedgerFile.open(path).append(SPENDING)

    path = None
    counts = []
    for _ in steps_until_done(
        monkeypatch, moment, fresh, lambda: reserve(LedgerFile.open(path), [SPENDING] * 3, price=len, budget=9)
    ):
        counts.append(len(LedgerFile.open(path).entries))
        assert LedgerFile.open(path).append(SPENDING).number == counts[-1] + 1
    assert counts == sorted(counts)
    assert set(counts) == {1, 4}


@pytest.mark.parametrize("moment", ["before", "middle", "after"])
@pytest.mark.parametrize("damage", ["interrupted line", "head one behind"])
def test_dying_at_any_step_of_a_recovery_leaves_a_ledger_that_recovers(tmp_path, monkeypatch, damage, moment):
    path = tmp_path / "ledger.jsonl"
    head = tmp_path / "ledger.jsonl.head"
    ledger_file = LedgerFile.open(path)
    ledger_file.append(SPENDING)
    one, first_head = path.read_bytes(), head.read_bytes()
    ledger_file.append(SPENDING)
    two, second_head = path.read_bytes(), head.read_bytes()
    ledger, known, expected = (two[:-20], first_head, 1) if damage == "interrupted line" else (two, first_head, 2)

    def damaged():
        path.write_bytes(ledger)
        head.write_bytes(known)

    died = 0
    for _ in steps_until_done(monkeypatch, moment, damaged, lambda: LedgerFile.open(path)):
        died += 1
        assert len(LedgerFile.open(path).entries) == expected
        assert path.read_bytes() == (one if expected == 1 else two)
        assert head.read_bytes() == (first_head if expected == 1 else second_head)
    assert died >= 3


CHILD = """
import os, sys
from fedkt.privacy import Laplace, Release
from fedkt.privacy.ledger_file import LedgerFile, Spending

mine = Spending(who="north", release=Release(Laplace(0.1), 10, 5, 2, "record", purpose=""))
ledger_file = LedgerFile.open(sys.argv[1])
released = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    os.write(released, b"%d\\n" % ledger_file.append(mine).number)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 needs POSIX")
def test_ten_kills_at_random_moments_never_leave_less_in_the_ledger_than_was_released(tmp_path):
    ledger, released = tmp_path / "ledger.jsonl", tmp_path / "released"
    released.touch()
    rng = random.Random(1)
    counted = 0
    for kills in range(1, 11):
        start = released.stat().st_size
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(ledger), str(released)])
        try:
            until = time.monotonic() + 30
            while released.stat().st_size == start:
                assert child.poll() is None
                assert time.monotonic() < until
            time.sleep(rng.uniform(0, 0.1))
        finally:
            child.kill()
            child.wait()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            entries = LedgerFile.open(ledger).entries
        numbers = [int(line) for line in released.read_text().splitlines()]
        assert len(entries) >= len(numbers)
        assert len(entries) <= len(numbers) + kills  # a kill costs at most the one entry it interrupted
        assert set(numbers) <= {entry.number for entry in entries}
        assert len(set(numbers)) == len(numbers)
        assert len(entries) > counted
        counted = len(entries)
