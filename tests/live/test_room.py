"""The memory of a party's run is told by shapes, and held against the machine before anything is trained."""

import numpy as np
import pytest

from fedkt.errors import DataError
from fedkt.federation import Diary
from fedkt.live import room
from fedkt.live.room import check_memory, least_memory
from fedkt.plan import read_plan
from live_federation import NAMES, fedkt, new_plan, write

N = 10_000_000
# Eight measurements, and for each whether it is missing.
ROWS = 4 * 16 * N


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("room")
    write(folder / "public.csv", np.arange(100))
    return folder


def plan_of(folder, *more):
    new_plan(folder, "--force", *more)
    return read_plan(folder / "plan.toml")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(room, "total_memory", lambda: 1_000_000_000)
    monkeypatch.setattr(room, "free_memory", lambda: 100_000)


def test_rows_and_a_subset_with_what_its_family_copies_are_counted(folder):
    plan = plan_of(folder, "--partitions", "2", "--subsets", "5")
    # A tree learns from the subset as it is; logistic regression scales a copy of it.
    assert least_memory(plan, "north", N) == ROWS + ROWS // 5
    assert least_memory(plan, "south", N) == ROWS + 2 * ROWS // 5
    assert least_memory(plan, "north", N, jobs=3) == ROWS + 3 * ROWS // 5
    # Ten teachers are all there are.
    assert least_memory(plan, "north", N, jobs=64) == ROWS + 10 * ROWS // 5


def test_at_level_l2_every_partition_has_its_rows_inside_public_bounds(folder):
    noisy = ("--level", "L2", "--noise", "laplace:2", "--budget", "100000")
    plan = plan_of(folder, *noisy, "--queries", "1.0", "--partitions", "2", "--subsets", "5")
    assert least_memory(plan, "north", N) == 3 * ROWS + ROWS // 5


def test_under_moments_only_the_rows_are_there(folder):
    members = [word for name in NAMES for word in ("--party", name)]
    fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "diagnosis", "--voting", "moments", *members),
        *("--classes", "malignant,benign", "-o", folder / "moments.toml", "--force"),
    )
    assert least_memory(read_plan(folder / "moments.toml"), "north", N) == ROWS


def test_what_is_more_than_the_machine_has_is_refused_with_what_helps(folder, small):
    plan = plan_of(folder)
    with pytest.raises(DataError) as caught:
        check_memory(plan, "north", "north.csv", 20_000_000, diary=Diary())
    words = str(caught.value)
    assert "20,000,000 rows of 16 features takes at least 1.5 GB of memory" in words
    assert "this machine has 1.0 GB. Nothing was trained." in words
    assert "more subsets" in words
    assert "another family" in words


def test_what_is_more_than_is_free_is_only_spoken_of(folder, small):
    diary, heard = Diary(), []
    check_memory(plan_of(folder), "north", "north.csv", 10_000_000, diary=diary, warn=heard.append)
    assert len(heard) == 1
    assert "0.0 GB are free" in heard[0]
    assert list(diary.notes) == [f"Attention: {heard[0]}"]


def test_what_fits_goes_without_saying(folder, monkeypatch):
    monkeypatch.setattr(room, "total_memory", lambda: None)
    monkeypatch.setattr(room, "free_memory", lambda: None)
    diary = Diary()
    check_memory(plan_of(folder), "north", "north.csv", 10**9, diary=diary)
    assert list(diary.notes) == []


def test_where_records_are_protected_their_number_refuses_nothing(folder, small):
    plan = plan_of(folder, "--level", "L2", "--noise", "laplace:2", "--budget", "100000", "--queries", "1.0")
    diary = Diary()
    check_memory(plan, "north", "north.csv", 10**9, diary=diary)
    assert len(diary.notes) == 1


def test_a_party_hears_of_it_before_its_rows_are_encoded(folder, small, monkeypatch):
    plan_of(folder)
    write(folder / "north.csv", np.arange(100, 160), ["malignant", "benign"] * 30)
    monkeypatch.setattr(room, "total_memory", lambda: 1_000)
    command = ("party", folder / "plan.toml", "--name", "north", "--data", folder / "north.csv")
    with pytest.raises(DataError, match="takes at least"):
        fedkt(*command, "--public", folder / "public.csv", "-o", folder / "out", "--work", folder / "work")
