"""Rows that several processes work on: nobody else can read them, while they are worked on and after a kill."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pytest

from fedkt.system.parallel import in_parallel, rows_in
from live_federation import build, party

SHARED = Path("/dev/shm")
PROGRAM = """
import sys, time
from contextlib import nullcontext
from pathlib import Path
import numpy as np
from fedkt.system.parallel import in_parallel, rows_in

def wait(task):
    Path(sys.argv[1], f"seen-{task[1]}").write_text(str(getattr(task[0], "filename", "")))
    time.sleep(600)

rows = np.ones(1_000_000)
with rows_in(Path(sys.argv[2])) if sys.argv[2:] else nullcontext():
    list(in_parallel(wait, [(rows, 0), (rows, 1)], jobs=2))
"""


def mapped(task):
    return str(getattr(task[0], "filename", ""))


def closed(path, stop):
    """Whether a folder on the way from `stop` down to `path` lets nobody but its owner through."""
    return any(
        stat.S_IMODE(each.stat().st_mode) & 0o077 == 0
        for each in path.parents
        if each.is_relative_to(stop) and each != stop
    )


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
        while not all((tmp_path / f"seen-{task}").exists() for task in (0, 1)) and time.monotonic() < deadline:
            time.sleep(0.05)
        places = [Path((tmp_path / f"seen-{task}").read_text()) for task in (0, 1)]
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


def test_the_folder_of_rows_ends_with_the_work_and_the_umask_is_as_before(tmp_path):
    mask = os.umask(0o022)
    try:
        with rows_in(tmp_path / "rows"):
            found = list(in_parallel(mapped, [(np.ones(200_000), 0), (np.ones(200_000), 1)], jobs=2))
        assert all(Path(each).is_relative_to(tmp_path / "rows") for each in found)
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

    class Watched(joblib.Parallel):
        def __init__(self, *arguments, **options):
            folder = Path(options["temp_folder"])
            seen.append((folder, stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(folder.parent.stat().st_mode)))
            super().__init__(*arguments, **options)

    monkeypatch.setattr(joblib, "Parallel", Watched)
    build(tmp_path)
    party(tmp_path, "north", "--jobs", "2")
    assert seen
    for folder, own, above in seen:
        assert folder == tmp_path / "work" / "rows"
        assert (own, above) == (0o700, 0o700)
    assert not (tmp_path / "work").exists()
