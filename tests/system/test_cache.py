"""The cache: whole entries or none, in a folder that nobody else can write into, within its bounds."""

import os
import stat
import threading

import pytest

from fedkt.system.cache import Cache, DamagedEntry

ONE, OTHER, THIRD = "a" * 64, "b" * 64, "c" * 64


def test_what_is_written_is_read_by_its_owner_alone(tmp_path):
    cache = Cache(tmp_path / "new")
    assert cache.read(ONE) is None
    cache.write(ONE, b"what was said")
    assert cache.read(ONE) == b"what was said"
    (path,) = cache.folder.iterdir()
    assert [stat.S_IMODE(each.stat().st_mode) for each in (cache.folder, path)] == [0o700, 0o600]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"!"),
        lambda path: path.write_bytes(b""),
        lambda path: path.rename(path.with_name(f"{ONE}.kept")),
    ],
    ids=["cut off", "changed", "empty", "under the name of another"],
)
def test_a_damaged_entry_is_told_once_and_then_gone(tmp_path, spoil):
    cache = Cache(tmp_path)
    cache.write(OTHER, b"what was said")
    spoil(cache._path(OTHER))
    key = ONE if cache._path(ONE).exists() else OTHER
    with pytest.raises(DamagedEntry):
        cache.read(key)
    assert cache.read(key) is None


def test_a_link_is_not_followed(tmp_path):
    cache = Cache(tmp_path / "new")
    cache.write(ONE, b"what was said")
    cache._path(ONE).rename(tmp_path / "elsewhere")
    cache._path(ONE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedEntry):
        cache.read(ONE)


def test_what_was_used_longest_ago_makes_room_and_strangers_files_stay(tmp_path):
    cache = Cache(tmp_path, most_bytes=3 * (32 + 100))
    (tmp_path / "letters.kept").write_bytes(b"x" * 10_000)
    for age, key in enumerate((ONE, OTHER, THIRD)):
        cache.write(key, b"x" * 100)
        os.utime(cache._path(key), (age, age))
    assert cache.read(ONE) is not None
    cache.write("d" * 64, b"x" * 100)
    assert sorted(path.name[0] for path in tmp_path.iterdir()) == ["a", "c", "d", "l"]


def test_whoever_comes_later_waits_for_the_maker_and_finds_the_entry(tmp_path):
    cache, inside, found = Cache(tmp_path), threading.Event(), []

    def come_later():
        inside.wait()
        with cache.sole_maker(ONE):
            found.append(cache.read(ONE))

    other = threading.Thread(target=come_later)
    other.start()
    with cache.sole_maker(ONE):
        inside.set()
        cache.write(ONE, b"made once")
    other.join()
    assert found == [b"made once"]


def test_a_folder_that_others_can_write_into_is_not_believed(tmp_path):
    tmp_path.chmod(0o777)
    assert "Others can write into" in Cache(tmp_path).fault()
    tmp_path.chmod(0o700)
    assert not Cache(tmp_path).fault()
    assert not Cache(tmp_path / "new").fault()
    (tmp_path / "file").touch()
    assert "is not a folder" in Cache(tmp_path / "file").fault()


def test_clearing_removes_what_the_cache_has_put_there_and_nothing_else(tmp_path):
    cache = Cache(tmp_path / "own")
    cache.write(ONE, b"what was said")
    (cache.folder / "letter.txt").touch()
    cache.clear()
    assert [path.name for path in cache.folder.iterdir()] == ["letter.txt"]
    (cache.folder / "letter.txt").unlink()
    cache.clear()
    assert not cache.folder.exists()


def test_a_folder_that_others_made_meanwhile_is_not_believed(tmp_path):
    cache = Cache(tmp_path / "new")
    assert not cache.fault()
    Cache(tmp_path / "made").write(ONE, b"what nobody said")
    (tmp_path / "made").rename(cache.folder)
    cache.folder.chmod(0o777)
    with pytest.raises(DamagedEntry, match="Others can write"):
        cache.read(ONE)
    with pytest.raises(OSError, match="Others can write"):
        cache.write(ONE, b"what was said")


def test_where_no_lock_can_be_had_an_entry_is_made_all_the_same(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with Cache(tmp_path / "file" / "new").sole_maker(ONE):
        made = True
    assert made
