"""Arrays that are laid aside come back as they were, wherever they lay."""

import gc
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from fedkt.system.scratch import InMemory, OnDisk, Scratch

RNG = np.random.default_rng(0)
TABLES = [
    RNG.integers(0, 10, (2, 70)).astype(np.uint8),
    RNG.random((3, 70, 4)).astype(np.float32),
    RNG.integers(0, 1_000, (1, 70)).astype(np.uint16),
    RNG.random((70, 2)).astype(np.float32).T,
]


@pytest.mark.parametrize("memory", [0, 1_000, 10**6])
def test_what_is_kept_is_read_again_whole_or_in_part(tmp_path, memory):
    scratch = Scratch(tmp_path, memory=memory)
    kept = [scratch.keep(each) for each in TABLES]
    for table, each in zip(TABLES, kept, strict=True):
        assert each.shape == table.shape
        assert np.asarray(each).dtype == table.dtype
        np.testing.assert_array_equal(np.asarray(each), table)
        np.testing.assert_array_equal(each.columns(13, 29), table[:, 13:29])
        np.testing.assert_array_equal(each.columns(60, 99), table[:, 60:])
        np.testing.assert_array_equal(np.concatenate([each, each]), np.concatenate([table, table]))
        assert each.columns(70, 70).size == 0


def test_the_first_arrays_stay_in_memory_and_the_rest_lies_on_disk(tmp_path):
    scratch = Scratch(tmp_path, memory=150)
    kinds = [type(scratch.keep(np.zeros((1, size), np.uint8))) for size in (100, 60, 50, 1)]
    assert kinds == [InMemory, OnDisk, InMemory, OnDisk]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a name until a file is closed")
def test_the_file_has_no_name_and_is_gone_with_the_scratch(tmp_path):
    scratch = Scratch(tmp_path, memory=0)
    kept = scratch.keep(TABLES[0])
    assert list(tmp_path.iterdir()) == []
    descriptor = scratch._file.fileno()
    del scratch, kept
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_what_a_disk_has_no_room_for_is_known_beforehand(tmp_path, monkeypatch):
    asked = []
    usage = type("Usage", (), {"free": 1_000})
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: asked.append(Path(folder)) or usage)
    scratch = Scratch(tmp_path, memory=100)
    assert [scratch.lacks(size) for size in (0, 100, 1_100, 1_101, 5_000)] == [0, 0, 0, 1, 3_900]
    assert set(asked) == {tmp_path}
