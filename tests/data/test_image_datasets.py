"""MNIST and SVHN: what is in them, however their files came."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from fedkt.data import DATASETS, load, mnist, svhn
from fedkt.data.download import FILES, RemoteFile
from fedkt.data.packing import idx_from_mnist_npz, svhn_from_npz
from fedkt.data.pixels import image_shape, normalise, pixel_names
from fedkt.errors import DataError
from real_data import DATA_DIR

needs_mnist = pytest.mark.skipif(not (DATA_DIR / "mnist.npz").is_file(), reason="mnist.npz is not here")
needs_svhn = pytest.mark.skipif(not (DATA_DIR / "svhn_train.npz").is_file(), reason="svhn_train.npz is not here")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FEDKT_DATA", raising=False)
    return tmp_path / "cache" / "fedkt"


def idx(array: np.ndarray) -> bytes:
    """An idx file as the public source describes it: magic number, lengths, bytes."""
    magic = {1: 2049, 3: 2051}[array.ndim]
    return struct.pack(f">{1 + array.ndim}i", magic, *array.shape) + array.tobytes()


def svhn_npz(path: Path, images: np.ndarray, digits: np.ndarray, **wrong: np.ndarray) -> None:
    """An SVHN part in our coding, written number by number."""
    red, green, blue = (images[..., c].astype(int) for c in range(3))
    planes = np.stack([red - green, green, blue - green])
    coded = np.zeros_like(planes)
    for h in range(32):
        for w in range(32):
            above = planes[:, :, h - 1, w] if h else 0
            left = planes[:, :, h, w - 1] if w else 0
            corner = planes[:, :, h - 1, w - 1] if h and w else 0
            coded[:, :, h, w] = planes[:, :, h, w] - above - left + corner
    np.savez_compressed(path, **({"x_delta": (coded % 256).astype(np.uint8), "y": digits} | wrong))


@pytest.fixture
def toy_mnist(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """Seven and four images instead of MNIST's, with the digest they have in the public form."""
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": rng.integers(0, 256, (7, 28, 28), dtype=np.uint8),
        "y_train": rng.integers(0, 10, 7, dtype=np.uint8),
        "x_test": rng.integers(0, 256, (4, 28, 28), dtype=np.uint8),
        "y_test": np.array([3, 1, 4, 9], dtype=np.uint8),
    }
    content = b"".join(idx(array) for array in arrays.values())
    shapes = {name: array.shape for name, array in arrays.items()}
    monkeypatch.setattr("fedkt.data.packing.MNIST_ARRAYS", shapes)
    monkeypatch.setattr(mnist, "MNIST_ARRAYS", shapes)
    original = FILES["mnist"]
    urls = tuple(f"http://127.0.0.1:9/{url.rpartition('/')[2]}" for url in original.urls)
    toy = RemoteFile(
        original.names, urls, hashlib.sha256(content).hexdigest(), len(content), from_npz=idx_from_mnist_npz
    )
    monkeypatch.setitem(FILES, "mnist", toy)
    return arrays


def public_files(folder: Path, arrays: dict[str, np.ndarray], ending: str) -> None:
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    for name, array in zip(names, arrays.values(), strict=True):
        content = gzip.compress(idx(array)) if ending else idx(array)
        (folder / f"{name}-ubyte{ending}").write_bytes(content)


@pytest.mark.parametrize("packing", ["npz", ".gz", ""])
def test_mnist_is_the_same_rows_however_it_is_packed(tmp_path, toy_mnist, packing):
    if packing == "npz":
        np.savez_compressed(tmp_path / "mnist.npz", **toy_mnist)
    else:
        public_files(tmp_path, toy_mnist, packing)
    data = load("mnist", seed=1, data_dir=tmp_path)
    expected = (toy_mnist["x_train"].reshape(7, 784) / 255 - 0.1307) / 0.3081
    np.testing.assert_allclose(data.X, expected, atol=1e-6)
    assert data.X.dtype == np.float32
    assert data.y.tolist() == toy_mnist["y_train"].tolist()
    assert sorted([*data.y_public, *data.y_test]) == [1, 3, 4, 9]
    assert (len(data.X_public), len(data.X_test)) == (2, 2)
    for row, digit in zip(data.X_public, data.y_public, strict=True):
        pixels = toy_mnist["x_test"][toy_mnist["y_test"].tolist().index(digit)].ravel()
        np.testing.assert_allclose(row, (pixels / 255 - 0.1307) / 0.3081, atol=1e-6)
    assert data.image == image_shape(data.feature_names) == (28, 28, 1)


def test_mnist_from_the_public_files_is_kept_in_the_cache(tmp_path, toy_mnist, cache):
    (tmp_path / "raw").mkdir()
    public_files(tmp_path / "raw", toy_mnist, ".gz")
    once = load("mnist", seed=0, data_dir=tmp_path / "raw")
    assert [path.name for path in cache.iterdir()] == ["mnist.idx"]
    np.testing.assert_array_equal(load("mnist", seed=0).X_test, once.X_test)


def test_another_seed_halves_the_test_images_otherwise(tmp_path, toy_mnist):
    np.savez(tmp_path / "mnist.npz", **toy_mnist)
    halves = {tuple(load("mnist", seed=seed, data_dir=tmp_path).y_public) for seed in range(5)}
    assert len(halves) > 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x_train": np.zeros((7, 28, 27), dtype=np.uint8)}, r"x_train is uint8 of shape \(7, 28, 27\)"),
        ({"y_test": np.zeros(4, dtype=np.int64)}, "y_test is int64"),
        ({"x_train": np.zeros((999, 28, 28), dtype=np.uint8)}, "no array 'x_train'"),
        ({"y_test": np.array([1, 2, 3, object()])}, "pickle"),
        ({"y_test": np.array([3, 1, 4, 8], dtype=np.uint8)}, "sha256"),
    ],
)
def test_arrays_that_are_not_mnist_are_refused(tmp_path, toy_mnist, change, words):
    np.savez_compressed(tmp_path / "mnist.npz", **(toy_mnist | change))
    with pytest.raises(DataError, match=words) as caught:
        load("mnist", seed=0, data_dir=tmp_path)
    assert "mnist.npz" in str(caught.value)


def test_a_file_that_is_no_npz_is_refused_by_name(tmp_path, toy_mnist):
    for content in (b"", b"PK\x03\x04", b"\x80\x04K\x01."):
        (tmp_path / "mnist.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"mnist\.npz cannot be read.*Remove"):
            load("mnist", seed=0, data_dir=tmp_path)


@pytest.mark.parametrize("damage", ["truncated", "other bytes", "not gzip"])
def test_public_files_that_are_not_mnist_are_refused(tmp_path, toy_mnist, damage, cache):
    public_files(tmp_path, toy_mnist, ".gz")
    path = tmp_path / "train-images-idx3-ubyte.gz"
    content = path.read_bytes()
    changed = idx(np.zeros((7, 28, 28), dtype=np.uint8))
    path.write_bytes({"truncated": content[:-40], "other bytes": gzip.compress(changed), "not gzip": changed}[damage])
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz"):
        load("mnist", seed=0, data_dir=tmp_path)
    assert not cache.exists()


@pytest.fixture
def toy_svhn(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """A few images for each part of SVHN, known by the digests of both their forms."""
    rng = np.random.default_rng(1)
    parts: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for part, n_rows in (("train", 5), ("test", 6), ("extra", 3)):
        images = rng.integers(0, 256, (n_rows, 32, 32, 3), dtype=np.uint8)
        digits = np.array([0, 9, 1, 5, 7, 2][:n_rows], dtype=np.uint8)
        parts[part] = images, digits
        content = images.tobytes() + digits.tobytes()
        npz = RemoteFile(
            (f"svhn_{part}.npz",),
            (),
            hashlib.sha256(content).hexdigest(),
            len(content),
            from_npz=partial(svhn_from_npz, n_rows=n_rows),
        )
        name = f"{part}_32x32.mat"
        file = official(images, digits)
        mat = RemoteFile((name,), (f"http://127.0.0.1:9/{name}",), hashlib.sha256(file).hexdigest(), len(file))
        monkeypatch.setitem(FILES, name, mat)
        if part != "extra":
            monkeypatch.setitem(FILES, f"svhn_{part}.npz", npz)
    monkeypatch.setattr(svhn, "SVHN_ROWS", {part: len(digits) for part, (_, digits) in parts.items()})
    return parts


def official(images: np.ndarray, digits: np.ndarray) -> bytes:
    """A MATLAB file as the public source has it: rows last, and the digit 0 as 10."""
    stream = io.BytesIO()
    labels = np.where(digits == 0, 10, digits).astype(np.uint8)[:, np.newaxis]
    savemat(stream, {"X": images.transpose(1, 2, 3, 0), "y": labels}, do_compression=True)
    # Some versions write the time of day into the header's text.
    return b"MATLAB 5.0 MAT-file".ljust(116) + stream.getvalue()[116:]


def expected_rows(images: np.ndarray) -> np.ndarray:
    return ((images / 255 - (0.4377, 0.4438, 0.4728)) / (0.1980, 0.2010, 0.1970)).reshape(len(images), 3072)


@pytest.mark.parametrize("form", ["npz", "mat"])
def test_svhn_is_read_from_our_arrays_and_from_the_official_files(tmp_path, toy_svhn, form):
    for part, (images, digits) in toy_svhn.items():
        if form == "npz" and part != "extra":
            svhn_npz(tmp_path / f"svhn_{part}.npz", images, digits)
        else:
            (tmp_path / f"{part}_32x32.mat").write_bytes(official(images, digits))
    data = load("svhn", seed=0, data_dir=tmp_path)
    np.testing.assert_allclose(data.X, expected_rows(toy_svhn["train"][0]), atol=2e-6)
    assert data.y.tolist() == [0, 9, 1, 5, 7]
    assert sorted([*data.y_public, *data.y_test]) == [0, 1, 2, 5, 7, 9]
    assert data.image == image_shape(data.feature_names) == (32, 32, 3)
    assert "604,388" in data.source
    assert ("svhn_train.npz" in data.source) == (form == "npz")
    more = load("svhn-extra", seed=0, data_dir=tmp_path)
    everything = np.concatenate([toy_svhn["train"][0], toy_svhn["extra"][0]])
    np.testing.assert_allclose(more.X, expected_rows(everything), atol=2e-6)
    assert more.y.tolist() == [0, 9, 1, 5, 7, 0, 9, 1]
    np.testing.assert_array_equal(more.X_public, data.X_public)
    assert "extra_32x32.mat" in more.source


def test_svhn_extra_without_its_file_says_where_to_get_it(tmp_path, toy_svhn):
    for part in ("train", "test"):
        svhn_npz(tmp_path / f"svhn_{part}.npz", *toy_svhn[part])
    with pytest.raises(DataError, match=r"extra_32x32\.mat could not be downloaded .*--data-dir"):
        load("svhn-extra", seed=0, data_dir=tmp_path)


def test_a_matlab_file_that_is_not_svhn_is_refused_before_it_is_parsed(tmp_path, toy_svhn, monkeypatch):
    def parsed(*args: object, **options: object) -> None:
        raise AssertionError("parsed unverified")

    monkeypatch.setattr("scipy.io.loadmat", parsed)
    svhn_npz(tmp_path / "svhn_test.npz", *toy_svhn["test"])
    (tmp_path / "train_32x32.mat").write_bytes(official(*toy_svhn["train"])[:-1])
    with pytest.raises(DataError, match=r"train_32x32\.mat is not the file expected"):
        load("svhn", seed=0, data_dir=tmp_path)


def test_a_folder_named_first_is_searched_for_both_forms_before_the_next(tmp_path, toy_svhn, monkeypatch):
    for name in ("own", "environment"):
        (tmp_path / name).mkdir()
        svhn_npz(tmp_path / name / "svhn_test.npz", *toy_svhn["test"])
    svhn_npz(tmp_path / "environment" / "svhn_train.npz", *toy_svhn["train"])
    (tmp_path / "own" / "train_32x32.mat").write_bytes(official(*toy_svhn["train"]))
    monkeypatch.setenv("FEDKT_DATA", str(tmp_path / "environment"))
    assert "train_32x32.mat" in load("svhn", seed=0, data_dir=tmp_path / "own").source


def test_images_are_normalised_by_channel_in_pieces_and_in_place():
    images = np.arange(10_000 * 2 * 1 * 3, dtype=np.int64).astype(np.uint8).reshape(10_000, 2, 1, 3)
    out = np.full((10_000, 6), np.nan, dtype=np.float32)
    assert normalise(images, (0.1, 0.2, 0.3), (0.5, 1.0, 2.0), out=out) is out
    expected = ((images / 255 - (0.1, 0.2, 0.3)) / (0.5, 1.0, 2.0)).reshape(10_000, 6)
    np.testing.assert_allclose(out, expected, atol=1e-6)


def test_pixels_are_named_in_the_order_of_the_row():
    assert pixel_names((1, 2, 1)) == ("pixel 0,0", "pixel 0,1")
    assert pixel_names((2, 1, 2)) == ("pixel 0,0,0", "pixel 0,0,1", "pixel 1,0,0", "pixel 1,0,1")


@pytest.mark.parametrize("image", [(1, 1, 1), (3, 2, 1), (28, 28, 1), (4, 5, 3)])
def test_an_images_shape_is_told_by_its_names(image):
    assert image_shape(pixel_names(image)) == image
    assert image_shape(list(pixel_names(image))) == image


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("age", "dose"),
        ("pixel 0,0", "age"),
        ("age", "pixel 0,1"),
        ("pixel 0,1", "pixel 0,0"),
        ("pixel 0,0", "pixel 0,2"),
        ("pixel 0,1",),
        ("pixel 999999,999999,9",),
        ("pixel 0,0", "pixel 0,01"),
        ("pixel 0,0,0",),
        (*pixel_names((2, 2, 1)), "pixel 0,0 is missing"),
    ],
)
def test_other_names_are_no_image(names):
    assert image_shape(names) is None


def test_the_digits_are_images_too():
    assert load("digits", seed=0).image == (8, 8, 1)


def test_the_papers_image_datasets_have_its_ten_parties():
    assert {name: DATASETS[name].n_parties for name in ("mnist", "svhn", "svhn-extra")} == {
        "mnist": 10,
        "svhn": 10,
        "svhn-extra": 10,
    }


@needs_mnist
def test_mnist_has_its_published_size_classes_and_digests():
    data = load("mnist", seed=0, data_dir=DATA_DIR)
    assert (data.X.shape, data.X_public.shape, data.X_test.shape) == ((60_000, 784), (5_000, 784), (5_000, 784))
    # Class counts as published.
    assert np.bincount(data.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    labels = np.concatenate([data.y_public, data.y_test])
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert data.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.X.mean() == pytest.approx(0, abs=1e-3)
    assert data.X.std() == pytest.approx(1, abs=1e-3)
    content = idx_from_mnist_npz((DATA_DIR / "mnist.npz").read_bytes())
    ends = np.cumsum([47_040_016, 60_008, 7_840_016, 10_008])
    digests = [hashlib.sha256(part).hexdigest()[:16] for part in np.split(np.frombuffer(content, np.uint8), ends)[:4]]
    # Of the four public files, unpacked.
    assert digests == ["ba891046e6505d7a", "65a50cbbf4e906d7", "0fa7898d509279e4", "ff7bcfd416de3373"]


@needs_svhn
def test_svhn_has_its_published_size_and_classes():
    data = load("svhn", seed=0, data_dir=DATA_DIR)
    assert (data.X.shape, data.X_public.shape, data.X_test.shape) == ((73_257, 3072), (13_016, 3072), (13_016, 3072))
    # Class counts as published.
    assert np.bincount(data.y).tolist() == [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659]
    labels = np.concatenate([data.y_public, data.y_test])
    assert np.bincount(labels).tolist() == [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]
    # By channel, in every tenth row, nearly what the constants promise for all; red and blue differ by 0.18 spreads.
    for channel in range(3):
        assert data.X[::10, channel::3].mean() == pytest.approx(0, abs=0.05)
        assert data.X[::10, channel::3].std() == pytest.approx(1, abs=0.05)
