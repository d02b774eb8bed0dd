"""One builder makes every report, and level L1's silence is kept there."""

from dataclasses import fields

import pytest

from fedkt.bundle import Bundle
from fedkt.federation import Diary, Outcome
from fedkt.privacy import Laplace, Release, statement
from fedkt.privacy.accountant import price
from fedkt.report import Report, RunLog, build_report, public_notes, run_log
from fedkt.votes import Vote

UNIT = {"L1": "party", "L2": "record"}
KNOWN_BEFORE = """
dataset algorithm model parties partitions subsets level seed epsilon delta privacy privacy_statement versions command
partition beta source epochs local_epochs learning_rate mu distil_epochs rounds participation alarms
"""
THROUGH_THE_NOISE = "accuracy balanced_accuracy label_accuracy quality"
ABOUT_PARTIES = "party_rows party_accuracy alone votes history"
OF_THE_WHOLE_RUN = "bytes_sent bytes_received seconds cpu_seconds rows"

FULL = {
    "dataset": "wards",
    "algorithm": "fedkt",
    "model": "tree",
    "parties": 2,
    "partitions": 1,
    "subsets": 5,
    "seed": 7,
    "accuracy": 0.75,
    "balanced_accuracy": 0.5,
    "bytes_sent": 1234,
    "bytes_received": 99,
    "rows": {"parties": 63, "public": 20, "test": 10},
    "party_rows": {"north": 60, "tiny": 3},
    "party_accuracy": {"north": 0.9, "tiny": 0.4},
    "history": ({"round": 1, "by_party": {"tiny": {"sent": 600}}},),
}
LOG = RunLog(0.8, {"voters": 2, "ties": 1}, ("The server's word.",), 12.34, 23.6)


def promise(level):
    paid = None if level == "L0" else price(Release(Laplace(0.5), 20, 5, 2, UNIT[level]), 1e-5)
    return statement(level, paid)


def diaries():
    """What is left by a run in which 'south' could not vote and 'tiny' has few rows."""
    why = "Party 'south' does not vote, because of student 1: row 7 gave class 5"
    server = Diary(notes=["parties.ledger is new.", why], vote=Vote(silent={"south": why}, ties=1))
    parties = {"south": Diary(), "tiny": Diary(notes=["Party 'tiny' has 3 rows, fewer than 5 subsets."])}
    return Outcome(Bundle("server", (0, 1), ()), (), parties, server, 1.5, 2.5)


@pytest.mark.parametrize("level", ["L0", "L2"])
def test_where_parties_are_not_what_is_protected_everything_is_told(level):
    report = build_report(promise(level), LOG, notes=("A caution.",), **FULL)
    assert {name: getattr(report, name) for name in FULL} == FULL
    assert (report.seconds, report.cpu_seconds, report.votes) == (12.34, 23.6, {"voters": 2, "ties": 1})
    assert report.notes == ("A caution.", "The server's word.")
    assert (report.level, report.label_accuracy) == (level, 0.8)


def test_at_L1_only_what_was_known_before_or_passed_the_noise_is_told():
    report = build_report(promise("L1"), LOG, notes=("A caution.",), **FULL)
    assert (report.party_rows, report.party_accuracy, report.votes, report.history) == ({}, {}, {}, ())
    assert (report.bytes_sent, report.bytes_received, report.rows) == (None, None, {"public": 20, "test": 10})
    assert (report.seconds, report.cpu_seconds) == (12.0, 24.0)
    assert (report.accuracy, report.balanced_accuracy, report.parties, report.seed) == (0.75, 0.5, 2, 7)
    assert report.epsilon > 0
    assert "tiny" not in str(report.as_dict())


def test_in_a_laboratory_what_is_measured_of_the_whole_run_stays_at_L1_and_no_party_does():
    report = build_report(promise("L1"), LOG, laboratory=True, **FULL)
    assert (report.party_rows, report.party_accuracy, report.votes, report.history) == ({}, {}, {}, ())
    assert (report.bytes_sent, report.bytes_received, report.rows) == (1234, 99, FULL["rows"])
    assert (report.seconds, report.cpu_seconds, report.label_accuracy) == (12.34, 23.6, 0.8)


def test_whoever_adds_a_field_to_the_report_decides_whether_level_L1_tells_it():
    decided = " ".join((KNOWN_BEFORE, THROUGH_THE_NOISE, ABOUT_PARTIES, OF_THE_WHOLE_RUN, "notes")).split()
    assert sorted(decided) == sorted(each.name for each in fields(Report))


def test_the_cpu_seconds_of_one_process_are_not_given_for_those_of_several():
    assert build_report(promise("L0"), LOG, processes=2, **FULL).cpu_seconds is None
    assert build_report(promise("L1"), LOG, processes=2, **FULL).cpu_seconds is None


@pytest.mark.parametrize("level", ["L0", "L2"])
def test_the_notes_of_the_parties_come_first_and_reasons_in_full(level):
    assert public_notes(diaries(), level) == (
        "Party 'tiny' has 3 rows, fewer than 5 subsets.",
        "parties.ledger is new.",
        "Party 'south' does not vote, because of student 1: row 7 gave class 5",
    )


def test_at_L1_what_parties_wrote_stays_with_them_and_a_reason_is_told_without_its_why():
    assert public_notes(diaries(), "L1") == (
        "parties.ledger is new.",
        "Party 'south' does not vote: a student could not be run.",
    )


def test_a_log_has_the_figures_of_the_vote_and_neither_labels_nor_reasons():
    log = run_log(diaries(), "L0")
    assert (log.votes, log.label_accuracy, log.seconds, log.cpu_seconds) == ({"ties": 1}, None, 1.5, 2.5)


def test_two_parts_of_a_killed_run_make_one_log():
    first = RunLog(0.5, {"voters": 3}, ("one",), 1.0, 2.0)
    assert first.followed_by(RunLog(None, {}, ("two",), 3.0, 4.0)) == RunLog(
        0.5, {"voters": 3}, ("one", "two"), 4.0, 6.0
    )
    assert first.followed_by(RunLog(0.25, {"voters": 2}, (), 0.0, 0.0)) == RunLog(
        0.25, {"voters": 2}, ("one",), 1.0, 2.0
    )


def test_alarms_are_said_before_any_figure_and_their_notes_not_again():
    words = "The noise drowns the votes."
    report = build_report(promise("L1"), LOG, notes=(words, "A caution."), alarms=(words,), **FULL)
    assert report.alarms == (words,)
    _, first, *others = str(report).splitlines()
    assert first == f"  ATTENTION: {words}"
    assert [line for line in others if words in line] == []
    assert "  note: A caution." in others
