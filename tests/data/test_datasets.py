"""The datasets: sizes as published, roles apart, the same seed the same rows."""

from __future__ import annotations

import gzip
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest

from fedkt.data import DATASETS, load, partition
from fedkt.data.dataset import split_rows, split_rows_within
from fedkt.errors import ConfigurationError
from real_data import DATA_DIR, needs_real_data

IMAGES = ("mnist", "svhn", "svhn-extra")
"""Large, and tested in a file of their own."""
REAL = [
    pytest.param(name, marks=() if name == "digits" else needs_real_data) for name in DATASETS if name not in IMAGES
]

SIZES = {
    "adult": (24_420, 4_070, 4_071, 123),
    "adult-table": (24_420, 4_070, 4_071, None),
    "cod-rna": (44_651, 7_442, 7_442, 8),
    "digits": (1_347, 225, 225, 64),
    "heart": (459, 230, 231, None),
}


@lru_cache(maxsize=4)
def load_here(name: str, seed: int = 0):
    return load(name, seed=seed, data_dir=None if name == "digits" else DATA_DIR)


@pytest.mark.parametrize("name", REAL)
def test_a_dataset_has_its_published_size_and_fits_together(name):
    data = load_here(name)
    train, public, test, width = SIZES[name]
    assert (len(data.X), len(data.X_public), len(data.X_test)) == (train, public, test)
    assert (len(data.y), len(data.y_public), len(data.y_test)) == (train, public, test)
    assert data.name == name
    assert data.X.shape[1] == data.X_public.shape[1] == data.X_test.shape[1] == len(data.feature_names)
    assert width in (None, data.X.shape[1])
    for X in (data.X, data.X_public, data.X_test):
        assert X.dtype == np.float32
        assert np.isfinite(X).all()
    for y in (data.y, data.y_public, data.y_test):
        assert y.dtype == np.int64
        assert set(y.tolist()) == set(range(len(data.classes)))
    assert data.groups is None or len(data.groups) == train
    assert data.source


@pytest.mark.parametrize("name", ["digits", pytest.param("heart", marks=needs_real_data)])
def test_a_seed_gives_the_same_rows_and_another_seed_others(name):
    once, other = load_here(name, 3), load_here(name, 4)
    load_here.cache_clear()
    again = load_here(name, 3)
    np.testing.assert_array_equal(once.X, again.X)
    np.testing.assert_array_equal(once.y_test, again.y_test)
    assert not np.array_equal(once.y, other.y)


@needs_real_data
def test_adult_is_a9a_with_its_class_counts():
    data = load_here("adult")
    y = np.concatenate([data.y, data.y_public, data.y_test])
    assert np.bincount(y).tolist() == [24_720, 7_841]
    assert data.classes == ("<=50K", ">50K")
    with gzip.open(DATA_DIR / "a9a.gz", "rt") as stream:
        ones = sum(line.count(":1") for line in stream)
    assert sum(X.sum() for X in (data.X, data.X_public, data.X_test)) == ones


@needs_real_data
def test_cod_rna_is_unscaled_with_its_class_counts():
    data = load_here("cod-rna")
    assert np.bincount(np.concatenate([data.y, data.y_public, data.y_test])).tolist() == [39_690, 19_845]
    assert min(X[:, 0].min() for X in (data.X, data.X_public, data.X_test)) == -1868
    assert data.classes == (-1, 1)


@needs_real_data
def test_the_adult_table_has_the_same_people_in_the_same_roles():
    encoded, original = load_here("adult"), load_here("adult-table")
    for role in ("y", "y_public", "y_test"):
        np.testing.assert_array_equal(getattr(encoded, role), getattr(original, role))
    # One of a9a's binary features is the sex: it must agree with the table's in every row.
    male = original.X_test[:, original.feature_names.index("sex=Male")]
    assert any(np.array_equal(male, encoded.X_test[:, j]) for j in range(123))


@needs_real_data
def test_the_adult_table_is_scaled_by_its_public_rows_only():
    data = load_here("adult-table")
    age = data.feature_names.index("age")
    assert data.X_public[:, age].mean() == pytest.approx(0, abs=1e-5)
    assert data.X_public[:, age].std() == pytest.approx(1, abs=1e-5)
    assert abs(data.X[:, age].mean()) > 1e-5
    assert "workclass is missing" in data.feature_names
    assert "age is missing" not in data.feature_names
    assert not any(name.startswith(("income", "split")) for name in data.feature_names)


@needs_real_data
def test_the_hospitals_keep_their_share_of_rows_and_their_gaps():
    data = load_here("heart")
    assert data.groups is not None
    sites, counts = np.unique(data.groups, return_counts=True)
    assert dict(zip(sites.tolist(), counts.tolist(), strict=True)) == {
        "cleveland": 151,
        "hungarian": 147,
        "switzerland": 61,
        "va_long_beach": 100,
    }
    y = np.concatenate([data.y, data.y_public, data.y_test])
    assert np.bincount(y).tolist() == [411, 509]
    unmeasured = data.X[:, data.feature_names.index("chol is missing")]
    assert unmeasured[data.groups == "switzerland"].all()
    assert not unmeasured[data.groups == "cleveland"].any()
    parties = partition("column", data.y, 4, rng=np.random.default_rng(0), groups=data.groups)
    assert sorted(set(parties.tolist())) == sites.tolist()


@needs_real_data
@pytest.mark.parametrize("seed", range(1, 11))
def test_every_split_of_the_hospitals_can_be_encoded(seed):
    assert load_here("heart", seed).X.shape[0] == 459


@needs_real_data
@pytest.mark.parametrize("name", ["adult", "cod-rna"])
@pytest.mark.parametrize("how", ["dirichlet", "balanced"])
def test_fifty_parties_can_be_drawn_from_the_papers_datasets(name, how):
    data = load_here(name)
    for seed in range(5):
        parties = partition(how, data.y, 50, rng=np.random.default_rng(seed))
        assert np.bincount(parties, minlength=50).min() >= (10 if how == "balanced" else 1)


@pytest.mark.parametrize("n_rows", [4, 7, 100, 32_561])
def test_a_split_has_every_row_once(n_rows):
    rows = split_rows(n_rows, seed=5)
    assert sorted([*rows.train, *rows.public, *rows.test]) == list(range(n_rows))
    groups = np.array([str(i % 3) for i in range(n_rows)])
    rows = split_rows_within(groups, seed=5, held_out=0.5)
    assert sorted([*rows.train, *rows.public, *rows.test]) == list(range(n_rows))


@pytest.mark.parametrize("seed", [-1, 1.5, None, "0", True])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(ConfigurationError, match="seed"):
        load("digits", seed=seed)


def test_an_unknown_dataset_names_the_known_ones():
    with pytest.raises(ConfigurationError, match="adult, adult-table, cod-rna, digits, heart, mnist, svhn, svhn-extra"):
        load("imagenet", seed=0)


def test_importing_the_data_layer_is_cheap():
    slow = "{'sklearn', 'scipy', 'pydantic', 'httpx', 'pyarrow', 'PIL'}"
    program = f"import sys, fedkt.data; print({slow} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_skewed_public_rows_have_other_class_shares_and_only_those():
    from fedkt.data.dataset import PUBLIC_STREAM, with_skewed_public

    data = load("digits", seed=0)
    assert with_skewed_public(data, None, seed=0) is data
    skewed = with_skewed_public(data, 0.5, seed=0)
    shares = np.random.default_rng([0, PUBLIC_STREAM, 1]).dirichlet(np.full(10, 0.5))
    got = np.bincount(skewed.y_public, minlength=10) / len(skewed.y_public)
    assert len(skewed.y_public) == len(data.y_public)
    assert np.abs(got - shares).sum() / 2 < 0.05
    assert (skewed.X_public.sum(axis=1)[:, None] == data.X_public.sum(axis=1)).any(axis=1).all()
    again = with_skewed_public(data, 0.5, seed=0)
    assert (again.X_public == skewed.X_public).all()
    assert (skewed.X_test == data.X_test).all()
