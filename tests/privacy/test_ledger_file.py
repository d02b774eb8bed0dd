"""The ledger's file: what is written, what is refused, and what happens when a write was interrupted."""

import hashlib
import json
import math
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from fedkt.errors import PrivacyError
from fedkt.privacy import ledger_file as module
from fedkt.privacy.entries import release_from
from fedkt.privacy.ledger_file import FIRST, LedgerFile, Spending, reserve
from fedkt.privacy.price import Release

FIELDS = {
    "who": "north",
    "purpose": "Students of partition 1 of 1",
    "mechanism": "gaussian",
    "scale": {"sigma": 12.5},
    "queries": 40,
    "voters": 25,
    "classes": 2,
    "unit": "record",
    "plan": "ab" * 32,
    "adjacency": "replace-one",
    "abstentions": False,
}


def spending(**changes):
    fields = FIELDS | changes
    return Spending(who=fields["who"], release=release_from(fields), plan=fields["plan"])


SPENDING = spending()


def ledger_of(folder, count):
    path = folder / "ledger.jsonl"
    ledger_file = LedgerFile.open(path)
    for number in range(count):
        ledger_file.append(spending(queries=number + 1))
    return path


def head_of(path):
    return path.with_name(path.name + ".head")


def rehashed(line, **changes):
    """The line with other values and a digest that fits them, as a careful forger would write it."""
    said = json.loads(line) | changes
    del said["digest"]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    said["digest"] = hashlib.sha256(text.encode()).hexdigest()
    return (json.dumps(said, sort_keys=True, separators=(",", ":")) + "\n").encode()


def test_an_entry_is_a_json_line_whose_digest_anyone_can_check(tmp_path):
    path = ledger_of(tmp_path, 2)
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert first["number"] == 1
    assert first["previous"] == FIRST
    assert first["scale"] == {"sigma": 12.5}
    assert first["time"].endswith("+00:00")
    assert second["previous"] == first["digest"]
    digest = second.pop("digest")
    text = json.dumps(second, sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(text.encode()).hexdigest()
    assert json.loads(head_of(path).read_text()) == {"count": 2, "digest": digest}


def test_what_was_appended_is_read_again(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger_file = LedgerFile.open(path)
    written = (
        ledger_file.append(SPENDING),
        ledger_file.append(spending(who="süd", purpose="", abstentions=True)),
    )
    assert LedgerFile.open(path).entries == ledger_file.entries == written


def test_floats_come_back_to_the_last_bit(tmp_path):
    scale = {"sigma": 0.1 + 0.2, "gamma": 5e-324, "threshold": np.float64(1 / 3), "count": np.int64(3)}
    entry = LedgerFile.open(tmp_path / "ledger").append(spending(scale=scale, queries=np.int64(7)))
    (read,) = LedgerFile.open(tmp_path / "ledger").entries
    assert read == entry
    assert read.release.noise.scale == {"sigma": 0.30000000000000004, "gamma": 5e-324, "threshold": 1 / 3, "count": 3.0}
    assert type(read.release.queries) is int


def test_a_release_becomes_a_spending_with_its_public_figures():
    class Noise:
        name = "laplace"
        scale = {"gamma": 0.04}  # noqa: RUF012

    figures = {"queries": 81, "voters": 50, "classes": 2, "unit": "party", "abstentions": True}
    release = Release(Noise(), **figures, purpose="Final labels")
    assert Spending(who="server", release=release).as_dict() == {
        "who": "server",
        "purpose": "Final labels",
        "mechanism": "laplace",
        "scale": {"gamma": 0.04},
        **figures,
        "adjacency": "replace-one",
        "plan": "",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"scale": {"sigma": math.nan}},
        {"scale": {"sigma": math.inf}},
        {"scale": {"sigma": 10**400}},
        {"scale": {"sigma": "1"}},
        {"scale": {"sigma": True}},
        {"scale": [1.0]},
        {"scale": {str(number): 1.0 for number in range(17)}},
        {"queries": -1},
        {"queries": 2.0},
        {"queries": True},
        {"queries": 2**60},
        {"voters": 0},
        {"classes": 1},
        {"unit": "row"},
        {"unit": ["party"]},
        {"adjacency": "replace"},
        {"abstentions": 1},
        {"who": ""},
        {"who": " north"},
        {"who": "north\n"},
        {"who": "no\ud800rth"},
        {"who": None},
        {"purpose": "x" * 501},
        {"mechanism": ""},
        {"plan": "3fa9c1"},
        {"plan": None},
    ],
    ids=str,
)
def test_a_spending_that_makes_no_sense_is_refused(change):
    with pytest.raises(PrivacyError, match=r"must .*\.$"):
        spending(**change)


def test_spent_picks_the_entries_of_an_owner_and_of_a_plan(tmp_path):
    ledger_file = LedgerFile.open(tmp_path / "ledger")
    for who, plan in (("north", "a" * 64), ("south", "a" * 64), ("north", "b" * 64), ("north", "")):
        ledger_file.append(spending(who=who, plan=plan))

    def numbers(**which):
        return [entry.number for entry in ledger_file.spent(**which)]

    assert numbers() == [1, 2, 3, 4]
    assert numbers(who="north") == [1, 3, 4]
    assert numbers(plan="a" * 64) == [1, 2]
    assert numbers(who="north", plan="a" * 64) == [1]
    assert numbers(plan="") == [4]
    assert numbers(who="nor") == []


def test_only_the_owner_can_read_the_files(tmp_path):
    ledger_of(tmp_path, 1)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"ledger.jsonl": 0o600, "ledger.jsonl.head": 0o600, "ledger.jsonl.lock": 0o600}


def test_a_ledger_that_is_only_looked_at_is_not_created(tmp_path):
    with pytest.raises(PrivacyError, match="no ledger"):
        LedgerFile.open(tmp_path / "leger.jsonl", create=False)
    assert LedgerFile.open(tmp_path / "leger.jsonl").entries == ()
    assert not (tmp_path / "leger.jsonl").exists()
    with pytest.raises(PrivacyError, match="folder does not exist"):
        LedgerFile.open(tmp_path / "missing" / "ledger.jsonl")


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80])
def test_any_changed_byte_is_refused_or_changes_nothing(tmp_path, flip):
    path = ledger_of(tmp_path, 2)
    ledger, head, entries = path.read_bytes(), head_of(path).read_bytes(), LedgerFile.open(path).entries
    refused = 0
    for file, good in ((path, ledger), (head_of(path), head)):
        for position in range(len(good)):
            bad = bytearray(good)
            bad[position] ^= flip
            file.write_bytes(bad)
            with pytest.raises(PrivacyError, match="cannot be trusted; nothing is released"):
                LedgerFile.open(path)
            assert file.read_bytes() == bad  # a refused ledger is left as it was found
            refused += 1
        file.write_bytes(good)
    assert refused == len(ledger) + len(head)
    assert LedgerFile.open(path).entries == entries


def test_a_damaged_line_is_named_by_its_number(tmp_path):
    path = ledger_of(tmp_path, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    for number in (1, 2, 3, 4):
        bad = [*lines]
        bad[number - 1] = bad[number - 1].replace(b'"voters":25', b'"voters":26')
        path.write_bytes(b"".join(bad))
        with pytest.raises(PrivacyError, match=f"line {number}: its own digest"):
            LedgerFile.open(path)


def test_removed_repeated_and_reordered_lines_are_refused(tmp_path):
    path = ledger_of(tmp_path, 4)
    one, two, three, four = path.read_bytes().splitlines(keepends=True)
    for lines, line in (
        ([two, three, four], 1),
        ([one, three, four], 2),
        ([one, three, two, four], 2),
        ([one, two, two, three, four], 3),
        ([one, two, b"\n", three, four], 3),
        ([one, two, three, four, four], 5),
    ):
        path.write_bytes(b"".join(lines))
        with pytest.raises(PrivacyError, match=f"line {line}"):
            LedgerFile.open(path)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"epsilon": 1.0}, "unknown: epsilon"),
        ({"queries": "2"}, "queries must be"),
        ({"queries": 2.0}, "queries must be"),
        ({"scale": {"sigma": 12}}, "line was changed"),
        ({"abstentions": 0}, "abstentions must be"),
        ({"number": 3}, "entry 2 belongs here"),
        ({"unit": "rows"}, "unit must be"),
        ({"time": 5}, "time must be"),
        ({"previous": FIRST}, "entry before"),
    ],
    ids=str,
)
def test_a_forged_line_with_a_fitting_digest_is_refused_for_what_it_says(tmp_path, changes, what):
    path = ledger_of(tmp_path, 2)
    one, two = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(one + rehashed(two, **changes))
    with pytest.raises(PrivacyError, match=f"line 2: .*{what}"):
        LedgerFile.open(path)


def test_a_line_written_in_another_way_is_refused(tmp_path):
    path = ledger_of(tmp_path, 1)
    line = path.read_bytes()
    for other in (
        line.replace(b":", b": ", 1),
        line.replace(b"{", b'{"abstentions":false,', 1),
        line.replace(b"12.5", b"1.25e1"),
        b"[" * 5000 + b"\n",
        b"null\n",
        b"{}\n",
        line.replace(b"12.5", b"1" * 5000),
    ):
        path.write_bytes(other)
        with pytest.raises(PrivacyError, match="line 1"):
            LedgerFile.open(path)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_entries_missing_at_the_end_are_noticed_by_the_head(tmp_path, kept):
    path = ledger_of(tmp_path, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:kept]))
    with pytest.raises(PrivacyError, match=f"head counts 4 entries, the ledger holds {kept}"):
        LedgerFile.open(path)


def test_a_ledger_that_was_deleted_is_noticed_by_the_head(tmp_path):
    path = ledger_of(tmp_path, 2)
    path.unlink()
    for create in (True, False):
        with pytest.raises(PrivacyError, match="the ledger holds 0"):
            LedgerFile.open(path, create=create)


def test_one_entry_more_than_the_head_counts_as_spent(tmp_path):
    path = ledger_of(tmp_path, 2)
    old = head_of(path).read_bytes()
    ledger_file = LedgerFile.open(path)
    ledger_file.append(SPENDING)
    new = head_of(path).read_bytes()
    head_of(path).write_bytes(old)
    assert len(LedgerFile.open(path).entries) == 3
    assert head_of(path).read_bytes() == new


def test_a_first_entry_without_a_head_counts_as_spent(tmp_path):
    path = ledger_of(tmp_path, 1)
    head_of(path).unlink()
    assert len(LedgerFile.open(path).entries) == 1
    assert head_of(path).exists()


def test_a_head_that_is_older_missing_or_another_ledgers_is_refused(tmp_path):
    path = ledger_of(tmp_path, 1)
    old = head_of(path).read_bytes()
    ledger_file = LedgerFile.open(path)
    ledger_file.append(SPENDING), ledger_file.append(SPENDING)
    third = json.loads(head_of(path).read_bytes())
    for text in (old, b"", b"null\n", json.dumps(third).encode()):
        head_of(path).write_bytes(text)
        with pytest.raises(PrivacyError, match="head"):
            LedgerFile.open(path)
    head_of(path).write_bytes((json.dumps(third | {"digest": "1" * 64}, separators=(",", ":")) + "\n").encode())
    with pytest.raises(PrivacyError, match="entry 3 is not the one its head names"):
        LedgerFile.open(path)
    head_of(path).unlink()
    with pytest.raises(PrivacyError, match="3 entries, but its head counts 0, or is missing"):
        LedgerFile.open(path)


def test_an_interrupted_last_line_is_cut_off_and_said(tmp_path):
    path = ledger_of(tmp_path, 2)
    good = path.read_bytes()
    third = rehashed(good.splitlines()[1], number=3)
    for torn in (third[:1], third[:100], third[:-1], third[:50] + bytes(60) + b"\n", bytes(300), b"\n"):
        path.write_bytes(good + torn)
        with pytest.warns(RuntimeWarning, match="interrupted write .line 3 .*nothing had been released"):
            ledger_file = LedgerFile.open(path)
        assert len(ledger_file.entries) == 2
        assert len(ledger_file.repairs) == 1
        assert path.read_bytes() == good
    assert ledger_file.append(SPENDING).number == 3
    assert len(LedgerFile.open(path).entries) == 3


def test_an_incomplete_line_that_the_head_knows_whole_is_damage(tmp_path):
    path = ledger_of(tmp_path, 2)
    good = path.read_bytes()
    for bad in (good[:-1], good[:-50], good[:-1] + b" "):
        path.write_bytes(bad)
        with pytest.raises(PrivacyError, match="line 2 does not end, though it had been written whole"):
            LedgerFile.open(path)
        assert path.read_bytes() == bad


def test_a_broken_line_with_another_after_it_is_no_interrupted_write(tmp_path):
    path = ledger_of(tmp_path, 2)
    good = path.read_bytes()
    for tail in (b"{\n{\n", b"{\n{", b"\n" + good):
        path.write_bytes(good + tail)
        with pytest.raises(PrivacyError, match="line 3 is not JSON"):
            LedgerFile.open(path)
        assert path.read_bytes() == good + tail


def test_a_tail_too_long_for_an_interrupted_line_is_damage(tmp_path):
    path = ledger_of(tmp_path, 1)
    path.write_bytes(path.read_bytes() + b"x" * (module.MAX_LINE + 1))
    with pytest.raises(PrivacyError, match="line 2 is longer"):
        LedgerFile.open(path)


def test_a_runaway_file_is_not_read(tmp_path, monkeypatch):
    path = ledger_of(tmp_path, 2)
    monkeypatch.setattr(module, "MAX_BYTES", path.stat().st_size)
    ledger_file = LedgerFile.open(path)
    with pytest.raises(PrivacyError, match="does not fit"):
        ledger_file.append(SPENDING)
    assert len(LedgerFile.open(path).entries) == 2
    monkeypatch.setattr(module, "MAX_BYTES", path.stat().st_size - 1)
    with pytest.raises(PrivacyError, match="longer than"):
        LedgerFile.open(path)


def test_the_longest_entry_fits(tmp_path):
    long = "\N{GRINNING FACE}" * 500
    entry = LedgerFile.open(tmp_path / "ledger").append(
        spending(who=long, purpose=long, mechanism="m" * 500, scale={f"{n:0500}": 1 / 3 for n in range(2)})
    )
    assert len(entry.line) < module.MAX_LINE
    with pytest.raises(PrivacyError, match=r"does not fit.*nothing was written"):
        LedgerFile.open(tmp_path / "ledger").append(spending(who=long, scale={long[:-1] + c: 1.0 for c in "ab"}))
    assert LedgerFile.open(tmp_path / "ledger").entries == (entry,)


def test_a_ledger_with_two_names_or_that_is_a_folder_is_refused(tmp_path):
    path = ledger_of(tmp_path, 1)
    (tmp_path / "other").hardlink_to(path)
    for name in ("other", "ledger.jsonl", "."):
        with pytest.raises(PrivacyError, match="not a plain file"):
            LedgerFile.open(tmp_path / name)


def test_a_link_to_a_ledger_shares_its_head_and_lock(tmp_path):
    path = ledger_of(tmp_path, 1)
    (tmp_path / "link").symlink_to(path)
    LedgerFile.open(tmp_path / "link").append(SPENDING)
    assert len(LedgerFile.open(path).entries) == 2
    assert not (tmp_path / "link.head").exists()


def test_a_book_sees_what_another_book_appended(tmp_path):
    one, other = LedgerFile.open(tmp_path / "ledger"), LedgerFile.open(tmp_path / "ledger")
    one.append(SPENDING)
    assert other.append(SPENDING).number == 2
    assert len(one.entries) == 1
    one.refresh()
    assert one.entries == other.entries


def test_a_ledger_replaced_under_an_open_book_is_noticed(tmp_path):
    path = ledger_of(tmp_path, 2)
    ledger_file = LedgerFile.open(path)
    path.unlink(), head_of(path).unlink()
    for _ in range(2):
        with pytest.raises(PrivacyError, match="had already read were changed or are gone"):
            ledger_file.append(SPENDING)
    LedgerFile.open(path).append(SPENDING)
    with pytest.raises(PrivacyError, match="had already read"):
        reserve(ledger_file, [SPENDING], price=len, budget=100)


def test_a_disk_that_fails_refuses_the_release_and_never_under_counts(tmp_path, monkeypatch):
    path = ledger_of(tmp_path, 1)
    ledger_file = LedgerFile.open(path)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", full)
        with pytest.raises(PrivacyError, match=r"No space left.*Nothing is released"):
            ledger_file.append(SPENDING)
    assert len(LedgerFile.open(path).entries) == 2
    assert ledger_file.append(SPENDING).number == 3


def test_a_ledger_in_use_is_waited_for_and_then_refused(tmp_path, monkeypatch):
    path = ledger_of(tmp_path, 1)
    ledger_file = LedgerFile.open(path)
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    with module.locked(path.resolve()), pytest.raises(PrivacyError, match="in use by another process"):
        ledger_file.append(SPENDING)
    assert ledger_file.append(SPENDING).number == 2


def test_without_flock_the_lock_is_a_file_that_only_one_can_create(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "fcntl", None)
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    path = ledger_of(tmp_path, 2)
    lock = path.with_name(path.name + ".lock")
    assert not lock.exists()
    lock.touch()
    with pytest.raises(PrivacyError, match=r"in use by another process.*delete .*\.lock"):
        LedgerFile.open(path)
    assert lock.exists()
    lock.unlink()
    assert LedgerFile.open(path).append(SPENDING).number == 3


def queries(entries):
    return float(sum(entry.release.queries for entry in entries))


def test_a_reservation_within_the_budget_is_written(tmp_path):
    ledger_file = LedgerFile.open(tmp_path / "ledger")
    for number in (1, 2):
        assert reserve(ledger_file, [SPENDING], price=queries, budget=80)[0].number == number
    assert len(LedgerFile.open(tmp_path / "ledger").entries) == 2


def test_a_reservation_past_the_budget_writes_nothing_and_says_the_figures(tmp_path):
    path = tmp_path / "ledger"
    ledger_file = LedgerFile.open(path)
    reserve(ledger_file, [SPENDING], price=queries, budget=79)
    before = path.read_bytes()
    words = (
        r"'north' .* 40 queries with gaussian noise: epsilon 40 is spent in 1 release, .* would be 80, .* budget is 79"
    )
    with pytest.raises(PrivacyError, match=words):
        reserve(ledger_file, [SPENDING], price=queries, budget=79)
    assert path.read_bytes() == before


def test_every_plan_of_an_owner_counts_and_other_owners_do_not(tmp_path):
    ledger_file = LedgerFile.open(tmp_path / "ledger")
    ledger_file.append(spending(who="south"))
    ledger_file.append(spending(plan="c" * 64))
    seen = []
    with pytest.raises(PrivacyError):
        reserve(
            ledger_file, [SPENDING], price=lambda entries: seen.append([e.number for e in entries]) or 2.0, budget=1
        )
    assert seen == [[2, 3], [2]]


@pytest.mark.parametrize("cost", [math.nan, -1.0, math.inf])
def test_a_price_that_is_no_price_is_refused(tmp_path, cost):
    ledger_file = LedgerFile.open(tmp_path / "ledger")
    with pytest.raises(PrivacyError, match="Nothing was written"):
        reserve(ledger_file, [SPENDING], price=lambda entries: cost, budget=10)
    assert LedgerFile.open(tmp_path / "ledger").entries == ()


@pytest.mark.parametrize("budget", [math.nan, -1.0])
def test_a_budget_that_is_no_budget_is_refused(tmp_path, budget):
    with pytest.raises(PrivacyError, match="at least 0"):
        reserve(LedgerFile.open(tmp_path / "ledger"), [SPENDING], price=queries, budget=budget)


def test_a_price_that_fails_writes_nothing_and_gives_the_lock_back(tmp_path):
    ledger_file = LedgerFile.open(tmp_path / "ledger")
    with pytest.raises(ZeroDivisionError):
        reserve(ledger_file, [SPENDING], price=lambda entries: 1 / 0, budget=10)
    assert reserve(ledger_file, [SPENDING], price=queries, budget=40)[0].number == 1


def test_threads_sharing_one_book_lose_nothing(tmp_path):
    ledger_file = LedgerFile.open(tmp_path / "ledger")
    threads = [threading.Thread(target=lambda: [ledger_file.append(SPENDING) for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.number for entry in LedgerFile.open(tmp_path / "ledger").entries] == list(range(1, 21))


CHILD = """
import sys, time
from pathlib import Path
from fedkt.errors import PrivacyError
from fedkt.privacy import Laplace, Release
from fedkt.privacy.ledger_file import LedgerFile, Spending, reserve

folder, name, task = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mine = Spending(who=task, release=Release(Laplace(0.1), 10, 5, 2, "record", purpose=name))
ledger_file = LedgerFile.open(folder / "ledger")
(folder / f"{name}.ready").touch()
while not (folder / "go").exists():
    time.sleep(0.001)
if task == "append":
    print(*[ledger_file.append(mine).number for _ in range(25)])
else:
    def price(entries):
        time.sleep(0.2)
        return 0.75 * len(entries)
    try:
        print(reserve(ledger_file, [mine], price=price, budget=1.0)[0].number)
    except PrivacyError as reason:
        print("refused:", reason)
"""


def together(folder, task, count):
    """What `count` processes print that start their task at the same moment."""
    names = [f"process-{number}" for number in range(count)]
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, str(folder), name, task], stdout=subprocess.PIPE, text=True)
        for name in names
    ]
    try:
        while not all((folder / f"{name}.ready").exists() for name in names):
            assert all(child.poll() is None for child in children)
        (folder / "go").touch()
        return [child.communicate(timeout=60)[0] for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_four_processes_appending_at_once_lose_and_repeat_nothing(tmp_path):
    printed = [[int(number) for number in text.split()] for text in together(tmp_path, "append", 4)]
    assert sorted(number for numbers in printed for number in numbers) == list(range(1, 101))
    entries = LedgerFile.open(tmp_path / "ledger").entries
    assert len(entries) == 100
    for index, numbers in enumerate(printed):
        assert [entry.number for entry in entries if entry.release.purpose == f"process-{index}"] == numbers


def test_two_processes_cannot_both_slip_under_the_budget(tmp_path):
    won, lost = sorted(together(tmp_path, "reserve", 2))
    assert won == "1\n"
    assert "epsilon 0.75 is spent in 1 release, with this one it would be 1.5, the budget is 1" in lost
    assert len(LedgerFile.open(tmp_path / "ledger").entries) == 1


def run_of(count):
    return [spending(purpose=f"student {number + 1}") for number in range(count)]


def test_the_releases_of_one_run_are_priced_and_written_together_or_not_at_all(tmp_path):
    path = tmp_path / "ledger"
    seen = []

    def price(entries):
        seen.append(len(entries))
        return queries(entries)

    with pytest.raises(PrivacyError, match=r"release of 120 queries.*would be 120, the budget is 119"):
        reserve(LedgerFile.open(path), run_of(3), price=price, budget=119)
    assert seen == [3]
    assert not path.exists()
    written = reserve(LedgerFile.open(path), run_of(3), price=price, budget=120)
    assert [(each.number, each.together) for each in written] == [(1, 3), (2, 3), (3, 3)]
    assert LedgerFile.open(path).entries == tuple(written)


def test_an_entry_alone_is_written_as_it_always_was(tmp_path):
    path = tmp_path / "ledger"
    (entry,) = reserve(LedgerFile.open(path), run_of(1), price=queries, budget=40)
    assert entry.together == 1
    assert b"together" not in path.read_bytes()
    line = path.read_bytes()
    path.write_bytes(rehashed(line, together=1))
    with pytest.raises(PrivacyError, match="its own digest does not fit"):
        LedgerFile.open(path)


@pytest.mark.parametrize("whole", [0, 1, 2])
def test_a_run_written_in_part_is_cut_off_and_one_written_whole_counts(tmp_path, whole):
    path = ledger_of(tmp_path, 2)
    good, head = path.read_bytes(), head_of(path).read_bytes()
    reserve(LedgerFile.open(path), run_of(3), price=queries, budget=1000)
    lines = path.read_bytes()[len(good) :].splitlines(keepends=True)
    after = head_of(path).read_bytes()
    for torn in (b"", lines[whole][:-1], lines[whole][:40]):
        if whole or torn:
            path.write_bytes(good + b"".join(lines[:whole]) + torn)
            head_of(path).write_bytes(head)
            with pytest.warns(RuntimeWarning, match="nothing had been released"):
                assert len(LedgerFile.open(path).entries) == 2
            assert path.read_bytes() == good
    path.write_bytes(good + b"".join(lines))
    assert len(LedgerFile.open(path).entries) == 5
    assert head_of(path).read_bytes() == after


def test_part_of_a_run_that_the_head_knows_whole_is_damage(tmp_path):
    path = ledger_of(tmp_path, 1)
    reserve(LedgerFile.open(path), run_of(3), price=queries, budget=1000)
    text = path.read_bytes()
    path.write_bytes(b"".join(text.splitlines(keepends=True)[:3]))
    with pytest.raises(PrivacyError, match="head counts 4 entries, the ledger holds 3"):
        LedgerFile.open(path)


def test_entries_that_do_not_belong_together_are_refused(tmp_path):
    path = tmp_path / "ledger"
    first = reserve(LedgerFile.open(path), run_of(2), price=queries, budget=1000)[0]
    lone = json.loads(first.line) | {"number": 2, "previous": first.digest}
    del lone["together"]
    path.write_bytes(first.line + rehashed(json.dumps(lone)))
    head_of(path).unlink()
    with pytest.raises(PrivacyError, match="are not those that were written together"):
        LedgerFile.open(path)
    with pytest.raises(PrivacyError, match="One run has one owner, got north, south"):
        reserve(LedgerFile.open(tmp_path / "other"), [SPENDING, spending(who="south")], price=queries, budget=1)
    with pytest.raises(PrivacyError, match="One run has one owner, got no release"):
        reserve(LedgerFile.open(tmp_path / "other"), [], price=queries, budget=1)
