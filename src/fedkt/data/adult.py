"""UCI Adult (Becker, Kohavi 1996): does a person earn more than 50,000 dollars a year?

`load_adult` is the LIBSVM encoding a9a that the paper uses; `load_adult_table` is the original table with its text
columns. Row i of one is row i of the other, so the same seed gives the same people in the same roles.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedkt.data.dataset import Dataset, assign_rows, split_rows
from fedkt.data.download import Progress, find_content
from fedkt.data.libsvm import load_libsvm

CLASSES = ("<=50K", ">50K")


def load_adult(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """Adult as a9a: 32,561 rows of 123 binary features; 75 % for the parties, the rest halved into public and test."""
    origin = "UCI Adult in the LIBSVM encoding a9a"
    return load_libsvm(
        "adult", "a9a", 123, classes=CLASSES, origin=origin, seed=seed, data_dir=data_dir, progress=progress
    )


def load_adult_table(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """Adult's original columns, encoded by a schema fitted on the public rows; split as `load_adult`."""
    import io

    from fedkt.data.schema import fit_schema
    from fedkt.data.table import parse_csv

    text = find_content("adult.csv", data_dir=data_dir, progress=progress)
    table = parse_csv(io.StringIO(text.content.decode("utf-8")), "adult.csv")
    table = table.take(np.flatnonzero(table.columns["split"] == "train"))
    rows = split_rows(table.n_rows, seed=seed)
    schema = fit_schema(table.take(rows.public), label="income", ignore=["split"])
    return assign_rows(
        "adult-table",
        schema.encode(table),
        schema.labels(table, CLASSES),
        rows,
        classes=CLASSES,
        source=f"UCI Adult, original columns, {text.source}",
        feature_names=schema.feature_names,
    )
