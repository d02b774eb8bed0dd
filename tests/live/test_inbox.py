"""What may lie in a server's folder: links, pipes, twins, newer issues, more than fits into memory."""

import gc
import json
import os
import shutil
import threading

import pytest

from fedkt.bundle import Bundle, pack, peek
from fedkt.bundle.signing import new_key
from fedkt.errors import BundleError, ConfigurationError
from fedkt.live import inbox as inboxes
from fedkt.live.inbox import gather, look
from fedkt.live.keys import read_key
from fedkt.live.mailbox import FolderMailbox, file_at
from fedkt.models.exchange import OnnxModel
from fedkt.models.onnx_rules import Limits
from fedkt.plan import read_plan
from live_federation import NAMES, build, fedkt, new_plan, party, server


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """A federation in which north signs; south and west do not."""
    folder = tmp_path_factory.mktemp("signed")
    build(folder)
    fedkt("keys", "new", "north", "-o", folder)
    new_plan(folder, "--key", f"north={folder / 'north.pub'}", "--force")
    for name in NAMES:
        party(folder, name, *(("--key", folder / "north.key") if name == "north" else ()))
    return folder


@pytest.fixture
def folder(signed, tmp_path):
    shutil.copytree(signed, tmp_path, dirs_exist_ok=True)
    return tmp_path


def models_of(folder, name):
    return look(read_plan(folder / "plan.toml"), FolderMailbox(folder / "inbox"), f"{name}.fedkt").bundle.models


def made(folder, name, models, key=None, issue=0):
    plan = read_plan(folder / "plan.toml")
    rows = plan.columns.encode(plan.read_public(folder / "public.csv"))
    return pack(Bundle(name, plan.classes, models, plan.digest, issue=issue), check_rows=rows, key=key)


def key_of(folder):
    return read_key(folder / "north.key")


def statuses(folder, *more):
    said = json.loads(server(folder, "--json", *more).out)
    return {each["file"]: each["status"] for each in said["bundles"]}


def answer_within(seconds, function, *arguments):
    """What a function returns; a failure where it is still waiting for something after so many seconds."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*arguments)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs"
    return found[0]


def test_a_pipe_swapped_in_after_the_folder_was_listed_is_refused(folder):
    path = folder / "inbox" / "north.fedkt"
    path.unlink()
    os.mkfifo(path)
    arrival = answer_within(20, look, read_plan(folder / "plan.toml"), *file_at(path))
    assert "not a regular file" in arrival.reason


def test_a_device_and_a_link_swapped_in_are_refused(folder):
    plan, path = read_plan(folder / "plan.toml"), folder / "inbox" / "north.fedkt"
    path.rename(folder / "elsewhere.fedkt")
    path.symlink_to(folder / "elsewhere.fedkt")
    assert "cannot be read" in look(plan, *file_at(path)).reason
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "cannot be read" in answer_within(20, look, plan, *file_at(path)).reason


def test_a_link_in_the_folder_is_named_and_not_followed(folder):
    (folder / "inbox" / "north.fedkt").rename(folder / "elsewhere.fedkt")
    (folder / "inbox" / "north.fedkt").symlink_to(folder / "elsewhere.fedkt")
    said = json.loads(server(folder, "--min-parties", "2", "--json").out)
    assert said["missing"] == ["north"]
    assert any("north.fedkt" in note and "it is a link" in note for note in said["notes"])


@pytest.mark.parametrize("verb", ["inspect", "predict", "plan", "key"])
def test_a_pipe_in_place_of_a_file_is_refused_instead_of_waited_for(folder, verb):
    from command_line import fedkt as command

    pipe, plan, public = folder / "pipe", folder / "plan.toml", folder / "public.csv"
    os.mkfifo(pipe)
    words = {
        "inspect": ("inspect", pipe),
        "predict": ("predict", pipe, public),
        "plan": ("plan", "check", pipe),
        "key": ("party", plan, "--name", "north", "--data", folder / "north.csv", "--public", public, "--key", pipe),
    }[verb]
    # The main thread only: main() sets what signals do.
    opener = threading.Timer(20, lambda: os.close(os.open(pipe, os.O_RDWR)))
    opener.daemon = True
    opener.start()
    ended = command(*map(str, words))
    opener.cancel()
    assert ended.returncode == 1
    assert "not a regular file" in ended.stderr or "is not a file" in ended.stderr


def alive():
    gc.collect()
    return sum(isinstance(each, OnnxModel) for each in gc.get_objects())


def test_bundles_that_do_not_count_are_not_kept_in_memory(folder):
    plan, inbox = read_plan(folder / "plan.toml"), folder / "inbox"
    south = models_of(folder, "south")
    for place in range(5):
        models = (*south[: place % 2], *models_of(folder, "west"), *south)[:2]
        (inbox / f"twin-{place}.fedkt").write_bytes(made(folder, "south", models, issue=place))
    del south, models
    before, during = alive(), []
    arrivals = gather(plan, FolderMailbox(inbox), wait=0.01, tell=lambda *_: during.append(alive() - before))
    assert sorted(each.party for each in arrivals if each.bundle) == ["north", "west"]
    # Two students each of the two parties that count, none of the six bundles of the third.
    assert max(during) == 4


def test_a_twin_that_goes_away_gives_its_party_back(folder):
    plan, inbox = read_plan(folder / "plan.toml"), folder / "inbox"
    (inbox / "twin.fedkt").write_bytes(made(folder, "south", models_of(folder, "west")))
    looks = []

    def tell(accepted, wanted):
        looks.append(accepted)
        (inbox / "twin.fedkt").unlink(missing_ok=True)

    arrivals = gather(plan, FolderMailbox(inbox), wait=30, tell=tell)
    assert looks == [2, 3]
    assert [each.party for each in arrivals if each.bundle is not None] == ["north", "south", "west"]


def test_a_party_that_sends_more_than_its_share_of_memory_is_refused(folder):
    plan = read_plan(folder / "plan.toml")
    arrivals = gather(plan, FolderMailbox(folder / "inbox"), limits=Limits(run_bytes=3 * 1_000))
    assert all("at most 1000 are unpacked" in each.reason for each in arrivals)
    with pytest.raises(BundleError, match="at most 333 are unpacked"):
        server(folder, "--memory", "0.000001")


def test_files_named_like_a_party_are_looked_at_before_a_flood_of_others(folder, monkeypatch):
    monkeypatch.setattr(inboxes, "MOST_FILES", 4)
    for place in range(6):
        (folder / "inbox" / f"0{place}.fedkt").write_bytes(b"")
    said = json.loads(server(folder, "--json").out)
    assert said["parties"] == 3
    assert sum("no more than 4 files are" in note for note in said["notes"]) == 5


def test_the_newer_of_two_signed_issues_counts_and_the_older_is_named(folder):
    newer = made(folder, "north", models_of(folder, "south"), key_of(folder), issue=1)
    (folder / "inbox" / "again.fedkt").write_bytes(newer)
    assert statuses(folder) == {
        "again.fedkt": "counted",
        "north.fedkt": "replaced",
        "south.fedkt": "counted",
        "west.fedkt": "counted",
    }
    words = server(folder).out
    assert "north.fedkt: it is replaced by again.fedkt, a newer issue (1)" in words


def test_two_signed_bundles_of_one_issue_are_both_refused_with_the_way_out(folder):
    other = made(folder, "north", models_of(folder, "south"), key_of(folder))
    (folder / "inbox" / "again.fedkt").write_bytes(other)
    with pytest.raises(BundleError, match=r"different bundles .*--issue 1"):
        server(folder)
    newest = made(folder, "north", models_of(folder, "west"), key_of(folder), issue=1)
    (folder / "inbox" / "newest.fedkt").write_bytes(newest)
    found = statuses(folder)
    assert (found["newest.fedkt"], found["again.fedkt"], found["north.fedkt"]) == ("counted", "replaced", "replaced")


def test_a_number_that_nobody_signed_replaces_nothing(folder):
    (folder / "inbox" / "again.fedkt").write_bytes(made(folder, "south", models_of(folder, "west"), issue=7))
    found = statuses(folder, "--min-parties", "2")
    assert (found["south.fedkt"], found["again.fedkt"]) == ("refused", "refused")
    forged = made(folder, "north", models_of(folder, "west"), new_key(), issue=7)
    (folder / "inbox" / "again.fedkt").write_bytes(forged)
    found = statuses(folder)
    assert (found["north.fedkt"], found["again.fedkt"]) == ("counted", "refused")


def test_a_damaged_newer_issue_does_not_silence_the_older(folder):
    newer = made(folder, "north", models_of(folder, "south"), key_of(folder), issue=1)
    (folder / "inbox" / "again.fedkt").write_bytes(newer[:-30])
    assert statuses(folder)["north.fedkt"] == "counted"


def issue_in(folder, name="north"):
    return peek((folder / "inbox" / f"{name}.fedkt").read_bytes(), source="x").issue


def test_a_party_numbers_what_replaces_its_signed_bundle_and_keeps_the_number_of_the_same_one(folder):
    key = ("--key", folder / "north.key")
    first = (folder / "inbox" / "north.fedkt").read_bytes()
    assert b'"issue"' not in first
    assert issue_in(folder) is None
    assert ", signed, plan " in party(folder, "north", *key).out
    assert (folder / "inbox" / "north.fedkt").read_bytes() == first
    rows = (folder / "north.csv").read_text().splitlines(keepends=True)
    (folder / "north.csv").write_text("".join(rows[:-9]))
    party(folder, "north", *key)
    second = (folder / "inbox" / "north.fedkt").read_bytes()
    assert issue_in(folder) == 1
    party(folder, "north", *key)
    assert (folder / "inbox" / "north.fedkt").read_bytes() == second
    assert ", signed, issue 41, plan " in party(folder, "north", *key, "--issue", "41").out
    assert issue_in(folder) == 41
    assert json.loads(party(folder, "north", *key, "--json").out)["issue"] == 41
    told = party(folder, "north", *key, "--issue", "7").err
    assert "was issue 41 and is replaced by issue 7, which is lower" in told
    assert "lower" not in party(folder, "north", *key, "--issue", "8").err
    party(folder, "north", *key, "--issue", "41")
    assert json.loads(fedkt("inspect", folder / "inbox" / "north.fedkt", "--json").out)["issue"] == 41


def test_an_issue_without_a_signature_or_out_of_range_is_refused_before_training(folder):
    with pytest.raises(ConfigurationError, match="Only a signed bundle has an issue"):
        party(folder, "south", "--issue", "2")
    with pytest.raises(ConfigurationError, match="from 1 to"):
        party(folder, "north", "--key", folder / "north.key", "--issue", "0")


def test_a_party_killed_after_its_bundle_was_written_says_so_and_succeeds_again(folder, monkeypatch):
    sent = folder / "inbox" / "north.fedkt"
    before = sent.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr("fedkt.cli.party.print_sent", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("power cut")))
        with pytest.raises(AssertionError, match="power cut"):
            party(folder, "north", "--key", folder / "north.key")
    assert (folder / "work" / "shelf.json").exists()
    written = sent.stat().st_mtime_ns
    said = party(folder, "north", "--key", folder / "north.key")
    assert "was there already" in said.err
    assert sent.stat().st_mtime_ns == written
    assert sent.read_bytes() == before
    assert not (folder / "work").exists()


def test_the_bundle_of_an_issue_is_the_same_but_for_its_number(folder):
    models, key = models_of(folder, "north"), key_of(folder)
    plain, numbered = (made(folder, "north", models, key, issue=each) for each in (0, 5))
    first, fifth = peek(plain, source="x"), peek(numbered, source="x")
    assert fifth == first.model_copy(update={"issue": 5})


def test_of_many_files_in_a_partys_name_only_some_are_looked_into_and_its_own_first(folder):
    key, models = key_of(folder), models_of(folder, "north")
    for issue in range(2, 12):
        (folder / "inbox" / f"more-{issue:02}.fedkt").write_bytes(made(folder, "north", models, key, issue))
    arrivals = gather(read_plan(folder / "plan.toml"), FolderMailbox(folder / "inbox"))
    passed = [each.file for each in arrivals if "8 files in 'north''s name were looked into already" in each.reason]
    # Eleven are signed by north: its own name's file and seven more are looked into.
    assert passed == ["more-09.fedkt", "more-10.fedkt", "more-11.fedkt"]
    assert {each.party for each in arrivals if each.bundle is not None} == set(NAMES)


def test_a_file_that_is_touched_again_and_again_is_one_file(folder):
    plan = read_plan(folder / "plan.toml")
    inbox = inboxes.Inbox(plan, FolderMailbox(folder / "inbox"), inboxes.limits_for(plan))
    for second in range(inboxes.MOST_LOOKS + 2):
        os.utime(folder / "inbox" / "north.fedkt", (second, second))
        assert all(not each.reason for each in inbox.arrivals())
