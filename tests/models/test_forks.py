"""Parties whose students are asked about the same rows: whatever one party sends, the others answer as if alone."""

import os
import shutil
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from test_sandbox import ROWS, endless, graph, helper, hungry, labelled

from fedkt.algorithms import FedKT
from fedkt.bundle import Bundle
from fedkt.federation import Diary, Server
from fedkt.models import child_process, forks, sandbox
from fedkt.models.exchange import OnnxModel
from fedkt.models.onnx_rules import Limits
from fedkt.models.sandbox import Question, Sandbox, run_models
from fedkt.system import walls

LIKELIEST = graph([helper.make_node("ArgMax", ["rows"], ["label"], axis=1, keepdims=0)])
COLUMN = graph([helper.make_node("ArgMax", ["rows"], ["label"], axis=1, keepdims=1)])
LIMITS = Limits(cpu_seconds=1, party_cpu_seconds=1, wall_seconds=60.0, memory_bytes=300 * 2**20)
linux = pytest.mark.skipif(not forks.can_fork(), reason="only Linux forks a process for each party")


def question(*models, limits=LIMITS):
    return Question(models=models, n_classes=3, soft=[False] * len(models), limits=limits)


def asked(*parties, limits=LIMITS):
    """What each party's students answer, one party after the other in one sandbox."""
    with Sandbox(ROWS) as shared:
        return [shared.ask(question(*models, limits=limits)) for models in parties]


@pytest.fixture
def starts(monkeypatch):
    """Grows by one with every process that is started, not forked."""
    started, popen = [], child_process.subprocess.Popen
    monkeypatch.setattr(child_process.subprocess, "Popen", lambda *a, **k: started.append(1) or popen(*a, **k))
    return started


@pytest.fixture
def started(monkeypatch):
    """The processes that were started, not forked."""
    children, popen = [], child_process.subprocess.Popen

    def noted(*arguments, **options):
        children.append(popen(*arguments, **options))
        return children[-1]

    monkeypatch.setattr(child_process.subprocess, "Popen", noted)
    return children


def with_fault(tmp_path, monkeypatch, place, fault):
    """From here on the child's own program has this fault before a place in it."""
    text = child_process.CHILD.read_text(encoding="utf-8")
    assert place in text
    (tmp_path / "models").mkdir()
    (tmp_path / "system").mkdir()
    child = tmp_path / "models" / "sandbox_child.py"
    child.write_text(text.replace(place, fault + place), encoding="utf-8")
    shutil.copy(walls.__file__, tmp_path / "system" / "walls.py")
    monkeypatch.setattr(child_process, "CHILD", child)


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    """The child's own program with faults that a graph can use: to crash it, to take it over, and to say anything."""
    fault = (
        "    if data == b'crash':\n"
        "        import ctypes\n"
        "        ctypes.string_at(0)\n"
        "    if data == b'take over':\n"
        "        globals()['predict_blocks'] = lambda _, rows, n: [(np.zeros(len(rows), np.int64), None)]\n"
        "    if data[:4] == b'say ':\n"
        "        yield data[4:]\n"
        "        return\n"
    )
    with_fault(tmp_path, monkeypatch, '    """What is sent about one model: blocks', fault)


def test_parties_answer_as_they_do_alone_and_one_process_is_started_for_all(starts):
    (alone,) = run_models([LIKELIEST], ROWS, n_classes=3)
    assert len(starts) == 1
    first, second, nothing, third = asked([LIKELIEST], [labelled(1), LIKELIEST], [], [LIKELIEST])
    np.testing.assert_array_equal(alone, ROWS.argmax(axis=1))
    for labels, _ in (first[0], second[1], third[0]):
        np.testing.assert_array_equal(labels, alone)
    np.testing.assert_array_equal(second[0][0], np.ones(50))
    assert nothing == []
    assert len(starts) == (2 if forks.can_fork() else 4)


@linux
def test_a_student_that_crashes_eats_time_or_memory_or_answers_otherwise_is_named_alone(faulty, starts):
    hostile = {
        b"crash": "crashed the process",
        endless(): "1 seconds of CPU time",
        hungry(): "",
        COLUMN: "not one int64 label per row",
        b"nothing": "Protobuf",
    }
    answers = asked(*([each] for bad in hostile for each in (bad, LIKELIEST)))
    for (bad,), (honest,), why in zip(answers[::2], answers[1::2], hostile.values(), strict=True):
        assert isinstance(bad, str)
        assert why in bad
        np.testing.assert_array_equal(honest[0], ROWS.argmax(axis=1))
    assert len(starts) == 1


@linux
def test_a_student_that_takes_its_process_over_forges_no_other_partys_answers(faulty):
    own, others = asked([b"take over", LIKELIEST], [LIKELIEST])
    np.testing.assert_array_equal(own[1][0], np.zeros(50), "what a party does to its own students is its affair")
    np.testing.assert_array_equal(others[0][0], ROWS.argmax(axis=1))


@linux
@pytest.mark.parametrize(
    "words",
    [b"[" * 4_000, b'{"reason": ' + b"[" * 900 + b"]" * 900 + b"}", b'{"rows": 0, "more": "' + b"x" * 5_000 + b'"}'],
    ids=["a deep line", "a reason that is none", "a long line"],
)
def test_whatever_a_process_that_was_taken_over_says_the_next_party_is_asked(faulty, words):
    (bad,), (honest,) = asked([b"say " + words + b"\n"], [LIKELIEST])
    assert bad in ("the model was stopped: the child did not keep to its protocol.", "it gave no reason in words.")
    np.testing.assert_array_equal(honest[0], ROWS.argmax(axis=1))


@linux
def test_a_forking_process_that_ended_between_two_parties_is_the_fault_of_neither(started):
    with Sandbox(ROWS) as shared:
        first = shared.ask(question(LIKELIEST))
        started[0].kill()
        os.waitid(os.P_PID, started[0].pid, os.WEXITED | os.WNOWAIT)
        second = shared.ask(question(LIKELIEST))
    for ((labels, _),) in (first, second):
        np.testing.assert_array_equal(labels, ROWS.argmax(axis=1))
    assert len(started) == 2


@linux
def test_a_machine_without_room_for_another_process_stops_the_vote_and_drops_no_party(tmp_path, monkeypatch):
    with_fault(
        tmp_path, monkeypatch, "            process = os.fork()", "            raise OSError(11, 'no more processes')\n"
    )
    with pytest.raises(OSError, match="no process for a party's students"):
        asked([LIKELIEST])


@linux
@pytest.mark.parametrize("fork", [True, False])
def test_this_processs_memory_stays_hidden_until_a_student_that_does_not_end_is_ended(monkeypatch, fork):
    hidden, killpg, kill = [], os.killpg, child_process.subprocess.Popen.kill

    def note(*_):
        hidden.append(walls.call("prctl", walls.PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)

    monkeypatch.setattr(forks.os, "killpg", lambda *arguments: note() or killpg(*arguments))
    if not fork:
        monkeypatch.setattr(child_process.subprocess.Popen, "kill", lambda child: note() or kill(child))
    with Sandbox(ROWS, fork=fork) as shared:
        shared.ask(question(endless(), limits=Limits(wall_seconds=0.3)))
        assert hidden == [True]


def test_a_process_that_ends_by_a_signal_without_a_name_is_only_a_reason():
    ours, theirs = os.pipe()
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as answers:
        process = SimpleNamespace(stdout=answers, wait=lambda timeout: -40)
        with (
            closing(child_process.ChildReader(process, LIMITS)) as reader,
            pytest.raises(child_process.ChildEnd, match=r"crashed the process that ran it \(signal 40\)"),
        ):
            reader.line()


@linux
def test_after_a_student_that_does_not_end_the_others_go_on_in_a_new_process(starts):
    limits = Limits(wall_seconds=1.0)
    first, endless_one, last = asked([LIKELIEST], [endless(), LIKELIEST], [LIKELIEST], limits=limits)
    assert "more than 1 seconds" in endless_one[0]
    assert "not run" in endless_one[1]
    for ((labels, _),) in (first, last):
        np.testing.assert_array_equal(labels, ROWS.argmax(axis=1))
    assert len(starts) == 2


@linux
def test_what_earlier_parties_took_is_taken_from_nobody():
    """Each party takes two thirds of the memory that one may have, and of the CPU time."""
    large = hungry(200 * 2**20 // 4)
    answers = asked(*[[large, LIKELIEST]] * 4)
    assert [[isinstance(each, str) for each in party] for party in answers] == [[True, False]] * 4
    assert len({party[0] for party in answers}) == 1, "its answer has another form, and was given every time"


@linux
def test_behind_a_fork_stand_the_same_walls(monkeypatch):
    standing, line = [], child_process.ChildReader.line

    def noted(self):
        head = line(self)
        standing.extend([head["walls"]] if "walls" in head else [])
        return head

    monkeypatch.setattr(child_process.ChildReader, "line", noted)
    run_models([LIKELIEST], ROWS, n_classes=3)
    asked([LIKELIEST], [LIKELIEST])
    assert len(standing) == 3
    assert standing[0] == standing[1] == standing[2]
    assert "limits" in standing[0]


@linux
def test_nothing_is_left_of_the_processes(started):
    open_before = len(os.listdir("/proc/self/fd"))
    asked([LIKELIEST], [endless()], limits=Limits(wall_seconds=0.5))
    assert [each.returncode for each in started] == [-9]
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_rows_are_handed_over_once_for_all_parties(monkeypatch):
    handed, hand_over = [], sandbox.hand_over
    monkeypatch.setattr(sandbox, "hand_over", lambda parts: handed.append(parts) or hand_over(parts))
    asked([LIKELIEST], [LIKELIEST], [LIKELIEST])
    assert [parts[0].nbytes for parts in handed if isinstance(parts[0], memoryview)] == [ROWS.nbytes]


def test_where_nothing_is_forked_each_party_has_a_child_of_its_own(monkeypatch, starts):
    monkeypatch.setattr(sandbox, "can_fork", lambda: False)
    answers = asked([LIKELIEST], [b"nothing"], [LIKELIEST])
    assert isinstance(answers[1][0], str)
    for ((labels, _),) in answers[::2]:
        np.testing.assert_array_equal(labels, ROWS.argmax(axis=1))
    assert len(starts) == 3


def test_a_forking_process_that_does_not_start_is_only_a_reason(monkeypatch, tmp_path):
    child = tmp_path / "child.py"
    child.write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(child_process, "CHILD", child)
    (answer,), (again,) = asked([LIKELIEST], [LIKELIEST])
    assert answer.startswith("the model was stopped: the ")
    assert again.startswith("the model was stopped: the ")


@pytest.mark.parametrize("jobs", [1, 3, -1])
def test_the_vote_is_the_honest_parties_whatever_stands_between_them(jobs):
    sent = {"north": LIKELIEST, "odd": COLUMN, "south": labelled(1), "broken": b"nothing", "west": LIKELIEST}
    bundles = [Bundle(name, ("a", "b", "c"), (OnnxModel(data, 3, 3),)) for name, data in sent.items()]
    server = Server(ROWS, ("a", "b", "c"), 0, diary=Diary(), jobs=jobs)
    answers = FedKT("tree", partitions=1).student_answers(server, bundles)
    assert [bundle.sender for bundle in answers.bundles] == ["north", "south", "west"]
    assert list(answers.silent) == ["odd", "broken"]
    said = [np.asarray(each).tolist() for _, each in answers.voters]
    likeliest = [ROWS.argmax(axis=1).tolist()]
    assert said == [likeliest, [[1] * 50], likeliest]
    assert {np.asarray(each).dtype for _, each in answers.voters} == {np.dtype(np.uint8)}
