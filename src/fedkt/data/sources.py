"""Every file a dataset may need: its names on disk, where the public keeps it, and how it is recognised.

One digest stands for a file however it is packed: the sha256 of its content after decompression and, where the public
source serves several raw files, after joining them. So a9a as plain text and as a9a.gz are the same file, and so are
the four idx files of MNIST and mnist.npz.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fedkt.data.packing import idx_from_mnist_npz, join_adult, join_heart, join_plain, svhn_from_npz

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
SVHN = "http://ufldl.stanford.edu/housenumbers"

SVHN_ROWS = {"train": 73_257, "test": 26_032, "extra": 531_131}
"""Rows of each part of SVHN."""
SVHN_ROW_BYTES = 32 * 32 * 3 + 1
"""Pixels and digit of one row."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of a dataset: its names on disk, where the public keeps it, and how it is recognised."""

    names: tuple[str, ...]
    """File names it is looked for under; the last one is the name in the cache."""
    urls: tuple[str, ...]
    """The public files it is made of; empty where the public has it in another form only."""
    sha256: str
    """Of the content, decompressed and joined."""
    size: int
    """Bytes of that content."""
    join: Callable[[Sequence[bytes]], bytes] = join_plain
    from_npz: Callable[[bytes], bytes] | None = None
    """How a file whose name ends in .npz becomes the content."""
    sent: int | None = None
    """Bytes of the public files as they are sent, where those are packed."""

    @property
    def most_bytes(self) -> int:
        """More than this is not the file: nothing longer is downloaded or decompressed."""
        return 2 * self.size + 65_536


FILES: dict[str, RemoteFile] = {
    "a9a": RemoteFile(
        names=("a9a.gz", "a9a"),
        urls=(f"{LIBSVM}/a9a",),
        sha256="7ba53cccb27e2e525f0fb173e1f446d49856e3fb007eb43be4ec6d0f5b3335ca",
        size=2_327_314,
    ),
    "cod-rna": RemoteFile(
        names=("cod-rna.gz", "cod-rna"),
        urls=(f"{LIBSVM}/cod-rna",),
        sha256="65b7cc0689fc29bba5db8b50fab0b6446d985f4bf8f6f5dd474f7df8b2f1ab6c",
        size=4_667_176,
    ),
    "adult.csv": RemoteFile(
        names=("adult.csv.gz", "adult.csv"),
        urls=(f"{UCI}/adult/adult.data", f"{UCI}/adult/adult.test"),
        sha256="d99d5b2c07ff6c7e09b6e0cefe115f6835d5c7b6efebdb9276238f1243c6369b",
        size=5_554_299,
        join=join_adult,
    ),
    "heart_disease_4sites.csv": RemoteFile(
        names=("heart_disease_4sites.csv.gz", "heart_disease_4sites.csv"),
        urls=tuple(
            f"{UCI}/heart-disease/processed.{site}.data" for site in ("cleveland", "hungarian", "switzerland", "va")
        ),
        sha256="f560e924ab09a3fc583e97b36abeb178e3459dddc358f40d90e080176237d687",
        size=41_779,
        join=join_heart,
    ),
    "mnist": RemoteFile(
        names=("mnist.npz", "mnist.idx"),
        urls=tuple(
            f"{MNIST}/{part}-ubyte.gz"
            for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
        ),
        sha256="b2d8f5bf39174ee5ffeefa97e42d673c35432b411bb5d1f74fbbeddae7f1690a",
        size=54_950_048,
        from_npz=idx_from_mnist_npz,
        sent=11_594_722,
    ),
    "svhn_train.npz": RemoteFile(
        names=("svhn_train.npz",),
        urls=(),
        sha256="2d7e9ea238c9329d36b1f6a3c6b7a9b54b5761c52abbbb57e113f1357814bb9f",
        size=SVHN_ROWS["train"] * SVHN_ROW_BYTES,
        from_npz=partial(svhn_from_npz, n_rows=SVHN_ROWS["train"]),
    ),
    "svhn_test.npz": RemoteFile(
        names=("svhn_test.npz",),
        urls=(),
        sha256="8a6d7d016e3619866f589ef299068df5595bc36ed3b4c2afd570b74784b031a8",
        size=SVHN_ROWS["test"] * SVHN_ROW_BYTES,
        from_npz=partial(svhn_from_npz, n_rows=SVHN_ROWS["test"]),
    ),
    "train_32x32.mat": RemoteFile(
        names=("train_32x32.mat",),
        urls=(f"{SVHN}/train_32x32.mat",),
        sha256="435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
        size=182_040_794,
    ),
    "test_32x32.mat": RemoteFile(
        names=("test_32x32.mat",),
        urls=(f"{SVHN}/test_32x32.mat",),
        sha256="cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        size=64_275_384,
    ),
    "extra_32x32.mat": RemoteFile(
        names=("extra_32x32.mat",),
        urls=(f"{SVHN}/extra_32x32.mat",),
        sha256="a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3",
        size=1_329_278_602,
    ),
}
"""Every file a dataset may need, by name."""
