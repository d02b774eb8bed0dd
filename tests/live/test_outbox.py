"""What a party's outbox makes of a bundle: its number, and what is said of the one it replaces."""

from functools import partial

import numpy as np
import pytest

from fedkt.bundle import Bundle, pack, peek
from fedkt.bundle.signing import new_key
from fedkt.federation import Diary
from fedkt.live.mailbox import FolderMailbox
from fedkt.live.outbox import send


@pytest.fixture
def outbox(tmp_path):
    return FolderMailbox(tmp_path / "outbox", own=True)


def bundle(value=1.0, plan="a" * 64):
    return Bundle("north", ("ill", "well"), (), plan, {"weights": np.array([value])})


def sent(outbox, what, *, key=None, issue=None, resumed=False):
    diary = Diary()
    data = send(outbox, what, partial(pack, n_features=2, key=key), key=key, issue=issue, resumed=resumed, diary=diary)
    assert outbox.read("north.fedkt", 10_000) == data
    return peek(data, source="north").issue, tuple(diary.notes)


def test_the_first_bundle_has_no_number_and_nothing_is_said_of_it(outbox):
    assert sent(outbox, bundle(), key=new_key()) == (None, ())


def test_the_same_content_keeps_its_number_and_another_gets_the_next(outbox):
    key = new_key()
    numbers = [sent(outbox, bundle(value), key=key)[0] for value in (1.0, 1.0, 2.0, 2.0, 1.0)]
    assert numbers == [None, None, 1, 1, 2]


@pytest.mark.parametrize("other", ["key", "plan"])
def test_a_bundle_of_another_key_or_plan_begins_anew(outbox, other):
    key = new_key()
    sent(outbox, bundle(), key=key, issue=5)
    changed = bundle(2.0) if other == "key" else bundle(2.0, "b" * 64)
    assert sent(outbox, changed, key=new_key() if other == "key" else key)[0] is None


def test_without_a_key_nothing_is_numbered(outbox):
    assert [sent(outbox, bundle(value))[0] for value in (1.0, 2.0)] == [None, None]


def test_a_lower_number_than_before_is_noted_and_the_way_out_named(outbox):
    key, place = new_key(), outbox.where("north.fedkt")
    sent(outbox, bundle(), key=key, issue=41)
    replaced = f"{place} of an earlier run is replaced."
    assert sent(outbox, bundle(2.0), key=key, issue=41) == (41, (replaced,))
    issue, (lower, also) = sent(outbox, bundle(3.0), key=key, issue=7)
    assert issue == 7
    assert also == replaced
    assert lower == (
        f"{place} was issue 41 and is replaced by issue 7, which is lower: a server that has both counts the old one. "
        "Leave --issue out to get 42."
    )


def test_a_resumed_run_leaves_the_bytes_that_lie_there(outbox):
    sent(outbox, bundle())
    path = outbox.folder / "north.fedkt"
    before = path.stat().st_ino
    _, (note,) = sent(outbox, bundle(), resumed=True)
    assert note == f"{path} was there already: an earlier run wrote it and was stopped before its end. It is whole."
    assert path.stat().st_ino == before
    assert sent(outbox, bundle())[1] == (f"{path} of an earlier run is replaced.",)
    assert path.stat().st_ino != before


def test_what_a_link_in_the_outbox_leads_to_was_sent_before_and_stays(outbox):
    key = new_key()
    sent(outbox, bundle(), key=key, issue=3)
    path, archive = outbox.folder / "north.fedkt", outbox.folder / "archive"
    path.rename(archive)
    path.symlink_to(archive)
    assert sent(outbox, bundle(2.0), key=key)[0] == 4
    assert not path.is_symlink()
    assert peek(archive.read_bytes(), source="archive").issue == 3


@pytest.mark.parametrize("content", [b"", b"no bundle", b"PK\x03\x04"])
def test_what_is_no_bundle_is_replaced_and_said_so(outbox, content):
    outbox.put("north.fedkt", content)
    issue, notes = sent(outbox, bundle(), key=new_key())
    assert issue is None
    assert notes == (f"{outbox.where('north.fedkt')} of an earlier run is replaced.",)
