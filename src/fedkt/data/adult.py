"""UCI Adult (Becker, Kohavi 1996): does a person earn more than 50,000 dollars a year?

`load_adult` is the LIBSVM encoding a9a that the paper uses; `load_adult_table` is the original table with its text
columns. Row i of one is row i of the other, so the same seed gives the same people in the same roles.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedkt.data.dataset import Dataset, dealt, split_rows
from fedkt.data.download import Progress, read_text
from fedkt.data.libsvm import parse_verified

CLASSES = ("<=50K", ">50K")
N_FEATURES = 123


def load_adult(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """Adult as a9a: 32,561 rows of 123 binary features; 75 % for the parties, the rest halved into public and test."""
    text, source = read_text("a9a", data_dir=data_dir, progress=progress)
    X, signs = parse_verified(text, N_FEATURES)
    y = (signs > 0).astype(np.int64)
    return dealt(
        "adult",
        X,
        y,
        split_rows(len(y), seed=seed),
        classes=CLASSES,
        source=f"UCI Adult in the LIBSVM encoding a9a, {source}",
        feature_names=tuple(f"f{j}" for j in range(1, N_FEATURES + 1)),
    )


def load_adult_table(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """Adult's original columns, encoded by a schema fitted on the public rows; split as `load_adult`."""
    import io

    from fedkt.data.schema import fit_schema
    from fedkt.data.table import parse_csv

    text, source = read_text("adult.csv", data_dir=data_dir, progress=progress)
    table = parse_csv(io.StringIO(text.decode("utf-8")), "adult.csv")
    table = table.take(np.flatnonzero(table.columns["split"] == "train"))
    rows = split_rows(table.n_rows, seed=seed)
    schema = fit_schema(table.take(rows.public), label="income", ignore=["split"])
    return dealt(
        "adult-table",
        schema.encode(table),
        schema.labels(table, CLASSES),
        rows,
        classes=CLASSES,
        source=f"UCI Adult, original columns, {source}",
        feature_names=schema.feature_names,
    )
