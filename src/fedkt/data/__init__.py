"""Data: datasets to simulate with, partitions among parties, and a party's own tables.

`load` and `partition` are what a simulation needs; `fedkt.data.table` and `fedkt.data.schema` read a party's own file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedkt.data.adult import load_adult, load_adult_table
from fedkt.data.cod_rna import load_cod_rna
from fedkt.data.dataset import Dataset
from fedkt.data.digits import load_digits
from fedkt.data.download import Progress, find_file
from fedkt.data.heart import load_heart
from fedkt.data.mnist import load_mnist
from fedkt.data.partition import (
    PARTITIONERS,
    by_balanced_dirichlet,
    by_column,
    by_dirichlet,
    evenly,
    partition,
)
from fedkt.data.sources import FILES
from fedkt.data.svhn import load_svhn, load_svhn_extra
from fedkt.errors import ConfigurationError
from fedkt.system.plug_ins import add_plug_ins, why_left_out

__all__ = [
    "DATASETS",
    "FILES",
    "PARTITIONERS",
    "Dataset",
    "KnownDataset",
    "by_balanced_dirichlet",
    "by_column",
    "by_dirichlet",
    "evenly",
    "find_file",
    "known_dataset",
    "known_datasets",
    "load",
    "partition",
]


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that can be named: how to load it, and what to simulate with unless told otherwise."""

    loader: Callable[..., Dataset]
    n_parties: int
    model: str
    description: str
    partition: str = "dirichlet"


DATASETS: dict[str, KnownDataset] = {
    "adult": KnownDataset(load_adult, 50, "forest", "income over 50,000 dollars, LIBSVM a9a: 32,561 rows, 2 classes"),
    "adult-table": KnownDataset(
        load_adult_table, 50, "forest", "the same people, original text columns through a schema"
    ),
    "cod-rna": KnownDataset(load_cod_rna, 50, "boosting", "non-coding RNA, LIBSVM: 59,535 rows, 2 classes"),
    "digits": KnownDataset(load_digits, 5, "forest", "8 × 8 handwritten digits: 1,797 rows, 10 classes, no download"),
    "heart": KnownDataset(
        load_heart, 4, "forest", "heart disease in four hospitals: 920 rows, 2 classes, with gaps", "column"
    ),
    "mnist": KnownDataset(load_mnist, 10, "mlp", "28 × 28 handwritten digits: 70,000 rows, 10 classes", "balanced"),
    "svhn": KnownDataset(
        load_svhn,
        10,
        "cnn",
        "32 × 32 colour house numbers without the extra part: 99,289 rows, 10 classes",
        "balanced",
    ),
    "svhn-extra": KnownDataset(
        load_svhn_extra,
        10,
        "cnn",
        "the same with the extra part, as in the paper: 630,420 rows, a download of 1.3 GB",
        "balanced",
    ),
}
"""Every dataset by its name on the command line; `known_datasets` has those of plug-ins too."""


def known_datasets() -> dict[str, KnownDataset]:
    """The catalogue with the datasets of installed plug-ins."""
    return add_plug_ins(DATASETS, "fedkt.datasets", read_plug_in)


def read_plug_in(found: object, name: str) -> KnownDataset:
    """What a plug-in holds, as an entry of the catalogue."""
    if not isinstance(found, KnownDataset):
        raise TypeError(f"a dataset is a fedkt.data.KnownDataset, got {str(found)[:80]}")
    if found.partition not in PARTITIONERS:
        raise ValueError(f"there is no partition {found.partition!r}; there are {', '.join(PARTITIONERS)}")
    return found


def known_dataset(name: str) -> KnownDataset:
    """The dataset of this name, or a refusal with the known ones."""
    known = known_datasets()
    if name not in known:
        raise ConfigurationError(
            f"There is no dataset {name!r}. Choose one of: {', '.join(known)}.{why_left_out('fedkt.datasets', name)}"
        )
    return known[name]


def load(name: str, *, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """The dataset called `name`, split into parties', public and test rows by `seed`."""
    return known_dataset(name).loader(seed=seed, data_dir=data_dir, progress=progress)
