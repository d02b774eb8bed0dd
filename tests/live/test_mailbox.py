"""What every mailbox keeps, and that a federation gives the same through any of them."""

import os
import shutil
import time
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from fedkt.errors import BundleError, ConfigurationError, DataError
from fedkt.live.inbox import gather, look
from fedkt.live.inspection import describe_file
from fedkt.live.mailbox import FolderMailbox, MailboxEntry, file_at, mailbox_at
from fedkt.live.party import run_party
from fedkt.live.server import run_server
from fedkt.plan import read_plan
from live_federation import NAMES, build, party, server


@dataclass
class MemoryMailbox:
    """Bytes by name in this process, marked as an HTTP server would mark them: by their digest."""

    contents: dict[str, bytes] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)

    def __str__(self):
        return "memory"

    def where(self, name):
        return f"memory:{name}"

    def check_writable(self, name):
        pass

    def put(self, name, data):
        self.contents[name] = data

    def entries(self):
        for name, data in list(self.contents.items()):
            yield MailboxEntry(name, f'"{sha256(data).hexdigest()}"')

    def read(self, name, limit):
        self.reads.append(name)
        if name not in self.contents:
            raise FileNotFoundError(name)
        data = self.contents[name]
        return data if len(data) <= limit else None


class MailboxContract:
    """What parties and server rely on; every mailbox inherits these tests."""

    @pytest.fixture
    def mailbox(self, tmp_path):
        raise NotImplementedError

    def marks(self, mailbox):
        found = list(mailbox.entries())
        assert len({entry.name for entry in found}) == len(found)
        return {entry.name: entry.mark for entry in found if not entry.ignored}

    def test_what_was_put_is_listed_and_read_as_it_was(self, mailbox):
        mailbox.put("north.fedkt", b"students")
        mailbox.put("south.fedkt", bytes(range(256)))
        assert set(self.marks(mailbox)) == {"north.fedkt", "south.fedkt"}
        assert mailbox.read("north.fedkt", 8) == b"students"
        assert mailbox.read("south.fedkt", 1_000) == bytes(range(256))

    def test_more_than_the_limit_is_not_read(self, mailbox):
        mailbox.put("north.fedkt", b"students")
        assert mailbox.read("north.fedkt", 7) is None
        mailbox.put("north.fedkt", b"")
        assert mailbox.read("north.fedkt", 0) == b""

    def test_what_is_not_there_is_said_to_be_missing(self, mailbox):
        mailbox.put("north.fedkt", b"students")
        with pytest.raises(FileNotFoundError):
            mailbox.read("south.fedkt", 8)

    def test_a_mark_stays_while_the_bytes_do_and_changes_with_them(self, mailbox):
        mailbox.put("north.fedkt", b"students")
        mailbox.put("south.fedkt", b"others")
        before = self.marks(mailbox)
        assert mailbox.read("north.fedkt", 8) == b"students"
        assert self.marks(mailbox) == before
        mailbox.put("north.fedkt", b"STUDENTS")
        after = self.marks(mailbox)
        assert mailbox.read("north.fedkt", 8) == b"STUDENTS"
        assert after["north.fedkt"] != before["north.fedkt"]
        assert after["south.fedkt"] == before["south.fedkt"]

    def test_everything_is_found_anew_at_each_call(self, mailbox):
        mailbox.put("north.fedkt", b"students")
        first = mailbox.entries()
        mailbox.put("south.fedkt", b"students")
        assert {"north.fedkt", "south.fedkt"} == set(self.marks(mailbox))
        assert {entry.name for entry in first} >= {"north.fedkt"}

    def test_a_mailbox_in_use_can_be_written_to_and_names_what_is_in_it(self, mailbox):
        mailbox.check_writable("north.fedkt")
        mailbox.put("north.fedkt", b"students")
        mailbox.check_writable("north.fedkt")
        assert str(mailbox)
        assert "north.fedkt" in mailbox.where("north.fedkt")


class TestFolderMailbox(MailboxContract):
    @pytest.fixture
    def mailbox(self, tmp_path):
        return FolderMailbox(tmp_path / "inbox")

    def test_it_is_what_stands_at_a_path(self, tmp_path):
        assert mailbox_at(tmp_path) == FolderMailbox(tmp_path)
        assert mailbox_at(str(tmp_path), own=True) == FolderMailbox(tmp_path, own=True)
        assert file_at(tmp_path / "north.fedkt") == (FolderMailbox(tmp_path), "north.fedkt")
        assert file_at("north.fedkt")[0].where("north.fedkt") == "north.fedkt"

    def test_what_is_no_bundle_is_listed_with_the_reason_or_not_at_all(self, mailbox):
        mailbox.put("north.fedkt", b"students")
        folder = mailbox.folder
        (folder / ".north.fedkt.abcdefgh.part").write_bytes(b"half")
        (folder / "notes.txt").write_bytes(b"")
        (folder / "north.fedkt.txt").write_bytes(b"")
        (folder / "SOUTH.FEDKT").write_bytes(b"")
        (folder / "folder.fedkt").mkdir()
        os.mkfifo(folder / "pipe.fedkt")
        (folder / "link.fedkt").symlink_to(folder / "north.fedkt")
        (folder / "lost.fedkt").symlink_to(folder / "gone.fedkt")
        assert {entry.name: entry.ignored for entry in mailbox.entries()} == {
            "north.fedkt": "",
            "north.fedkt.txt": "a bundle's name ends with .fedkt",
            "SOUTH.FEDKT": "a bundle's name ends with .fedkt",
            "folder.fedkt": "it is not a file",
            "pipe.fedkt": "it is not a file",
            "link.fedkt": "it is a link",
            "lost.fedkt": "it is a link to nothing",
        }

    def test_a_link_is_followed_by_the_owner_of_the_folder_only(self, mailbox):
        mailbox.put("north.fedkt", b"students")
        (mailbox.folder / "link.fedkt").symlink_to(mailbox.folder / "north.fedkt")
        assert FolderMailbox(mailbox.folder, own=True).read("link.fedkt", 8) == b"students"
        with pytest.raises(OSError, match=r"link\.fedkt"):
            mailbox.read("link.fedkt", 8)

    def test_bytes_of_one_size_and_time_written_over_a_file_have_another_mark(self, mailbox):
        mailbox.put("north.fedkt", b"students")
        path, before = mailbox.folder / "north.fedkt", self.marks(mailbox)
        facts = path.stat()
        # The clock of a file system has ticks.
        time.sleep(0.02)
        path.write_bytes(b"STUDENTS")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert self.marks(mailbox) != before

    def test_a_folder_that_is_none_is_refused_by_reader_and_writer(self, tmp_path):
        with pytest.raises(DataError, match="is not a folder"):
            list(FolderMailbox(tmp_path / "nowhere").entries())
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(DataError, match="is not a folder"):
            list(FolderMailbox(tmp_path / "file").entries())
        with pytest.raises(ConfigurationError, match=r"file is a file\. It takes the folder to write north\.fedkt to"):
            FolderMailbox(tmp_path / "file").check_writable("north.fedkt")

    def test_a_folder_of_others_is_refused_before_anything_is_trained(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
        with pytest.raises(ConfigurationError, match="cannot be written to, or not be made there"):
            FolderMailbox(tmp_path / "new" / "outbox").check_writable("north.fedkt")


class TestMemoryMailbox(MailboxContract):
    @pytest.fixture
    def mailbox(self):
        return MemoryMailbox()


@pytest.fixture(scope="module")
def through_a_folder(tmp_path_factory):
    """A federation by the commands, whose parties and server meet in a folder."""
    folder = tmp_path_factory.mktemp("folder")
    build(folder)
    for name in NAMES:
        party(folder, name)
    server(folder)
    return folder


@pytest.fixture(scope="module")
def bundles(through_a_folder):
    return {f"{name}.fedkt": (through_a_folder / "inbox" / f"{name}.fedkt").read_bytes() for name in NAMES}


@pytest.fixture
def plan(through_a_folder):
    return read_plan(through_a_folder / "plan.toml")


def send_all(plan, folder, work, mailbox):
    return [
        run_party(
            plan, name, data=folder / f"{name}.csv", public=folder / "public.csv", outbox=mailbox, work=work / name
        )
        for name in NAMES
    ]


def test_a_federation_through_another_mailbox_gives_the_same_bundles_and_the_same_model(
    plan, through_a_folder, bundles, tmp_path
):
    mailbox = MemoryMailbox()
    sent = send_all(plan, through_a_folder, tmp_path, mailbox)
    assert mailbox.contents == bundles
    assert [each.path for each in sent] == [f"memory:{name}.fedkt" for name in NAMES]
    hosted = run_server(plan, public=through_a_folder / "public.csv", inbox=mailbox, result=tmp_path / "result")
    assert hosted.missing == ()
    final = through_a_folder / "result" / "final.onnx"
    assert hosted.final.read_bytes() == final.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["result"]


def test_a_party_that_sends_again_says_what_it_replaces_whatever_the_mailbox(plan, through_a_folder, tmp_path):
    mailbox = MemoryMailbox({"north.fedkt": b"of another day"})
    first, *_ = send_all(plan, through_a_folder, tmp_path, mailbox)
    assert "memory:north.fedkt of an earlier run is replaced." in first.notes


def test_what_has_not_changed_is_read_once_however_long_a_server_waits(plan, bundles):
    mailbox = MemoryMailbox({name: data for name, data in bundles.items() if name != "west.fedkt"})
    looks = []

    def tell(accepted, wanted):
        looks.append(accepted)
        if len(looks) == 2:
            mailbox.put("west.fedkt", bundles["west.fedkt"])

    arrivals = gather(plan, mailbox, wait=30, tell=tell)
    assert looks == [2, 2, 3]
    assert [each.file for each in arrivals if each.bundle is not None] == ["north.fedkt", "south.fedkt", "west.fedkt"]
    assert sorted(mailbox.reads) == ["north.fedkt", "south.fedkt", "west.fedkt"]


def test_what_could_not_be_read_is_tried_again_though_its_mark_is_the_same(plan, bundles):
    class Failing(MemoryMailbox):
        def read(self, name, limit):
            data = super().read(name, limit)
            if self.reads.count(name) == 1:
                raise ConnectionResetError(104, "Connection reset by peer")
            return data

    reasons = []
    mailbox = Failing(dict(bundles))
    arrivals = gather(plan, mailbox, wait=30, tell=lambda accepted, wanted: reasons.append(accepted))
    assert reasons == [0, 3]
    assert all(each.bundle is not None for each in arrivals)
    failing = look(plan, Failing(dict(bundles)), "north.fedkt")
    assert failing.reason == "it cannot be read: Connection reset by peer."


def test_a_server_that_cannot_start_names_the_mailbox(plan, through_a_folder, bundles, tmp_path):
    mailbox = MemoryMailbox({"north.fedkt": bundles["north.fedkt"], "south.fedkt": b"PK"})
    with pytest.raises(BundleError, match=r"1 of the 3 bundles needed are in memory\. Missing: south, west\."):
        run_server(plan, public=through_a_folder / "public.csv", inbox=mailbox, result=tmp_path / "result")


def test_a_bundle_and_a_final_model_in_any_mailbox_can_be_inspected(plan, through_a_folder, bundles):
    mailbox = MemoryMailbox(dict(bundles))
    facts = describe_file(mailbox, "north.fedkt", plan)
    folder = FolderMailbox(through_a_folder / "inbox")
    assert facts == describe_file(folder, "north.fedkt", plan) | {"file": "memory:north.fedkt"}
    assert facts["accepted"]
    mailbox.put("final.onnx", (through_a_folder / "result" / "final.onnx").read_bytes())
    assert describe_file(mailbox, "final.onnx")["signature"] == "none: not signed"
    mailbox.put("final.onnx.sig", b"of somebody")
    assert describe_file(mailbox, "final.onnx")["signature"] == "there is one; pass --server-key to check it"


def test_a_signature_that_may_not_be_read_is_not_taken_for_none(through_a_folder):
    class Locked(MemoryMailbox):
        def read(self, name, limit):
            if name.endswith(".sig"):
                raise PermissionError(13, "Permission denied")
            return super().read(name, limit)

    mailbox = Locked({"final.onnx": (through_a_folder / "result" / "final.onnx").read_bytes()})
    assert describe_file(mailbox, "final.onnx")["signature"].startswith("there is one")


def test_a_bundle_in_a_folder_reached_by_a_link_is_found(plan, through_a_folder, tmp_path):
    shutil.copytree(through_a_folder / "inbox", tmp_path / "real")
    (tmp_path / "inbox").symlink_to(tmp_path / "real")
    assert len(gather(plan, mailbox_at(tmp_path / "inbox"))) == 3
