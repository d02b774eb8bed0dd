"""Whoever takes over the child that runs a model can do nothing from there."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import fedkt
from fedkt.models import wall_trial
from fedkt.models.wall_trial import ALL, try_acts
from fedkt.system import walls

if sys.platform != "linux":
    pytest.skip("only Linux has these walls", allow_module_level=True)

FILES = {"read a file", "write a file", "remove a file", "rename a file", "cut a file off"}
PARENT = {"trace the parent", "read the parent's memory", "open the parent's memory"}
NETWORK = {"reach the network", "reach a local socket"}


def stand(*names):
    """The acts behind these walls; skipped where the kernel does not have them all."""
    trial = try_acts(names)
    if set(names) - set(trial.walls):
        pytest.skip(f"this kernel has only {trial.walls}")
    return trial


def test_without_walls_the_acts_can_be_done():
    expected = FILES | NETWORK | {"change a file's mode", "start a process", "start a program", "signal the parent"}
    assert expected <= set(try_acts(()).possible)


def test_behind_all_walls_none_of_the_acts_can_be_done():
    assert stand(*ALL).possible == ()


@pytest.mark.parametrize(
    ("wall", "refused"),
    [
        ("landlock", FILES | PARENT),
        ("namespaces", NETWORK),
        ("limits", {"read a file", "write a file", "reach the network", "use io_uring"}),
    ],
)
def test_a_wall_alone_refuses_what_it_is_for(wall, refused):
    assert refused & set(stand(wall).possible) == set()


def test_the_list_of_system_calls_alone_refuses_every_act():
    assert stand("seccomp").possible == ()


def test_the_memory_of_the_parent_is_closed_to_an_ordinary_user_while_a_child_runs():
    # Root may read any memory; behind the walls nobody is root.
    assert PARENT & set(stand("capabilities", wall_trial.HIDDEN).possible) == set()


def dumpable():
    return walls.call("prctl", walls.PR_GET_DUMPABLE, 0, 0, 0, 0)


def test_memory_is_hidden_until_the_last_child_is_gone():
    before = dumpable()
    with walls.memory_hidden():
        with walls.memory_hidden():
            assert dumpable() == 0
        assert dumpable() == 0
    assert dumpable() == before


def judged(program, *, machine, number, arguments=(0, 0, 0, 0, 0, 0)):
    """What a filter says to a system call, by the meaning of the four kinds of instruction it is made of."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *arguments)
    lines = [struct.unpack_from("<HBBI", program, place) for place in range(0, len(program), 8)]
    at = value = 0
    while True:
        code, yes, no, operand = lines[at]
        if code == 0x06:
            return {0x7FFF0000: "allowed", 0x00050001: "refused", 0x80000000: "killed"}[operand]
        if code == 0x20:
            value = struct.unpack_from("<I", data, operand)[0]
            at += 1
            continue
        holds = {0x15: value == operand, 0x45: bool(value & operand)}[code]
        at += 1 + (yes if holds else no)


# The numbers of read, mmap, mprotect, prlimit64, and of some calls that nobody needs: openat, unlinkat, connect, kill,
# ptrace, execve, clone, io_uring_setup.
NUMBERS = {
    "x86_64": (0, 9, 10, 302, (257, 263, 42, 62, 101, 59, 56, 425)),
    "aarch64": (63, 222, 226, 261, (56, 35, 203, 129, 117, 221, 220, 425)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_filter_of_system_calls_lets_pass_what_is_listed_and_nothing_else(name):
    place, machine = walls.MACHINES[name]
    program = walls.seccomp_program(place, machine)
    read, mmap, mprotect, prlimit, others = NUMBERS[name]
    assert judged(program, machine=machine, number=read) == "allowed"
    assert [judged(program, machine=machine, number=each) for each in others] == ["refused"] * len(others)
    for number in (mmap, mprotect):
        assert judged(program, machine=machine, number=number, arguments=(0, 0, 3, 0, 0, 0)) == "allowed"
        assert judged(program, machine=machine, number=number, arguments=(0, 0, 5, 0, 0, 0)) == "refused"
    assert judged(program, machine=machine, number=prlimit) == "allowed"
    assert judged(program, machine=machine, number=prlimit, arguments=(77, 0, 0, 0, 0, 0)) == "refused"
    # Numbers of another kind of program (32 bits, x32) mean other calls.
    assert judged(program, machine=0x40000003, number=read) == "killed"
    assert judged(program, machine=machine, number=read | 0x40000000) == "refused"


ORPHAN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_sandbox
from fedkt.models import child_process, sandbox

line = child_process.ChildReader.line

def line_and_child(self):
    head = line(self)
    print(self._child.pid, flush=True)
    return head

child_process.ChildReader.line = line_and_child
sandbox.run_models([test_sandbox.endless()], test_sandbox.ROWS, n_classes=2)
"""


def running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_child_ends_with_its_parent_however_that_ends():
    folder = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", ORPHAN, folder], stdout=subprocess.PIPE, env=environment) as parent:
        child = int(parent.stdout.readline())
        assert running(child), "it is busy with an endless model"
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(child)


def test_the_doctor_says_which_walls_stand_and_what_is_possible():
    process = fedkt("doctor", "--json")
    findings = json.loads(process.stdout)
    assert process.returncode == 0
    assert findings["model_runs"] is True
    assert list(findings["walls"]) == ["namespaces", "landlock", "capabilities", "limits", "seccomp", "hidden parent"]
    assert findings["walls"]["limits"] is True
    assert set(findings["possible"]) == {name for name, end in findings["acts"]["all"].items() if end == "possible"}


def test_the_doctor_speaks_of_a_wall_that_is_missing_and_of_what_it_lets_through(monkeypatch):
    monkeypatch.setattr(wall_trial, "try_acts", lambda: wall_trial.Trial(("limits",), {"remove a file": "possible"}))
    process = fedkt("doctor")
    assert process.returncode == 0, "what can be enforced differs from machine to machine"
    assert "landlock        NO" in process.stdout
    assert "POSSIBLE from inside: remove a file." in process.stdout


def test_the_doctor_ends_with_an_error_where_no_model_runs(monkeypatch):
    monkeypatch.setattr(wall_trial, "a_model_runs", lambda: "the child process did not start.")
    process = fedkt("doctor")
    assert process.returncode == 1
    assert "A received model cannot be run on this machine: the child process did not start." in process.stderr
