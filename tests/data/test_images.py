"""A party's own images: IDX files and folders, and the words for what is not one."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import struct
import sys
import unicodedata
import zlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fedkt.data.images import folder_digest, image_shape, labels_file
from fedkt.data.schema import fit_schema
from fedkt.data.table import read_table
from fedkt.errors import DataError
from fedkt.plan import file_digest
from live_federation import fedkt

GREY = np.array([[[0, 1, 2], [3, 4, 5]], [[250, 251, 252], [253, 254, 255]]], dtype=np.uint8)
"""Two images of 2 × 3 pixels."""


def idx(array: np.ndarray, magic: int | None = None) -> bytes:
    """An idx file as its publishers describe it: magic number, lengths, bytes."""
    return struct.pack(f">{1 + array.ndim}i", magic or 2048 + array.ndim, *array.shape) + array.tobytes()


def columns_of(pixels: np.ndarray) -> dict[str, list[int]]:
    height, width = pixels.shape[1:3]
    return {f"pixel {r},{c}": pixels[:, r, c].tolist() for r in range(height) for c in range(width)}


def lists_of(table) -> dict[str, list]:
    return {name: values.tolist() for name, values in table.columns.items()}


def picture(path: Path, pixels: np.ndarray, mode: str | None = None) -> Path:
    """An image written by Pillow."""
    pillow = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image = pillow.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(path)
    return path


@pytest.mark.parametrize("images", ["train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", "t10k-images.idx3-ubyte"])
@pytest.mark.parametrize("packed", [False, True])
def test_an_idx_file_is_read_with_the_labels_beside_it(tmp_path, images, packed):
    labels = images.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1") + ".gz" * packed
    for name, array in ((images, GREY), (labels, np.array([7, 0], dtype=np.uint8))):
        content = idx(array)
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    table = read_table(tmp_path / images, label="digit")
    assert lists_of(table) == {**columns_of(GREY), "digit": [7, 0]}
    assert image_shape(tuple(table.columns)[:-1]) == (2, 3, 1)
    assert list(read_table(tmp_path / images).columns)[-1] == "label"


def test_an_idx_file_without_labels_is_rows_for_everybody_but_not_a_partys_own(tmp_path):
    path = tmp_path / "public-images-idx3-ubyte"
    path.write_bytes(idx(GREY))
    table = read_table(path, label="digit")
    assert lists_of(table) == columns_of(GREY)
    schema = fit_schema(table, label="digit")
    assert schema.read(path, labelled=False).n_rows == 2
    with pytest.raises(DataError, match=r"no labels\. Put its labels beside it, in public-labels-idx1-ubyte"):
        schema.read(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "begins with nothing, expected 00 00 08 03"),
        (idx(GREY)[:10], "not an IDX file of images"),
        (idx(GREY, magic=2049), "begins with 00 00 08 01"),
        (idx(GREY, magic=0x0D03), "begins with 00 00 0d 03"),
        (b"\x89PNG" + bytes(100), "begins with 89 50 4e 47"),
        (idx(GREY)[:-1], "2 × 2 × 3 images are 12 bytes, got 11"),
        (idx(GREY) + b"\0", "got at least 13"),
        (idx(GREY[:0]), "no images: its shape is 0 × 2 × 3"),
        (struct.pack(">4i", 2051, 2**31 - 1, 2**10, 2**10), "at most"),
        (struct.pack(">4i", 2051, 1, 400, 400) + bytes(160_000), "at most 100,000 columns"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_no_idx_of_images_is_refused(tmp_path, content, words, packed):
    path = tmp_path / ("bad-images-idx3-ubyte" + ".gz" * packed)
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=words) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


def test_a_packed_idx_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "a-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx(GREY))[:-9])
    with pytest.raises(DataError, match="cannot be read"):
        read_table(path)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (idx(np.zeros(3, dtype=np.uint8)), "3 labels for the 2 images"),
        (idx(GREY), "not an IDX file of labels"),
        (idx(np.zeros(2, dtype=np.uint8))[:-1], "labels are 2 bytes, got 1"),
    ],
)
def test_labels_that_do_not_fit_the_images_are_refused(tmp_path, labels, words):
    (tmp_path / "a-images-idx3-ubyte").write_bytes(idx(GREY))
    (tmp_path / "a-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(DataError, match=words) as caught:
        read_table(tmp_path / "a-images-idx3-ubyte")
    assert "a-labels-idx1-ubyte" in str(caught.value)


def test_a_folder_of_classes_is_labelled_in_the_order_of_its_names(tmp_path):
    picture(tmp_path / "own" / "dog" / "1.png", GREY[1])
    picture(tmp_path / "own" / "cat" / "b.PNG", GREY[0])
    picture(tmp_path / "own" / "cat" / "a.png", GREY[1])
    (tmp_path / "own" / "cat" / ".DS_Store").write_bytes(b"x")
    (tmp_path / "own" / "Thumbs.db").write_bytes(b"x")
    (tmp_path / "own" / "none of these").mkdir()
    table = read_table(tmp_path / "own", label="animal")
    assert lists_of(table) == {**columns_of(GREY[[1, 0, 1]]), "animal": ["cat", "cat", "dog"]}
    assert table.at(1) == str(tmp_path / "own" / "cat" / "b.PNG")
    assert table.take(np.array([2])).at(0) == str(tmp_path / "own" / "dog" / "1.png")


def test_a_folder_with_one_class_is_a_party_like_any_other(tmp_path):
    picture(tmp_path / "own" / "cat" / "a.png", GREY[0])
    assert read_table(tmp_path / "own").columns["label"].tolist() == ["cat"]


def test_a_folder_without_classes_is_rows_for_everybody_but_not_a_partys_own(tmp_path):
    for place, pixels in enumerate(GREY):
        picture(tmp_path / "public" / f"{place}.png", pixels)
    table = read_table(tmp_path / "public", label="animal")
    assert lists_of(table) == columns_of(GREY)
    with pytest.raises(DataError, match=r"no labels\. Put the images into folders named like their classes"):
        fit_schema(table, label="animal").read(tmp_path / "public")


def test_colour_images_have_three_columns_a_pixel(tmp_path):
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    picture(tmp_path / "own" / "a.png", pixels)
    table = read_table(tmp_path / "own")
    assert [values.tolist() for values in table.columns.values()] == [[value] for value in range(18)]
    assert list(table.columns)[3:5] == ["pixel 0,1,0", "pixel 0,1,1"]
    assert image_shape(tuple(table.columns)) == (2, 3, 3)


def test_a_jpeg_is_read_as_pillow_decodes_it(tmp_path):
    smooth = np.add.outer(np.arange(16), np.arange(16)).astype(np.uint8) * 8
    picture(tmp_path / "own" / "a.jpg", smooth)
    row = [values[0] for values in read_table(tmp_path / "own").columns.values()]
    assert np.abs(np.array(row, dtype=int) - smooth.ravel()).max() <= 8


def test_without_pillow_a_folder_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.png").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match=r"pip install 'fedkt\[images\]'"):
        read_table(tmp_path / "own")


def test_images_of_different_sizes_or_kinds_are_refused_by_name(tmp_path):
    picture(tmp_path / "own" / "a.png", GREY[0])
    picture(tmp_path / "own" / "b.png", np.zeros((3, 2), dtype=np.uint8))
    with pytest.raises(DataError, match=r"b\.png is 3 × 2, grey, but a\.png is 2 × 3, grey"):
        read_table(tmp_path / "own")
    picture(tmp_path / "own" / "b.png", np.zeros((2, 3, 3), dtype=np.uint8))
    with pytest.raises(DataError, match=r"b\.png is 2 × 3, in colour, but a\.png is 2 × 3, grey"):
        read_table(tmp_path / "own")


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "1", "I;16"])
def test_pixels_that_are_not_bytes_of_grey_or_colour_are_refused(tmp_path, mode):
    picture(tmp_path / "own" / "a.png", GREY[0], mode)
    with pytest.raises(DataError, match=r"a\.png has pixels of kind .*Save it as 8-bit grey or as RGB"):
        read_table(tmp_path / "own")


def test_a_broken_image_is_refused_by_name(tmp_path):
    path = picture(tmp_path / "own" / "b.png", np.arange(10_000, dtype=np.uint16).astype(np.uint8).reshape(100, 100))
    picture(tmp_path / "own" / "a.png", np.zeros((100, 100), dtype=np.uint8))
    png = path.read_bytes()
    for content in (b"", b"GIF89a" + bytes(50), png[:20], png[: len(png) // 2], png.replace(b"IHDR", b"IHDX")):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"b\.png is (damaged|not a PNG or JPEG image)"):
            read_table(tmp_path / "own")


def bomb(width: int, height: int) -> bytes:
    """A small PNG file that claims to be a huge grey image."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(10_000_000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("side", "words"), [(3_000, "at most 100,000 columns"), (10_000, "large"), (60_000, "large")])
def test_a_decompression_bomb_is_not_unpacked(tmp_path, monkeypatch, side, words):
    pillow = pytest.importorskip("PIL.Image")

    def unpacked(*arguments: object) -> None:
        raise AssertionError("unpacked")

    monkeypatch.setattr(pillow.Image, "load", unpacked)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", unpacked)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.png").write_bytes(bomb(side, side))
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / "own")


def test_a_folder_that_is_no_folder_of_images_is_refused(tmp_path):
    own = tmp_path / "own"
    (own / "cat").mkdir(parents=True)
    with pytest.raises(DataError, match="has no images"):
        read_table(own)
    picture(own / "a.png", GREY[0])
    picture(own / "cat" / "a.png", GREY[0])
    with pytest.raises(DataError, match=r"images of its own \('a\.png'\) beside folders"):
        read_table(own)
    (own / "a.png").unlink()
    (own / "cat" / "list.csv").write_text("a")
    with pytest.raises(DataError, match=r"list\.csv is not a PNG or JPEG file"):
        read_table(own)
    (own / "cat" / "list.csv").unlink()
    picture(own / "cat" / "young" / "a.png", GREY[0])
    with pytest.raises(DataError, match="young is not a PNG or JPEG file"):
        read_table(own)


def test_a_path_that_leads_nowhere_is_refused(tmp_path):
    with pytest.raises(DataError, match="is not a file, nor a folder"):
        read_table(tmp_path / "nowhere")


def test_a_label_cannot_be_called_like_a_pixel(tmp_path):
    picture(tmp_path / "own" / "cat" / "a.png", GREY[0])
    with pytest.raises(DataError, match="cannot be called 'pixel 0,1'"):
        read_table(tmp_path / "own", label="pixel 0,1")


def test_the_digest_of_a_folder_is_that_of_its_names_and_images(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for place in ("cat/a.png", "dog/b.png"):
        picture(first / place, GREY[0])
    shutil.copytree(first, second)
    (second / ".DS_Store").write_bytes(b"x")
    digest = folder_digest(first)
    assert file_digest(second) == file_digest(first) == digest
    (second / "dog" / "b.png").rename(second / "dog" / "c.png")
    renamed = folder_digest(second)
    picture(second / "dog" / "c.png", GREY[1])
    changed = folder_digest(second)
    (second / "dog" / "c.png").rename(second / "cat" / "c.png")
    assert len({digest, renamed, changed, folder_digest(second)}) == 4


def test_a_name_is_the_same_however_a_machine_spells_it(tmp_path):
    for form in ("NFC", "NFD"):
        picture(tmp_path / form / unicodedata.normalize(form, "Zoë") / "a.png", GREY[0])
    assert folder_digest(tmp_path / "NFC") == folder_digest(tmp_path / "NFD")
    assert read_table(tmp_path / "NFD").columns["label"].tolist() == [unicodedata.normalize("NFC", "Zoë")]


def test_the_digest_of_a_partys_idx_file_covers_its_labels(tmp_path):
    images, labels = tmp_path / "a-images-idx3-ubyte", tmp_path / "a-labels-idx1-ubyte"
    images.write_bytes(idx(GREY))
    assert labels_file(images) is None
    alone = file_digest(images, with_labels=True)
    assert alone == file_digest(images)
    labels.write_bytes(idx(np.array([0, 1], dtype=np.uint8)))
    assert labels_file(images) == labels
    once = file_digest(images, with_labels=True)
    labels.write_bytes(idx(np.array([1, 1], dtype=np.uint8)))
    assert len({alone, once, file_digest(images, with_labels=True)}) == 3
    assert file_digest(images) == alone


def test_pixels_share_a_scale_by_channel_and_are_never_missing(tmp_path):
    for place in range(3):
        colours = np.array([[[10, 100, 7], [30, 100, 7]]], dtype=np.uint8) + np.uint8(place * 20)
        picture(tmp_path / "public" / f"{place}.png", colours)
    table = read_table(tmp_path / "public")
    schema = fit_schema(table, label="animal", missing="allow")
    assert image_shape(schema.feature_names) == (1, 2, 3)
    red = np.array([10, 30, 30, 50, 50, 70])
    for column in (schema.columns[0], schema.columns[3]):
        assert (column.mean, column.scale) == pytest.approx((red.mean(), red.std()))
        assert not column.missing
    np.testing.assert_allclose(schema.encode(table)[:, 0], (np.array([10, 30, 50]) - red.mean()) / red.std(), rtol=1e-6)


def test_a_table_with_gaps_among_its_pixels_is_fitted_like_any_table(tmp_path):
    (tmp_path / "a.csv").write_text('"pixel 0,0","pixel 0,1"\n1,?\n3,4\n')
    schema = fit_schema(read_table(tmp_path / "a.csv"), label="animal")
    assert schema.feature_names == ("pixel 0,0", "pixel 0,1", "pixel 0,1 is missing")
    assert [column.mean for column in schema.columns] == [2.0, 4.0]


@pytest.fixture
def digits_folder(tmp_path: Path) -> Path:
    """Two parties' 8 × 8 digits, zeros and ones: one as PNG files, one as IDX; public rows as both."""
    data = load_digits()
    rows_of_two = np.flatnonzero(data.target < 2)
    images, digits = (data.images[rows_of_two] * 15).astype(np.uint8), data.target[rows_of_two].astype(np.uint8)
    for place in range(100, 160):
        picture(tmp_path / "public" / f"{place}.png", images[place])
        picture(tmp_path / "north" / str(digits[place - 100]) / f"{place}.png", images[place - 100])
    for place in range(260, 300):
        picture(tmp_path / "new" / str(digits[place]) / f"{place}.png", images[place])
    (tmp_path / "south-images-idx3-ubyte").write_bytes(idx(images[160:240]))
    (tmp_path / "south-labels-idx1-ubyte").write_bytes(idx(digits[160:240]))
    return tmp_path


def test_parties_with_images_of_different_kinds_make_one_model(digits_folder):
    here = digits_folder
    fedkt(
        *("plan", "new", "--public", here / "public", "--label", "digit", "--classes", "0,1", "--model", "logistic"),
        *("--party", "north", "--party", "south", "--subsets", "2", "-o", here / "plan.toml"),
    )
    fedkt("plan", "check", here / "plan.toml", "--public", here / "public")
    for name, data in (("north", "north"), ("south", "south-images-idx3-ubyte")):
        fedkt(
            *("party", here / "plan.toml", "--name", name, "--data", here / data, "--public", here / "public"),
            *("-o", here / "inbox", "--work", here / "work"),
        )
    fedkt(
        *("server", here / "plan.toml", "--public", here / "public", "--bundles", here / "inbox"),
        *("-o", here / "result"),
    )
    process = fedkt("predict", here / "result" / "final.onnx", here / "new")
    rows = list(csv.DictReader(io.StringIO(process.out)))
    assert list(rows[0]) == ["file", "prediction"]
    assert len(rows) == 40
    right = sum(row["file"].partition("/")[0] == row["prediction"] for row in rows)
    assert right >= 36
    assert f"accuracy {right / 40:.2%}" in process.err
    # Another public image is another plan.
    (here / "public" / "100.png").unlink()
    with pytest.raises(Exception, match="is not the public file of this plan"):
        fedkt("plan", "check", here / "plan.toml", "--public", here / "public")
