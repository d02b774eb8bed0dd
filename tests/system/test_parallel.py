"""Rows that several processes work on: nobody else can read them, while they are worked on and after a kill."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fedkt.system.backends import loky
from fedkt.system.backends.loky import rows_in
from fedkt.system.parallel import in_parallel
from live_federation import build, party

SHARED = Path("/dev/shm")
PROGRAM = """
import sys, time
from contextlib import nullcontext
from pathlib import Path
import numpy as np
from fedkt.system.backends import loky
from fedkt.system.backends.loky import rows_in
from fedkt.system.parallel import in_parallel

loky.START_UP = 0.0

def wait(task):
    Path(sys.argv[1], f"seen-{task[1]}").write_text(str(getattr(task[0], "filename", "")))
    time.sleep(600)

rows = np.ones(1_000_000)
with rows_in(Path(sys.argv[2])) if sys.argv[2:] else nullcontext():
    list(in_parallel(wait, [(rows, number) for number in range(4)], jobs=2))
"""


def mapped(task):
    time.sleep(0.2)
    return str(getattr(task[0], "filename", ""))


def closed(path, stop):
    """Whether a folder on the way from `stop` down to `path` lets nobody but its owner through."""
    return any(
        stat.S_IMODE(each.stat().st_mode) & 0o077 == 0
        for each in path.parents
        if each.is_relative_to(stop) and each != stop
    )


def read_places(folder):
    """Where processes that joined in have seen the rows."""
    return [Path(text) for each in folder.glob("seen-*") if (text := each.read_text())]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /dev/shm")
@pytest.mark.parametrize("where", ["named", "of its own"])
def test_rows_are_their_owners_while_a_job_runs_and_after_it_was_killed(tmp_path, monkeypatch, where):
    before = set(SHARED.glob("joblib*"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    folder = tmp_path / "temporary" / "rows"
    # Whoever's umask lets everybody read has to be as safe.
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), *([str(folder)] if where == "named" else [])],
        umask=0,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        # One task is done by the program itself, on its own copy of the rows.
        while len(places := read_places(tmp_path)) < 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert places
        for place in places:
            assert place.is_relative_to(tmp_path / "temporary")
            assert closed(place, tmp_path / "temporary")
            assert where != "named" or (place.is_relative_to(folder) and place.stat().st_mode & 0o077 == 0)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    left = [each for each in (tmp_path / "temporary").rglob("*") if each.is_file()]
    assert left
    assert all(closed(each, tmp_path / "temporary") for each in left)
    assert set(SHARED.glob("joblib*")) == before
    if where == "named":
        with rows_in(folder):
            assert not any(folder.iterdir())
        assert not folder.exists()


def test_the_folder_of_rows_ends_with_the_work_and_the_umask_is_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(loky, "START_UP", 0.0)
    rows, mask = np.ones(200_000), os.umask(0o022)
    try:
        with rows_in(tmp_path / "rows"):
            found = set(in_parallel(mapped, [(rows, number) for number in range(20)], jobs=2))
        assert any(found)
        assert all(Path(each).is_relative_to(tmp_path / "rows") for each in found if each)
        assert not (tmp_path / "rows").exists()
        with pytest.raises(RuntimeError), rows_in(tmp_path / "rows"):
            raise RuntimeError
        assert not (tmp_path / "rows").exists()
        (tmp_path / "file").write_text("")
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644
    finally:
        os.umask(mask)


def test_a_party_with_several_jobs_keeps_its_rows_in_its_own_working_folder(tmp_path, monkeypatch):
    seen = []

    class Watched(loky.Others):
        def __init__(self, queue, jobs, folder):
            seen.append((folder, stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(folder.parent.stat().st_mode)))
            super().__init__(queue, jobs, folder)

    monkeypatch.setattr(loky, "Others", Watched)
    build(tmp_path)
    party(tmp_path, "north", "--jobs", "2")
    assert seen
    for folder, own, above in seen:
        assert folder == tmp_path / "work" / "rows"
        assert (own, above) == (0o700, 0o700)
    assert not (tmp_path / "work").exists()
